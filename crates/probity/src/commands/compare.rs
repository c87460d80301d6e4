//! `probity compare`: runs beside each other.

mod judged;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{self, Write},
    path::Path,
};

use probity_core::{
    case_outcome::{CaseOutcomes, Changes},
    classification::Verdict,
    record::LaneKey,
    view::LaneReport,
};
use probity_load::settings::Settings;
use probity_report::{
    compare::{self, Comparison, Pair, Side},
    json::sorted,
};
use probity_stats::{multiple::holm, sample_size};
use probity_store::{LaneView, Reader, RunRow, StoreError};

use super::{baseline::reasons, project::settings_alone, runs::open};
use crate::{
    cli::report::{CompareArgs, CompareFormat},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
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
    let format = args.output.as_deref().map_or(Ok(args.format), format_of)?;
    let file = args.output.as_deref().map(OutputFile::create).transpose()?;
    let mut comparison = compare(&reader, &chosen, args, format)?;
    if let Some(judge) = &args.judge {
        judged::add(&mut comparison, &reader, &lanes_of(&chosen), (judge, args), printer)?;
    }
    let page = |out: &mut dyn Write| write_page(&reader, &chosen, &comparison, out);
    let text = || match format {
        CompareFormat::Md => compare::markdown(&comparison),
        CompareFormat::Json => {
            let value = sorted(compare::json(&comparison));
            format!("{}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
        }
        CompareFormat::Text | CompareFormat::Html => compare::text(&comparison),
    };
    match (file, format) {
        (None, CompareFormat::Text) => printer.show(&Printer::laid_out(&text()))?,
        (None, CompareFormat::Html) => page(&mut Printer::data())?,
        (None, CompareFormat::Md | CompareFormat::Json) => Printer::emit(&text())?,
        (Some(mut file), format) => {
            match format {
                CompareFormat::Html => page(&mut file)?,
                CompareFormat::Text | CompareFormat::Md | CompareFormat::Json => {
                    file.write_all(text().as_bytes()).map_err(Failure::output)?;
                }
            }
            file.finish()?;
        }
    }
    Ok(Exit::Success)
}

/// The format that the name of a file stands for.
fn format_of(path: &Path) -> Result<CompareFormat, Failure> {
    match path.extension().and_then(OsStr::to_str) {
        Some("txt") => Ok(CompareFormat::Text),
        Some("md") => Ok(CompareFormat::Md),
        Some("json") => Ok(CompareFormat::Json),
        Some("html") => Ok(CompareFormat::Html),
        _ => {
            Err(Failure::new(format!("`{}` does not have the suffix of a format", path.display()))
                .hint("comparisons end in .txt, .md, .json or .html"))
        }
    }
}

/// Writes the page, whose answers are read while it is written.
fn write_page(
    reader: &Reader,
    chosen: &[Chosen],
    comparison: &Comparison,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let lanes = lanes_of(chosen);
    let find = |side: usize, id: &str| reader.case(lanes[side], id).map_err(io::Error::other);
    let written = compare::html(comparison, &find, &mut *out).and_then(|()| out.flush());
    written.map_err(|error| match error.downcast::<StoreError>() {
        Ok(unread) => unread.into(),
        Err(error) => Failure::output(error),
    })
}

/// The lanes in the order of the sides.
fn lanes_of(chosen: &[Chosen]) -> Vec<&LaneView> {
    chosen.iter().flat_map(|it| &it.lanes).map(|(view, _)| view).collect()
}

/// A run, or some of its lanes.
struct Chosen {
    run: RunRow,
    lanes: Vec<(LaneView, LaneReport)>,
}

impl Chosen {
    /// `RUN`, or `RUN@` and the lanes that are meant: a backend, a variant, or `VARIANT@BACKEND`.
    fn find(reader: &Reader, name: &str, settings: &Settings) -> Result<Self, Failure> {
        let (run, part) = match name.split_once('@') {
            Some((run, part)) => (run, Some(part)),
            None => (name, None),
        };
        let run = reader.find(if run.is_empty() { "latest" } else { run })?;
        let views = reader.lanes(&run)?;
        let reports = reader.view(&run, settings.max_error_rate)?.lanes;
        let is_meant = |view: &LaneView| part.is_none_or(|it| view.lane.key().is_meant_by(it));
        if !views.iter().any(is_meant) {
            return Err(unknown_part(&run, &views, part.unwrap_or_default()));
        }
        let lanes = views.into_iter().zip(reports).filter(|(view, _)| is_meant(view)).collect();
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

/// What a run has instead of what was asked for.
fn unknown_part(run: &RunRow, views: &[LaneView], part: &str) -> Failure {
    let keys = || views.iter().map(|it| it.lane.key());
    let backends: BTreeSet<&str> = keys().map(|it| it.backend).collect();
    let variants: BTreeSet<&str> = keys().filter_map(|it| it.variant).collect();
    let [backends, variants] =
        [backends, variants].map(|it| it.into_iter().collect::<Vec<_>>().join(", "));
    let (what, known) = match variants.is_empty() {
        true => ("backend", backends),
        false => {
            ("variant or backend", format!("the variants {variants}, and the backends {backends}"))
        }
    };
    Failure::new(format!("run `{}` has no {what} `{part}`", run.short()))
        .hint(format!("it has {known}"))
}

fn compare(
    reader: &Reader,
    chosen: &[Chosen],
    args: &CompareArgs,
    format: CompareFormat,
) -> Result<Comparison, Failure> {
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
        // The dataset of another tool is never ours, so the cases in common are compared.
        let is_imported = [before, *view].iter().any(|it| it.lane.imported.is_some());
        let differs = before.lane.dataset_digest != view.lane.dataset_digest;
        if !args.force && !is_imported && differs {
            let (a, b) = (&sides[first].name, &sides[second].name);
            return Err(Failure::new(format!("`{a}` and `{b}` are of different datasets"))
                .hint("compare the cases that both have with --force"));
        }
        let changes = Changes::between(&outcomes[first], &outcomes[second]);
        if is_imported && changes.common == 0 {
            let (a, b) = (&sides[first].name, &sides[second].name);
            return Err(Failure::new(format!("`{a}` and `{b}` have no case in common"))
                .hint("`probity import FILE --suite SUITE --force` finds the cases of a suite"));
        }
        let mut why = reasons(reader, view, &changes.regressions)?;
        why.extend(reasons(reader, view, &changes.lost)?);
        why.extend(reasons(reader, before, &changes.fixes)?);
        let needed = needed(&changes, args.difference);
        let skills = before.lane.skills.as_ref().zip(view.lane.skills.as_ref());
        let skills = skills.and_then(|(before, now)| now.changes_since(before));
        // No other format shows them.
        let unchanged = match format {
            CompareFormat::Html => unchanged(&outcomes[first], &outcomes[second], &changes),
            CompareFormat::Text | CompareFormat::Md | CompareFormat::Json => Vec::new(),
        };
        pairs.push(Pair {
            first,
            second,
            changes,
            skills,
            adjusted_p: None,
            reasons: why,
            unchanged,
            needed,
            preference: None,
        });
    }
    if pairs.is_empty() {
        return Err(Failure::new("the runs have no runner in common").hint(
            match views.iter().any(|(_, it)| it.lane.imported.is_some()) {
                true => {
                    "`probity import FILE --suite SUITE --force` gives results the names of a suite"
                }
                false => "name the part where there are several: RUN@BACKEND, RUN@VARIANT",
            },
        ));
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
    let tools = sides.iter().filter_map(|side| side.report.lane.imported.as_deref());
    for tool in tools.collect::<BTreeSet<_>>() {
        notes
            .push(format!("{tool} asked and judged one side, so a difference may be one of tools"));
    }
    Ok(Comparison { sides, pairs, notes })
}

/// The lane of the first run that a lane is held against: of those of the same runner the one with
/// the same backend and variant, as far as they have it, or the only one.
fn counterpart(views: &[(usize, &LaneView)], of: &LaneView) -> Result<Option<usize>, Failure> {
    let mut all: Vec<(usize, LaneKey<'_>)> = views
        .iter()
        .enumerate()
        .map(|(at, (run, view))| (at, *run, view.lane.key()))
        .filter(|(_, run, key)| *run == 0 && key.runner == of.lane.runner)
        .map(|(at, _, key)| (at, key))
        .collect();
    let of = of.lane.key();
    let same_backend = |key: LaneKey<'_>| key.backend == of.backend;
    let same_variant = |key: LaneKey<'_>| key.variant == of.variant;
    for is_same in [&same_backend as &dyn Fn(LaneKey<'_>) -> bool, &same_variant] {
        if all.iter().any(|(_, key)| is_same(*key)) {
            all.retain(|(_, key)| is_same(*key));
        }
    }
    match all.as_slice() {
        [] => Ok(None),
        [(at, _)] => Ok(Some(*at)),
        [(_, one), (_, other), ..] => {
            let (what, part) = match one.backend == other.backend {
                true => ("with several variants", "VARIANT"),
                false => ("on several backends", "BACKEND"),
            };
            let message = format!("the first run has runner `{}` {what}", of.runner);
            Err(Failure::new(message).hint(format!("name one: RUN@{part}")))
        }
    }
}

/// The cases of either run that have not flipped, those that do not pass now first.
fn unchanged(before: &CaseOutcomes, now: &CaseOutcomes, changes: &Changes) -> Vec<String> {
    let Changes { regressions, fixes, lost, vanished, new, .. } = changes;
    let flipped: BTreeSet<&String> =
        [regressions, fixes, lost, vanished, new].into_iter().flatten().collect();
    let all: BTreeSet<&String> = before.cases.keys().chain(now.cases.keys()).collect();
    let passes = |id: &String| now.cases.get(id).map(|it| now.verdict(it)) == Some(Verdict::Pass);
    let (passing, others): (Vec<&String>, Vec<&String>) =
        all.difference(&flipped).copied().partition(|id| passes(id));
    others.into_iter().chain(passing).cloned().collect()
}

/// How many cases it takes to see a difference, if as many flip as do here.
fn needed(changes: &Changes, difference: f64) -> Option<(f64, u64)> {
    let flips = (changes.regressions.len() + changes.fixes.len()) as u64;
    let discordant = probity_core::metrics::share(flips, changes.common)?.max(difference);
    let design = sample_size::Paired { difference, discordant, alpha: 0.05, power: 0.8 };
    sample_size::paired(design).map(|cases| (difference, cases))
}
