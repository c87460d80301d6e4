//! What is run on what: runners, their cases, the backends that are asked and those that judge.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use probity_core::{
    execution::{ExecutionUse, SandboxNeed},
    judging::GradingConfig,
    problem::{Problem, Severity},
    record::{Lane, Selection},
};
use probity_load::{
    inputs,
    suite::{BackendConfig, BackendKind, PanelConfig, PromptConfig, RunnerConfig, Way},
};
use probity_run::{
    backend::{
        About, Ask, Backend,
        http::Client,
        open::{BackendError, BackendFactory},
    },
    filter::Unmet,
    plan::{Choice, Helpers, PlannedLane, ScannedRunner, Seat, Undecided, count_comparisons, scan},
    sandbox::Ground,
    scorer::Scorers,
};

use super::{Context, Project, selection, unknown_keys};
use crate::{commands::workers, environment::Environment, failure::Failure, terminal::counted};

impl Context<'_> {
    /// The runners that are asked for, with what the command line changes about them.
    pub(super) fn chosen_runners(
        &self,
        selection: &Selection,
    ) -> Result<Vec<RunnerConfig>, Failure> {
        let project = self.project;
        let all = &project.suite.runners;
        if all.is_empty() {
            return Err(Failure::new(format!("the suite `{}` has no runners", project.name))
                .hint("add one with [[runners]]"));
        }
        for name in &selection.runners {
            if !all.iter().any(|runner| runner.name == *name) {
                let known: Vec<&str> = all.iter().map(|runner| runner.name.as_str()).collect();
                return Err(Failure::new(format!("there is no runner `{name}`"))
                    .hint(format!("the suite has {}", known.join(", "))));
            }
        }
        for name in &selection.backends {
            if project.suite.backend(name).is_none() {
                let known: Vec<&str> =
                    project.suite.backends.iter().map(|backend| backend.name.as_str()).collect();
                return Err(Failure::new(format!("there is no backend `{name}`"))
                    .hint(format!("the suite has {}", known.join(", "))));
            }
        }
        let asked = |runner: &&RunnerConfig| {
            selection.runners.is_empty() || selection.runners.contains(&runner.name)
        };
        if self.args.touched.is_empty() {
            refuse_unknown_variants(all.iter().filter(asked), &selection.variants)?;
        }
        let runners: Vec<RunnerConfig> = all
            .iter()
            .filter(asked)
            .map(|runner| RunnerConfig {
                repeat: selection.repeat.unwrap_or(runner.repeat),
                panel: PanelConfig {
                    swap: runner.panel.swap || selection.swap,
                    ..runner.panel.clone()
                },
                backends: runner
                    .backends
                    .iter()
                    .filter(|name| {
                        selection.backends.is_empty() || selection.backends.contains(name)
                    })
                    .cloned()
                    .collect(),
                prompts: runner
                    .prompts
                    .iter()
                    .filter(|it| is_chosen(it, &selection.variants))
                    .cloned()
                    .collect(),
                ..runner.clone()
            })
            .filter(|runner| !runner.prompts.is_empty())
            .filter(|runner| {
                let needs_none = runner.kind.spec().is_external && selection.backends.is_empty();
                !runner.backends.is_empty() || needs_none
            })
            .collect();
        if runners.is_empty() {
            return Err(Failure::new("no runner has a backend to ask").hint(
                "describe one under [backends.NAME], and name it in `backends` of a runner",
            ));
        }
        let program = runners.iter().find(|it| it.kind.spec().is_external);
        if let Some(runner) = program.filter(|_| self.args.replay.is_some()) {
            let name = &runner.name;
            return Err(Failure::new(format!(
                "runner `{name}` is a program and cannot be replayed from a recording"
            ))
            .hint("name the other runners after the suite"));
        }
        if let Some(runner) =
            runners.iter().find(|it| it.min_pass.is_some_and(|least| least > it.repeat))
        {
            let RunnerConfig { name, repeat, .. } = runner;
            return Err(Failure::new(format!(
                "runner `{name}` requires more answers to pass than the {repeat} that are asked"
            ))
            .hint("`min_pass` must not be more than --repeat"));
        }
        Ok(runners)
    }

    /// Reads all datasets through. Every problem is shown before the first call.
    pub(super) fn scan(
        &self,
        runners: &[RunnerConfig],
        selection: &Selection,
    ) -> Result<Vec<ScannedRunner>, Failure> {
        let Self { project, store, printer, .. } = self;
        let choice = Choice {
            unknown_keys: unknown_keys(self.args),
            ..selection::resolve(selection, store, project.settings.seed)?
        };
        let site = project.site();
        let mut shown = printer.problems();
        let templates = runners.iter().flat_map(|it| &it.prompts).filter_map(|it| it.file.clone());
        let files: Vec<PathBuf> = templates.chain([self.args.suite.clone()]).collect();
        let mut is_of_suite = false;
        let mut report = |problem: Problem| {
            let is_error = problem.severity == Severity::Error;
            is_of_suite |= is_error && files.iter().any(|it| **it == *Path::new(&*problem.file));
            shown.show(&problem);
        };
        let scanned: Vec<Option<ScannedRunner>> = runners
            .iter()
            .map(|runner| {
                inputs::now_for(Some(&runner.name));
                let scanned = scan(runner, &site, &choice, &mut report)?;
                // What will come to nothing is worth a word before anything is paid for.
                if let Some(warning) = &scanned.warning {
                    printer.note(&format!("warning: {warning}"));
                }
                Some(scanned)
            })
            .collect();
        inputs::now_for(None);
        drop(shown);
        scanned.into_iter().collect::<Option<_>>().ok_or_else(|| {
            let what = if is_of_suite { "the suite" } else { "a dataset" };
            Failure::new(format!("{what} has errors, so nothing was run"))
        })
    }

    /// What people have to know of the cases before they are asked.
    pub(super) fn tell_of_cases(&self, scanned: &[ScannedRunner]) {
        for ScannedRunner { runner, undecided, unknown_failures, .. } in scanned {
            let Undecided { without_criterion, executed: _ } = undecided;
            let name = &runner.name;
            if without_criterion.count > 0 {
                let verb = if without_criterion.count == 1 { "has" } else { "have" };
                self.printer.note(&format!(
                    "{name}: {} {verb} no criterion and will be undecided: {}",
                    counted(without_criterion.count, "case"),
                    listed(without_criterion.count, &without_criterion.first)
                ));
            }
            if !unknown_failures.is_empty() {
                let count = unknown_failures.len() as u64;
                self.printer.note(&format!(
                    "warning: {name}: {} that no case has: {}",
                    match count {
                        1 => "`known_failures` names an id".to_owned(),
                        _ => format!("`known_failures` names {count} ids"),
                    },
                    listed(count, &unknown_failures[..unknown_failures.len().min(5)])
                ));
            }
        }
    }

    /// Where commands are executed. It is opened if that is going to happen, so that everybody knows before anything is
    /// paid for what cannot be decided here.
    pub(super) fn ground(&self, scanned: &[ScannedRunner]) -> Result<Arc<Ground>, Failure> {
        let ground = Ground::new(&Environment::default().all());
        let ground = if self.args.no_cache { ground.without_cache() } else { ground };
        let ground = Arc::new(ground);
        let GradingConfig { execution, sandbox } = self.project.suite.rules.grading;
        let compares = execution != ExecutionUse::Off;
        let needs_it = |it: &&ScannedRunner| {
            it.undecided.executed.count > 0 || compares && it.compared_commands > 0
        };
        let needing: Vec<&ScannedRunner> = scanned.iter().filter(needs_it).collect();
        if needing.is_empty() || self.args.dry_run {
            return Ok(ground);
        }
        let Err(why) = ground.open() else { return Ok(ground) };
        if sandbox == SandboxNeed::Required {
            return Err(Failure::new(format!(
                "the suite requires a sandbox, so nothing was run: {why}"
            ))
            .hint("`probity sandbox doctor` says what this machine lacks"));
        }
        for ScannedRunner { runner, undecided: Undecided { executed, .. }, .. } in needing {
            let name = &runner.name;
            let told = match executed.count {
                0 => "commands that reading does not decide are not executed".to_owned(),
                count => {
                    let what = match (runner.kind.spec().acts, count) {
                        (true, 1) => "is a task for an agent",
                        (true, _) => "are tasks for an agent",
                        (false, 1) => "has an `execution`",
                        (false, _) => "have an `execution`",
                    };
                    format!(
                        "{} {what} and will be undecided: {}",
                        counted(count, "case"),
                        listed(count, &executed.first)
                    )
                }
            };
            self.printer.note(&format!("{name}: {told}"));
        }
        self.printer.note(&format!("nothing can be executed: {why}"));
        Ok(ground)
    }

    /// The programs of the suite that score replies. Those that cases ask have to be there.
    pub(super) fn scorers(&self, scanned: &[ScannedRunner]) -> Result<Scorers, Failure> {
        let Project { suite, settings, .. } = self.project;
        let scorers =
            Scorers::new(&suite.scorers, self.project.site(), settings, &self.project.callables);
        let file = self.args.suite.display().to_string();
        let problems: BTreeMap<String, Problem> = scanned
            .iter()
            .flat_map(|it| scorers.check(&it.scorers, &file))
            .map(|it| (it.message.clone(), it))
            .collect();
        problems.values().for_each(|it| self.printer.problem(it));
        match problems.is_empty() {
            true => Ok(scorers),
            false => Err(Failure::new("a scorer cannot be started, so nothing was run")),
        }
    }

    /// Lays out which runner runs on which backend, and makes those ready.
    pub(super) fn lanes(
        &self,
        scanned: &[ScannedRunner],
        selection: &Selection,
    ) -> Result<Laid, Failure> {
        let mut bench = Bench::new(self);
        let mut lanes = Vec::new();
        for (at, scanned) in scanned.iter().enumerate() {
            let runner = &scanned.runner;
            if runner.kind.spec().is_external && runner.backends.is_empty() {
                let place = bench.nobody();
                lanes.extend(scanned.lanes(at, place, &bench.all[place], &Helpers::default()));
            }
            let used = |config: &&BackendConfig| runner.backends.contains(&config.name);
            for config in self.project.suite.backends.iter().filter(used) {
                let place = bench.seat(&config.name, selection.model.as_deref())?;
                if let Some(need) = scanned.lacking(&bench.all[place]) {
                    let (runner, backend) = (&runner.name, &config.name);
                    let kind = bench.all[place].kind_name();
                    return Err(Failure::new(format!(
                        "runner `{runner}` needs {need}, which backend `{backend}` of kind \
                         `{kind}` does not have"
                    ))
                    .hint("choose other backends with `backends`, or leave such cases out"));
                }
                let judges = match scanned.needs_judge() {
                    true => bench.judges(runner, &config.name, selection)?,
                    false => Vec::new(),
                };
                let embedder = runner.embeddings.as_deref();
                let embedder = embedder.filter(|_| scanned.needs_embeddings());
                let embedder = embedder.map(|name| bench.embedder(name)).transpose()?;
                let reranker = runner.reranker.as_deref();
                let reranker = reranker.filter(|_| scanned.needs_reranking());
                let reranker = reranker.map(|name| bench.reranker(name)).transpose()?;
                let users = scanned.users.iter().map(|name| bench.player(name));
                let users = users.collect::<Result<_, _>>()?;
                let helpers = Helpers { judges, embedder, reranker, users };
                self.warn_of_settings(runner, &bench.all[place]);
                lanes.extend(scanned.lanes(at, place, &bench.all[place], &helpers));
            }
        }
        check_requests(&lanes, &bench.all)?;
        count_comparisons(&mut lanes);
        for lane in &mut lanes {
            lane.info.judging.errors_as_failures = self.project.settings.errors_as_failures;
            lane.info.judging.max_undecided = self.project.settings.max_undecided;
        }
        self.warn_of_judges(&lanes);
        Ok(Laid { lanes, backends: bench.all, seats: bench.keys })
    }

    /// Variants that differ in nothing that a backend is told are no variants there.
    fn warn_of_settings(&self, runner: &RunnerConfig, backend: &Backend) {
        for prompt in &runner.prompts {
            let ignored = backend.ignored(&prompt.sampling);
            if let Some(variant) = prompt.variant.as_ref().filter(|_| !ignored.is_empty()) {
                let (name, settings) = (&backend.name, ignored.join(", "));
                self.printer.note(&format!(
                    "variant `{variant}`: backend `{name}` does not support {settings}: not applied"
                ));
            }
        }
    }

    /// A model that judges itself is a fact that people have to know before they pay for it.
    fn warn_of_judges(&self, lanes: &[PlannedLane]) {
        let own = |lane: &&PlannedLane| {
            let Lane { judge, judges, .. } = &lane.info;
            judge.iter().chain(judges).any(|it| it.own_answers)
        };
        for lane in lanes.iter().filter(own) {
            let name = lane.info.key();
            self.printer.note(&format!(
                "{name}: the model judges its own answers; name another with \
                 `judge` in the suite, or with --judge-model"
            ));
        }
    }
}

/// What is run on what.
pub(super) struct Laid {
    pub(super) lanes: Vec<PlannedLane>,
    pub(super) backends: Vec<Arc<Backend>>,
    /// What each of the backends is; none for programs that ask nobody we know.
    pub(super) seats: Vec<Option<SeatKey>>,
}

/// What a backend of a run is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum SeatKey {
    /// It answers; the model if it is not the suite's.
    Answers(String, Option<String>),
    /// It embeds texts.
    Embeds(String),
    /// It says how relevant texts are.
    Reranks(String),
}

/// How a backend is made ready.
type Open = fn(&BackendFactory<'_>, &BackendConfig) -> Result<Backend, BackendError>;

fn open_for_answers(
    factory: &BackendFactory<'_>,
    config: &BackendConfig,
) -> Result<Backend, BackendError> {
    factory.open(config)
}

/// The backends of a run, each made ready once.
struct Bench<'c> {
    context: &'c Context<'c>,
    client: Client,
    all: Vec<Arc<Backend>>,
    /// What each of them is; none for programs that ask nobody we know.
    keys: Vec<Option<SeatKey>>,
}

impl<'c> Bench<'c> {
    fn new(context: &'c Context<'c>) -> Self {
        // All that may be in flight may go to the same server, for several backends.
        let most = usize::try_from(context.project.settings.max_concurrency).unwrap_or(usize::MAX);
        Self { context, client: Client::new(most), all: Vec::new(), keys: Vec::new() }
    }

    /// The place of a backend, asked for a model of its own or for another.
    fn seat(&mut self, name: &str, model: Option<&str>) -> Result<usize, Failure> {
        let key = Some(SeatKey::Answers(name.to_owned(), model.map(ToOwned::to_owned)));
        if let Some(place) = self.keys.iter().position(|it| *it == key) {
            return Ok(place);
        }
        let Context { args, project, printer, .. } = *self.context;
        let mut config = self.config(name)?.clone();
        if let Some(model) = model {
            config.set_model(model);
        }
        let backend = project.with_factory(&self.client, |factory| match &args.replay {
            Some(recording) => factory.open_replay(&config, recording),
            None => self.open(factory, &config, open_for_answers),
        });
        let backend = backend.map_err(unusable)?;
        if !backend.not_applied.is_empty() {
            let (name, settings) = (&backend.name, backend.not_applied.join(", "));
            printer.note(&format!("backend `{name}` does not support {settings}: not applied"));
        }
        Ok(self.add(key, backend))
    }

    /// The place of a backend that embeds texts. A recording has no embeddings, so a replay asks it as
    /// well.
    fn embedder(&mut self, name: &str) -> Result<Seat, Failure> {
        self.helper(name, SeatKey::Embeds(name.to_owned()), |factory, config| {
            factory.open_embedder(config)
        })
    }

    /// The place of a backend that says how relevant texts are, which a replay asks as well.
    fn reranker(&mut self, name: &str) -> Result<Seat, Failure> {
        self.helper(name, SeatKey::Reranks(name.to_owned()), |factory, config| {
            factory.open_reranker(config)
        })
    }

    fn helper(&mut self, name: &str, key: SeatKey, open: Open) -> Result<Seat, Failure> {
        let key = Some(key);
        let known = self.keys.iter().position(|it| *it == key);
        let place = match known {
            Some(place) => place,
            None => {
                let config = self.config(name)?;
                let project = self.context.project;
                let opened =
                    project.with_factory(&self.client, |factory| self.open(factory, config, open));
                self.add(key, opened.map_err(unusable)?)
            }
        };
        Ok(Seat { place, backend: self.all[place].clone() })
    }

    /// Makes a backend ready. If workers ask it, what it takes may be theirs.
    fn open(
        &self,
        factory: &BackendFactory<'_>,
        config: &BackendConfig,
        open: Open,
    ) -> Result<Backend, BackendError> {
        match workers::are_wanted(self.context.args) && config.kind.way() != Way::File {
            true => factory.open_elsewhere(config, open),
            false => open(factory, config),
        }
    }

    /// The place of the one who plays the user.
    fn player(&mut self, name: &str) -> Result<Seat, Failure> {
        let place = self.seat(name, None)?;
        Ok(Seat { place, backend: self.all[place].clone() })
    }

    fn config(&self, name: &str) -> Result<&'c BackendConfig, Failure> {
        let found = self.context.project.suite.backend(name);
        found.ok_or_else(|| Failure::new(format!("there is no backend `{name}`")))
    }

    /// A place for a program that asks nobody we know.
    fn nobody(&mut self) -> usize {
        self.add(None, Backend::nobody("program"))
    }

    fn add(&mut self, key: Option<SeatKey>, backend: Backend) -> usize {
        self.keys.push(key);
        self.all.push(Arc::new(backend));
        self.all.len() - 1
    }

    /// Who judges what a runner gets from a backend: those that the suite names, else the backend
    /// itself; one judge may be asked for another model.
    fn judges(
        &mut self,
        runner: &RunnerConfig,
        asked: &str,
        selection: &Selection,
    ) -> Result<Vec<Seat>, Failure> {
        let panel = &runner.panel.judges;
        if panel.len() > 1 && selection.judge_model.is_some() {
            let message = format!("runner `{}` has several judges", runner.name);
            return Err(Failure::new(message).hint("--judge-model is for one; leave it out"));
        }
        let itself = panel.is_empty();
        let model = selection.judge_model.as_ref().or(selection.model.as_ref().filter(|_| itself));
        let asked_judges =
            if itself { vec![asked] } else { panel.iter().map(String::as_str).collect() };
        let seat = |name: &str| {
            let place = self.seat(name, model.map(String::as_str))?;
            Ok(Seat { place, backend: self.all[place].clone() })
        };
        asked_judges.into_iter().map(seat).collect()
    }
}

fn unusable(error: BackendError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new("a backend cannot be used").because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Whether the command line leaves a variant in.
fn is_chosen(prompt: &PromptConfig, variants: &[String]) -> bool {
    variants.is_empty() || prompt.variant.as_ref().is_some_and(|it| variants.contains(it))
}

fn refuse_unknown_variants<'r>(
    runners: impl Iterator<Item = &'r RunnerConfig>,
    wanted: &[String],
) -> Result<(), Failure> {
    let known: BTreeSet<&str> = runners.flat_map(RunnerConfig::variants).collect();
    let Some(name) = wanted.iter().find(|it| !known.contains(it.as_str())) else { return Ok(()) };
    let known: Vec<&str> = known.into_iter().collect();
    Err(Failure::new(format!("there is no prompt variant `{name}`")).hint(match known.as_slice() {
        [] => "the runners have none; `[[runners.prompts]]` describes one".to_owned(),
        known => format!("the runners have {}", known.join(", ")),
    }))
}

/// The first of so many names.
fn listed(count: u64, first: &[String]) -> String {
    let more = if count > first.len() as u64 { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// Runner after runner, each on all its backends at once; or everything at once.
pub(super) fn stages(lanes: &[PlannedLane], parallel: bool) -> Vec<Vec<usize>> {
    let mut stages: Vec<Vec<usize>> = Vec::new();
    for (at, lane) in lanes.iter().enumerate() {
        match stages.last_mut() {
            Some(stage) if parallel || lanes[stage[0]].runner == lane.runner => stage.push(at),
            Some(_) | None => stages.push(vec![at]),
        }
    }
    stages
}

/// A name that no case has is a slip of the pen, and the run would be another one.
pub(super) fn refuse_unmet(scanned: &[ScannedRunner]) -> Result<(), Failure> {
    let unmet = scanned.iter().map(|it| &it.unmet).cloned().reduce(|mut all, next| {
        all.and(&next);
        all
    });
    match unmet.iter().flat_map(Unmet::iter).next() {
        None => Ok(()),
        Some((flag, name)) => Err(Failure::new(format!("`{flag} {name}` matches no case"))
            .hint("`probity dataset stats FILE` lists what a dataset has")),
    }
}

/// A backend of kind `http` can be sent whatever a case brings, so every case has to bring it.
fn check_requests(lanes: &[PlannedLane], backends: &[Arc<Backend>]) -> Result<(), Failure> {
    for lane in lanes.iter().filter(|it| !it.info.kind.spec().is_external) {
        let backend = &backends[lane.backend];
        let Some(http) = backend.http().filter(|_| backend.kind == Some(BackendKind::Http)) else {
            continue;
        };
        let mut first = None;
        lane.requests(|case, request| {
            let about = About::new(Arc::new(case.clone()));
            let ask = Ask { request: &request, repeat: 0, about: Some(&about) };
            if first.is_none()
                && let Err(error) = http.shown_body(&ask)
            {
                first = Some((case.id.clone(), error));
            }
        });
        if let Some((case_id, error)) = first {
            let (name, message) = (&backend.name, error.message);
            return Err(Failure::new(format!(
                "case `{case_id}` cannot be sent to backend `{name}`: {message}"
            ))
            .hint("a case brings variables with `prompt_vars`"));
        }
    }
    Ok(())
}
