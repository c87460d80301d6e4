//! Gates: what has to hold of a lane's figures.
//!
//! Shares are compared as whole numbers: 948 of 1000 is 94.8 %, whatever a float makes of it.

mod decimal;

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

pub use decimal::Decimal;

use crate::{
    case::Category,
    classification::Class,
    figures::Rate,
    kind::RunnerKind,
    metrics::{Metrics, Slice},
    span::Span,
};

/// What a gate looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Share of those judged that passed.
    PassRate,
    /// Share of all that could not be judged.
    ErrorRate,
    /// Share of all results that are of a class.
    ClassRate(Class),
    /// How many passed.
    Passed,
    /// How many failed.
    Failed,
    /// How many could not be judged.
    Errors,
    /// How many results are of a class.
    ClassCount(Class),
    /// How many results break a policy, whatever else they are.
    PolicyHits,
    /// How many cases passed and failed.
    Flaky,
    /// How many failed that are not on the list of known failures.
    UnexpectedFailures,
    /// How long calls took.
    Latency(Quantile),
    /// Dollars.
    CostUsd,
    /// Dollars for each that passed.
    CostPerPass,
    /// Tokens of prompts and replies.
    Tokens,
    /// A share that only a skill runner has.
    Skill(Rate),
}

/// Which of the figures about latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantile {
    /// The mean.
    Mean,
    /// The median.
    P50,
    /// 95 of 100.
    P95,
    /// 99 of 100.
    P99,
    /// The longest.
    Max,
}

impl Quantile {
    const ALL: [Self; 5] = [Self::Mean, Self::P50, Self::P95, Self::P99, Self::Max];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "latency_mean",
            Self::P50 => "latency_p50",
            Self::P95 => "latency_p95",
            Self::P99 => "latency_p99",
            Self::Max => "latency_max",
        }
    }
}

/// What the limits of a metric are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From 0 to 1.
    Share,
    /// A whole number.
    Count,
    /// Milliseconds.
    Time,
    /// Dollars.
    Dollars,
}

impl Metric {
    /// Those with a name of their own, in the order they are listed to people.
    const PLAIN: [(Self, &'static str); 11] = [
        (Self::PassRate, "pass_rate"),
        (Self::ErrorRate, "error_rate"),
        (Self::Passed, "passed"),
        (Self::Failed, "failed"),
        (Self::Errors, "errors"),
        (Self::PolicyHits, "policy_hits"),
        (Self::Flaky, "flaky"),
        (Self::UnexpectedFailures, "unexpected_failures"),
        (Self::CostUsd, "cost_usd"),
        (Self::CostPerPass, "cost_per_pass"),
        (Self::Tokens, "tokens"),
    ];

    /// Every metric by its name.
    pub fn all() -> impl Iterator<Item = (Self, String)> {
        let plain = Self::PLAIN.into_iter().map(|(metric, name)| (metric, name.to_owned()));
        let latencies = Quantile::ALL.into_iter().map(Self::Latency);
        // Of these two the verdicts are meant, which have names of their own.
        let is_class = |it: &Class| !matches!(it, Class::Pass | Class::Error);
        let rates = Class::ALL.into_iter().filter(is_class).map(Self::ClassRate);
        let counts = Class::ALL.into_iter().filter(is_class).map(Self::ClassCount);
        let skills = Rate::ALL.into_iter().map(Self::Skill);
        let others = latencies.chain(rates).chain(counts).chain(skills);
        plain.chain(others.map(|it| (it, it.to_string())))
    }

    /// What its limits are written in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::PassRate | Self::ErrorRate | Self::ClassRate(_) | Self::Skill(_) => Unit::Share,
            Self::Passed
            | Self::Failed
            | Self::Errors
            | Self::ClassCount(_)
            | Self::PolicyHits
            | Self::Flaky
            | Self::UnexpectedFailures
            | Self::Tokens => Unit::Count,
            Self::Latency(_) => Unit::Time,
            Self::CostUsd | Self::CostPerPass => Unit::Dollars,
        }
    }

    /// Whether more of it is better, so that a bare limit is the least.
    pub const fn is_good(self) -> bool {
        match self {
            Self::PassRate | Self::Passed => true,
            Self::Skill(rate) => rate.is_good(),
            Self::ErrorRate
            | Self::ClassRate(_)
            | Self::Failed
            | Self::Errors
            | Self::ClassCount(_)
            | Self::PolicyHits
            | Self::Flaky
            | Self::UnexpectedFailures
            | Self::Latency(_)
            | Self::CostUsd
            | Self::CostPerPass
            | Self::Tokens => false,
        }
    }

    /// Whether undecided cases make it say less than it seems to.
    pub const fn counts_verdicts(self) -> bool {
        match self {
            Self::PassRate
            | Self::Passed
            | Self::Failed
            | Self::Flaky
            | Self::UnexpectedFailures
            | Self::CostPerPass => true,
            Self::ErrorRate
            | Self::ClassRate(_)
            | Self::Errors
            | Self::ClassCount(_)
            | Self::PolicyHits
            | Self::Latency(_)
            | Self::CostUsd
            | Self::Tokens
            | Self::Skill(_) => false,
        }
    }

    /// Whether it can be counted within a category.
    pub const fn has_categories(self) -> bool {
        matches!(
            self,
            Self::PassRate
                | Self::ErrorRate
                | Self::ClassRate(_)
                | Self::Passed
                | Self::Failed
                | Self::Errors
                | Self::ClassCount(_)
        )
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = Self::PLAIN.iter().find(|(metric, _)| metric == self) {
            return f.write_str(name);
        }
        match self {
            Self::Latency(quantile) => f.write_str(quantile.as_str()),
            Self::ClassRate(class) => write!(f, "{class}_rate"),
            Self::ClassCount(class) => write!(f, "{class}_count"),
            Self::Skill(rate) => f.write_str(rate.as_str()),
            Self::PassRate
            | Self::ErrorRate
            | Self::Passed
            | Self::Failed
            | Self::Errors
            | Self::PolicyHits
            | Self::Flaky
            | Self::UnexpectedFailures
            | Self::CostUsd
            | Self::CostPerPass
            | Self::Tokens => unreachable!("it is in the list of plain ones"),
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::all().find(|(_, name)| name == text).map(|(metric, _)| metric);
        found.ok_or_else(|| format!("unknown metric `{text}`"))
    }
}

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
            Observed::Time(value) | Observed::Dollars(value) => {
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

/// What a gate saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed {
    /// A part of a whole.
    Share {
        /// The part.
        part: u64,
        /// The whole.
        whole: u64,
    },
    /// A number of things.
    Count(u64),
    /// Milliseconds.
    Time(f64),
    /// Dollars.
    Dollars(f64),
}

impl Observed {
    /// As a plain number.
    pub fn value(self) -> f64 {
        match self {
            Self::Share { part, whole } => crate::metrics::share(part, whole).unwrap_or(0.0),
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            Self::Count(count) => count as f64,
            Self::Time(value) | Self::Dollars(value) => value,
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Share { part, whole } => {
                write!(f, "{} ({part} of {whole})", percent(part, whole))
            }
            Self::Count(count) => write!(f, "{count}"),
            Self::Time(millis) => write!(f, "{}", time(millis)),
            Self::Dollars(dollars) => write!(f, "${dollars:.4}"),
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
            Some(observed) => format!("{gate}: {observed}"),
            None if *status == GateStatus::Empty => format!("{gate}: n/a, which is allowed"),
            None => format!("{gate}: there is nothing to judge it by"),
        };
        let Undecided { count, of, too_many } = undecided;
        match (count, too_many) {
            (0, _) => found,
            (count, false) => format!("{found}; {count} of {of} undecided"),
            (count, true) => format!("{found}; {count} of {of} undecided, which is not allowed"),
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
            category,
            backend: None,
            // Nobody asked for these, so that a selection of cases need not have them all.
            allow_empty: category.is_some(),
        }
    }

    /// The same side of another limit.
    pub fn at(&self, limit: Decimal) -> Bound {
        self.bound.with(limit)
    }

    /// Whether it is about a backend.
    pub fn concerns(&self, backend: &str) -> bool {
        self.backend.as_deref().is_none_or(|it| it == backend)
    }

    /// Holds it against figures.
    pub fn judge(&self, metrics: &Metrics) -> GateOutcome {
        let observed = self.observe(metrics);
        let undecided = self.undecided(metrics);
        let warns = |observed| self.warn.is_some_and(|it| self.bound.with(it).holds(observed));
        // Cases that are there, and of which none could be judged, are not nothing.
        let is_nothing = self.slice(metrics).classes.total() == 0 || !self.metric.has_categories();
        let status = match observed {
            _ if undecided.too_many => GateStatus::Fail,
            None if self.allow_empty && is_nothing => GateStatus::Empty,
            Some(observed) if self.bound.holds(observed) => GateStatus::Pass,
            Some(observed) if warns(observed) => GateStatus::Warn,
            None | Some(_) => GateStatus::Fail,
        };
        GateOutcome { gate: self.clone(), observed, undecided, status }
    }

    /// The undecided among what it looks at, if it is about verdicts.
    fn undecided(&self, metrics: &Metrics) -> Undecided {
        if !self.metric.counts_verdicts() {
            return Undecided::default();
        }
        let verdicts = self.slice(metrics).verdicts;
        let (count, of) = (verdicts.undecided, verdicts.total());
        let too_many = count > 0 && metrics.max_undecided.compare_share(count, of).is_gt();
        Undecided { count, of, too_many }
    }

    /// What it looks at.
    fn slice(&self, metrics: &Metrics) -> Slice {
        match self.category {
            None => metrics.all,
            Some(category) => metrics.categories.get(&category).copied().unwrap_or_default(),
        }
    }

    fn observe(&self, metrics: &Metrics) -> Option<Observed> {
        let Slice { verdicts, classes, unjudged } = self.slice(metrics);
        let of = |part: u64, whole: u64| (whole > 0).then_some(Observed::Share { part, whole });
        let count = |count: u64| (classes.total() > 0).then_some(Observed::Count(count));
        match self.metric {
            Metric::PassRate => of(verdicts.pass, verdicts.judged()),
            Metric::ErrorRate => of(unjudged, classes.total()),
            Metric::ClassRate(class) => of(classes.get(class), classes.total()),
            Metric::Passed => count(verdicts.pass),
            Metric::Failed => count(verdicts.fail),
            Metric::Errors => count(unjudged),
            Metric::ClassCount(class) => count(classes.get(class)),
            Metric::PolicyHits => count(metrics.policy_hits),
            Metric::Flaky => count(metrics.repeats.as_ref().map_or(0, |it| it.flaky.len()) as u64),
            Metric::UnexpectedFailures => count(metrics.unexpected_failures),
            Metric::Latency(quantile) => metrics.latency.map(|latency| {
                Observed::Time(match quantile {
                    Quantile::Mean => latency.mean,
                    Quantile::P50 => latency.p50,
                    Quantile::P95 => latency.p95,
                    Quantile::P99 => latency.p99,
                    Quantile::Max => latency.max,
                })
            }),
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
                let share = metrics.figures.as_ref()?.rate(rate)?;
                of(share.count, share.of)
            }
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |limit: Decimal| match self.metric.unit() {
            Unit::Share => format!("{} %", limit.hundredfold()),
            Unit::Count => limit.to_string(),
            Unit::Time => time(limit.to_f64()),
            Unit::Dollars => format!("${limit}"),
        };
        if let Some(category) = self.category {
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

/// A share for people. What is not all is never shown as all, and what is something never
/// as nothing.
pub fn percent(part: u64, whole: u64) -> String {
    let Some(share) = crate::metrics::share(part, whole) else { return "n/a".to_owned() };
    let shown = (share * 1000.0).round() / 10.0;
    let shown = match shown {
        100.0 if part < whole => 99.9,
        0.0 if part > 0 => 0.1,
        shown => shown,
    };
    format!("{shown:.1} %")
}

fn time(millis: f64) -> String {
    let millis = if millis.is_finite() { millis.max(0.0) } else { 0.0 };
    // Fractions of milliseconds are an artefact of averages.
    Span(Duration::try_from_secs_f64(millis.round() / 1000.0).unwrap_or(Duration::MAX)).to_string()
}

/// A gate as it is kept with a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<Category>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    allow_empty: bool,
}

impl From<Gate> for Written {
    fn from(gate: Gate) -> Self {
        let Gate { metric, bound, warn, category, backend, allow_empty } = gate;
        let (min, max) = match bound {
            Bound::AtLeast(limit) => (Some(limit.to_string()), None),
            Bound::AtMost(limit) => (None, Some(limit.to_string())),
        };
        let (metric, warn) = (metric.to_string(), warn.map(|it| it.to_string()));
        Self { metric, min, max, warn, category, backend, allow_empty }
    }
}

impl TryFrom<Written> for Gate {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { metric, min, max, warn, category, backend, allow_empty } = written;
        let limit = |text: String| {
            Decimal::parse(&text).ok_or_else(|| format!("`{text}` is not a limit of a gate"))
        };
        let bound = match (min, max) {
            (Some(min), None) => Bound::AtLeast(limit(min)?),
            (None, Some(max)) => Bound::AtMost(limit(max)?),
            (_, _) => return Err("a gate needs either `min` or `max`".to_owned()),
        };
        let warn = warn.map(limit).transpose()?;
        Ok(Self { metric: metric.parse()?, bound, warn, category, backend, allow_empty })
    }
}
