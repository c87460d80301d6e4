//! Going on with a run that did not come to its end.

use std::path::Path;

use probity_core::{
    classification::Verdict,
    record::{Lane, LaneStatus},
};
use probity_report::plain::shell_word;
use probity_run::{
    plan::{Compared, Plan, PlannedLane, Used},
    source::{DoneCase, Met, Stored},
};
use probity_store::{Finished, LaneView, Reader, Recorder, RunRow, StoreError};

use probity_core::record::Selection;

use super::{may_be_of, real_path, selection};
use crate::{
    cli::run::{RunArgs, StoreArgs},
    commands::{project::Project, workers},
    failure::Failure,
    printer::Printer,
};

/// How to go on with a run: with the options without which it would not be found, or would ask
/// other cases. Everything else the run remembers.
pub(super) fn command(args: &RunArgs, run: &str) -> String {
    let StoreArgs { store, env_file } = &args.place;
    let mut words = vec!["probity".to_owned(), "run".to_owned(), shown(&args.suite)];
    let files = [("--store", store), ("--env-file", env_file), ("--replay", &args.replay)];
    for (option, path) in files {
        words.extend(path.iter().flat_map(|path| [option.to_owned(), shown(path)]));
    }
    words.extend(args.selection.seed.map(|seed| format!("--seed {seed}")));
    words.extend(args.foreign.lossy.then(|| "--lossy".to_owned()));
    words.extend(args.foreign.allow_outside.then(|| "--allow-outside".to_owned()));
    words.extend(args.allow_unknown.then(|| "--allow-unknown".to_owned()));
    words.extend(workers::again(args));
    words.push(format!("--resume {run}"));
    words.join(" ")
}

fn shown(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A run that was begun before.
pub(super) struct Earlier {
    run: RunRow,
    retry_errors: bool,
    quiet: bool,
}

impl Earlier {
    /// The run that the command line wants to go on with.
    pub(super) fn find(
        args: &RunArgs,
        project: &Project,
        store: &Path,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = args.resume.as_ref().or(args.retry_errors.as_ref()) else {
            return Ok(None);
        };
        let reader = Reader::open(store)?;
        let path = real_path(&args.suite);
        let run = match name.as_str() {
            // The latest of this suite: another one could not be gone on with.
            "latest" => {
                let of_suite = reader.first_run(|run| {
                    run.suite == project.name
                        && run.info.imported.is_none()
                        && !run.is_half_judged()
                        && may_be_of(run, path.as_deref())
                })?;
                of_suite.ok_or_else(|| {
                    Failure::new(format!("no run of `{}` is in the store", project.name))
                })?
            }
            name => reader.find(name)?,
        };
        if let Some(imported) = &run.info.imported {
            let (id, tool) = (run.short(), &imported.tool);
            return Err(Failure::new(format!(
                "run `{id}` was imported from {tool}, so it cannot be gone on with here"
            )));
        }
        if run.suite != project.name {
            let (id, suite) = (run.short(), &run.suite);
            return Err(Failure::new(format!("run `{id}` is of the suite `{suite}`"))
                .hint(format!("probity run {suite} --resume {id}")));
        }
        if !may_be_of(&run, path.as_deref()) {
            let (id, kept) = (run.short(), run.info.suite_path.as_deref().unwrap_or_default());
            return Err(Failure::new(format!("run `{id}` belongs to another suite of that name"))
                .hint(format!("probity run {kept} --resume {id}")));
        }
        let retry_errors = args.retry_errors.is_some();
        Ok(Some(Self { run, retry_errors, quiet: args.quiet }))
    }

    /// The cases that the run had chosen. Another choice would be another run.
    pub(super) fn selection(&self, args: &RunArgs) -> Result<Selection, Failure> {
        let kept = self.run.info.selection.clone();
        let asked = selection::of(args);
        if !asked.is_everything() && asked != kept {
            return Err(Failure::new(
                "a resumed run asks the cases that were selected when it started",
            )
            .hint("omit the filters, or start a new run"));
        }
        Ok(kept)
    }

    /// Takes the run up, and says what is different from the last time.
    pub(super) fn open(
        self,
        store: &Path,
        plan: &mut Plan,
        printer: &Printer,
    ) -> Result<Recorder, Failure> {
        let TakenUp { recorder, lanes, gone } =
            TakenUp::of(&self.run, self.retry_errors, store, plan)?;
        for LaneTakenUp { at, changed, vanished } in lanes.into_iter().filter(|_| !self.quiet) {
            let PlannedLane { info, done, .. } = &plan.lanes[at];
            tell(info, changed, vanished, done.len(), printer);
        }
        for lane in gone {
            let name = lane.key();
            printer.note(&format!("{name}: no longer in the suite; its results do not count"));
        }
        Ok(recorder)
    }
}

/// A run that was taken up.
pub(super) struct TakenUp {
    pub(super) recorder: Recorder,
    /// Those of the plan that were begun before.
    lanes: Vec<LaneTakenUp>,
    /// Those that are no longer in the plan.
    gone: Vec<Lane>,
}

/// What is different from the last time.
struct LaneTakenUp {
    /// Its place in the plan.
    at: usize,
    changed: u64,
    vanished: u64,
}

impl TakenUp {
    /// Takes a run up: what came to an end and would be asked the same again is done, and what was used counts.
    pub(super) fn of(
        run: &RunRow,
        retry_errors: bool,
        store: &Path,
        plan: &mut Plan,
    ) -> Result<Self, StoreError> {
        plan.run_id.clone_from(&run.run_id);
        let mut recorder = Recorder::resume(store, &run.run_id)?;
        let reader = Reader::open(store)?;
        let known = reader.lanes(run)?;
        let mut used = Used::default();
        let mut by_runner = vec![Used::default(); plan.budgets.len()];
        let mut taken_up = Vec::with_capacity(plan.lanes.len());
        let mut calls = Vec::with_capacity(plan.lanes.len());
        let mut compared = Compared::default();
        for (at, lane) in plan.lanes.iter_mut().enumerate() {
            let same = |it: &&LaneView| it.lane.key() == lane.info.key();
            let Some(view) = known.iter().find(same) else { continue };
            // A program that failed is run again: nobody else can bring its cases to an end.
            let errors_count = !retry_errors && !lane.info.kind.spec().is_external;
            let mut stored = Stored::default();
            let results = reader.done(view, |it| {
                let Finished { case_id, repeat, input, class, verdict } = it;
                let counts = errors_count || verdict != Verdict::Error;
                stored.add(case_id, repeat, DoneCase { input, class, verdict }, counts);
            })?;
            // What calls of cases used that were cut off stands apart.
            let cut_off = reader.cut_off(view)?;
            let spent = Used {
                calls: results.calls + cut_off.calls,
                tokens: results.usage.total() + cut_off.usage.total(),
                cost_usd: results.cost_usd + cut_off.cost_usd,
            };
            let begun = view.calls.max(recorder.begun_before(&view.lane).unwrap_or(0));
            let before = spent.extended_to(begun);
            calls.push((&view.lane, before.calls));
            used.add(before);
            if let Some(own) = by_runner.get_mut(lane.runner) {
                own.add(before);
            }
            let mut done = stored.settle();
            let mut changed = 0;
            lane.inputs(&plan.backends[lane.backend], |case, input| {
                compared.add(lane, case);
                for repeat in 0..lane.info.repeat {
                    changed += u64::from(done.meet(&case.id, repeat, input) == Met::Changed);
                }
            });
            // Mostly all are planned still, and nothing has to be looked at again.
            let vanished = match done.are_all_planned() && !recorder.has_stale(&lane.info)? {
                true => 0,
                false => {
                    recorder.mark_stale(&lane.info, |id, repeat| done.is_planned(id, repeat))?
                }
            };
            done.keep_met();
            lane.done = done;
            taken_up.push((LaneTakenUp { at, changed, vanished }, view));
        }
        recorder.set_calls(calls)?;
        compared.reopen(&mut plan.lanes);
        for (LaneTakenUp { at, .. }, view) in &taken_up {
            let lane = &mut plan.lanes[*at];
            let has_rest = (lane.done.len() as u64) < lane.info.planned;
            let gave_up = |it: &LaneStatus| matches!(it, LaneStatus::FailFast { .. });
            lane.ended = view.status.clone().filter(|it| !has_rest && gave_up(it));
        }
        let of_plan =
            |it: &&LaneView| plan.lanes.iter().any(|lane| it.lane.key() == lane.info.key());
        let gone = known.iter().filter(|it| !of_plan(it)).map(|it| it.lane.clone()).collect();
        let lanes = taken_up.into_iter().map(|(lane, _)| lane).collect();
        plan.carried = used;
        plan.carried_by_runner = by_runner;
        Ok(Self { recorder, lanes, gone })
    }
}

/// Says what is different from the last time.
fn tell(lane: &Lane, changed: u64, vanished: u64, done: usize, printer: &Printer) {
    let name = lane.key();
    let left = lane.planned.saturating_sub(done as u64);
    printer.note(&format!("{name}: {done} of {} cases are done, {left} are left", lane.planned));
    if changed > 0 {
        printer.note(&format!("{name}: {changed} changed since and are asked again"));
    }
    if vanished > 0 {
        printer
            .note(&format!("{name}: {vanished} results belong to removed cases and do not count"));
    }
}
