//! What a run may still use.
//!
//! Calls in flight count as made, and cost what calls have cost so far on average: a
//! limit is not overrun because many calls began before the first came back.

use std::{fmt, io};

use probity_core::record::Usage;
use probity_load::settings::Budget;

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Calls that were made.
    pub calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
}

impl Used {
    /// Counts what another one counted.
    pub fn add(&mut self, other: Self) {
        let Self { calls, tokens, cost_usd } = other;
        self.calls += calls;
        self.tokens += tokens;
        self.cost_usd += cost_usd;
    }

    /// The same with more calls, of which nothing else is known: they were cut off by a kill. They
    /// count as much as the others on average.
    #[must_use]
    pub fn extended_to(self, calls: u64) -> Self {
        let lost = calls.saturating_sub(self.calls);
        let known = self.calls.max(1);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let share = lost as f64 / known as f64;
        Self {
            calls: self.calls + lost,
            tokens: self.tokens + (self.tokens / known).saturating_mul(lost),
            cost_usd: self.cost_usd + self.cost_usd * share,
        }
    }
}

/// Where calls are written down before they are made, so that a run that is killed and taken up
/// again keeps to `max_calls`.
pub trait Ledger: Send + Sync + fmt::Debug {
    /// So many calls of a lane have begun in this session.
    fn begun(&mut self, lane: usize, calls: u64) -> io::Result<()>;
}

/// What is left of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Another call may begin.
    Enough,
    /// That depends on what the calls in flight come to.
    Pending,
    /// None may, and why.
    Nothing(String),
}

/// What has been used of a budget.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    budget: Budget,
    calls: u64,
    tokens: u64,
    cost_usd: f64,
    /// Calls in flight.
    pending: u64,
    /// Calls that came back with a price.
    priced: u64,
}

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Counts what an earlier session of the same run has used.
    pub(crate) fn carry_over(&mut self, used: &Used) {
        self.calls += used.calls;
        self.tokens += used.tokens;
        self.cost_usd += used.cost_usd;
    }

    /// Whether another call may begin.
    pub(crate) fn left(&self) -> Left {
        let settled = self.over(0);
        match settled {
            Some(reason) => Left::Nothing(reason),
            None if self.over(self.pending).is_some() => Left::Pending,
            None => Left::Enough,
        }
    }

    /// Which limit is reached if so many calls in flight cost what calls have cost.
    fn over(&self, pending: u64) -> Option<String> {
        let Budget { max_cost_usd, max_calls, max_tokens } = self.budget;
        if let Some(most) = max_calls.filter(|most| self.calls + pending >= *most) {
            return Some(format!("max_calls = {most} reached"));
        }
        let tokens = self.tokens + self.tokens / self.calls.max(1) * pending;
        if let Some(most) = max_tokens.filter(|most| tokens >= *most) {
            return Some(format!("max_tokens = {most} reached"));
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let cost = self.cost_usd + self.cost_usd / self.priced.max(1) as f64 * pending as f64;
        let most = max_cost_usd.filter(|most| cost >= *most)?;
        Some(format!("max_cost_usd = {most} reached"))
    }

    pub(crate) fn begin(&mut self) {
        self.pending += 1;
    }

    /// A call ended, with or without an answer, or something that made several.
    pub(crate) fn end(&mut self, calls: u64, usage: Usage, cost_usd: Option<f64>) {
        self.pending = self.pending.saturating_sub(1);
        self.calls = self.calls.saturating_add(calls);
        self.tokens += usage.total();
        self.cost_usd += cost_usd.unwrap_or(0.0);
        self.priced += u64::from(cost_usd.is_some());
    }

    /// A call that had a permit was not made.
    pub(crate) fn forgo(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// What has been used, without what was carried over.
    pub(crate) fn used_since(&self, carried: &Used) -> Used {
        Used {
            calls: self.calls - carried.calls,
            tokens: self.tokens - carried.tokens,
            cost_usd: self.cost_usd - carried.cost_usd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64) -> Usage {
        Usage { output_tokens: Some(tokens), ..Usage::default() }
    }

    #[test]
    fn calls_in_flight_count() {
        let mut meter = Meter::new(Budget { max_calls: Some(3), ..Budget::default() });
        for _ in 0..3 {
            assert_eq!(meter.left(), Left::Enough);
            meter.begin();
        }
        assert_eq!(meter.left(), Left::Pending);
        for _ in 0..3 {
            meter.end(1, Usage::default(), None);
        }
        assert_eq!(meter.left(), Left::Nothing("max_calls = 3 reached".to_owned()));
    }

    #[test]
    fn calls_in_flight_cost_what_calls_have_cost() {
        let mut meter = Meter::new(Budget { max_cost_usd: Some(1.0), ..Budget::default() });
        meter.begin();
        meter.end(1, Usage::default(), Some(0.3));
        assert_eq!(meter.left(), Left::Enough);
        for _ in 0..2 {
            meter.begin();
        }
        assert_eq!(meter.left(), Left::Enough);
        meter.begin();
        assert_eq!(meter.left(), Left::Pending);
        for _ in 0..3 {
            meter.end(1, Usage::default(), Some(0.1));
        }
        assert_eq!(meter.left(), Left::Enough);
    }

    #[test]
    fn tokens_have_a_limit() {
        let mut meter = Meter::new(Budget { max_tokens: Some(100), ..Budget::default() });
        meter.begin();
        meter.end(1, used(60), None);
        assert_eq!(meter.left(), Left::Enough);
        meter.begin();
        assert_eq!(meter.left(), Left::Pending);
        meter.end(1, used(60), None);
        assert_eq!(meter.left(), Left::Nothing("max_tokens = 100 reached".to_owned()));
    }

    #[test]
    fn without_a_budget_there_is_always_enough() {
        let mut meter = Meter::new(Budget::default());
        for _ in 0..1000 {
            meter.begin();
            meter.end(1, used(1000), Some(1000.0));
        }
        assert_eq!(meter.left(), Left::Enough);
    }

    #[test]
    fn tokens_and_dollars_of_calls_in_flight_are_those_of_calls_on_average() {
        let budget = Budget { max_tokens: Some(100), ..Budget::default() };
        let mut meter = Meter::new(budget);
        for _ in 0..2 {
            meter.begin();
            meter.end(1, used(15), None);
        }
        // 30 tokens so far, and 15 for each in flight.
        for _ in 0..4 {
            assert_eq!(meter.left(), Left::Enough);
            meter.begin();
        }
        assert_eq!(meter.left(), Left::Enough);
        meter.begin();
        assert_eq!(meter.left(), Left::Pending);
        // A permit that is given back counts no more.
        meter.forgo();
        assert_eq!(meter.left(), Left::Enough);
        let mut meter = Meter::new(Budget { max_cost_usd: Some(1.0), ..Budget::default() });
        for _ in 0..2 {
            meter.begin();
            meter.end(1, Usage::default(), Some(0.25));
        }
        meter.begin();
        assert_eq!(meter.left(), Left::Enough);
        meter.begin();
        assert_eq!(meter.left(), Left::Pending);
        meter.end(1, Usage::default(), Some(0.5));
        assert_eq!(meter.left(), Left::Nothing("max_cost_usd = 1 reached".to_owned()));
    }

    #[test]
    fn what_earlier_sessions_used_counts_and_is_told_apart() {
        let carried = Used { calls: 4, tokens: 40, cost_usd: 2.0 };
        let mut meter = Meter::new(Budget { max_calls: Some(7), ..Budget::default() });
        meter.carry_over(&carried);
        meter.begin();
        meter.end(2, used(5), Some(0.5));
        let expected = Used { calls: 2, tokens: 5, cost_usd: 0.5 };
        assert_eq!((meter.used_since(&carried), meter.left()), (expected, Left::Enough));
        meter.end(1, used(0), None);
        assert_eq!(meter.left(), Left::Nothing("max_calls = 7 reached".to_owned()));
        let mut all = carried;
        all.add(expected);
        assert_eq!(all, Used { calls: 6, tokens: 45, cost_usd: 2.5 });
    }

    #[test]
    fn calls_that_were_cut_off_count_as_much_as_the_others() {
        let known = Used { calls: 4, tokens: 40, cost_usd: 2.0 };
        assert_eq!(known.extended_to(6), Used { calls: 6, tokens: 60, cost_usd: 3.0 });
        assert_eq!(known.extended_to(3), known);
        let nothing = Used::default();
        assert_eq!(nothing.extended_to(2), Used { calls: 2, ..nothing });
    }
}
