//! How each case of a lane stands, and what has changed between two.

mod map;

use std::{cmp::Ordering, collections::BTreeMap, fmt, str::FromStr};

pub use map::Outcomes;

use crate::{
    case::Category,
    classification::Verdict,
    metrics::{ResultFacts, Verdicts, of_case},
};
use probity_stats::{
    Interval, USUAL_LEVEL,
    paired::{Pairs, mcnemar_exact, mean_difference, tango},
};

/// What the repeats of a case came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseOutcome {
    /// Each repeat.
    pub verdicts: Verdicts,
    /// The case's category.
    pub category: Option<Category>,
}

/// Every case of a lane, by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseOutcomes {
    /// Of the repeats of a case so many have to pass; none: all.
    pub min_pass: Option<u32>,
    /// The cases.
    pub cases: Outcomes,
}

impl CaseOutcomes {
    /// Takes in a result.
    pub fn add(&mut self, result: ResultFacts) {
        self.cases.add(&result.case_id, result.verdict, result.category);
    }

    /// What a case came to.
    pub fn verdict(&self, outcome: &CaseOutcome) -> Verdict {
        of_case(&outcome.verdicts, self.min_pass)
    }

    /// Cases by verdict.
    pub fn count(&self) -> Verdicts {
        let mut counts = Verdicts::default();
        self.cases.iter().for_each(|(_, it)| counts.add(self.verdict(&it)));
        counts
    }
}

/// What a baseline keeps of a case: a verdict, or `2/3` of its repeats.
impl fmt::Display for CaseOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdicts { pass, fail, error, undecided } = self.verdicts;
        match (pass, fail, error, undecided) {
            (1, 0, 0, 0) => f.write_str("pass"),
            (0, 1, 0, 0) => f.write_str("fail"),
            (0, 0, 1, 0) => f.write_str("error"),
            (0, 0, 0, 1) => f.write_str("undecided"),
            (pass, fail, error, undecided) => {
                write!(f, "{pass}/{}", pass.saturating_add(fail))?;
                if error > 0 {
                    write!(f, " and {error} errors")?;
                }
                if undecided > 0 { write!(f, " and {undecided} undecided") } else { Ok(()) }
            }
        }
    }
}

impl FromStr for CaseOutcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let verdicts = match text.parse::<Verdict>() {
            Ok(verdict) => {
                let mut once = Verdicts::default();
                once.add(verdict);
                Some(once)
            }
            Err(_) => repeats(text),
        };
        match verdicts {
            Some(verdicts) => Ok(Self { verdicts, category: None }),
            None => Err(format!("`{text}` is not a verdict")),
        }
    }
}

/// Reads `2/3`, `2/3 and 1 errors`, `2/3 and 1 undecided`, or both.
fn repeats(text: &str) -> Option<Verdicts> {
    let mut parts = text.split(" and ");
    let (pass, judged) = parts.next()?.split_once('/')?;
    let (pass, judged): (u64, u64) = (pass.parse().ok()?, judged.parse().ok()?);
    let fail = judged.checked_sub(pass)?;
    let mut verdicts = Verdicts { pass, fail, ..Verdicts::default() };
    for part in parts {
        match part.split_once(' ')? {
            (count, "errors") => verdicts.error = count.parse().ok()?,
            (count, "undecided") => verdicts.undecided = count.parse().ok()?,
            (_, _) => return None,
        }
    }
    Some(verdicts)
}

/// What has changed from one lane to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Passed before, and fails now.
    pub regressions: Vec<String>,
    /// Failed before, and passes now.
    pub fixes: Vec<String>,
    /// Could be judged before, and cannot now.
    pub lost: Vec<String>,
    /// Is there no more.
    pub vanished: Vec<String>,
    /// Was not there.
    pub new: Vec<String>,
    /// Cases that could be judged both times.
    pub common: u64,
    /// Those that passed before, and those that pass now.
    pub passed: (u64, u64),
    /// The same by category: cases, passed before, pass now.
    pub categories: BTreeMap<Category, (u64, u64, u64)>,
    /// What the change comes to, and where it may lie.
    pub difference: Option<Difference>,
}

/// A difference of two rates over the same cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Second less first.
    pub value: f64,
    /// At 95 %.
    pub interval: Interval,
    /// The chance of flips as uneven as these if neither is better (the exact test of `McNemar`).
    pub p_value: f64,
}

impl Changes {
    /// What has changed from `first` to `second`.
    pub fn between(first: &CaseOutcomes, second: &CaseOutcomes) -> Self {
        let mut changes = Self::default();
        let mut pairs = Pairs { both: 0, only_first: 0, only_second: 0, neither: 0 };
        // Only repeats make anything but whole numbers, and only then differences are needed one by one.
        let is_repeated = [first, second].iter().any(|it| it.cases.has_repeats());
        let mut differences: Vec<f64> = Vec::new();
        // Both are in the order of the ids, so that one walk over both is enough.
        let (mut all_before, mut all_after) = (first.cases.iter(), second.cases.iter());
        let (mut next_before, mut next_after) = (all_before.next(), all_after.next());
        loop {
            let order = match (&next_before, &next_after) {
                (Some((before, _)), Some((after, _))) => before.cmp(after),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let before = next_before.take_if(|_| order.is_le());
            let after = next_after.take_if(|_| order.is_ge());
            if before.is_some() {
                next_before = all_before.next();
            }
            if after.is_some() {
                next_after = all_after.next();
            }
            let ((case_id, before), after) = match (before, after) {
                (Some(before), Some((_, after))) => (before, after),
                (Some((case_id, _)), None) => {
                    changes.vanished.push(case_id.to_owned());
                    continue;
                }
                (None, Some((case_id, _))) => {
                    changes.new.push(case_id.to_owned());
                    continue;
                }
                (None, None) => continue,
            };
            let (was, is) = (first.verdict(&before), second.verdict(&after));
            match (was, is) {
                (Verdict::Pass | Verdict::Fail, Verdict::Error | Verdict::Undecided) => {
                    changes.lost.push(case_id.to_owned());
                }
                (Verdict::Pass, Verdict::Fail) => changes.regressions.push(case_id.to_owned()),
                (Verdict::Fail, Verdict::Pass) => changes.fixes.push(case_id.to_owned()),
                (Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided, _) => {}
            }
            let (before_passed, now_passes) = (was == Verdict::Pass, is == Verdict::Pass);
            if ![was, is].iter().all(|it| matches!(it, Verdict::Pass | Verdict::Fail)) {
                continue;
            }
            changes.common += 1;
            changes.passed.0 += u64::from(before_passed);
            changes.passed.1 += u64::from(now_passes);
            if is_repeated {
                let rate = |it: &CaseOutcome| it.verdicts.rate().unwrap_or(0.0);
                differences.push(rate(&after) - rate(&before));
            }
            if let Some(category) = after.category.or(before.category) {
                let counts = changes.categories.entry(category).or_default();
                counts.0 += 1;
                counts.1 += u64::from(before_passed);
                counts.2 += u64::from(now_passes);
            }
            *match (before_passed, now_passes) {
                (true, true) => &mut pairs.both,
                (true, false) => &mut pairs.only_first,
                (false, true) => &mut pairs.only_second,
                (false, false) => &mut pairs.neither,
            } += 1;
        }
        changes.difference = difference(pairs, &differences, changes.common);
        changes
    }
}

fn difference(pairs: Pairs, differences: &[f64], common: u64) -> Option<Difference> {
    let p_value = mcnemar_exact(pairs.only_first, pairs.only_second);
    let is_repeated = differences.iter().any(|it| it.fract() != 0.0);
    if is_repeated && let Some(found) = mean_difference(differences, USUAL_LEVEL) {
        let Interval { low, high } = found.interval;
        // A difference of shares lies between them, whatever a few cases make of it.
        let interval = Interval { low: low.max(-1.0), high: high.min(1.0) };
        return Some(Difference { value: found.mean, interval, p_value });
    }
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    let value = (pairs.only_second as f64 - pairs.only_first as f64) / common as f64;
    // The interval is of first less second.
    let interval = tango(pairs, USUAL_LEVEL)?;
    let interval = Interval { low: -interval.high, high: -interval.low };
    Some(Difference { value, interval, p_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(cases: &[(&str, &str)]) -> CaseOutcomes {
        let cases = cases.iter().map(|(id, text)| ((*id).to_owned(), text.parse().unwrap()));
        CaseOutcomes { min_pass: None, cases: cases.collect() }
    }

    #[test]
    fn an_outcome_is_read_as_it_is_written() {
        for text in [
            "pass",
            "fail",
            "error",
            "undecided",
            "2/3",
            "0/2",
            "1/2 and 1 errors",
            "0/0 and 1 errors and 2 undecided",
            "3/3",
        ] {
            let outcome: CaseOutcome = text.parse().unwrap();
            assert_eq!(outcome.to_string(), text);
        }
        // More than anybody asked, and yet no reason to fall over.
        let most = format!("{0}/{0} and {0} errors", u64::MAX);
        let many = outcomes(&[("a", &most)]);
        assert_eq!(Changes::between(&many, &many).common, 1);
        for text in ["", "passed", "3/2", "a/b", "1/2 and x errors"] {
            assert!(text.parse::<CaseOutcome>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_kind_of_change_is_told() {
        let first = outcomes(&[
            ("a", "pass"),
            ("b", "pass"),
            ("c", "fail"),
            ("d", "pass"),
            ("e", "error"),
            ("f", "fail"),
        ]);
        let second = outcomes(&[
            ("a", "pass"),
            ("b", "fail"),
            ("c", "pass"),
            ("d", "error"),
            ("e", "pass"),
            ("g", "pass"),
        ]);
        let changes = Changes::between(&first, &second);
        assert_eq!(changes.regressions, ["b"]);
        assert_eq!(changes.fixes, ["c"]);
        assert_eq!(changes.lost, ["d"]);
        assert_eq!(changes.vanished, ["f"]);
        assert_eq!(changes.new, ["g"]);
        assert_eq!((changes.common, changes.passed), (3, (2, 2)));
        let difference = changes.difference.unwrap();
        assert!(difference.value.abs() < f64::EPSILON);
        assert!((difference.p_value - 1.0).abs() < 1e-12);
        assert!(difference.interval.low < 0.0 && difference.interval.high > 0.0);
    }

    #[test]
    fn a_difference_has_the_sign_of_the_second_run() {
        let many = |text: &'static str| -> Vec<(String, &str)> {
            (0..30).map(|at| (format!("{at}"), text)).collect()
        };
        let of = |text| {
            let cases = many(text);
            let cases: Vec<(&str, &str)> =
                cases.iter().map(|(id, it)| (id.as_str(), *it)).collect();
            outcomes(&cases)
        };
        let changes = Changes::between(&of("fail"), &of("pass"));
        let Difference { value, interval, p_value } = changes.difference.unwrap();
        assert!((value - 1.0).abs() < 1e-12);
        assert!(interval.low > 0.7 && interval.high > 0.99);
        assert!(p_value < 1e-8);
    }

    #[test]
    fn repeats_count_by_their_rates() {
        let first = outcomes(&[("a", "3/3"), ("b", "1/3"), ("c", "0/3")]);
        let second = outcomes(&[("a", "2/3"), ("b", "2/3"), ("c", "3/3")]);
        let changes = Changes::between(&first, &second);
        assert_eq!((changes.regressions.len(), changes.fixes.len()), (1, 1));
        let difference = changes.difference.unwrap();
        assert!((difference.value - (1.0 / 3.0)).abs() < 1e-12);
    }
}
