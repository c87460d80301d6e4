//! `probity bless` and `probity gate`: what runs are held against.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use probity_core::{
    baseline::{Baseline, BaselineLane},
    case_outcome::{CaseOutcomes, Cases, Changes},
    classification::Verdict,
    evaluation::time,
    record::{Judging, Lane, LaneStatus},
    view,
};
use probity_load::{
    settings::{Baselines, Layer, Settings},
    suite::{RunnerConfig, Suite},
};
use probity_report::{
    compare::{listed, summary},
    conclusion::{self, Conclusion},
    issue::{self, Regression},
    plain::one_line,
    text::Extent,
};
use probity_store::{LaneView, Reader, RunRow, StoreError};

use super::{
    page::About,
    project::{Project, Reading, settings_alone},
    report::{Reports, exit_of, refuse_inputs},
    runs::open,
};
use crate::{
    cli::report::{BlessArgs, GateArgs},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

/// Cases of a kind that are listed.
const LISTED: usize = 20;

pub(super) fn bless(args: &BlessArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(&args.run)?;
    let lanes = reader.lanes(&run)?;
    if !args.force {
        refuse_unfit(&run, &lanes)?;
        let view = reader.view(&run, settings.max_error_rate)?;
        if Conclusion::of(&view) == Conclusion::Unsound {
            let why = conclusion::sentence(&view);
            return Err(Failure::new(format!("run `{}` cannot be a baseline: {why}", run.short()))
                .hint("retry the errors with --retry-errors, or use --force"));
        }
    }
    refuse_name(&args.name)?;
    // Their cases are read while they are written.
    let kept = |lane: &LaneView| {
        let min_pass = lane.lane.judging.min_pass;
        BaselineLane::of(&lane.lane, CaseOutcomes { min_pass, ..CaseOutcomes::default() })
    };
    let version = &run.info.probity_version;
    let baseline = Baseline {
        suite: run.suite.clone(),
        run_id: run.run_id.clone(),
        timestamp: time(run.started_ms),
        probity_version: version.to_owned(),
        lanes: lanes.iter().map(kept).collect(),
    };
    let path = path_of(&args.name, &settings.baseline);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    }
    let mut file = OutputFile::create(&path)?;
    let mut cases = 0_usize;
    let written = baseline.write_with(&mut file, |lane, put| {
        reader.outcomes(&lanes[lane], |of_lane| {
            for case in of_lane.read {
                let (case_id, outcome) = case?;
                put(&case_id, &outcome)?;
                cases += 1;
            }
            Ok::<_, Unwritten>(())
        })?;
        Ok(())
    });
    written.map_err(|error| match error.downcast::<StoreError>() {
        Ok(unread) => unread.into(),
        Err(error) => Failure::write(&path, error),
    })?;
    file.finish()?;
    printer.note(&format!("{cases} cases of run {} are now `{}`", run.short(), path.display()));
    Ok(Exit::Success)
}

/// Why a case does not come into the file: an error of the store, or of the disk.
struct Unwritten(io::Error);

impl From<StoreError> for Unwritten {
    fn from(error: StoreError) -> Self {
        Self(io::Error::other(error))
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl From<Unwritten> for io::Error {
    fn from(Unwritten(error): Unwritten) -> Self {
        error
    }
}

/// A name has to be one that a file can have and people can read.
fn refuse_name(name: &str) -> Result<(), Failure> {
    match name.trim().is_empty() || name.contains(char::is_control) {
        true => Err(Failure::new("`--as` needs a name without control characters")),
        false => Ok(()),
    }
}

/// A run that is not whole says nothing about the cases it left out.
fn refuse_unfit(run: &RunRow, lanes: &[LaneView]) -> Result<(), Failure> {
    let id = run.short();
    if !lanes.iter().all(LaneView::is_complete) || lanes.is_empty() {
        return Err(Failure::new(format!("run `{id}` is incomplete, so it cannot be a baseline"))
            .hint(format!("resume it: probity run {} --resume {id}; or --force", run.suite)));
    }
    if let Some(name) = run.info.selection.limited_by() {
        return Err(Failure::new(format!("run `{id}` asked only some cases (--{name})"))
            .hint("bless a run of all cases, or use --force"));
    }
    Ok(())
}

pub(super) fn gate(args: &GateArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(&args.run)?;
    let suite = match &args.suite {
        Some(path) => {
            let reading = Reading::strict(printer, args.foreign);
            Some(Project::load(path, &args.place, Layer::default(), &reading)?)
        }
        None => None,
    };
    let settings = suite.as_ref().map_or(&settings, |it| &it.settings);
    let against = match &args.baseline {
        Some(name) => Some(Against::load(name, settings, args.force)?),
        None => None,
    };
    let kept = args.baseline.iter().map(|name| path_of(name, &settings.baseline));
    refuse_inputs(&reader, &run, kept, &args.outputs)?;
    let reports = Reports::create(&args.outputs)?;
    let rejudge = |lane: &mut Lane| {
        lane.judging.errors_as_failures |= args.gating.errors_as_failures;
        if let Some(runner) = suite.as_ref().and_then(|it| runner_of(&it.suite, lane)) {
            let Judging { gates, known_failures, .. } = runner.judging(lane.key());
            (lane.judging.gates, lane.judging.known_failures) = (gates, known_failures);
        }
    };
    let mut view = reader.view_judged(&run, settings.max_error_rate, rejudge)?;
    super::consistency::add(&mut view, &reader, &run)?;
    if let Some(suite) = &suite {
        for (report, kept) in view.lanes.iter_mut().zip(reader.lanes(&run)?) {
            if runner_of(&suite.suite, &report.lane).is_none() {
                let name = &report.lane.runner;
                return Err(Failure::new(format!("the suite has no runner `{name}`")));
            }
            // What was decided by other gates is not decided by these.
            let is_decided = matches!(report.status, Some(LaneStatus::Decided { .. }));
            if is_decided && kept.lane.judging.gates != report.lane.judging.gates {
                let reason = "stopped when other gates were decided".to_owned();
                report.status = Some(LaneStatus::Broken { reason });
            }
        }
    }
    if let Some(against) = against {
        view.against = Some(against.compare(&reader, &run, args.gating.errors_as_failures)?);
    }
    // Files first: whoever reads what is printed may keep us waiting, or leave.
    let written = reports.write(&reader, &run, &view);
    let exit = exit_of(&view, &args.gating);
    let (extent, width) = (Extent::Brief, Printer::width());
    let about = About { reader: &reader, run: &run, view: &view, exit: Some(exit), extent, width };
    printer.show_styled(&about.render()?)?;
    written?;
    Ok(exit)
}

fn runner_of<'s>(suite: &'s Suite, lane: &Lane) -> Option<&'s RunnerConfig> {
    suite.runners.iter().find(|runner| runner.name == lane.runner)
}

/// The file of a baseline: a name in the usual folder, or a path.
pub(super) fn path_of(name: &str, baselines: &Baselines) -> PathBuf {
    let is_path = name.contains('/') || Path::new(name).extension().is_some_and(|it| it == "json");
    match is_path {
        true => PathBuf::from(name),
        false => Path::new(&baselines.folder).join(format!("{name}.json")),
    }
}

/// What has changed in a lane since a baseline.
fn changes_since(
    kept: &BaselineLane,
    reader: &Reader,
    lane: &LaneView,
) -> Result<Changes, StoreError> {
    let mut before = kept.outcomes.cases.iter().map(Ok);
    let before = Cases { min_pass: kept.outcomes.min_pass, read: &mut before };
    reader.outcomes(lane, |now| Changes::between(before, now))
}

/// A baseline that a run is held against.
pub(super) struct Against {
    name: String,
    baseline: Baseline,
    settings: Baselines,
    force: bool,
}

impl Against {
    /// Reads a baseline, before anything is paid for.
    pub(super) fn load(name: &str, settings: &Settings, force: bool) -> Result<Self, Failure> {
        let path = path_of(name, &settings.baseline);
        let file = File::open(&path).map_err(|error| {
            Failure::read(&path, error).hint("`probity bless RUN --as NAME` makes a baseline")
        })?;
        let baseline = Baseline::read(BufReader::new(file)).map_err(|error| {
            Failure::new(format!("`{}` is not a baseline: {error}", path.display()))
        })?;
        Ok(Self { name: name.to_owned(), baseline, settings: settings.baseline.clone(), force })
    }

    /// Leaves out all other runners, if any are named.
    pub(super) fn keep_runners(&mut self, names: &[String]) {
        if !names.is_empty() {
            self.baseline.lanes.retain(|it| names.contains(&it.runner));
        }
    }

    /// Refuses lanes that are not about the same cases.
    pub(super) fn refuse_unlike<'l>(
        &self,
        lanes: impl IntoIterator<Item = &'l Lane>,
    ) -> Result<(), Failure> {
        if self.force {
            return Ok(());
        }
        let mut known = Vec::new();
        for lane in lanes {
            let Some(kept) = self.baseline.lane(lane.key()) else { continue };
            known.push(kept);
            let (lane_name, name) = (lane.key(), &self.name);
            let cases = kept.outcomes.cases.len() as u64 * u64::from(lane.repeat);
            if kept.dataset_digest != lane.dataset_digest {
                return Err(Failure::new(format!(
                    "{lane_name}: the dataset differs from that of the baseline `{name}`"
                ))
                .hint("compare the cases in common with --force, or bless a new baseline"));
            }
            if lane.planned != cases {
                let planned = lane.planned;
                return Err(Failure::new(format!(
                    "{lane_name}: {planned} results are planned, the baseline `{name}` has {cases}"
                ))
                .hint("run all cases, or compare the cases in common with --force"));
            }
        }
        let is_run = |kept: &&BaselineLane| known.iter().any(|it| std::ptr::eq(*it, *kept));
        match self.baseline.lanes.iter().find(|kept| !is_run(kept)) {
            None => Ok(()),
            Some(kept) => {
                let (lane, name) = (kept.key(), &self.name);
                Err(Failure::new(format!("{lane} is in the baseline `{name}`, but is not run"))
                    .hint(
                        "runners, variants and backends are matched by name; --force compares those \
                         in common",
                    ))
            }
        }
    }

    /// Says what has changed, and whether the run is worse than it may be.
    pub(super) fn compare(
        &self,
        reader: &Reader,
        run: &RunRow,
        errors_as_failures: bool,
    ) -> Result<view::Against, Failure> {
        let mut lanes = reader.lanes(run)?;
        for lane in &mut lanes {
            lane.lane.judging.errors_as_failures |= errors_as_failures;
        }
        let name = self.name.clone();
        if !self.force && !lanes.iter().all(LaneView::is_complete) {
            let told = "\nnot compared with the baseline: the run is incomplete (--force compares anyway)\n";
            return Ok(view::Against { name, reasons: Vec::new(), text: told.to_owned() });
        }
        self.refuse_unlike(lanes.iter().map(|it| &it.lane))?;
        let Baseline { run_id, timestamp, .. } = &self.baseline;
        let mut text = format!("\nagainst the baseline `{name}` (run {run_id} of {timestamp})\n");
        let (mut reasons_of_all, mut common) = (Vec::new(), 0);
        for lane in &lanes {
            let (judging, lane_name) = (&lane.lane.judging, lane.lane.key());
            let Some(kept) = self.baseline.lane(lane_name) else {
                let _ = writeln!(text, "  {lane_name}: not in the baseline");
                continue;
            };
            let mut changes = changes_since(kept, reader, lane)?;
            if self.force {
                // What was left out on purpose is not missed.
                changes.vanished.clear();
            }
            let verdict =
                self.settings.tolerance.judge(changes, |id| judging.known_failures.contains(id));
            let _ = writeln!(text, "  {lane_name}: {}", summary(&verdict.changes));
            if let Some(changes) = kept.skill_changes(&lane.lane) {
                let _ = writeln!(text, "    note: {}", one_line(&changes.to_string(), 300));
            }
            let reasons = reader.reasons(lane, &verdict.changes.regressions)?;
            text.push_str(&listed(&verdict.changes, &reasons));
            for id in &verdict.excused {
                let _ = writeln!(text, "    known    {}", one_line(id, 24));
            }
            for reason in &verdict.reasons {
                let _ = writeln!(text, "  baseline FAIL {reason}");
            }
            common += verdict.changes.common;
            reasons_of_all.extend(verdict.reasons);
        }
        let is_run = |kept: &&BaselineLane| lanes.iter().any(|it| it.lane.key() == kept.key());
        for kept in self.baseline.lanes.iter().filter(|kept| !is_run(kept)) {
            let _ = writeln!(text, "  {}: was not run", kept.key());
        }
        if common == 0 {
            reasons_of_all.push("it has no judged case in common with it".to_owned());
            let _ = writeln!(text, "  baseline FAIL no judged case in common");
        }
        Ok(view::Against { name, reasons: reasons_of_all, text })
    }

    /// Drafts of issues about what got worse, one for each lane.
    pub(super) fn drafts(&self, reader: &Reader, run: &RunRow) -> Result<String, Failure> {
        let lanes = reader.lanes(run)?;
        if !self.force && !lanes.iter().all(LaneView::is_complete) {
            return Err(Failure::new(format!("run `{}` is incomplete", run.short()))
                .hint("resume it (--resume), or compare anyway with --force"));
        }
        self.refuse_unlike(lanes.iter().map(|it| &it.lane))?;
        let before = format!("baseline {}, run {}", self.name, self.baseline.run_id);
        let mut text = String::new();
        for lane in &lanes {
            let Lane { runner, variant, model, dataset_digest, .. } = &lane.lane;
            let Some(kept) = self.baseline.lane(lane.lane.key()) else { continue };
            let changes = changes_since(kept, reader, lane)?;
            if changes.regressions.is_empty() {
                continue;
            }
            let mut cases = BTreeMap::new();
            for id in changes.regressions.iter().take(LISTED) {
                let results = reader.case(lane, id)?;
                let failed = results.into_iter().find(|it| it.verdict == Verdict::Fail);
                cases.extend(failed.map(|it| (id.clone(), it)));
            }
            let regression = Regression {
                suite: &run.suite,
                title: &lane.lane.key().to_string(),
                runner,
                variant: variant.as_deref(),
                model: model.as_deref(),
                before: &before,
                run: &run.run_id,
                dataset_digest,
                changes: &changes,
                cases: &cases,
            };
            text.push_str(&issue::render(&regression));
        }
        Ok(text)
    }
}
