//! Runs in time that is simulated: what `probity run` does between reading a suite and its exit code, without threads,
//! sockets and a clock. Nothing here is part of the product.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Parser as _;
use probity_core::{event::Stamped, record::Selection, view::RunView};
use probity_grade::Rules;
use probity_load::suite::Suite;
use probity_run::{
    backend::Answers,
    events,
    plan::{Plan, ScannedRunner},
    simulated::{Server, answered_by},
};
use probity_store::{Ledger, Reader, Recorder};
use tokio::{sync::watch, time::Instant};

use super::{
    Context, Project, answers,
    prepare::Laid,
    progress::{Board, Progress, Style},
    resume::TakenUp,
    selection,
    sinks::{APART, Done, Listener, Patience, Sinks, TRY, Unwritten, Waiting},
};
use crate::{
    cli::{Cli, Command, run::RunArgs},
    commands::report::exit_of,
    environment::Environment,
    failure::Failure,
    printer::Printer,
};

/// A suite that is ready to be run.
pub struct Prepared {
    project: Project,
    args: RunArgs,
    store: PathBuf,
    printer: Printer,
    selection: Selection,
    scanned: Vec<ScannedRunner>,
}

/// How an earlier run is gone on with.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    /// Its name.
    pub run_id: &'a str,
    /// Whether what ended in an error is asked again.
    pub retry_errors: bool,
}

/// Who looks at what is written, and when.
pub trait Watcher {
    /// A batch is about to be written.
    fn before(&mut self, recorder: &mut Recorder, batch: &[Stamped]);
    /// It was written, or others kept us from it, or the disk did.
    fn after(&mut self, batch: &[Stamped], written: Option<bool>);
    /// The run is recorded, and its store is about to be closed.
    fn closing(&mut self);
    /// It is closed.
    fn closed(&mut self);
}

/// Takes the events of a run.
pub struct Pump {
    sinks: Sinks,
}

impl Prepared {
    /// Reads a suite whose datasets are in a folder, with options of `probity run`. The store is beside them.
    pub fn load(
        suite: &str,
        folder: &Path,
        rules: &'static Rules,
        options: &[String],
    ) -> Result<Self, String> {
        let file = folder.join("probity.toml");
        let store = folder.join("store.db");
        let words = ["probity", "run", "--quiet"].into_iter().map(ToOwned::to_owned);
        let words = words.chain([file.display().to_string()]).chain(options.iter().cloned());
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Run(args) = cli.command else { return Err("no run".to_owned()) };
        let (read, problems) =
            Suite::parse(suite, &file.display().to_string().into(), folder, &|_| Vec::new());
        let read = read.ok_or_else(|| format!("{problems:?}"))?;
        let flags = super::flags(&args).map_err(|it| it.to_string())?;
        let environment = (Environment::default(), &args.place, flags);
        let project = Project::of(read, "probity.toml".to_owned(), rules, environment);
        let selection = selection::of(&args);
        let mut prepared = Self {
            project: project.map_err(|it| it.to_string())?,
            args: *args.0,
            store,
            printer: Printer::telling(std::sync::Arc::new(|_| {})),
            selection,
            scanned: Vec::new(),
        };
        let context = prepared.context();
        let runners = context.chosen_runners(&prepared.selection);
        let scanned = runners.and_then(|it| context.scan(&it, &prepared.selection));
        prepared.scanned = scanned.map_err(|it| it.to_string())?;
        Ok(prepared)
    }

    fn context(&self) -> Context<'_> {
        let Self { project, args, store, printer, .. } = self;
        Context { args, project, store, printer }
    }

    /// Where the run is recorded.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// What is run, with backends that are answered by models of their servers.
    pub fn plan(
        &self,
        server: &dyn Fn(&str) -> Arc<dyn Server>,
        cache: Option<Arc<dyn Answers>>,
    ) -> Result<Plan, String> {
        let context = self.context();
        let plan = || {
            let Laid { mut lanes, backends, seats: _ } =
                context.lanes(&self.scanned, &self.selection)?;
            context.decide_early(&mut lanes)?;
            let shared = || Failure::new("a backend is in use");
            let backends = backends
                .into_iter()
                .map(|it| {
                    let backend = Arc::into_inner(it).ok_or_else(shared)?;
                    let server = server(&backend.name);
                    Ok(Arc::new(answered_by(backend, server)))
                })
                .collect::<Result<_, Failure>>()?;
            let scorers = context.scorers(&self.scanned)?;
            let ground = context.ground(&self.scanned)?;
            let access = answers::access(&self.args, &self.project);
            let plan = context.plan((lanes, backends), &self.scanned, (scorers, ground), access);
            Ok(Plan { cache, ..plan })
        };
        plan().map_err(|it: Failure| it.to_string())
    }

    /// Begins a run, or goes on with one, as `probity run` does before the first call.
    pub fn open(
        &self,
        plan: &mut Plan,
        again: Option<Again<'_>>,
    ) -> Result<(Recorder, Ledger), String> {
        let mut open = || -> Result<_, Failure> {
            let mut recorder = match again {
                None => self.context().begin(&self.selection, plan)?,
                Some(Again { run_id, retry_errors }) => {
                    plan.resumed = true;
                    let run = Reader::open(&self.store)?.find(run_id)?;
                    TakenUp::of(&run, retry_errors, &self.store, plan)?.recorder
                }
            };
            let ledger = recorder.ledger(plan.lanes.iter().map(|lane| &lane.info))?;
            Ok((recorder, ledger))
        };
        open().map_err(|it| shown(&it))
    }

    /// Who takes the events of the run.
    pub fn pump(
        &self,
        plan: &Plan,
        recorder: Recorder,
        listener: Listener,
        stopped: watch::Receiver<bool>,
    ) -> Pump {
        let sinks = Sinks {
            recorder,
            store: self.store.clone(),
            events: None,
            listener: Some(listener),
            progress: Progress::start(Style::Quiet, Board::before(plan)),
            done: watch::channel(Done::before(plan)).0,
            stopped,
            carrier: None,
        };
        Pump { sinks }
    }

    /// What the records say of the run, and the exit code by them.
    pub fn conclude(&self, run_id: &str) -> Result<(u8, RunView), String> {
        let conclude = || -> Result<_, Failure> {
            let reader = Reader::open(&self.store)?;
            let run = reader.find(run_id)?;
            let view = reader.view(&run, self.project.settings.max_error_rate)?;
            Ok((exit_of(&view, &self.args.gating).code(), view))
        };
        conclude().map_err(|it| shown(&it))
    }
}

impl Pump {
    /// Takes events until nobody sends any more, as `Sinks::pump` does on a thread of its own.
    pub async fn run(
        mut self,
        mut receiver: events::Receiver,
        watcher: &mut dyn Watcher,
    ) -> Result<(), String> {
        while let Some(batch) = receiver.next_batch_in_time().await {
            let begun = Instant::now();
            if let Err(unwritten) = self.take(batch, watcher).await {
                let failure = unwritten.failure(&self.sinks.store, &receiver.close());
                return Err(shown(&failure));
            }
            receiver.rest_in_time(APART.saturating_sub(begun.elapsed())).await;
        }
        watcher.closing();
        self.sinks.progress.finish();
        self.sinks.recorder.close();
        watcher.closed();
        Ok(())
    }

    async fn take(
        &mut self,
        batch: &[Stamped],
        watcher: &mut dyn Watcher,
    ) -> Result<(), Unwritten> {
        let (begun, mut patience) = (Instant::now(), Patience::default());
        loop {
            watcher.before(&mut self.sinks.recorder, batch);
            let taken = self.sinks.take(batch, Duration::ZERO);
            watcher.after(batch, taken.as_ref().ok().copied());
            if taken? {
                return Ok(());
            }
            tokio::time::sleep(TRY).await;
            let is_stopped = *self.sinks.stopped.borrow();
            if patience.after(begun.elapsed(), is_stopped) == Waiting::IsOver {
                return Err(Unwritten::Locked);
            }
        }
    }
}

fn shown(failure: &Failure) -> String {
    let causes = failure.causes().into_iter().map(|it| format!(": {it}"));
    format!("{failure}{}", causes.collect::<String>())
}
