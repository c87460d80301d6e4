//! Makes a comparison of lanes.

use std::{collections::BTreeSet, error::Error, fmt};

use probity_core::{
    case_outcome::Changes, classification::Verdict, metrics::share, record::LaneKey,
    view::LaneReport,
};
use probity_stats::{multiple::holm, sample_size};

use super::{Comparison, Pair, Side};

/// A lane that takes part in a comparison.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Its run, counted from 0. The others are held against that one.
    pub run: usize,
    /// How people call it.
    pub name: String,
    /// Its figures.
    pub report: LaneReport,
}

/// Says what has changed from one entrant to another, by their places, and tells of the cases of both that have not flipped.
pub type Compare<'c, E> =
    &'c mut dyn FnMut([usize; 2], &mut dyn FnMut(String, Verdict)) -> Result<Changes, E>;

/// How lanes are compared.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Whether lanes of different datasets are compared by the cases that both have.
    pub any_dataset: bool,
    /// The difference that one would like to see.
    pub difference: f64,
    /// Whether cases that have not flipped are listed, too.
    pub with_unchanged: bool,
}

/// Why lanes cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareError {
    /// They are of different datasets.
    OtherDataset([String; 2]),
    /// They share no case.
    NothingInCommon([String; 2]),
    /// They share no runner.
    NoRunner {
        /// Whether some are of another tool.
        imported: bool,
    },
    /// The first run has several lanes that one could be held against.
    Several {
        /// The runner.
        runner: String,
        /// Whether they differ in their variants, not their backends.
        by_variant: bool,
    },
}

impl CompareError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::OtherDataset(_) => "compare the cases that both have with --force",
            Self::NothingInCommon(_) => {
                "`probity import FILE --suite SUITE --force` finds the cases of a suite"
            }
            Self::NoRunner { imported: true } => {
                "`probity import FILE --suite SUITE --force` gives results the names of a suite"
            }
            Self::NoRunner { imported: false } => {
                "name the part where there are several: RUN@BACKEND, RUN@VARIANT"
            }
            Self::Several { by_variant: true, .. } => "name one: RUN@VARIANT",
            Self::Several { by_variant: false, .. } => "name one: RUN@BACKEND",
        }
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherDataset([a, b]) => write!(f, "`{a}` and `{b}` are of different datasets"),
            Self::NothingInCommon([a, b]) => write!(f, "`{a}` and `{b}` have no case in common"),
            Self::NoRunner { .. } => f.write_str("the runs have no runner in common"),
            Self::Several { runner, by_variant } => {
                let what =
                    if *by_variant { "with several variants" } else { "on several backends" };
                write!(f, "the first run has runner `{runner}` {what}")
            }
        }
    }
}

impl Error for CompareError {}

/// Holds the lanes of later runs against those of the first. Why cases did not pass is left open.
pub fn build<E: From<CompareError>>(
    entrants: Vec<Entrant>,
    terms: &Terms,
    compare: Compare<'_, E>,
) -> Result<Comparison, E> {
    let mut pairs = Vec::new();
    for (second, entrant) in entrants.iter().enumerate().filter(|(_, it)| it.run > 0) {
        if let Some(first) = counterpart(&entrants, entrant)? {
            pairs.push(pair(&entrants, [first, second], terms, compare)?);
        }
    }
    let lanes = || entrants.iter().map(|it| &it.report.lane);
    if pairs.is_empty() {
        let imported = lanes().any(|it| it.imported.is_some());
        return Err(CompareError::NoRunner { imported }.into());
    }
    let raw: Vec<f64> =
        pairs.iter().map(|it| it.changes.difference.map_or(1.0, |it| it.p_value)).collect();
    for (pair, adjusted) in pairs.iter_mut().zip(holm(&raw)) {
        pair.adjusted_p = pair.changes.difference.map(|_| adjusted);
    }
    let mut notes = unlike(&entrants, &pairs);
    if lanes().any(|it| it.replayed) {
        notes.push(
            "answers come from a recording: what is compared is how they were judged".to_owned(),
        );
    }
    for tool in lanes().filter_map(|it| it.imported.as_deref()).collect::<BTreeSet<_>>() {
        notes
            .push(format!("{tool} asked and judged one side, so a difference may be one of tools"));
    }
    let sides = entrants.into_iter().map(|Entrant { name, report, .. }| Side { name, report });
    Ok(Comparison { sides: sides.collect(), pairs, notes })
}

/// What keeps a comparison from being one of like with like.
fn unlike(entrants: &[Entrant], pairs: &[Pair]) -> Vec<String> {
    let unfit = entrants.iter().filter(|it| !it.report.is_complete());
    let mut notes: Vec<String> = unfit.map(|it| format!("`{}` is incomplete", it.name)).collect();
    for Pair { first, second, .. } in pairs {
        let (before, now) = (&entrants[*first], &entrants[*second]);
        if is_of_other_dataset(before, now) {
            let error = CompareError::OtherDataset([before.name.clone(), now.name.clone()]);
            notes.push(format!("{error}: the cases that both have are compared"));
        }
    }
    notes
}

/// Whether the cases of two lanes are not the same. The dataset of another tool is never ours, so
/// that it says nothing.
fn is_of_other_dataset(before: &Entrant, now: &Entrant) -> bool {
    let lanes = [&before.report.lane, &now.report.lane];
    lanes.iter().all(|it| it.imported.is_none())
        && lanes[0].dataset_digest != lanes[1].dataset_digest
}

fn pair<E: From<CompareError>>(
    entrants: &[Entrant],
    [first, second]: [usize; 2],
    terms: &Terms,
    compare: Compare<'_, E>,
) -> Result<Pair, E> {
    let (before, now) = (&entrants[first], &entrants[second]);
    let names = || [before.name.clone(), now.name.clone()];
    let lanes = [&before.report.lane, &now.report.lane];
    let is_imported = lanes.iter().any(|it| it.imported.is_some());
    if !terms.any_dataset && is_of_other_dataset(before, now) {
        return Err(CompareError::OtherDataset(names()).into());
    }
    let (mut unchanged, mut passing) = (Vec::new(), Vec::new());
    let mut see = |case_id: String, verdict: Verdict| match verdict {
        _ if !terms.with_unchanged => {}
        Verdict::Pass => passing.push(case_id),
        Verdict::Fail | Verdict::Error | Verdict::Undecided => unchanged.push(case_id),
    };
    let changes = compare([first, second], &mut see)?;
    unchanged.append(&mut passing);
    if is_imported && changes.common == 0 {
        return Err(CompareError::NothingInCommon(names()).into());
    }
    let skills = lanes[0].skills.as_ref().zip(lanes[1].skills.as_ref());
    Ok(Pair {
        first,
        second,
        needed: needed(&changes, terms.difference),
        changes,
        skills: skills.and_then(|(before, now)| now.changes_since(before)),
        adjusted_p: None,
        reasons: std::collections::BTreeMap::new(),
        unchanged,
        preference: None,
    })
}

/// The lane of the first run that a lane is held against: of those of the same runner the one with
/// the same backend and variant, as far as they have it, or the only one.
fn counterpart(entrants: &[Entrant], of: &Entrant) -> Result<Option<usize>, CompareError> {
    let of = of.report.lane.key();
    let mut all: Vec<(usize, LaneKey<'_>)> = entrants
        .iter()
        .enumerate()
        .filter(|(_, it)| it.run == 0 && it.report.lane.runner == of.runner)
        .map(|(at, it)| (at, it.report.lane.key()))
        .collect();
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
        [(_, one), (_, other), ..] => Err(CompareError::Several {
            runner: of.runner.to_owned(),
            by_variant: one.backend == other.backend,
        }),
    }
}

/// How many cases it takes to see a difference, if as many flip as do here.
fn needed(changes: &Changes, difference: f64) -> Option<(f64, u64)> {
    let flips = (changes.regressions.len() + changes.fixes.len()) as u64;
    let discordant = share(flips, changes.common)?.max(difference);
    let design = sample_size::Paired { difference, discordant, alpha: 0.05, power: 0.8 };
    sample_size::paired(design).map(|cases| (difference, cases))
}
