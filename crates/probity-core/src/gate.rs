//! Gates: what has to hold of a lane's figures.
//!
//! Shares are compared as whole numbers: 948 of 1000 is 94.8 %, whatever a float makes of it.

mod decimal;
mod metric;
mod observed;
mod shown;
mod written;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use decimal::Decimal;
pub use metric::{Metric, Quantile, Unit};
pub use observed::{Observed, percent};
pub use shown::percent_beside;

use crate::{
    case::Category,
    kind::RunnerKind,
    metrics::{Metrics, ScoreFigures, ScoreSlice, Slice},
    record::LaneKey,
};
use observed::time;
use written::Written;

/// A limit and the side of it that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No less than this.
    AtLeast(Decimal),
    /// No more than this.
    AtMost(Decimal),
}

impl Bound {
    /// The limit.
    pub const fn limit(self) -> Decimal {
        match self {
            Self::AtLeast(limit) | Self::AtMost(limit) => limit,
        }
    }

    fn holds(self, observed: Observed) -> bool {
        let compared = match observed {
            Observed::Share { part, whole } => self.limit().compare_share(part, whole),
            Observed::Count(count) => self.limit().compare_count(count),
            Observed::Mean(mean) => self.limit().compare_mean(mean),
            Observed::Time(value) | Observed::Dollars(value) | Observed::Number(value) => {
                // Sums of floats are off in their last digits, which nobody meant.
                let billionths = |value: f64| (value * 1e9).round();
                billionths(value).total_cmp(&billionths(self.limit().to_f64()))
            }
        };
        match self {
            Self::AtLeast(_) => compared.is_ge(),
            Self::AtMost(_) => compared.is_le(),
        }
    }

    /// The same side of another limit.
    const fn with(self, limit: Decimal) -> Self {
        match self {
            Self::AtLeast(_) => Self::AtLeast(limit),
            Self::AtMost(_) => Self::AtMost(limit),
        }
    }
}

/// One thing that has to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Gate {
    /// What is looked at.
    pub metric: Metric,
    /// Where it passes.
    pub bound: Bound,
    /// Where it still only warns.
    pub warn: Option<Decimal>,
    /// Only cases of this category.
    pub category: Option<Category>,
    /// Only on this backend.
    pub backend: Option<String>,
    /// Only with this prompt variant.
    pub variant: Option<String>,
    /// Whether nothing at all will do.
    pub allow_empty: bool,
}

/// How a gate came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// It holds.
    Pass,
    /// There was nothing to look at, and that is allowed.
    Empty,
    /// It does not hold, but not by much.
    Warn,
    /// It does not hold, or there was nothing to look at.
    Fail,
}

impl GateStatus {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Empty, Self::Warn, Self::Fail];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Empty => "empty",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A gate with what it saw.
#[derive(Clone, Debug, PartialEq)]
pub struct GateOutcome {
    /// The gate.
    pub gate: Gate,
    /// What it saw; none where there was nothing to look at.
    pub observed: Option<Observed>,
    /// Results that nothing decides, of all that it looks at.
    pub undecided: Undecided,
    /// What that comes to.
    pub status: GateStatus,
}

/// How many results nothing decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undecided {
    /// So many.
    pub count: u64,
    /// Of so many.
    pub of: u64,
    /// Whether they are more than the suite allows.
    pub too_many: bool,
}

impl GateOutcome {
    /// In words: what was asked, and what was found.
    pub fn sentence(&self) -> String {
        let Self { gate, observed, undecided, status } = self;
        let found = match observed {
            Some(observed) => format!("{gate}: {}", observed.beside(self.missed_limit())),
            None if *status == GateStatus::Empty => format!("{gate}: n/a, which is allowed"),
            None if gate.metric.score().is_some() => format!("{gate}: no result has a value"),
            None if matches!(gate.metric, Metric::Derived(_)) => format!("{gate}: it has no value"),
            None => format!("{gate}: there is nothing to judge it by"),
        };
        let Undecided { count, of, too_many } = undecided;
        match (count, too_many) {
            (0, _) => found,
            (count, false) => format!("{found}; {count} of {of} undecided"),
            (count, true) => format!("{found}; {count} of {of} undecided, which is not allowed"),
        }
    }

    /// The limit that what it saw lies beyond.
    fn missed_limit(&self) -> Option<Decimal> {
        match self.status {
            GateStatus::Pass | GateStatus::Empty => None,
            GateStatus::Warn | GateStatus::Fail => Some(self.gate.bound.limit()),
        }
    }
}

impl Gate {
    /// The gates of a runner that declares none.
    pub fn defaults(kind: RunnerKind) -> Vec<Self> {
        (kind.spec().gates)()
    }

    /// A default on the pass rate, in thousandths: where it passes, and from where it warns.
    pub(crate) fn usual(pass: u64, warn: Option<u64>, category: Option<Category>) -> Self {
        let per_mille = |digits: u64| Decimal::new(digits, 3);
        Self {
            metric: Metric::PassRate,
            bound: Bound::AtLeast(per_mille(pass)),
            warn: warn.map(per_mille),
            // Nobody asked for these, so that a selection of cases need not have them all.
            allow_empty: category.is_some(),
            category,
            backend: None,
            variant: None,
        }
    }

    /// The same side of another limit.
    pub fn at(&self, limit: Decimal) -> Bound {
        self.bound.with(limit)
    }

    /// Whether it is about a lane.
    pub fn concerns(&self, lane: LaneKey<'_>) -> bool {
        self.backend.as_deref().is_none_or(|it| it == lane.backend)
            && self.variant.as_deref().is_none_or(|it| lane.variant == Some(it))
    }

    /// Holds it against figures.
    pub fn judge(&self, metrics: &Metrics) -> GateOutcome {
        let observed = self.observe(metrics);
        let undecided = self.undecided(metrics);
        let warns = |observed| self.warn.is_some_and(|it| self.bound.with(it).holds(observed));
        let is_nothing = self.is_nothing(metrics);
        let status = match observed {
            _ if undecided.too_many => GateStatus::Fail,
            None if self.allow_empty && is_nothing => GateStatus::Empty,
            Some(observed) if self.bound.holds(observed) => GateStatus::Pass,
            Some(observed) if warns(observed) => GateStatus::Warn,
            None | Some(_) => GateStatus::Fail,
        };
        GateOutcome { gate: self.clone(), observed, undecided, status }
    }

    /// Whether there are no cases that it could look at. Cases that are there, and of which none
    /// could be judged, are not nothing.
    fn is_nothing(&self, metrics: &Metrics) -> bool {
        let Slice { classes, unjudged, .. } = self.slice(metrics);
        match self.metric.score() {
            // A case that came to an error may be one of those that have the score.
            Some(name) => {
                let unscored = metrics.scores.get(name).map_or(0, |it| it.summary.unscored);
                unscored == 0 && (classes.total() == 0 || unjudged < classes.total())
            }
            None => classes.total() == 0 || !self.metric.has_categories(),
        }
    }

    /// The undecided among what it looks at, if it is about verdicts or a score.
    fn undecided(&self, metrics: &Metrics) -> Undecided {
        let (count, of) = match self.metric.score() {
            Some(name) => {
                let ScoreSlice { mean, undecided } = self.scores(metrics, name);
                (undecided, mean.count + undecided)
            }
            None if self.metric.counts_verdicts() => {
                let verdicts = self.slice(metrics).verdicts;
                (verdicts.undecided, verdicts.total())
            }
            None => return Undecided::default(),
        };
        let too_many = count > 0 && metrics.max_undecided.compare_share(count, of).is_gt();
        Undecided { count, of, too_many }
    }

    /// What it looks at.
    fn slice(&self, metrics: &Metrics) -> Slice {
        slice(self.category.as_ref(), metrics)
    }

    /// The values of a score that it looks at.
    fn scores(&self, metrics: &Metrics, name: &str) -> ScoreSlice {
        scores(name, self.category.as_ref(), metrics)
    }

    fn observe(&self, metrics: &Metrics) -> Option<Observed> {
        observed(&self.metric, self.category.as_ref(), metrics)
    }
}

fn slice(category: Option<&Category>, metrics: &Metrics) -> Slice {
    match category {
        None => metrics.all,
        Some(category) => metrics.categories.get(category).copied().unwrap_or_default(),
    }
}

fn scores(name: &str, category: Option<&Category>, metrics: &Metrics) -> ScoreSlice {
    let of_score = |ScoreFigures { all, categories, .. }: &ScoreFigures| match category {
        None => *all,
        Some(category) => categories.get(category).copied().unwrap_or_default(),
    };
    metrics.scores.get(name).map(of_score).unwrap_or_default()
}

/// What a metric is in these figures, or in those of a category; none where there is nothing to look at.
pub(crate) fn observed(
    metric: &Metric,
    category: Option<&Category>,
    metrics: &Metrics,
) -> Option<Observed> {
    let Slice { verdicts, classes, unjudged } = slice(category, metrics);
    let of = |part: u64, whole: u64| (whole > 0).then_some(Observed::Share { part, whole });
    let count = |count: u64| (classes.total() > 0).then_some(Observed::Count(count));
    match metric {
        Metric::PassRate => of(verdicts.pass, verdicts.judged()),
        Metric::ErrorRate => of(unjudged, classes.total()),
        Metric::ClassRate(class) => of(classes.get(*class), classes.total()),
        Metric::Passed => count(verdicts.pass),
        Metric::Failed => count(verdicts.fail),
        Metric::Errors => count(unjudged),
        Metric::ClassCount(class) => count(classes.get(*class)),
        Metric::PolicyHits => count(metrics.policy_hits),
        Metric::Flaky => count(metrics.repeats.as_ref().map_or(0, |it| it.flaky.len()) as u64),
        Metric::UnexpectedFailures => count(metrics.unexpected_failures),
        Metric::Latency(quantile) => metrics.latency.map(|it| Observed::Time(it.at(*quantile))),
        Metric::Ttft(quantile) => metrics.ttft.map(|it| Observed::Time(it.at(*quantile))),
        Metric::CostUsd => (metrics.priced > 0).then_some(Observed::Dollars(metrics.cost_usd)),
        Metric::CostPerPass => (metrics.priced > 0 && verdicts.pass > 0).then(|| {
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            Observed::Dollars(metrics.cost_usd / verdicts.pass as f64)
        }),
        Metric::Tokens => match metrics.input_tokens + metrics.output_tokens {
            0 => None,
            tokens => Some(Observed::Count(tokens)),
        },
        Metric::Skill(rate) => {
            let share = metrics.figures.as_ref()?.rate(*rate)?;
            of(share.count, share.of)
        }
        Metric::Score(name) => {
            let mean = scores(name, category, metrics).mean;
            (mean.count > 0).then_some(Observed::Mean(mean))
        }
        Metric::Derived(name) => {
            let found = metrics.derived().into_iter().find(|it| it.name == **name)?;
            found.value.ok().map(Observed::Number)
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |limit: Decimal| match self.metric.unit() {
            Unit::Share => format!("{} %", limit.hundredfold()),
            Unit::Count | Unit::Score | Unit::Number => limit.to_string(),
            Unit::Time => time(limit.to_f64()),
            Unit::Dollars => format!("${limit}"),
        };
        if let Some(category) = &self.category {
            write!(f, "{category} ")?;
        }
        let side = match self.bound {
            Bound::AtLeast(_) => "at least",
            Bound::AtMost(_) => "at most",
        };
        write!(f, "{} {side} {}", self.metric, limit(self.bound.limit()))?;
        match self.warn {
            None => Ok(()),
            Some(warn) => write!(f, " (a warning to {})", limit(warn)),
        }
    }
}
