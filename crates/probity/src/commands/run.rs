//! `probity run`: a suite against its backends, recorded case by case.

mod answers;
mod dry_run;
mod farewell;
mod porcelain;
mod prepare;
mod progress;
mod recording;
mod resume;
mod selection;
mod sinks;
mod summary;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use probity_core::{
    problem::UnknownKeys,
    record::{Lane, RunInfo, Selection},
    view::LaneReport,
    visible::safe,
};
use probity_load::{dataset, settings::Budget, suite::RunnerConfig};
use probity_report::text;
use probity_run::{
    backend::Backend,
    decide::Certainty,
    engine::{self, Outcome},
    plan::{Plan, PlannedLane, Surveyed, Used},
    process,
};
use probity_store::{NewRun, Reader, Recorder, RunRow, new_run_id};
use tokio::sync::{mpsc, watch};

pub(crate) use porcelain::Porcelain;

use super::{
    baseline::{self, Against},
    project::{self, Project, Reading},
    report::{GitHub, Reports, exit_of},
};
use crate::{
    cli::run::RunArgs,
    clock,
    exit::Exit,
    failure::Failure,
    output::{OutputFile, refuse_same_file},
    printer::Printer,
    signals,
};
use farewell::Farewell;
use progress::{Progress, Style};
use resume::Earlier;
use sinks::{Done, EventsFile, Sinks};

/// Events that may wait to be written before the loop waits for them.
const WAITING_EVENTS: usize = 1024;

pub(super) fn run(args: &RunArgs, printer: &Printer) -> Result<Exit, Failure> {
    let mut porcelain = Porcelain::default();
    Farewell::early(args).prepare();
    if !args.porcelain {
        let outcome = execute(args, printer, &mut porcelain);
        porcelain.summarise(args, &outcome);
        return outcome;
    }
    // Scripts get their lines on every path, also on one that is our fault.
    let outcome = catch_unwind(AssertUnwindSafe(|| execute(args, printer, &mut porcelain)));
    let outcome =
        outcome.unwrap_or_else(|_| Err(Failure::new("the program failed; this is a bug")));
    porcelain.aborted |= !matches!(outcome, Ok(Exit::Success | Exit::Failed(_)));
    porcelain.summarise(args, &outcome);
    signals::forget_last_words();
    let told = porcelain.print().map_err(|failure| match porcelain.total_calls {
        0 => failure,
        // Something was asked, so this is no wrong input.
        _ => failure.exit(Exit::Aborted),
    });
    told.and(outcome)
}

/// Load, plan, run, report.
fn execute(args: &RunArgs, printer: &Printer, porcelain: &mut Porcelain) -> Result<Exit, Failure> {
    let reading = Reading { printer, unknown_keys: unknown_keys(args) };
    let project = Project::load(&args.suite, &args.place, flags(args)?, &reading)?;
    let store = Path::new(&project.settings.store);
    porcelain.result_file = store.display().to_string();
    let context = Context { args, project: &project, store, printer };
    let earlier = Earlier::find(args, &project, store)?;
    let selection = match &earlier {
        Some(earlier) => earlier.selection(args)?,
        None => selection::of(args),
    };
    let runners = context.chosen_runners(&selection)?;
    context.refuse_same_files(&runners)?;
    let surveyed = context.survey(&runners, &selection)?;
    if earlier.is_none() {
        prepare::refuse_unmet(&surveyed)?;
    }
    context.tell_of_cases(&surveyed);
    let (mut lanes, backends) = context.lanes(&surveyed, &selection)?;
    refuse_idle(args, &lanes, project.settings.cache.is_some())?;
    context.refuse_unknown_prices(&lanes, &backends, &surveyed)?;
    refuse_copies(&lanes, &backends)?;
    context.decide_early(&mut lanes)?;
    porcelain.planned = lanes.iter().map(|lane| lane.info.planned).sum();
    let against = context.load_baseline(&lanes)?;
    let access = answers::access(args, &project);
    let has_generations = lanes.iter().any(|lane| lane.info.kind.compares());
    if args.dry_run {
        let cache = answers::open_if_there(&project, access, has_generations)?;
        let text = dry_run::render(&dry_run::Plan {
            backends: &backends,
            lanes: &lanes,
            surveyed: &surveyed,
            settings: &project.settings,
            cache: cache.as_deref(),
            access,
        });
        context.tell(&safe(&text))?;
        return Ok(Exit::Success);
    }
    let is_empty_shard = porcelain.planned == 0
        && selection.shard.is_some()
        && surveyed.iter().any(|it| it.of_all_shards > 0);
    if porcelain.planned == 0 && !is_empty_shard {
        return Err(Failure::new("no case is left to run").hint("loosen the filters"));
    }
    let mut plan = Plan {
        run_id: String::new(),
        resumed: earlier.is_some(),
        settings: project.settings.clone(),
        stages: prepare::stages(&lanes, project.suite.parallel || args.parallel),
        backends,
        lanes,
        budgets: surveyed.iter().map(|runner| runner.runner.budget).collect(),
        carried: Used::default(),
        carried_by_runner: Vec::new(),
        cache: answers::open(&project, access, has_generations)?,
        access,
        scorers: context.scorers(),
    };
    // A path that cannot be written is found out before anything is paid for.
    let events = args.events.as_deref().map(EventsFile::create).transpose()?;
    let wanted = Wanted {
        recording: args.record.as_deref().map(OutputFile::create).transpose()?,
        reports: Reports::create(&args.outputs)?,
        against,
    };
    let recorder = match earlier {
        Some(earlier) => earlier.open(store, &mut plan, printer)?,
        None => context.begin(&selection, &mut plan)?,
    };
    summary::forget(store);
    let run_id = plan.run_id.clone();
    let outcome = context.drive(plan, recorder, events).map_err(|failure| {
        // What was recorded before is there, and scripts are told of it.
        let cases = Reader::open(store)
            .and_then(|reader| Ok(reader.run_tally(&reader.find(&run_id)?)?.total()));
        porcelain.cases = cases.unwrap_or(0);
        let (suite, id) = (args.suite.display(), &run_id);
        failure.hint(format!(
            "what was recorded is kept; go on with: probity run {suite} --resume {id}"
        ))
    })?;
    porcelain.total_calls = outcome.used.calls;
    // Something was asked, so whatever fails now is no wrong input.
    let reported = context.report(&run_id, &outcome, wanted, porcelain);
    if is_empty_shard && reported.is_ok() {
        // The whole is judged by `merge`, which needs this part as well.
        printer.note("this shard has no cases");
        return Ok(Exit::Success);
    }
    reported.map_err(|failure| failure.exit(Exit::Aborted))
}

/// What is to come of a run beside its records.
struct Wanted {
    recording: Option<OutputFile>,
    reports: Reports,
    against: Option<Against>,
}

/// What all steps of a run need.
struct Context<'a> {
    args: &'a RunArgs,
    project: &'a Project,
    store: &'a Path,
    printer: &'a Printer,
}

impl Context<'_> {
    /// The baseline that the run is held against. One of other cases is refused before
    /// anything is asked.
    fn load_baseline(&self, lanes: &[PlannedLane]) -> Result<Option<Against>, Failure> {
        let Some(name) = &self.args.baseline else { return Ok(None) };
        let against = Against::load(name, &self.project.settings, self.args.force)?;
        against.refuse_unlike(lanes.iter().map(|lane| &lane.info))?;
        Ok(Some(against))
    }

    /// Has lanes end as soon as their gates are decided, if that is asked for.
    fn decide_early(&self, lanes: &mut [PlannedLane]) -> Result<(), Failure> {
        let certainty = match self.args.deciding.alpha {
            Some(alpha) if alpha > 0.0 && alpha < 1.0 => Certainty::Alpha(alpha),
            Some(_) => {
                return Err(Failure::new("`--alpha` must lie between 0 and 1, such as 0.05"));
            }
            None if self.args.deciding.stop_when_decided => Certainty::Exact,
            None => return Ok(()),
        };
        for lane in lanes {
            if !lane.decide_early(certainty, self.project.settings.seed) {
                let Lane { runner, backend, .. } = &lane.info;
                self.printer.note(&format!(
                    "{runner} on {backend}: no gate can be decided early, so every case is asked"
                ));
            }
        }
        Ok(())
    }

    /// A budget in dollars is refused where nobody knows what a call costs: it would never
    /// be reached.
    fn refuse_unknown_prices(
        &self,
        lanes: &[PlannedLane],
        backends: &[Arc<Backend>],
        surveyed: &[Surveyed],
    ) -> Result<(), Failure> {
        let is_limited = |budget: &Budget| budget.max_cost_usd.is_some();
        let of_run = is_limited(&self.project.settings.budget);
        for lane in lanes {
            if !of_run && !is_limited(&surveyed[lane.runner].runner.budget) {
                continue;
            }
            let asked = std::iter::once(lane.backend).chain(lane.judge);
            if let Some(unknown) = asked.map(|at| &backends[at]).find(|it| !it.has_known_cost()) {
                let model = match &unknown.model {
                    Some(model) => format!(" with the model `{model}`"),
                    None => String::new(),
                };
                let name = &unknown.name;
                return Err(Failure::new(format!(
                    "`max_cost_usd` is set, and no price is known for the backend `{name}`{model}"
                ))
                .hint(format!(
                    "give [backends.{name}] a `price = {{ input = 0.5, output = 1.5 }}` in dollars for \
                     a million tokens (zeros if it costs nothing), or name a file with `prices`"
                )));
            }
        }
        Ok(())
    }

    /// What is written must not be what is read, or written by somebody else here.
    fn refuse_same_files(&self, runners: &[RunnerConfig]) -> Result<(), Failure> {
        let Self { args, project, store, .. } = self;
        let folder = &project.suite.folder;
        let cache = Path::new(&project.settings.cache_path);
        let mut read: Vec<PathBuf> =
            vec![args.suite.clone(), store.to_path_buf(), cache.to_owned()];
        read.extend(args.replay.clone());
        if let Some(name) = &args.baseline {
            read.push(baseline::path_of(name, &project.settings.baseline));
        }
        read.extend(project.suite.prices.clone());
        let datasets = runners.iter().flat_map(|runner| &runner.dataset);
        // One that cannot be listed is told of when it is read.
        read.extend(datasets.flat_map(|it| dataset::files(&folder.join(it)).unwrap_or_default()));
        let recordings = project.suite.backends.iter().filter_map(|backend| backend.file.as_ref());
        read.extend(recordings.map(|file| folder.join(file)));
        let written: Vec<&Path> = [&args.record, &args.events]
            .into_iter()
            .flatten()
            .chain(&args.outputs)
            .map(PathBuf::as_path)
            .collect();
        refuse_same_file(&written)?;
        for (input, output) in read.iter().flat_map(|it| written.iter().map(move |out| (it, out))) {
            refuse_same_file(&[input, output])?;
        }
        Ok(())
    }

    /// Begins a new run.
    fn begin(&self, selection: &Selection, plan: &mut Plan) -> Result<Recorder, Failure> {
        let Self { project, store, .. } = self;
        let started_ms = clock::now_ms();
        plan.run_id = new_run_id(started_ms, fastrand::u64(..));
        let settings = project.resolved.iter();
        let info = RunInfo {
            probity_version: env!("CARGO_PKG_VERSION").to_owned(),
            suite_path: real_path(&self.args.suite),
            selection: selection.clone(),
            settings: settings.map(|(key, value, _)| (key.to_owned(), value.to_string())).collect(),
            ..RunInfo::default()
        };
        let suite = project.name.clone();
        let run = NewRun { run_id: plan.run_id.clone(), suite, started_ms, info };
        Recorder::create(store, &run).map_err(Failure::from)
    }

    /// Runs the plan, with the events going to the disk and to whoever watches.
    fn drive(
        &self,
        plan: Plan,
        recorder: Recorder,
        events: Option<EventsFile>,
    ) -> Result<Outcome, Failure> {
        let Self { project, args, .. } = self;
        let progress = Progress::start(Style::of(args.quiet));
        let (done, seen) = watch::channel(Done::before(&plan));
        let sinks = Sinks { recorder, events, progress, done };
        let planned = plan.lanes.iter().map(|lane| lane.info.planned).sum();
        Farewell::of_run(args, self.store.to_owned(), planned, seen).prepare();
        let stopped = signals::run_begins();
        let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
        let pump = thread::spawn(move || sinks.pump(receiver));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new("failed to start").because(error))?;
        let (rules, grace) = (project.rules, project.settings.timeouts.kill_grace);
        let outcome = runtime.block_on(async {
            let outcome = engine::run(plan, rules, sender, stopped).await;
            // Programs that were given up are ended before we are.
            process::drained(grace + Duration::from_secs(1)).await;
            outcome
        });
        signals::run_is_over();
        // Tasks that wait for a server that never answers are not waited for.
        runtime.shutdown_background();
        let written = pump.join().unwrap_or_else(|_| Err(Failure::new("the recorder failed")));
        written.map_err(|failure| failure.exit(Exit::Aborted))?;
        outcome.map_err(|error| {
            Failure::new("the run was given up").because(error).exit(Exit::Aborted)
        })
    }

    /// Shows what the records say, and decides the exit code by them.
    fn report(
        &self,
        run_id: &str,
        outcome: &Outcome,
        wanted: Wanted,
        porcelain: &mut Porcelain,
    ) -> Result<Exit, Failure> {
        let Self { args, project, store, printer } = self;
        let Wanted { recording, reports, against } = wanted;
        let reader = Reader::open(store)?;
        let run = reader.find(run_id)?;
        if let Some(file) = recording {
            recording::write(&reader, &run, file)?;
        }
        let mut view = reader.view(&run, project.settings.max_error_rate)?;
        super::consistency::add(&mut view, &reader, &run)?;
        porcelain.cost_usd = outcome.used.cost_usd;
        porcelain.cases = view.lanes.iter().map(LaneReport::cases).sum();
        porcelain.planned = view.lanes.iter().map(LaneReport::planned).sum();
        porcelain.lanes(&outcome.lanes);
        if let Some(against) = against {
            view.against = Some(against.compare(&reader, &run, false)?);
        }
        // Files first: whoever reads what is printed may keep us waiting, or leave.
        let written = reports.write(&reader, &run, &view);
        if written.is_ok() {
            porcelain.summarised = true;
            summary::write(store, &view, printer);
        }
        if !args.quiet {
            self.tell(&text::render(&view))?;
        }
        if !view.is_sound() && !args.quiet {
            let suite = args.suite.display();
            printer.note(&format!("go on with: probity run {suite} --resume {}", run.short()));
        }
        written?;
        let annotate = !args.quiet && !args.porcelain;
        GitHub { folder: &project.suite.folder, annotate }.tell(&reader, &run, &view, printer)?;
        Ok(exit_of(&view, &args.gating))
    }

    /// Shows a text: on standard output, unless that is for scripts.
    fn tell(&self, text: &str) -> Result<(), Failure> {
        match self.args.porcelain {
            true => {
                self.printer.note_styled(text.trim_end());
                Ok(())
            }
            false => self.printer.show_styled(text),
        }
    }
}

/// More repeats than were recorded would be copies of each other.
fn refuse_copies(lanes: &[PlannedLane], backends: &[Arc<Backend>]) -> Result<(), Failure> {
    for lane in lanes {
        let recorded = backends[lane.backend].recorded_repeats();
        let Lane { runner, backend, repeat, .. } = &lane.info;
        if let Some(recorded) = recorded.filter(|it| it < repeat) {
            let message = format!(
                "{runner} on {backend}: {repeat} repeats are asked for, and the recording has {recorded}"
            );
            return Err(Failure::new(message).hint(format!(
                "ask for no more than were recorded: `--runs {}`",
                recorded.max(1)
            )));
        }
    }
    Ok(())
}

/// An option that would do nothing is a misunderstanding.
fn refuse_idle(args: &RunArgs, lanes: &[PlannedLane], has_cache: bool) -> Result<(), Failure> {
    let judges = lanes.iter().any(|lane| lane.judge.is_some());
    let compares = lanes.iter().any(|lane| lane.info.kind.compares());
    let idle = [
        ("--judge-model", args.judge_model.is_some() && !judges, "nothing is judged"),
        ("--swap", args.swap && !compares, "no answers are compared"),
        ("--regenerate", args.regenerate && !compares && !has_cache, "no answers are kept"),
    ];
    match idle.iter().find(|(_, is_idle, _)| *is_idle) {
        None => Ok(()),
        Some((flag, _, why)) => Err(Failure::new(format!("`{flag}` does nothing here: {why}"))),
    }
}

/// The settings that the command line makes.
fn flags(args: &RunArgs) -> Result<probity_load::settings::Layer, Failure> {
    use probity_load::settings::{Origin, Value};
    let mut flags = project::flags(&args.limits)?;
    if let Some(seed) = args.selection.seed {
        flags.set("seed", Value::Count(seed), Origin::Flag("--seed"));
    }
    if args.gating.errors_as_failures {
        let origin = Origin::Flag("--errors-as-failures");
        flags.set("errors_as_failures", Value::Flag(true), origin);
    }
    if args.cache {
        flags.set("cache.enabled", Value::Flag(true), Origin::Flag("--cache"));
    }
    if args.no_cache {
        flags.set("cache.enabled", Value::Flag(false), Origin::Flag("--no-cache"));
    }
    Ok(flags)
}

/// What becomes of names that nothing reads.
fn unknown_keys(args: &RunArgs) -> UnknownKeys {
    match args.allow_unknown {
        true => UnknownKeys::Allowed,
        false => UnknownKeys::Refused,
    }
}

/// Where a suite file really is, which tells it from others of the same name.
pub(super) fn real_path(path: &Path) -> Option<String> {
    path.canonicalize().ok()?.to_str().map(ToOwned::to_owned)
}

/// Whether a run may be of the suite file at a path. Of a file that is gone nobody knows.
pub(super) fn may_be_of(run: &RunRow, path: Option<&str>) -> bool {
    let kept = run.info.suite_path.as_deref();
    match (kept, path) {
        (Some(kept), Some(path)) => kept == path || !Path::new(kept).exists(),
        (None, _) | (_, None) => true,
    }
}
