//! What gates can be on, by name.

use std::{fmt, str::FromStr, sync::Arc};

use crate::{classification::Class, figures::Rate};

/// What a gate looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// How long first tokens took.
    Ttft(Quantile),
    /// Dollars.
    CostUsd,
    /// Dollars for each that passed.
    CostPerPass,
    /// Tokens of prompts and replies.
    Tokens,
    /// A share that only a skill runner has.
    Skill(Rate),
    /// The mean of the scores of a name.
    Score(Arc<str>),
    /// A figure that the suite derives from others.
    Derived(Arc<str>),
}

/// Which of the figures about times.
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
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
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
    /// From 0 to 1, but not of a whole.
    Score,
    /// Any number.
    Number,
}

impl Metric {
    /// What the name of a score has in front of it.
    pub const SCORE: &str = "score.";
    /// What the name of a derived figure has in front of it.
    pub const DERIVED: &str = "derived.";

    /// Those with a name of their own, in the order they are listed to people.
    const PLAIN: [Self; 11] = [
        Self::PassRate,
        Self::ErrorRate,
        Self::Passed,
        Self::Failed,
        Self::Errors,
        Self::PolicyHits,
        Self::Flaky,
        Self::UnexpectedFailures,
        Self::CostUsd,
        Self::CostPerPass,
        Self::Tokens,
    ];

    /// Every metric that is there whatever the cases are, by its name. Scores and derived figures are not among them.
    pub fn all() -> impl Iterator<Item = (Self, String)> {
        let latencies = Quantile::ALL.into_iter().map(Self::Latency);
        let first_tokens = Quantile::ALL.into_iter().map(Self::Ttft);
        let times = latencies.chain(first_tokens);
        // Of these two the verdicts are meant, which have names of their own.
        let is_class = |it: &Class| !matches!(it, Class::Pass | Class::Error);
        let rates = Class::ALL.into_iter().filter(is_class).map(Self::ClassRate);
        let counts = Class::ALL.into_iter().filter(is_class).map(Self::ClassCount);
        let skills = Rate::ALL.into_iter().map(Self::Skill);
        let all = Self::PLAIN.into_iter().chain(times).chain(rates).chain(counts).chain(skills);
        all.map(|it| {
            let name = it.to_string();
            (it, name)
        })
    }

    /// The name of the score that it is about.
    pub fn score(&self) -> Option<&str> {
        match self {
            Self::Score(name) => Some(name),
            Self::PassRate
            | Self::ErrorRate
            | Self::ClassRate(_)
            | Self::Passed
            | Self::Failed
            | Self::Errors
            | Self::ClassCount(_)
            | Self::PolicyHits
            | Self::Flaky
            | Self::UnexpectedFailures
            | Self::Latency(_)
            | Self::Ttft(_)
            | Self::CostUsd
            | Self::CostPerPass
            | Self::Tokens
            | Self::Skill(_)
            | Self::Derived(_) => None,
        }
    }

    /// What its limits are written in.
    pub const fn unit(&self) -> Unit {
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
            Self::Latency(_) | Self::Ttft(_) => Unit::Time,
            Self::CostUsd | Self::CostPerPass => Unit::Dollars,
            Self::Score(_) => Unit::Score,
            Self::Derived(_) => Unit::Number,
        }
    }

    /// Whether more of it is better, so that a bare limit is the least.
    pub const fn is_good(&self) -> bool {
        match self {
            Self::PassRate | Self::Passed | Self::Score(_) | Self::Derived(_) => true,
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
            | Self::Ttft(_)
            | Self::CostUsd
            | Self::CostPerPass
            | Self::Tokens => false,
        }
    }

    /// Whether undecided cases make it say less than it seems to.
    pub const fn counts_verdicts(&self) -> bool {
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
            | Self::Ttft(_)
            | Self::CostUsd
            | Self::Tokens
            | Self::Skill(_)
            | Self::Score(_)
            | Self::Derived(_) => false,
        }
    }

    /// Whether it can be counted within a category.
    pub const fn has_categories(&self) -> bool {
        matches!(
            self,
            Self::PassRate
                | Self::ErrorRate
                | Self::ClassRate(_)
                | Self::Passed
                | Self::Failed
                | Self::Errors
                | Self::ClassCount(_)
                | Self::Score(_)
        )
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::PassRate => "pass_rate",
            Self::ErrorRate => "error_rate",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Errors => "errors",
            Self::PolicyHits => "policy_hits",
            Self::Flaky => "flaky",
            Self::UnexpectedFailures => "unexpected_failures",
            Self::CostUsd => "cost_usd",
            Self::CostPerPass => "cost_per_pass",
            Self::Tokens => "tokens",
            Self::Skill(rate) => rate.as_str(),
            Self::Latency(quantile) => return write!(f, "latency_{}", quantile.as_str()),
            Self::Ttft(quantile) => return write!(f, "ttft_{}", quantile.as_str()),
            Self::ClassRate(class) => return write!(f, "{class}_rate"),
            Self::ClassCount(class) => return write!(f, "{class}_count"),
            Self::Score(name) => return write!(f, "{}{name}", Self::SCORE),
            Self::Derived(name) => return write!(f, "{}{name}", Self::DERIVED),
        };
        f.write_str(name)
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let behind = |prefix| text.strip_prefix(prefix).filter(|it: &&str| !it.trim().is_empty());
        if let Some(name) = behind(Self::SCORE) {
            return Ok(Self::Score(name.into()));
        }
        if let Some(name) = behind(Self::DERIVED) {
            return Ok(Self::Derived(name.into()));
        }
        let found = Self::all().find(|(_, name)| name == text).map(|(metric, _)| metric);
        found.ok_or_else(|| format!("unknown metric `{text}`"))
    }
}
