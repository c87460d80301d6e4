//! `probity worker`: makes calls for runs of others.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use probity_core::record::InputDigest;
use probity_load::settings::Layer;
use probity_queue::{
    Definition, OfferKind, OfferNote, Opened, RunNote, SeatUse, Tool, Worker, WorkerConfig,
    Workshop, offer_digest,
};
use probity_run::{
    backend::{Backend, Wire, http::Client, open::BackendFactory},
    callable::Callables,
    carrier::Executions,
    process,
    sandbox::Ground,
    scorer::Scorers,
};

use super::{access, connect, definition, file_names, files, names, runtime};
use crate::{
    cli::{
        ColorArg,
        run::{ForeignArgs, StoreArgs},
        workers::WorkerArgs,
    },
    commands::project::{Project, Reading, read_parts},
    environment::Environment,
    exit::Exit,
    failure::Failure,
    printer::Printer,
    signals,
};

/// How long programs have to end after the worker has.
const KILL_GRACE: Duration = Duration::from_secs(6);

pub(in crate::commands) fn serve(args: &WorkerArgs, printer: &Printer) -> Result<Exit, Failure> {
    let environment = Environment::load(args.env_file.as_deref())?;
    let access = access(&args.connect, &args.nats, &environment)?;
    let names = names(&args.nats)?;
    let local = local(args, printer)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = args.name.clone().unwrap_or_else(|| format!("{host}-{}", std::process::id()));
    let suite = args.suite.as_deref().and_then(Path::file_name);
    let config = WorkerConfig {
        name: name.clone(),
        host,
        slots: args.slots as usize,
        suite: suite.map(|it| it.to_string_lossy().into_owned()),
        serve: args.serve.clone(),
    };
    let client = Client::new(args.slots as usize);
    let bench = Bench {
        local,
        place: StoreArgs { store: None, env_file: args.env_file.clone() },
        client,
        ground: Arc::new(Ground::new(&environment.all())),
        known: Mutex::default(),
    };
    let runtime = runtime()?;
    let link =
        connect(&runtime, &access, &format!("probity worker {name}"), &names.inbox_of_workers())?;
    printer.note(&format!("worker `{name}` is connected to {}", access.shown()));
    let stop = signals::run_begins();
    let color = color_of(printer);
    let say = Box::new(move |line: &str| Printer::new(color).note(line));
    let worker = Worker::new(link, names, config, Arc::new(bench), say);
    let outcome = runtime.block_on(async {
        let outcome = worker.run(stop).await;
        process::drained(KILL_GRACE).await;
        outcome
    });
    runtime.shutdown_background();
    signals::run_is_over(false);
    outcome.map_err(|error| Failure::new(error.to_string()).exit(Exit::Aborted))?;
    Ok(Exit::Success)
}

/// The colours that the command line asks for.
fn color_of(printer: &Printer) -> ColorArg {
    match printer.color() {
        "always" => ColorArg::Always,
        "never" => ColorArg::Never,
        _ => ColorArg::Auto,
    }
}

/// The suite that is on this machine, if one is named and its file is here.
fn local(args: &WorkerArgs, printer: &Printer) -> Result<Option<Project>, Failure> {
    let Some(path) = args.suite.as_deref().filter(|it| it.exists()) else { return Ok(None) };
    let place = StoreArgs { store: None, env_file: args.env_file.clone() };
    let reading = Reading::strict(printer, ForeignArgs::default());
    Project::load(path, &place, Layer::default(), &reading).map(Some)
}

/// What a worker makes calls with.
struct Bench {
    local: Option<Project>,
    place: StoreArgs,
    client: Client,
    ground: Arc<Ground>,
    /// Suites of runs by their definitions. They stay: what is made of them refers to their rules.
    known: Mutex<BTreeMap<InputDigest, Arc<Result<Project, String>>>>,
}

impl Workshop for Bench {
    fn open(&self, run: &RunNote, definition: &Definition) -> Vec<Opened> {
        let project = match &self.local {
            Some(project) => Ok(project),
            None => Err(self.project_of(run, definition)),
        };
        let open = |offer: &OfferNote| match &project {
            Ok(project) => self.tool_of(offer, project),
            Err(made) => match &**made {
                Ok(project) => self.tool_of(offer, project),
                Err(why) => Err(why.clone()),
            },
        };
        let opened = |offer: &OfferNote| Opened { offer: offer.clone(), tool: open(offer) };
        run.offers.iter().map(opened).collect()
    }
}

impl Bench {
    /// The suite of a run whose file is not here.
    fn project_of(&self, run: &RunNote, definition: &Definition) -> Arc<Result<Project, String>> {
        let text = definition.parts.to_string();
        let rules = definition.error_rules.clone().unwrap_or_default();
        let key = InputDigest::of([text.as_bytes(), rules.as_bytes()]);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            // JSON is YAML.
            let file: Arc<str> = format!("{}.yaml", run.suite).into();
            let folder = Path::new(NOWHERE);
            let error_rules = definition.error_rules.as_deref();
            let parsed = read_parts(&text, &file, folder, error_rules);
            let (suite, rules) = parsed.map_err(|problems| match problems.first() {
                Some(problem) => format!("its definition cannot be read: {}", problem.message),
                None => "its definition cannot be read".to_owned(),
            })?;
            let failed = |failure: Failure| failure.to_string();
            let environment = Environment::load(self.place.env_file.as_deref()).map_err(failed)?;
            let rest = (environment, &self.place, Layer::default());
            Project::of(suite, run.suite.clone(), Box::leak(Box::new(rules)), rest).map_err(failed)
        };
        known.entry(key).or_insert_with(|| Arc::new(make())).clone()
    }

    /// What does something that a run asks for, or why it is not done here.
    fn tool_of(&self, offer: &OfferNote, project: &Project) -> Result<Tool, String> {
        let is_local = self.local.is_some();
        let suite = &project.suite;
        let needed = file_names(suite, &offer.kind);
        if !is_local && let Some(file) = needed.first() {
            return Err(format!(
                "it is made of files such as `{file}`: start the worker with --suite and a copy of the suite's folder"
            ));
        }
        if let OfferKind::Backend { name, .. } = &offer.kind
            && suite.backend(name).is_none()
        {
            return Err(format!("the suite of this worker has no backend `{name}`"));
        }
        let own = offer_digest(&definition(suite), &offer.kind, &files(suite, &offer.kind));
        if own != offer.digest {
            return Err(format!(
                "the run and this worker define it differently (run {:.8}, worker {own:.8})",
                offer.digest
            ));
        }
        match &offer.kind {
            OfferKind::Backend { name, model, seat } => {
                self.backend(project, name, model.as_deref(), *seat).map(Tool::Backend)
            }
            OfferKind::Scorers if !is_local => {
                Err("scorers are run where the suite's folder is: name it with --suite".to_owned())
            }
            OfferKind::Scorers => {
                let scorers = Scorers::new(
                    &suite.scorers,
                    project.site(),
                    &project.settings,
                    &Callables::default(),
                );
                Ok(Tool::Scorers(Arc::new(scorers)))
            }
            OfferKind::Sandbox => {
                self.ground.open()?;
                Ok(Tool::Sandbox(Arc::new(Executions::new(self.ground.clone()))))
            }
        }
    }

    fn backend(
        &self,
        project: &Project,
        name: &str,
        model: Option<&str>,
        seat: SeatUse,
    ) -> Result<Arc<Backend>, String> {
        let config = project.suite.backend(name).ok_or("the suite does not have it")?;
        let mut config = config.clone();
        if let Some(model) = model {
            config.set_model(model);
        }
        let opened =
            project.with_factory(&self.client, |factory: &BackendFactory<'_>| match seat {
                SeatUse::Answers => factory.open(&config),
                SeatUse::Embeds => factory.open_embedder(&config),
                SeatUse::Reranks => factory.open_reranker(&config),
            });
        let backend = opened.map_err(|error| error.to_string())?;
        if let Wire::Program(program) = &backend.wire {
            program.is_installed().then_some(()).ok_or("its program is not installed here")?;
        }
        Ok(Arc::new(backend))
    }
}

/// The folder of suites whose files are not here.
const NOWHERE: &str = "/nonexistent";
