//! Whether the gates of a lane are decided before all of its cases have been asked.

use std::collections::BTreeMap;

use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    gate::{Bound, Decimal, Gate, GateStatus, Metric, Unit},
    record::{Judging, Lane},
};
use probity_stats::decide::{Counts, Decided, Observation, Sequential, exact};

/// How sure one has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Certainty {
    /// Nothing that is still to come can change it.
    Exact,
    /// It is wrong with no more than this chance, at whatever moment it is decided.
    Alpha(f64),
}

/// How many results a lane is to have, and how many of them are of each category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// All of them.
    pub all: u64,
    /// By category.
    pub categories: BTreeMap<Category, u64>,
}

/// A result, as far as gates look at it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its place in the order in which cases are asked.
    pub(crate) place: u64,
    pub(crate) category: Option<Category>,
    pub(crate) class: Class,
    pub(crate) verdict: Verdict,
}

/// Watches the gates of a lane.
#[derive(Debug)]
pub(crate) struct Decider {
    gates: Vec<Watched>,
    errors_as_failures: bool,
    /// Results that came before their turn; none where the order does not matter.
    early: Option<BTreeMap<u64, Seen>>,
    /// The place whose turn it is.
    next: u64,
}

#[derive(Debug)]
struct Watched {
    category: Option<Category>,
    test: Test,
}

/// What is watched of a gate.
#[derive(Debug)]
enum Test {
    /// The share that passes.
    Rate { pass: Share, warn: Option<Share> },
    /// How many results are of a kind, of all that are planned.
    Number { of: Kind, count: u64, seen: u64, planned: u64, bound: Number, warn: Option<Number> },
    /// Nothing that can be told before the end.
    Unknowable,
}

/// What kind of results is counted.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unjudged,
    Passed,
    Failed,
    Class(Class),
}

#[derive(Debug)]
enum Share {
    Exact(Counts, probity_stats::decide::Threshold),
    Sequential(Box<Sequential>),
}

/// A limit of a number of results.
#[derive(Clone, Copy, Debug)]
enum Number {
    AtLeast(u64),
    AtMost(u64),
}

impl Decider {
    /// Watches the gates of a lane; none if no gate can be decided early.
    pub(crate) fn new(lane: &Lane, planned: &Planned, certainty: Certainty) -> Option<Self> {
        let Judging { gates, min_pass, errors_as_failures, .. } = &lane.judging;
        // A case of several repeats is known only when the last of them is.
        if gates.is_empty() || min_pass.is_some() {
            return None;
        }
        let limits = gates.iter().map(|gate| 1 + usize::from(gate.warn.is_some())).sum::<usize>();
        let certainty = match certainty {
            Certainty::Exact => Certainty::Exact,
            // However many limits there are, together they are wrong no more often.
            #[expect(clippy::cast_precision_loss, reason = "a handful of gates")]
            Certainty::Alpha(alpha) => Certainty::Alpha(alpha / limits as f64),
        };
        let gates: Vec<Watched> =
            gates.iter().map(|gate| Watched::new(gate, planned, certainty)).collect();
        if gates.iter().all(|gate| matches!(gate.test, Test::Unknowable)) {
            return None;
        }
        let early = match certainty {
            Certainty::Exact => None,
            Certainty::Alpha(_) => Some(BTreeMap::new()),
        };
        Some(Self { gates, errors_as_failures: *errors_as_failures, early, next: 0 })
    }

    /// Takes in a result. Says what the gates come to, once that is decided.
    pub(crate) fn observe(&mut self, seen: Seen) -> Option<GateStatus> {
        match &mut self.early {
            None => self.count(&seen),
            Some(early) => {
                // Fast answers are no random choice of all: each is counted in its turn.
                early.insert(seen.place, seen);
                while let Some(seen) = self.early.as_mut().and_then(|it| it.remove(&self.next)) {
                    self.next += 1;
                    self.count(&seen);
                }
            }
        }
        self.status()
    }

    fn count(&mut self, seen: &Seen) {
        let as_failure = self.errors_as_failures && seen.verdict == Verdict::Error;
        let counted = if as_failure { Verdict::Fail } else { seen.verdict };
        for gate in &mut self.gates {
            if gate.category.is_none() || gate.category == seen.category {
                gate.test.count(seen, counted);
            }
        }
    }

    /// One gate that has failed is enough; for the rest all have to be known.
    fn status(&self) -> Option<GateStatus> {
        let mut worst = Some(GateStatus::Pass);
        for gate in &self.gates {
            match gate.test.settled() {
                Some(GateStatus::Fail) => return Some(GateStatus::Fail),
                Some(status) => worst = worst.map(|it| it.max(status)),
                None => worst = None,
            }
        }
        worst
    }
}

impl Watched {
    fn new(gate: &Gate, planned: &Planned, certainty: Certainty) -> Self {
        let category = gate.category.clone();
        let planned = match &category {
            None => planned.all,
            Some(category) => planned.categories.get(category).copied().unwrap_or(0),
        };
        // A gate on nothing is judged at the end, by its own rules.
        let test = match planned {
            0 => Test::Unknowable,
            _ => Test::of(gate, planned, certainty).unwrap_or(Test::Unknowable),
        };
        Self { category, test }
    }
}

impl Test {
    fn of(gate: &Gate, planned: u64, certainty: Certainty) -> Option<Self> {
        let share = |limit: Decimal| {
            let threshold = limit.threshold()?;
            Some(match certainty {
                Certainty::Exact => {
                    Share::Exact(Counts { planned, ..Counts::default() }, threshold)
                }
                Certainty::Alpha(alpha) => {
                    Share::Sequential(Box::new(Sequential::new(planned, threshold, alpha)?))
                }
            })
        };
        let number = |bound: Bound| {
            let limit = bound.limit();
            // A share is one of all that are planned.
            let whole = if gate.metric.unit() == Unit::Share { planned } else { 1 };
            let (below, above) = limit.of(whole);
            match bound {
                Bound::AtLeast(_) => Number::AtLeast(above),
                Bound::AtMost(_) => Number::AtMost(below),
            }
        };
        let of = match (&gate.metric, gate.bound) {
            (Metric::PassRate, Bound::AtLeast(limit)) => {
                let warn = gate.warn.map(share).unwrap_or_default();
                return Some(Self::Rate { pass: share(limit)?, warn });
            }
            (Metric::ErrorRate | Metric::Errors, _) => Kind::Unjudged,
            (Metric::Passed, _) => Kind::Passed,
            (Metric::Failed, _) => Kind::Failed,
            (Metric::ClassRate(class) | Metric::ClassCount(class), _) => Kind::Class(*class),
            (
                Metric::PassRate
                | Metric::PolicyHits
                | Metric::Flaky
                | Metric::UnexpectedFailures
                | Metric::Latency(_)
                | Metric::Ttft(_)
                | Metric::CostUsd
                | Metric::CostPerPass
                | Metric::Tokens
                | Metric::Skill(_)
                // How many values there are to come is not known.
                | Metric::Score(_)
                | Metric::Derived(_),
                _,
            ) => return None,
        };
        let warn = gate.warn.map(|warn| number(gate.at(warn)));
        Some(Self::Number { of, count: 0, seen: 0, planned, bound: number(gate.bound), warn })
    }

    /// Takes in a result and what it counts as.
    fn count(&mut self, seen: &Seen, counted: Verdict) {
        match self {
            Self::Rate { pass, warn } => {
                pass.count(counted);
                if let Some(warn) = warn {
                    warn.count(counted);
                }
            }
            Self::Number { of, count, seen: so_far, .. } => {
                *so_far += 1;
                *count += u64::from(match of {
                    Kind::Unjudged => seen.verdict == Verdict::Error,
                    Kind::Passed => counted == Verdict::Pass,
                    Kind::Failed => counted == Verdict::Fail,
                    Kind::Class(class) => seen.class == *class,
                });
            }
            Self::Unknowable => {}
        }
    }

    /// What the gate will come to; none while that is open.
    fn settled(&self) -> Option<GateStatus> {
        let (pass, warn) = match self {
            Self::Rate { pass, warn } => (pass.decided(), warn.as_ref().map(Share::decided)),
            Self::Number { count, seen, planned, bound, warn, .. } => {
                let rest = planned.saturating_sub(*seen);
                let of = |it: Number| it.decided(*count, rest);
                (of(*bound), warn.map(of))
            }
            Self::Unknowable => return None,
        };
        match (pass, warn) {
            (Decided::Pass, _) => Some(GateStatus::Pass),
            (Decided::Fail, None) | (_, Some(Decided::Fail)) => Some(GateStatus::Fail),
            (Decided::Fail, Some(Decided::Pass)) => Some(GateStatus::Warn),
            (Decided::Open, _) | (Decided::Fail, Some(Decided::Open)) => None,
        }
    }
}

impl Share {
    fn count(&mut self, verdict: Verdict) {
        match self {
            Self::Exact(counts, _) => match verdict {
                Verdict::Pass => counts.passed += 1,
                Verdict::Fail => counts.failed += 1,
                // Neither is part of the rate.
                Verdict::Error | Verdict::Undecided => counts.errors += 1,
            },
            Self::Sequential(test) => {
                test.observe(match verdict {
                    Verdict::Pass => Observation::Passed,
                    Verdict::Fail => Observation::Failed,
                    Verdict::Error | Verdict::Undecided => Observation::Error,
                });
            }
        }
    }

    /// Where nothing but errors came so far, whether there is a share at all is open.
    fn decided(&self) -> Decided {
        let (counts, decided) = match self {
            Self::Exact(counts, threshold) => (*counts, exact(*counts, *threshold)),
            Self::Sequential(test) => (test.counts(), test.decision()),
        };
        if counts.passed + counts.failed > 0 { decided } else { Decided::Open }
    }
}

impl Number {
    fn decided(self, count: u64, rest: u64) -> Decided {
        match self {
            Self::AtLeast(least) if count >= least => Decided::Pass,
            Self::AtLeast(least) if count + rest < least => Decided::Fail,
            Self::AtMost(most) if count + rest <= most => Decided::Pass,
            Self::AtMost(most) if count > most => Decided::Fail,
            Self::AtLeast(_) | Self::AtMost(_) => Decided::Open,
        }
    }
}

#[cfg(test)]
mod tests;
