//! Whether a gate on the share of passed cases is decided before all cases have run.
//!
//! A gate asks for a share of at least some threshold among the cases that were graded. Cases that end
//! as errors of the infrastructure are neither passed nor failed. If no case is graded at all there is
//! no share, and the gate is not reached.

mod sequential;

pub use sequential::Sequential;

/// The least share of cases that has to pass, as a fraction of whole numbers so that 948 of 1000 is
/// neither more nor less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    numerator: u64,
    denominator: u64,
}

impl Threshold {
    /// `None` if the fraction is above 1 or its denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        (denominator > 0 && numerator <= denominator).then_some(Self { numerator, denominator })
    }

    /// The least number of passed cases that reaches it among so many.
    pub fn passes_needed(self, total: u64) -> u64 {
        let needed =
            (u128::from(self.numerator) * u128::from(total)).div_ceil(u128::from(self.denominator));
        u64::try_from(needed).unwrap_or(total)
    }

    fn is_reached(self, passed: u64, failed: u64) -> bool {
        let short = u128::from(self.denominator - self.numerator);
        // passed / (passed + failed) ≥ numerator / denominator, without a sum that could overflow.
        (passed > 0 || failed > 0)
            && u128::from(passed) * short >= u128::from(self.numerator) * u128::from(failed)
    }
}

/// How one case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The answer was right.
    Passed,
    /// The answer was wrong.
    Failed,
    /// There was no answer to grade.
    Error,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cases that passed.
    pub passed: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Cases that ended as errors.
    pub errors: u64,
    /// All cases of the run, those that have ended among them.
    pub planned: u64,
}

impl Counts {
    /// The cases that have not ended. None, if more have ended than were planned.
    pub fn rest(&self) -> u64 {
        self.planned
            .saturating_sub(self.passed)
            .saturating_sub(self.failed)
            .saturating_sub(self.errors)
    }
}

/// What is known of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It will be reached.
    Pass,
    /// It will be missed.
    Fail,
    /// Either may still be.
    Open,
}

/// Decides a gate where the cases that have not ended cannot change it any more, however they end.
///
/// Never wrong, and never open once all cases have ended.
///
/// ```
/// use probity_stats::decide::{Counts, Decided, Threshold, exact};
///
/// let most = Threshold::new(9, 10).unwrap();
/// let counts = Counts { passed: 8, failed: 2, errors: 0, planned: 15 };
/// assert_eq!(exact(counts, most), Decided::Fail);
/// assert_eq!(exact(Counts { planned: 20, ..counts }, most), Decided::Open);
/// ```
pub fn exact(counts: Counts, threshold: Threshold) -> Decided {
    let Counts { passed, failed, errors: _, planned: _ } = counts;
    let rest = counts.rest();
    // The sums fit: with the rest they make at most what was planned.
    let at_worst = threshold.is_reached(passed, failed.saturating_add(rest));
    let at_best = threshold.is_reached(passed.saturating_add(rest), failed);
    // Nothing but errors would leave no share at all.
    let has_share = passed > 0 || failed > 0;
    match (at_worst && has_share, at_best) {
        (true, _) => Decided::Pass,
        (false, true) => Decided::Open,
        (false, false) => Decided::Fail,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By trying all ends.
    fn by_force(counts: Counts, numerator: u64, denominator: u64) -> Decided {
        let (mut reached, mut missed) = (false, false);
        for passes in 0..=counts.rest() {
            for fails in 0..=counts.rest() - passes {
                let (passed, graded) =
                    (counts.passed + passes, counts.passed + passes + counts.failed + fails);
                match graded > 0 && passed * denominator >= numerator * graded {
                    true => reached = true,
                    false => missed = true,
                }
            }
        }
        match (reached, missed) {
            (true, false) => Decided::Pass,
            (false, true) => Decided::Fail,
            (true, true) => Decided::Open,
            (false, false) => unreachable!("there is always one end"),
        }
    }

    #[test]
    fn exact_agrees_with_trying_all_ends() {
        for denominator in 1..=7 {
            for numerator in 0..=denominator {
                let threshold = Threshold::new(numerator, denominator).unwrap();
                for planned in 0..=9 {
                    for passed in 0..=planned {
                        for failed in 0..=planned - passed {
                            for errors in 0..=planned - passed - failed {
                                let counts = Counts { passed, failed, errors, planned };
                                assert_eq!(
                                    exact(counts, threshold),
                                    by_force(counts, numerator, denominator),
                                    "{counts:?} {threshold:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_threshold_is_not_rounded() {
        let threshold = Threshold::new(948, 1000).unwrap();
        assert_eq!(threshold.passes_needed(1000), 948);
        assert_eq!(threshold.passes_needed(1001), 949);
        let close = Counts { passed: 948, failed: 52, errors: 0, planned: 1000 };
        assert_eq!(exact(close, threshold), Decided::Pass);
        let closer =
            Counts { passed: u64::MAX / 2 - 1, failed: u64::MAX / 2, errors: 0, planned: 0 };
        assert_eq!(exact(closer, Threshold::new(1, 2).unwrap()), Decided::Fail);
    }

    proptest! {
        #[test]
        fn exact_agrees_with_trying_all_ends_of_any_run(
            (planned, ended) in (0..40_u64).prop_flat_map(|planned| (Just(planned), 0..=planned)),
            split in (0.0..1.0, 0.0..1.0),
            (numerator, denominator) in (1..2000_u64).prop_flat_map(|d| (0..=d, Just(d))),
        ) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small")]
            let part = |share: f64, of: u64| (share * (of + 1) as f64) as u64;
            let passed = part(split.0, ended);
            let failed = part(split.1, ended - passed);
            let counts = Counts { passed, failed, errors: ended - passed - failed, planned };
            prop_assert_eq!(
                exact(counts, Threshold::new(numerator, denominator).unwrap()),
                by_force(counts, numerator, denominator)
            );
        }

        #[test]
        fn no_counts_make_exact_panic(
            passed: u64, failed: u64, errors: u64, planned: u64, numerator: u64, denominator: u64,
        ) {
            if let Some(threshold) = Threshold::new(numerator, denominator) {
                exact(Counts { passed, failed, errors, planned }, threshold);
            }
        }
    }
}
