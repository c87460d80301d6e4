//! What has changed between two lanes, while both are read.

use std::{cmp::Ordering, collections::BTreeMap};

use probity_stats::{
    Interval, USUAL_LEVEL,
    paired::{Pairs, mcnemar_exact, mean_difference_of, tango},
    spread::Moments,
};

use super::{CaseOutcome, CaseOutcomes};
use crate::{
    case::Category,
    classification::Verdict,
    metrics::{Verdicts, of_case},
};

/// A case and what it came to, or why it cannot be read.
pub type Read<E> = Result<(String, CaseOutcome), E>;

/// The cases of a lane as they are read, in the order of their ids, each once.
pub struct Cases<'c, E> {
    /// Of the repeats of a case so many have to pass; none: all.
    pub min_pass: Option<u32>,
    /// The cases.
    pub read: &'c mut dyn Iterator<Item = Read<E>>,
}

impl<E> Cases<'_, E> {
    fn next(&mut self) -> Result<Option<(String, CaseOutcome)>, E> {
        self.read.next().transpose()
    }

    fn verdict(&self, outcome: &CaseOutcome) -> Verdict {
        of_case(&outcome.verdicts, self.min_pass)
    }
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
    /// What has changed from `first` to `second`. Of all cases only those are kept that have.
    pub fn between<E>(first: Cases<'_, E>, second: Cases<'_, E>) -> Result<Self, E> {
        Self::between_seeing(first, second, |_, _| {})
    }

    /// The same. Cases that both have and that have not flipped are told of, with what they come to now.
    pub fn between_seeing<E>(
        mut first: Cases<'_, E>,
        mut second: Cases<'_, E>,
        mut unchanged: impl FnMut(String, Verdict),
    ) -> Result<Self, E> {
        let mut changes = Self::default();
        let mut pairs = Pairs { both: 0, only_first: 0, only_second: 0, neither: 0 };
        let mut rates = Rates::default();
        // Both are in the order of the ids, so that one walk over both is enough.
        let (mut next_before, mut next_after) = (first.next()?, second.next()?);
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
                next_before = first.next()?;
            }
            if after.is_some() {
                next_after = second.next()?;
            }
            let ((case_id, before), after) = match (before, after) {
                (Some(before), Some((_, after))) => (before, after),
                (Some((case_id, _)), None) => {
                    changes.vanished.push(case_id);
                    continue;
                }
                (None, Some((case_id, _))) => {
                    changes.new.push(case_id);
                    continue;
                }
                (None, None) => continue,
            };
            let (was, is) = (first.verdict(&before), second.verdict(&after));
            match (was, is) {
                (Verdict::Pass | Verdict::Fail, Verdict::Error | Verdict::Undecided) => {
                    changes.lost.push(case_id);
                }
                (Verdict::Pass, Verdict::Fail) => changes.regressions.push(case_id),
                (Verdict::Fail, Verdict::Pass) => changes.fixes.push(case_id),
                (Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided, _) => {
                    unchanged(case_id, is);
                }
            }
            let (before_passed, now_passes) = (was == Verdict::Pass, is == Verdict::Pass);
            if ![was, is].iter().all(|it| matches!(it, Verdict::Pass | Verdict::Fail)) {
                continue;
            }
            changes.common += 1;
            changes.passed.0 += u64::from(before_passed);
            changes.passed.1 += u64::from(now_passes);
            rates.add(before.verdicts, after.verdicts);
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
        changes.difference = difference(pairs, &rates, changes.common);
        Ok(changes)
    }

    /// What has changed between lanes that are in memory.
    pub fn of(first: &CaseOutcomes, second: &CaseOutcomes) -> Self {
        let (mut before, mut after) = (first.cases.iter().map(Ok), second.cases.iter().map(Ok));
        let before = Cases { min_pass: first.min_pass, read: &mut before };
        let after = Cases { min_pass: second.min_pass, read: &mut after };
        match Self::between::<std::convert::Infallible>(before, after) {
            Ok(changes) => changes,
            Err(never) => match never {},
        }
    }
}

/// By how much the rates of single cases differ.
#[derive(Default)]
struct Rates {
    differences: Moments,
    /// Whether any is not a whole number, which only repeats make.
    any_fraction: bool,
}

impl Rates {
    fn add(&mut self, before: Verdicts, after: Verdicts) {
        let rate = |it: Verdicts| it.rate().unwrap_or(0.0);
        let difference = rate(after) - rate(before);
        self.differences.push(difference);
        self.any_fraction |= difference.fract() != 0.0;
    }
}

fn difference(pairs: Pairs, rates: &Rates, common: u64) -> Option<Difference> {
    let p_value = mcnemar_exact(pairs.only_first, pairs.only_second);
    if rates.any_fraction
        && let Some(found) = mean_difference_of(&rates.differences, USUAL_LEVEL)
    {
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
    use proptest::prelude::*;

    use super::*;

    /// Cases of a lane, each with the verdicts of its repeats.
    type Plain = BTreeMap<String, Vec<Verdict>>;

    fn lane() -> impl Strategy<Value = (Option<u32>, Plain)> {
        let verdict = prop::sample::select(&Verdict::ALL[..]);
        let cases =
            prop::collection::btree_map("[ab€]{0,3}", prop::collection::vec(verdict, 1..4), 0..25);
        (prop::option::of(1_u32..4), cases)
    }

    fn outcome(verdicts: &[Verdict]) -> CaseOutcome {
        let mut outcome =
            CaseOutcome { category: Some(Category::SAFETY), ..CaseOutcome::default() };
        verdicts.iter().for_each(|it| outcome.verdicts.add(*it));
        outcome
    }

    fn between(
        first: &(Option<u32>, Plain),
        second: &(Option<u32>, Plain),
    ) -> (Changes, Vec<String>) {
        fn read(plain: &Plain) -> impl Iterator<Item = Read<()>> {
            plain.iter().map(|(id, verdicts)| Ok((id.clone(), outcome(verdicts))))
        }
        let mut unchanged = Vec::new();
        let (mut before, mut after) = (read(&first.1), read(&second.1));
        let before = Cases { min_pass: first.0, read: &mut before };
        let after = Cases { min_pass: second.0, read: &mut after };
        let changes = Changes::between_seeing(before, after, |id, _| unchanged.push(id));
        (changes.unwrap(), unchanged)
    }

    proptest! {
        #[test]
        fn one_walk_over_both_finds_what_looking_up_each_case_finds(first in lane(), second in lane()) {
            let (changes, unchanged) = between(&first, &second);
            let come_to = |(min_pass, cases): &(Option<u32>, Plain), id: &String| {
                cases.get(id).map(|it| of_case(&outcome(it).verdicts, *min_pass))
            };
            let ids: std::collections::BTreeSet<&String> = first.1.keys().chain(second.1.keys()).collect();
            let (mut plain, mut others) = (Changes::default(), Vec::new());
            let mut differences = Vec::new();
            for id in ids {
                let (was, is) = (come_to(&first, id), come_to(&second, id));
                let kind = match (was, is) {
                    (Some(_), None) => &mut plain.vanished,
                    (None, _) => &mut plain.new,
                    (Some(Verdict::Pass), Some(Verdict::Fail)) => &mut plain.regressions,
                    (Some(Verdict::Fail), Some(Verdict::Pass)) => &mut plain.fixes,
                    (Some(Verdict::Pass | Verdict::Fail), Some(Verdict::Error | Verdict::Undecided)) => &mut plain.lost,
                    (Some(_), Some(_)) => &mut others,
                };
                kind.push(id.clone());
                let is_judged = |it| matches!(it, Some(Verdict::Pass | Verdict::Fail));
                if is_judged(was) && is_judged(is) {
                    let rate = |cases: &Plain| outcome(&cases[id]).verdicts.rate().unwrap_or(0.0);
                    differences.push(rate(&second.1) - rate(&first.1));
                    let (was, is) = (u64::from(was == Some(Verdict::Pass)), u64::from(is == Some(Verdict::Pass)));
                    plain.common += 1;
                    plain.passed = (plain.passed.0 + was, plain.passed.1 + is);
                }
            }
            let counts = (plain.common, plain.passed.0, plain.passed.1);
            plain.categories.extend((plain.common > 0).then_some((Category::SAFETY, counts)));
            plain.difference = changes.difference;
            prop_assert_eq!(&changes, &plain);
            prop_assert_eq!(unchanged, others);
            if differences.iter().any(|it| it.fract() != 0.0) {
                let mean = probity_stats::paired::mean_difference(&differences, USUAL_LEVEL);
                if let Some(mean) = mean {
                    prop_assert_eq!(changes.difference.map(|it| it.value), Some(mean.mean));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_change() {
        let mut before =
            [Ok(("a".to_owned(), outcome(&[Verdict::Pass]))), Err("damaged")].into_iter();
        let mut after = std::iter::empty();
        let before = Cases { min_pass: None, read: &mut before };
        let after = Cases { min_pass: None, read: &mut after };
        assert_eq!(Changes::between(before, after), Err("damaged"));
    }
}
