//! Deciding a gate early with a bounded chance of error.

use super::{Counts, Decided, Observation, Threshold, exact};
use crate::{is_share, number};

/// Watches a run whose cases come in random order and decides its gate as soon as the evidence allows.
///
/// The chance that the decision contradicts what the whole run would have said is at most `alpha`,
/// however often one looks, provided that the order was drawn uniformly before the run and does not
/// depend on the outcomes. What can be decided without any doubt ([`exact`]) is decided as well.
///
/// For each number of passes that the planned cases could have among them, there is a martingale
/// (Waudby-Smith and Ramdas 2020, the prior-posterior ratio): how much better a beta-binomial prior
/// foretold the outcomes than drawing without replacement from so many would. Under the true number it
/// exceeds 1/alpha with probability alpha at most, at whatever time (Ville 1939). `Pass` is decided when
/// all numbers below the threshold are beyond 1/alpha, `Fail` when all others are. Only the number next
/// to the threshold needs to be watched: towards the other end the outcomes get ever less likely.
///
/// `alpha` is not split between both directions. Whatever the truth is, only one of the two decisions is
/// wrong, and that one has probability alpha at most.
///
/// An error counts as failed on the way to `Pass` and as passed on the way to `Fail`. This only asks for
/// more: with E errors among N cases, passed ≥ q·N implies passed ≥ q·(N - E), and
/// passed + E < q·N implies passed < q·(N - E).
///
/// ```
/// use probity_stats::decide::{Decided, Observation, Sequential, Threshold};
///
/// let mut gate = Sequential::new(1000, Threshold::new(9, 10).unwrap(), 0.05).unwrap();
/// let needed = (1..).find(|_| gate.observe(Observation::Passed) != Decided::Open).unwrap();
/// assert_eq!(gate.decision(), Decided::Pass);
/// assert!(needed < 50);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    counts: Counts,
    threshold: Threshold,
    /// The logarithm of 1/alpha.
    bar: f64,
    /// That more pass than the most that miss the threshold; errors count as fails.
    enough_pass: Option<Bet>,
    /// That more fail than the most that reach it leave; errors count as passes.
    too_many_fail: Option<Bet>,
    decided: Decided,
}

impl Sequential {
    /// `None` if `alpha` does not lie strictly between 0 and 1.
    pub fn new(planned: u64, threshold: Threshold, alpha: f64) -> Option<Self> {
        if !is_share(alpha) {
            return None;
        }
        let needed = threshold.passes_needed(planned);
        // A threshold of 0 cannot be missed but by having no share, which only `exact` looks after.
        let needed = (needed > 0).then_some(needed);
        let counts = Counts { planned, ..Counts::default() };
        Some(Self {
            counts,
            threshold,
            bar: -libm::log(alpha),
            enough_pass: needed.map(|needed| Bet::that_more_than(needed - 1, planned)),
            too_many_fail: needed.map(|needed| Bet::that_more_than(planned - needed, planned)),
            decided: exact(counts, threshold),
        })
    }

    /// Takes in how the next case of the random order ended, in constant time.
    ///
    /// Says what is decided by now. More outcomes than were planned change nothing, and neither do
    /// outcomes after the decision.
    pub fn observe(&mut self, outcome: Observation) -> Decided {
        if self.decided != Decided::Open {
            return self.decided;
        }
        match outcome {
            Observation::Passed => self.counts.passed += 1,
            Observation::Failed => self.counts.failed += 1,
            Observation::Error => self.counts.errors += 1,
        }
        let reached = won(&mut self.enough_pass, outcome == Observation::Passed, self.bar);
        let missed = won(&mut self.too_many_fail, outcome == Observation::Failed, self.bar);
        self.decided = match exact(self.counts, self.threshold) {
            Decided::Open if reached => Decided::Pass,
            Decided::Open if missed => Decided::Fail,
            certain @ (Decided::Pass | Decided::Fail | Decided::Open) => certain,
        };
        self.decided
    }

    /// What is decided by now. Once it is not [`Decided::Open`] it does not change.
    pub fn decision(&self) -> Decided {
        self.decided
    }

    /// The cases that were taken into account.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Whether the bet, if there is one, is beyond the bar after one more outcome.
fn won(bet: &mut Option<Bet>, success: bool, bar: f64) -> bool {
    bet.as_mut().is_some_and(|bet| {
        bet.observe(success);
        bet.log_ratio >= bar && bet.is_least_against()
    })
}

/// The evidence that there are more successes among all cases than supposed.
///
/// Successes are what is to be shown: passes on the way to `Pass`, fails on the way to `Fail`.
#[derive(Clone, Debug, PartialEq)]
struct Bet {
    all: u64,
    /// The supposed number of successes, less than `all`.
    supposed: u64,
    successes: u64,
    failures: u64,
    /// The parameters of the prior, for successes and for failures.
    prior: (f64, f64),
    /// The logarithm of how much better the prior foretold the outcomes than the supposition.
    log_ratio: f64,
}

impl Bet {
    /// Any prior that does not look at the outcomes gives a valid bet; a good one is fast. This one has
    /// three times the odds of the supposed share as its mean, and weighs as much as two outcomes of the
    /// rarer kind. How it was chosen: `docs/statistics.md`.
    fn that_more_than(supposed: u64, all: u64) -> Self {
        // The half keeps the odds above 0 where none is supposed.
        let odds = 3.0 * (number(supposed) + 0.5) / number(all - supposed);
        let prior = if odds > 1.0 { (2.0 * odds, 2.0) } else { (2.0, 2.0 / odds) };
        Self { all, supposed, successes: 0, failures: 0, prior, log_ratio: 0.0 }
    }

    fn observe(&mut self, success: bool) {
        let seen = self.successes + self.failures;
        let foretold = self.prior.0 + self.prior.1 + number(seen);
        let left = number(self.all - seen);
        let (weight, of_kind_left) = if success {
            let weight = self.prior.0 + number(self.successes);
            (weight, self.supposed.saturating_sub(self.successes))
        } else {
            let weight = self.prior.1 + number(self.failures);
            (weight, (self.all - self.supposed).saturating_sub(self.failures))
        };
        // If none of this kind is left, the supposition is refuted for good and the ratio infinite.
        self.log_ratio += libm::log(weight / foretold * (left / number(of_kind_left)));
        match success {
            true => self.successes += 1,
            false => self.failures += 1,
        }
    }

    /// Whether the outcomes are less likely under any smaller number of successes. Their likelihood has
    /// one peak, so the neighbour tells.
    fn is_least_against(&self) -> bool {
        u128::from(self.successes) * (u128::from(self.all - self.supposed) + 1)
            >= u128::from(self.supposed) * u128::from(self.failures)
    }
}

#[cfg(test)]
mod tests;
