//! `probity rescore`: stored replies, judged again by the suite, datasets and rules of now.

mod people;
mod stored;

use std::{fmt::Write as _, path::Path, rc::Rc};

use probity_core::{
    classification::Verdict,
    event::{Event, Stamped, VERSION},
    metrics::of_case,
    problem::UnknownKeys,
    record::{CaseRecord, Lane, LaneStatus, RunInfo},
};
use probity_load::{settings::Layer, suite::RunnerConfig};
use probity_report::{
    plain::{flush_left, one_line},
    text::Extent,
};
use probity_run::{
    plan::{Choice, ScannedRunner, scan},
    rescore::{Judging, RescoreError, rescore},
};
use probity_store::{LaneView, NewRun, Reader, Recorder, RunRow, StoreError, new_run_id};

use super::{
    page::About,
    project::{Project, Reading},
    report::{Reports, exit_of, refuse_inputs},
    run::real_path,
};
use crate::{cli::report::RescoreArgs, clock, exit::Exit, failure::Failure, printer::Printer};

/// Results that are written in one transaction.
const BATCH: usize = 512;
/// Flips that are shown; the reports have them all.
const SHOWN: usize = 20;

pub(super) fn run(args: &RescoreArgs, printer: &Printer) -> Result<Exit, Failure> {
    if args.stored {
        return stored::run(args, printer);
    }
    // A criterion with a typo in its name must not decide anything by being left out.
    let reading = Reading::strict(printer, args.foreign);
    let project = Project::load(&args.suite, &args.place, Layer::default(), &reading)?;
    let store = Path::new(&project.settings.store);
    let reader = Reader::open(store)?;
    let origin = reader.find(&args.run)?;
    refuse_inputs(&reader, &origin, [args.suite.clone()], &args.outputs)?;
    let reports = Reports::create(&args.outputs)?;
    let context = Context { args, project: &project, store, reader: &reader, printer };
    let lanes = context.lanes(&origin)?;
    let run_id = context.record(&origin, &lanes)?;
    let judged = Judged { args, store, reader: &reader, origin: &origin, run_id: &run_id };
    judged.show(reports, project.settings.max_error_rate, printer)
}

/// A run that was judged again.
struct Judged<'a> {
    args: &'a RescoreArgs,
    store: &'a Path,
    reader: &'a Reader,
    origin: &'a RunRow,
    run_id: &'a str,
}

impl Judged<'_> {
    /// Writes the reports, and shows what flipped.
    fn show(
        &self,
        reports: Reports,
        max_error_rate: f64,
        printer: &Printer,
    ) -> Result<Exit, Failure> {
        let Self { args, store, reader, origin, run_id } = *self;
        let run = reader.find(run_id)?;
        let said = people::carry(store, reader, origin, &run)?;
        let rejudge = |lane: &mut Lane| {
            lane.judging.errors_as_failures |= args.gating.errors_as_failures;
        };
        let mut view = reader.view_judged(&run, max_error_rate, rejudge)?;
        super::consistency::add(&mut view, reader, &run)?;
        // Files first: whoever reads what is printed may keep us waiting, or leave.
        let written = reports.write(reader, &run, &view);
        let flips = flips(reader, origin, &run)?;
        let exit = exit_of(&view, &args.gating);
        let (extent, width) = (Extent::Brief, Printer::width());
        let about = About { reader, run: &run, view: &view, exit: Some(exit), extent, width };
        printer.show_styled(&format!("{flips}{said}\n{}", about.render()?))?;
        written?;
        Ok(exit)
    }
}

struct Context<'a> {
    args: &'a RescoreArgs,
    project: &'a Project,
    store: &'a Path,
    reader: &'a Reader,
    printer: &'a Printer,
}

/// A lane of the origin, and what the suite of now says about it.
struct Again {
    before: LaneView,
    scanned: Rc<ScannedRunner>,
    lane: Lane,
}

impl Context<'_> {
    /// Every lane of the run with its runner of now.
    fn lanes(&self, origin: &RunRow) -> Result<Vec<Again>, Failure> {
        let project = self.project;
        let site = project.site();
        let mut problems = self.printer.problems();
        let mut lanes = Vec::new();
        for before in self.reader.lanes(origin)? {
            if before.lane.kind.spec().is_external {
                let name = &before.lane.runner;
                self.printer
                    .note(&format!("{name}: an external runner judges its own cases; left out"));
                continue;
            }
            // Nothing of a dataset is run, so it needs no consent.
            let runner = &RunnerConfig { allow_code: true, ..self.runner(&before.lane)?.clone() };
            let known = lanes.iter().find(|it: &&Again| it.lane.runner == runner.name);
            let scanned = match known {
                // Its other lanes are about the same cases.
                Some(known) => known.scanned.clone(),
                None => {
                    let mut report = |problem| problems.show(&problem);
                    let choice = Choice { unknown_keys: UnknownKeys::Refused, ..Choice::default() };
                    let scanned = scan(runner, &site, &choice, &mut report);
                    Rc::new(scanned.ok_or_else(|| {
                        Failure::new("a dataset has errors, so nothing was judged")
                    })?)
                }
            };
            let mut judging = runner.judging(before.lane.key());
            judging.errors_as_failures = project.settings.errors_as_failures;
            judging.max_undecided = project.settings.max_undecided;
            let lane = scanned.again(&before.lane, judging);
            lanes.push(Again { before, scanned, lane });
        }
        Ok(lanes)
    }

    fn runner(&self, lane: &Lane) -> Result<&RunnerConfig, Failure> {
        let suite = &self.project.suite;
        let runner = suite.runners.iter().find(|it| it.name == lane.runner);
        let runner = runner.ok_or_else(|| {
            let hint = match lane.imported {
                None => "`--suite FILE` names another suite",
                Some(_) => {
                    "`probity import FILE --suite SUITE --force` gives results of other tools the \
                     names of a suite; --stored judges without one"
                }
            };
            Failure::new(format!("the suite has no runner `{}`", lane.runner)).hint(hint)
        })?;
        if runner.kind != lane.kind {
            let (now, then) = (runner.kind, lane.kind);
            let name = &runner.name;
            return Err(Failure::new(format!("runner `{name}` was of kind `{then}`, not `{now}`")));
        }
        Ok(runner)
    }

    /// Judges every result again, and writes it to a new run.
    fn record(&self, origin: &RunRow, lanes: &[Again]) -> Result<String, Failure> {
        let started_ms = clock::now_ms();
        let settings = self.project.resolved.iter();
        let new = NewRun {
            run_id: new_run_id(started_ms, fastrand::u64(..)),
            suite: self.project.name.clone(),
            started_ms,
            info: RunInfo {
                probity_version: env!("CARGO_PKG_VERSION").to_owned(),
                suite_path: real_path(&self.args.suite),
                selection: origin.info.selection.clone(),
                settings: settings.map(|(key, it, _)| (key.to_owned(), it.to_string())).collect(),
                rescored_from: Some(origin.run_id.clone()),
                imported: origin.info.imported.clone(),
                ..RunInfo::default()
            },
        };
        let all = lanes.iter().map(|it| it.lane.clone()).collect();
        let mut writer = Writer::begin(self.store, &new, all)?;
        let mut progress = self.printer.progress();
        for (at, again) in lanes.iter().enumerate() {
            let Again { before, scanned, .. } = again;
            let backend = &before.lane.backend;
            let rescored = rescore(
                Judging { scanned, backend, rules: self.project.rules },
                |case_id| self.reader.case(before, case_id),
                |record| {
                    progress.update(|| format!("{} results judged again", writer.results));
                    writer.add(at, record)
                },
            );
            let rescored = rescored.map_err(|error| match error {
                RescoreError::Results(error) => Failure::from(error),
                error @ (RescoreError::Changed | RescoreError::Uncompiled { .. }) => {
                    Failure::new("judging was aborted").because(error)
                }
            })?;
            writer.end_lane(at, before.status.clone(), rescored.results)?;
            let left = self.reader.tally(before)?.total().saturating_sub(rescored.results);
            if left > 0 {
                let name = before.lane.key();
                self.printer.note(&format!(
                    "{name}: {left} stored results have no case in the current dataset"
                ));
            }
        }
        progress.clear();
        writer.finish()?;
        Ok(new.run_id)
    }
}

/// What flipped, and why.
fn flips(reader: &Reader, origin: &RunRow, run: &RunRow) -> Result<String, Failure> {
    let mut text = format!("rescored from {}\n", origin.run_id);
    for after in reader.lanes(run)? {
        let of_lane = |it: &&LaneView| it.lane.key() == after.lane.key();
        let lanes = reader.lanes(origin)?;
        let Some(before) = lanes.iter().find(of_lane) else { continue };
        let mut flips = Flips::default();
        let least = [before.lane.judging.min_pass, after.lane.judging.min_pass];
        reader.paired_verdicts([before, &after], |case_id, [was, is]| {
            flips.add(case_id, of_case(&was, least[0]), of_case(&is, least[1]));
        })?;
        let Flips { count, regressions, fixes, first } = flips;
        let _ = writeln!(
            text,
            "{}: {count} flipped ({regressions} from pass to fail, {fixes} from fail to pass)",
            after.lane.key(),
        );
        for (case_id, then, now) in &first {
            let records = reader.case(&after, case_id)?;
            let why = records.iter().find(|it| it.verdict == *now).map(CaseRecord::why);
            let (id, why) =
                (flush_left(&one_line(case_id, 32), 32), one_line(&why.unwrap_or_default(), 160));
            let _ = writeln!(text, "  {id} {then} -> {now}: {why}");
        }
        let more = count - first.len();
        if more > 0 {
            let (then, now) = (origin.short(), run.short());
            let _ =
                writeln!(text, "  and {more} more; `probity compare {then} {now}` has them all");
        }
    }
    Ok(text)
}

/// The cases whose verdict has changed.
#[derive(Default)]
struct Flips {
    count: usize,
    regressions: usize,
    fixes: usize,
    /// The first of them, with what they were and what they are.
    first: Vec<(String, Verdict, Verdict)>,
}

impl Flips {
    fn add(&mut self, case_id: &str, was: Verdict, is: Verdict) {
        if was == is {
            return;
        }
        self.count += 1;
        self.regressions += usize::from((was, is) == (Verdict::Pass, Verdict::Fail));
        self.fixes += usize::from((was, is) == (Verdict::Fail, Verdict::Pass));
        if self.first.len() < SHOWN {
            self.first.push((case_id.to_owned(), was, is));
        }
    }
}

/// Writes a new run in batches.
struct Writer {
    recorder: Recorder,
    waiting: Vec<Stamped>,
    results: u64,
    complete: bool,
}

impl Writer {
    fn begin(store: &Path, new: &NewRun, lanes: Vec<Lane>) -> Result<Self, Failure> {
        let recorder = Recorder::create(store, new, [])?;
        let started = Event::RunStarted {
            version: VERSION,
            run_id: new.run_id.clone(),
            resumed: false,
            done_before: vec![0; lanes.len()],
            lanes,
        };
        let mut writer = Self { recorder, waiting: Vec::new(), results: 0, complete: true };
        writer.push(started)?;
        Ok(writer)
    }

    fn add(&mut self, lane: usize, record: CaseRecord) -> Result<(), StoreError> {
        self.results += 1;
        self.push(Event::CaseFinished { lane, record: Box::new(record) })
    }

    /// A lane that was whole is whole again, with the results that still have a case.
    fn end_lane(
        &mut self,
        lane: usize,
        before: Option<LaneStatus>,
        results: u64,
    ) -> Result<(), StoreError> {
        let status = before.unwrap_or(LaneStatus::Interrupted);
        self.complete &= status.is_sound();
        self.push(Event::LaneFinished { lane, status, calls: 0 })?;
        self.flush()?;
        self.recorder.set_planned(lane, results)
    }

    fn push(&mut self, event: Event) -> Result<(), StoreError> {
        self.waiting.push(Stamped { at_ms: clock::now_ms(), event });
        if self.waiting.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.recorder.record(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        let complete = self.complete;
        self.push(Event::RunFinished { complete })?;
        self.flush()?;
        self.recorder.close();
        Ok(())
    }
}
