//! `probity compare`: runs beside each other.

use probity_core::{
    case_outcome::{CaseOutcomes, Changes},
    view::LaneReport,
};
use probity_load::settings::Settings;
use probity_report::{
    compare::{self, Comparison, Pair, Side},
    json::sorted,
};
use probity_stats::{multiple::holm, sample_size};
use probity_store::{LaneView, Reader, RunRow};

use super::{baseline::reasons, project::settings_alone, runs::open};
use crate::{
    cli::report::{CompareArgs, CompareFormat},
    exit::Exit,
    failure::Failure,
    printer::Printer,
};

pub(super) fn run(args: &CompareArgs, printer: &Printer) -> Result<Exit, Failure> {
    if !(args.difference > 0.0 && args.difference < 1.0) {
        return Err(Failure::new("`--difference` must lie between 0 and 1, such as 0.05"));
    }
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let chosen: Vec<Chosen> = args
        .runs
        .iter()
        .map(|name| Chosen::find(&reader, name, &settings))
        .collect::<Result<_, _>>()?;
    if !args.force {
        chosen.iter().try_for_each(Chosen::refuse_unfit)?;
    }
    let comparison = compare(&reader, &chosen, args)?;
    match args.format {
        CompareFormat::Text => printer.show(&compare::text(&comparison))?,
        CompareFormat::Md => Printer::emit(&compare::markdown(&comparison))?,
        CompareFormat::Html => Printer::emit(&compare::html(&comparison))?,
        CompareFormat::Json => {
            let value = sorted(compare::json(&comparison));
            let text = serde_json::to_string_pretty(&value).unwrap_or_default();
            Printer::emit(&format!("{text}\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// A run, or what one backend did in it.
struct Chosen {
    run: RunRow,
    lanes: Vec<(LaneView, LaneReport)>,
}

impl Chosen {
    /// `RUN`, or `RUN@BACKEND`.
    fn find(reader: &Reader, name: &str, settings: &Settings) -> Result<Self, Failure> {
        let (run, backend) = match name.split_once('@') {
            Some((run, backend)) => (run, Some(backend)),
            None => (name, None),
        };
        let run = reader.find(if run.is_empty() { "latest" } else { run })?;
        let views = reader.lanes(&run)?;
        let reports = reader.view(&run, settings.max_error_rate)?.lanes;
        let known: Vec<String> = views.iter().map(|it| it.lane.backend.clone()).collect();
        let lanes: Vec<_> = views
            .into_iter()
            .zip(reports)
            .filter(|(view, _)| backend.is_none_or(|it| it == view.lane.backend))
            .collect();
        if lanes.is_empty() {
            let backend = backend.unwrap_or_default();
            return Err(Failure::new(format!("run `{}` has no backend `{backend}`", run.short()))
                .hint(format!("it has {}", known.join(", "))));
        }
        Ok(Self { run, lanes })
    }

    fn refuse_unfit(&self) -> Result<(), Failure> {
        match self.lanes.iter().find(|(_, report)| !report.is_complete()) {
            None => Ok(()),
            Some((_, report)) => Err(Failure::new(format!(
                "run `{}`: {} is incomplete",
                self.run.short(),
                report.title()
            ))
            .hint("resume it (--resume), or compare anyway with --force")),
        }
    }
}

fn compare(reader: &Reader, chosen: &[Chosen], args: &CompareArgs) -> Result<Comparison, Failure> {
    let mut sides = Vec::new();
    let mut views: Vec<(usize, &LaneView)> = Vec::new();
    for (at, run) in chosen.iter().enumerate() {
        for (view, report) in &run.lanes {
            let name = format!("{} {}", run.run.short(), report.title());
            sides.push(Side { name, report: report.clone() });
            views.push((at, view));
        }
    }
    let outcomes: Vec<CaseOutcomes> = views
        .iter()
        .map(|(_, view)| reader.case_outcomes(view).map_err(Failure::from))
        .collect::<Result<_, _>>()?;
    let mut pairs = Vec::new();
    for (second, (_, view)) in views.iter().enumerate().filter(|(_, (run, _))| *run > 0) {
        let Some(first) = counterpart(&views, view)? else { continue };
        let (_, before) = views[first];
        if !args.force && before.lane.dataset_digest != view.lane.dataset_digest {
            let (a, b) = (&sides[first].name, &sides[second].name);
            return Err(Failure::new(format!("`{a}` and `{b}` are of different datasets"))
                .hint("compare the cases that both have with --force"));
        }
        let changes = Changes::between(&outcomes[first], &outcomes[second]);
        let mut why = reasons(reader, view, &changes.regressions)?;
        why.extend(reasons(reader, view, &changes.lost)?);
        why.extend(reasons(reader, before, &changes.fixes)?);
        let needed = needed(&changes, args.difference);
        let skills = before.lane.skills.as_ref().zip(view.lane.skills.as_ref());
        let skills = skills.and_then(|(before, now)| now.changes_since(before));
        pairs.push(Pair { first, second, changes, skills, adjusted_p: None, reasons: why, needed });
    }
    if pairs.is_empty() {
        return Err(Failure::new("the runs have no runner in common")
            .hint("name the backend where there are several: RUN@BACKEND"));
    }
    let raw: Vec<f64> =
        pairs.iter().map(|it| it.changes.difference.map_or(1.0, |it| it.p_value)).collect();
    for (pair, adjusted) in pairs.iter_mut().zip(holm(&raw)) {
        pair.adjusted_p = pair.changes.difference.map(|_| adjusted);
    }
    let mut notes = Vec::new();
    if sides.iter().any(|side| side.report.lane.replayed) {
        notes.push(
            "answers come from a recording: what is compared is how they were judged".to_owned(),
        );
    }
    Ok(Comparison { sides, pairs, notes })
}

/// The lane of the first run that a lane is held against: that of the same runner and backend,
/// or the only one of its runner.
fn counterpart(views: &[(usize, &LaneView)], of: &LaneView) -> Result<Option<usize>, Failure> {
    let all: Vec<(usize, &LaneView)> = views
        .iter()
        .enumerate()
        .filter(|(_, (run, view))| *run == 0 && view.lane.runner == of.lane.runner)
        .map(|(at, (_, view))| (at, *view))
        .collect();
    if let Some((at, _)) = all.iter().find(|(_, view)| view.lane.backend == of.lane.backend) {
        return Ok(Some(*at));
    }
    match all.as_slice() {
        [] => Ok(None),
        [(at, _)] => Ok(Some(*at)),
        [..] => Err(Failure::new(format!(
            "the first run has runner `{}` on several backends",
            of.lane.runner
        ))
        .hint("name one: RUN@BACKEND")),
    }
}

/// How many cases it takes to see a difference, if as many flip as do here.
fn needed(changes: &Changes, difference: f64) -> Option<(f64, u64)> {
    let flips = (changes.regressions.len() + changes.fixes.len()) as u64;
    let discordant = probity_core::metrics::share(flips, changes.common)?.max(difference);
    let design = sample_size::Paired { difference, discordant, alpha: 0.05, power: 0.8 };
    sample_size::paired(design).map(|cases| (difference, cases))
}
