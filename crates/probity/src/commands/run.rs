//! `probity run`: a suite against its backends, recorded case by case.

pub(in crate::commands) mod answers;
mod dry_run;
mod forced_exit;
mod host;
mod porcelain;
mod prepare;
mod progress;
mod recording;
mod resume;
mod selection;
#[cfg(feature = "simulated")]
pub mod simulated;
mod sinks;
mod summary;
mod watching;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use probity_core::{
    problem::UnknownKeys,
    record::{LaneStatus, RunInfo, Selection},
    view::{LaneReport, RunView},
    visible::safe,
};
use probity_load::{dataset, settings::Budget, suite::RunnerConfig};
use probity_report::text::Extent;
use probity_run::{
    backend::{Answers, Backend, CacheAccess},
    callable::Callables,
    carrier::Executor,
    decide::Certainty,
    engine::{self, RunOutcome},
    events,
    plan::{Ledger, Plan, PlannedLane, ScannedRunner, Used},
    process,
    sandbox::Ground,
    scorer::Scorers,
};
use probity_store::{NewRun, Reader, Recorder, RunRow, new_run_id};
use tokio::{runtime::Runtime, sync::watch};

pub use host::Ran;
pub(crate) use host::{Host, run_for};
pub(crate) use porcelain::Porcelain;

use super::{
    baseline::{self, Against},
    page::{self, About},
    project::{self, Project, Reading},
    report::{GitHub, Reports, exit_of},
    workers::{Hands, Work},
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
use forced_exit::ForcedExit;
use prepare::Laid;
pub(in crate::commands) use prepare::SeatKey;
use progress::{Board, Progress, Style};
use resume::Earlier;
use sinks::{Done, EventsFile, Sinks};

/// Events that may wait to be written before the loop waits for them, and bytes of their texts. Half of them is more than
/// come between two transactions, unless texts are long.
const WAITING_EVENTS: usize = 4096;
const WAITING_BYTES: usize = 8 << 20;

pub(super) fn run(args: &RunArgs, printer: &Printer) -> Result<Exit, Failure> {
    match (args.watch, &args.inputs) {
        (true, _) => watching::run(args, printer),
        (false, Some(path)) => watching::listing_inputs(path, || once(args, printer)),
        (false, None) => once(args, printer),
    }
}

/// One run of the suite.
fn once(args: &RunArgs, printer: &Printer) -> Result<Exit, Failure> {
    probity_sandbox::share_heaps();
    let mut porcelain = Porcelain::default();
    ForcedExit::early(args).prepare();
    let run_here = |porcelain: &mut Porcelain| {
        execute(args, printer, porcelain, (&mut None, &mut Ran::default()))
    };
    if !args.porcelain {
        let outcome = run_here(&mut porcelain);
        porcelain.summarise(args, &outcome);
        return outcome;
    }
    // Scripts get their lines on every path, also on one that is our fault.
    let outcome = catch_unwind(AssertUnwindSafe(|| run_here(&mut porcelain)));
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
fn execute(
    args: &RunArgs,
    printer: &Printer,
    porcelain: &mut Porcelain,
    (host, ran): (&mut Option<Host>, &mut Ran),
) -> Result<Exit, Failure> {
    let callables = host.as_mut().map(|it| std::mem::take(&mut it.callables)).unwrap_or_default();
    let reading = Reading { callables, ..reading(args, printer) };
    let project = Project::load(&args.suite, &args.place, flags(args)?, &reading)?;
    watching::note_programs(&project);
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
    let scanned = context.scan(&runners, &selection)?;
    if earlier.is_none() && args.touched.is_empty() {
        prepare::refuse_unmet(&scanned)?;
    }
    context.tell_of_cases(&scanned);
    let Laid { mut lanes, backends, seats } = context.lanes(&scanned, &selection)?;
    refuse_idle(args, &lanes, project.settings.cache.is_some())?;
    context.refuse_unknown_prices(&lanes, &backends, &scanned)?;
    refuse_copies(&lanes, &backends)?;
    context.decide_early(&mut lanes)?;
    porcelain.planned = lanes.iter().map(|lane| lane.info.planned).sum();
    let against = context.load_baseline(&lanes)?;
    let scorers = context.scorers(&scanned)?;
    let ground = context.ground(&scanned)?;
    let access = answers::access(args, &project);
    let kept = answers::Kept::of(&lanes);
    if args.dry_run {
        let cache = answers::open_if_there(&project, access, kept)?;
        return context.tell_plan(&dry_run::Plan {
            backends: &backends,
            lanes: &lanes,
            scanned: &scanned,
            settings: &project.settings,
            execution: project.suite.rules.grading.execution,
            cache: cache.as_deref(),
            access,
        });
    }
    let is_empty_shard = is_empty_shard(&selection, &scanned, porcelain.planned);
    if porcelain.planned == 0 && !is_empty_shard {
        return Err(Failure::new("no case is left to run").hint("loosen the filters"));
    }
    let cache = answers::open(&project, access, kept, printer)?;
    let hands = Hands::reach(args, &project)?;
    let mut plan = Plan {
        resumed: earlier.is_some(),
        cache: cache.clone().map(|cache| cache as Arc<dyn Answers>),
        ..context.plan((lanes, backends), &scanned, (scorers, ground), access)
    };
    // A path that cannot be written is found out before anything is paid for.
    let events = args.events.as_deref().map(EventsFile::create).transpose()?;
    let wanted = Wanted {
        recording: args.record.as_deref().map(OutputFile::create).transpose()?,
        reports: Reports::create(&args.outputs)?,
        against,
    };
    let mut recorder = match earlier {
        Some(earlier) => earlier.open(store, &mut plan, printer)?,
        None => context.begin(&selection, &mut plan)?,
    };
    let ledger = recorder.ledger(plan.lanes.iter().map(|lane| &lane.info))?;
    plan.ledger = Some(Box::new(CallsOnDisk(ledger)));
    summary::forget(store);
    let run_id = plan.run_id.clone();
    ran.run_id.clone_from(&run_id);
    let work = Work::begin(hands, &mut plan, &seats, &project)?;
    let outcome = context.drive(plan, (recorder, work), (events, host.take()), porcelain);
    if let Some(cache) = cache {
        cache.tell_of_damage(printer);
    }
    let (outcome, reader) = outcome.map_err(|failure| {
        // What was recorded before is there, and scripts are told of it.
        let cases = Reader::open(store)
            .and_then(|reader| Ok(reader.run_tally(&reader.find(&run_id)?)?.total()));
        porcelain.cases = cases.unwrap_or(0);
        let again = resume::command(args, &run_id);
        failure.hint(format!("recorded results are kept; resume with: {again}"))
    })?;
    // Something was asked, so whatever fails now is no wrong input.
    let reported = context.report((&reader, &run_id), &outcome, wanted, porcelain);
    if is_empty_shard && reported.is_ok() {
        // The whole is judged by `merge`, which needs this part as well.
        printer.note("this shard has no cases");
        return Ok(Exit::Success);
    }
    reported.map_err(|failure| failure.exit(Exit::Aborted))
}

/// What the loop runs on: one thread, which its tasks share with it, so that an answer wakes nobody else. What takes long is
/// done beside it.
pub(in crate::commands) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new("failed to start").because(error))
}

/// Whether a shard has no cases while others have some.
fn is_empty_shard(selection: &Selection, scanned: &[ScannedRunner], planned: u64) -> bool {
    planned == 0 && selection.shard.is_some() && scanned.iter().any(|it| it.of_all_shards > 0)
}

/// Calls that are written down beside the store before they are made.
#[derive(Debug)]
struct CallsOnDisk(probity_store::Ledger);

impl Ledger for CallsOnDisk {
    fn begun(&mut self, lane: usize, calls: u64) -> io::Result<()> {
        self.0.begun(lane, calls)
    }
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
    /// What is run: here, from the beginning, and without answers of earlier calls.
    fn plan(
        &self,
        (lanes, backends): (Vec<PlannedLane>, Vec<Arc<Backend>>),
        scanned: &[ScannedRunner],
        (scorers, ground): (Scorers, Arc<Ground>),
        access: CacheAccess,
    ) -> Plan {
        let Self { project, args, .. } = self;
        Plan {
            run_id: String::new(),
            resumed: false,
            settings: project.settings.clone(),
            stages: prepare::stages(&lanes, project.suite.parallel || args.parallel),
            backends,
            lanes,
            budgets: scanned.iter().map(|runner| runner.runner.budget).collect(),
            carried: Used::default(),
            carried_by_runner: Vec::new(),
            ledger: None,
            cache: None,
            access,
            scorers,
            ground,
            executor: Executor::Local,
        }
    }

    /// Says what would be run, and writes down what would be asked.
    fn tell_plan(&self, plan: &dry_run::Plan<'_>) -> Result<Exit, Failure> {
        let text = Printer::laid_out(&dry_run::render(plan));
        if let Some(path) = &self.args.requests {
            dry_run::write_requests(path, plan.lanes, plan.backends)?;
        }
        self.tell(&safe(&text))?;
        Ok(Exit::Success)
    }

    /// The baseline that the run is held against. One of other cases is refused before
    /// anything is asked.
    fn load_baseline(&self, lanes: &[PlannedLane]) -> Result<Option<Against>, Failure> {
        let Some(name) = &self.args.baseline else { return Ok(None) };
        let mut against = Against::load(name, &self.project.settings, self.args.force)?;
        against.keep_runners(&self.args.touched);
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
                let name = lane.info.key();
                self.printer
                    .note(&format!("{name}: no gate can be decided early, so every case is asked"));
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
        scanned: &[ScannedRunner],
    ) -> Result<(), Failure> {
        let is_limited = |budget: &Budget| budget.max_cost_usd.is_some();
        let of_run = is_limited(&self.project.settings.budget);
        for lane in lanes {
            if !of_run && !is_limited(&scanned[lane.runner].runner.budget) {
                continue;
            }
            let judges = lane.judges.iter().copied();
            let users = lane.users.iter().copied();
            let asked = std::iter::once(lane.backend).chain(judges).chain(lane.embedder);
            let asked = asked.chain(lane.reranker).chain(users);
            if let Some(unknown) = asked.map(|at| &backends[at]).find(|it| !it.has_known_cost()) {
                let model = match &unknown.model {
                    Some(model) => format!(" with the model `{model}`"),
                    None => String::new(),
                };
                let name = &unknown.name;
                return Err(Failure::new(format!(
                    "`max_cost_usd` is set, but no price is known for the backend `{name}`{model}"
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
        read.extend(runners.iter().flat_map(|it| &it.prompts).filter_map(|it| it.file.clone()));
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
        let lanes = plan.lanes.iter().map(|lane| &lane.info);
        Recorder::create(store, &run, lanes).map_err(Failure::from)
    }

    /// Runs the plan, with the events going to the disk and to whoever watches. What became of it can be read then.
    fn drive(
        &self,
        plan: Plan,
        (recorder, work): (Recorder, Work),
        (events, host): (Option<EventsFile>, Option<Host>),
        porcelain: &mut Porcelain,
    ) -> Result<(RunOutcome, Reader), Failure> {
        let Self { project, args, store, .. } = self;
        let progress = Progress::start(Style::of(args.quiet), Board::before(&plan));
        let (done, seen) = watch::channel(Done::before(&plan));
        let planned = plan.lanes.iter().map(|lane| lane.info.planned).sum();
        ForcedExit::of_run(args, store.to_path_buf(), planned, seen).prepare();
        let (listener, stopped) = match host {
            Some(host) => (Some(host.listener), host.stopped),
            None => (None, signals::run_begins()),
        };
        let carrier = work.carrier();
        let sinks = Sinks {
            recorder,
            store: store.to_path_buf(),
            events,
            listener,
            progress,
            done,
            stopped: stopped.clone(),
            carrier,
        };
        let (sender, receiver) = events::channel(WAITING_EVENTS, WAITING_BYTES);
        let pump = thread::spawn(move || sinks.pump(receiver));
        let (rules, grace) = (project.rules, project.settings.timeouts.kill_grace);
        let running = work.runtime().spawn(async move {
            let outcome = engine::run(plan, rules, sender, stopped).await;
            // Programs that were given up are ended before we are.
            process::drained(grace + Duration::from_secs(1)).await;
            outcome
        });
        let outcome = work.runtime().block_on(running);
        // Nobody ends the loop but itself.
        let outcome = outcome.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        let written = pump.join().unwrap_or_else(|_| Err(Failure::new("the recorder failed")));
        // The run is given up before anything else happens: a late Ctrl-C ends the process below.
        let written = written.map(Recorder::into_reader);
        work.end(outcome.is_ok() && written.is_ok());
        let is_stopped = |it: &LaneStatus| matches!(it, LaneStatus::Interrupted);
        let went_on = outcome.as_ref().is_ok_and(|it| !it.lanes.iter().any(is_stopped));
        signals::run_is_over(went_on && written.is_ok());
        let used = outcome.as_ref().map_or_else(|error| error.used, |outcome| outcome.used);
        (porcelain.total_calls, porcelain.cost_usd) = (used.calls, used.cost_usd);
        let reader = written.map_err(|failure| failure.exit(Exit::Aborted))?;
        let outcome = outcome.map_err(|error| {
            Failure::new("the run was aborted").because(error).exit(Exit::Aborted)
        })?;
        Ok((outcome, reader))
    }

    /// Shows what the records say, and decides the exit code by them.
    fn report(
        &self,
        (reader, run_id): (&Reader, &str),
        outcome: &RunOutcome,
        wanted: Wanted,
        porcelain: &mut Porcelain,
    ) -> Result<Exit, Failure> {
        let Self { args, project, store, printer } = self;
        let Wanted { recording, reports, against } = wanted;
        let run = reader.find(run_id)?;
        if let Some(file) = recording {
            recording::write(reader, &run, file)?;
        }
        let mut view = reader.view(&run, project.settings.max_error_rate)?;
        super::consistency::add(&mut view, reader, &run)?;
        porcelain.cases = view.lanes.iter().map(LaneReport::cases).sum();
        porcelain.planned = view.lanes.iter().map(LaneReport::planned).sum();
        porcelain.lanes(&outcome.lanes);
        if let Some(against) = against {
            view.against = Some(against.compare(reader, &run, false)?);
        }
        // Files first: whoever reads what is printed may keep us waiting, or leave.
        let written = reports.write(reader, &run, &view);
        if written.is_ok() {
            porcelain.summarised = true;
            summary::write(store, &view, printer);
        }
        let exit = exit_of(&view, &args.gating);
        let is_empty_shard = view.lanes.iter().all(|it| it.lane.planned == 0);
        if !args.quiet && !is_empty_shard {
            self.tell(&self.page(reader, &run, &view, exit)?)?;
        }
        written?;
        let annotate = !args.quiet && !args.porcelain;
        GitHub { folder: &project.suite.folder, annotate }.tell(reader, &run, &view, printer)?;
        Ok(exit)
    }

    /// What the terminal shows.
    fn page(
        &self,
        reader: &Reader,
        run: &RunRow,
        view: &RunView,
        exit: Exit,
    ) -> Result<String, Failure> {
        let width = match self.args.porcelain {
            true => Printer::err_width(),
            false => Printer::width(),
        };
        // What a baseline says is more than what an earlier run does.
        let since = match view.against {
            Some(_) => None,
            None => page::flips(reader, run)?,
        };
        let resume = resume::command(self.args, run.short());
        let about = About { reader, run, view, exit: Some(exit), extent: Extent::Brief, width };
        about.render_since(since.as_ref(), Some(&resume))
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
        let (name, repeat) = (lane.info.key(), lane.info.repeat);
        if let Some(recorded) = recorded.filter(|it| *it < repeat) {
            let message =
                format!("{name}: {repeat} repeats are requested, but the recording has {recorded}");
            return Err(Failure::new(message).hint(format!(
                "request at most as many as were recorded: `--runs {}`",
                recorded.max(1)
            )));
        }
    }
    Ok(())
}

/// An option that would do nothing is a misunderstanding.
fn refuse_idle(args: &RunArgs, lanes: &[PlannedLane], has_cache: bool) -> Result<(), Failure> {
    let judges = lanes.iter().any(|lane| !lane.judges.is_empty());
    let compares =
        lanes.iter().any(|lane| lane.info.kind.spec().compares || lane.calls.comparisons > 0);
    let generates = lanes.iter().any(|lane| lane.info.kind.spec().compares);
    let idle = [
        ("--judge-model", args.judge_model.is_some() && !judges, "nothing is judged"),
        ("--swap", args.swap && !compares, "no answers are compared"),
        ("--regenerate", args.regenerate && !generates && !has_cache, "no answers are cached"),
    ];
    match idle.iter().find(|(_, is_idle, _)| *is_idle) {
        None => Ok(()),
        // It was checked when everything was run that it is about.
        Some(_) if !args.touched.is_empty() => Ok(()),
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

/// How the suite is read.
fn reading<'p>(args: &RunArgs, printer: &'p Printer) -> Reading<'p> {
    Reading {
        printer,
        unknown_keys: unknown_keys(args),
        foreign: args.foreign,
        callables: Callables::default(),
    }
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
