//! Deciding a gate early with a bounded chance of error.

use super::{Counts, Decided, Outcome, Threshold, exact};
use crate::stats::{is_share, number};

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
/// use probity_core::stats::decide::{Decided, Outcome, Sequential, Threshold};
///
/// let mut gate = Sequential::new(1000, Threshold::new(9, 10).unwrap(), 0.05).unwrap();
/// let needed = (1..).find(|_| gate.observe(Outcome::Passed) != Decided::Open).unwrap();
/// assert_eq!(gate.decision(), Decided::Pass);
/// assert!(needed < 50);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sequential {
    counts: Counts,
    threshold: Threshold,
    /// The logarithm of 1/alpha.
    bar: f64,
    /// Against the most passes that miss the threshold, with errors as fails.
    against_missing: Option<Bet>,
    /// Against the fewest passes that reach the threshold, with errors as passes.
    against_reaching: Option<Bet>,
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
        let supposed = if needed == 0 { None } else { Some(needed) };
        let counts = Counts { planned, ..Counts::default() };
        Some(Self {
            counts,
            threshold,
            bar: -libm::log(alpha),
            against_missing: supposed.map(|needed| Bet::that_more_than(needed - 1, planned)),
            against_reaching: supposed.map(|needed| Bet::that_fewer_than(needed, planned)),
            decided: exact(counts, threshold),
        })
    }

    /// Takes in how the next case of the random order ended, in constant time.
    ///
    /// Says what is decided by now. More outcomes than were planned change nothing, and neither do
    /// outcomes after the decision.
    pub fn observe(&mut self, outcome: Outcome) -> Decided {
        if self.decided != Decided::Open {
            return self.decided;
        }
        match outcome {
            Outcome::Passed => self.counts.passed += 1,
            Outcome::Failed => self.counts.failed += 1,
            Outcome::Error => self.counts.errors += 1,
        }
        let passed = outcome == Outcome::Passed;
        let not_failed = outcome != Outcome::Failed;
        let surely_reached = won(&mut self.against_missing, passed, self.bar);
        let surely_missed = won(&mut self.against_reaching, not_failed, self.bar);
        self.decided = match exact(self.counts, self.threshold) {
            Decided::Open if surely_reached => Decided::Pass,
            Decided::Open if surely_missed => Decided::Fail,
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

/// The evidence against one supposed number of successes among all cases.
///
/// Successes are what the bet is on: passes on the way to `Pass`, fails on the way to `Fail`. That makes
/// both directions the same, and the bet is always that there are more successes than supposed.
#[derive(Clone, Debug, PartialEq)]
struct Bet {
    on_passes: bool,
    all: u64,
    /// The supposed number of successes, less than `all`.
    supposed: u64,
    successes: u64,
    failures: u64,
    /// The parameters of the prior.
    prior: (f64, f64),
    /// The logarithm of how much better the prior foretold the outcomes than the supposition.
    log_ratio: f64,
}

impl Bet {
    fn that_more_than(passes: u64, planned: u64) -> Self {
        Self::new(true, passes, planned)
    }

    fn that_fewer_than(passes: u64, planned: u64) -> Self {
        Self::new(false, planned - passes, planned)
    }

    /// Any prior gives a valid bet; a good one is fast. This one has its mean in the middle between the
    /// supposed share and 1, and leans to 1 there.
    fn new(on_passes: bool, supposed: u64, all: u64) -> Self {
        let failing = number(all - supposed) / number(all) / 2.0;
        let prior = (FAR_SHAPE * (1.0 - failing) / failing, FAR_SHAPE);
        Self { on_passes, all, supposed, successes: 0, failures: 0, prior, log_ratio: 0.0 }
    }

    fn observe(&mut self, passed: bool) {
        let seen = self.successes + self.failures;
        let foretold = self.prior.0 + self.prior.1 + number(seen);
        let left = number(self.all - seen);
        let (weight, of_kind_left) = if passed == self.on_passes {
            let weight = self.prior.0 + number(self.successes);
            (weight, self.supposed.saturating_sub(self.successes))
        } else {
            let weight = self.prior.1 + number(self.failures);
            (weight, (self.all - self.supposed).saturating_sub(self.failures))
        };
        // If none of this kind is left, the supposition is refuted for good and the ratio infinite.
        self.log_ratio += libm::log(weight / foretold * (left / number(of_kind_left)));
        match passed == self.on_passes {
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

/// The shape of the prior at the far end, between 0 and 1 so that it leans there.
const FAR_SHAPE: f64 = 0.5;

#[cfg(test)]
mod tests;
