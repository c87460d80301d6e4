//! Figures of one lane, folded from its results.

mod fold;
mod score;
mod times;

use std::collections::BTreeMap;

use probity_stats::Interval;
use serde::{Deserialize, Serialize};

pub use fold::{Fold, of_case};
pub use score::{Mean, ScoreFigures, ScoreSlice, ScoreSummary, ScoreTotal};

use crate::{
    case::Category,
    classification::{Class, Counts, Verdict},
    derived::{self, Derivation, DerivedFigure},
    failure::ErrorKind,
    gate::{Decimal, Quantile},
    kind::{Evidence, Figures},
    opinion::{JudgeFigures, JudgedCheck},
    record::{Source, Spent, Usage},
    score::Score,
};

/// One result without its texts: what figures are made of.
#[derive(Clone, Debug)]
pub struct ResultFacts {
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// The case's category.
    pub category: Option<Category>,
    /// The case's tags.
    pub tags: Vec<String>,
    /// Cases of a group are not independent of each other.
    pub group: Option<String>,
    /// One of the eight.
    pub class: Class,
    /// What gates count.
    pub verdict: Verdict,
    /// Whether the reply breaks a policy, whatever else it is.
    pub breaks_policy: bool,
    /// Every check of the case; their reasons are not needed.
    pub scores: Vec<Score>,
    /// Why there is no reply.
    pub error: Option<ErrorKind>,
    /// Who answered.
    pub source: Source,
    /// How long the last call took.
    pub latency_ms: u64,
    /// How long its first token took, where that is known.
    pub ttft_ms: Option<u64>,
    /// Tokens a second after the first, where that is known.
    pub tokens_per_second: Option<f64>,
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
    /// The worker that made the last one, where it was not the run itself.
    pub worker: Option<String>,
    /// When the first call was made, in milliseconds since 1970.
    pub started_ms: i64,
    /// From then to the end.
    pub elapsed_ms: u64,
    /// What a skill runner found.
    pub evidence: Option<Box<Evidence>>,
    /// What judges said.
    pub judged: Vec<JudgedCheck>,
}

/// Counts by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Passed.
    pub pass: u64,
    /// Failed.
    pub fail: u64,
    /// Could not be judged.
    pub error: u64,
    /// Nothing decides them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecided: u64,
}

impl Verdicts {
    /// Counts one more.
    pub fn add(&mut self, verdict: Verdict) {
        self.add_many(verdict, 1);
    }

    /// Counts so many more.
    pub fn add_many(&mut self, verdict: Verdict, count: u64) {
        match verdict {
            Verdict::Pass => self.pass += count,
            Verdict::Fail => self.fail += count,
            Verdict::Error => self.error += count,
            Verdict::Undecided => self.undecided += count,
        }
    }

    /// Counts all that another one counted.
    pub fn merge(&mut self, other: Self) {
        let Self { pass, fail, error, undecided } = other;
        self.pass += pass;
        self.fail += fail;
        self.error += error;
        self.undecided += undecided;
    }

    /// All that passed or failed.
    pub fn judged(&self) -> u64 {
        self.pass.saturating_add(self.fail)
    }

    /// All.
    pub fn total(&self) -> u64 {
        self.judged().saturating_add(self.error).saturating_add(self.undecided)
    }

    /// The share that passed of those that passed or failed; none of nothing.
    pub fn rate(&self) -> Option<f64> {
        share(self.pass, self.judged())
    }
}

/// Counts of a part of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// By verdict: what gates count.
    pub verdicts: Verdicts,
    /// By class: every result.
    pub classes: Counts,
    /// Results that could not be judged, whatever they count as.
    pub unjudged: u64,
}

/// Everything that is reckoned of a lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// All of it.
    pub all: Slice,
    /// By category.
    pub categories: BTreeMap<Category, Slice>,
    /// By tag.
    pub tags: BTreeMap<String, Verdicts>,
    /// The rate's interval at 95 %.
    pub interval: Option<Interval>,
    /// Whether the interval allows for cases that belong together.
    pub is_clustered: bool,
    /// Results that break a policy.
    pub policy_hits: u64,
    /// The scores by name.
    pub scores: BTreeMap<String, ScoreFigures>,
    /// The share of undecided results that gates on verdicts allow.
    pub max_undecided: Decimal,
    /// Results without a reply, by reason.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// How long calls took.
    pub latency: Option<Latency>,
    /// How long first tokens took, of replies that were read while they were written.
    pub ttft: Option<Latency>,
    /// Tokens a second of such replies: the median.
    pub tokens_per_second: Option<f64>,
    /// From the first call to the last end, in milliseconds since 1970.
    pub period: Option<(i64, i64)>,
    /// Calls that were made.
    pub calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Results whose tokens are, at least in part, estimated.
    pub estimated: u64,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Results that have a price, and one more where calls without a result cost something.
    pub priced: u64,
    /// Answered by the cache.
    pub cached: u64,
    /// Answered from a recording.
    pub replayed: u64,
    /// What repeats of the same cases say; none where each was asked once.
    pub repeats: Option<Repeats>,
    /// Cases that failed and are not known to.
    pub unexpected_failures: u64,
    /// Cases that are known to fail, and passed.
    pub unexpected_passes: Vec<String>,
    /// How far judges agree; none where one judge was asked once.
    pub judges: Option<JudgeFigures>,
    /// What workers did, where the run did not do it itself.
    pub workers: BTreeMap<String, WorkerFigures>,
    /// What only this kind of runner has.
    pub figures: Option<Figures>,
    /// How further figures are derived from these.
    pub derivations: Vec<Derivation>,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerFigures {
    /// Results whose last call it made.
    pub results: u64,
    /// Those without a reply.
    pub errors: u64,
    /// How long its calls took.
    pub latency: Option<Latency>,
}

impl Metrics {
    /// Results of all kinds, each repeat for itself.
    pub fn results(&self) -> u64 {
        self.all.classes.total()
    }

    /// Errors that are about the key or the account, and so about every case.
    pub fn locked_out(&self) -> u64 {
        [ErrorKind::Auth, ErrorKind::Quota].iter().filter_map(|kind| self.errors.get(kind)).sum()
    }

    /// Counts what calls used that came to no result.
    pub fn add_spent(&mut self, spent: Spent) {
        let Spent { calls, usage, cost_usd } = spent;
        self.calls += calls;
        self.input_tokens += usage.input_tokens.unwrap_or(0);
        self.output_tokens += usage.output_tokens.unwrap_or(0);
        self.cost_usd += cost_usd;
        self.priced += u64::from(cost_usd > 0.0);
    }

    /// The figures that are derived from these, in the order of the suite.
    pub fn derived(&self) -> Vec<DerivedFigure> {
        derived::reckoned(&self.derivations, self)
    }

    /// The values of these by name, for files.
    pub fn derived_values(&self) -> BTreeMap<String, Option<f64>> {
        self.derived().into_iter().map(|it| (it.name, it.value.ok())).collect()
    }

    /// The share of results that could not be judged; none of nothing.
    pub fn error_rate(&self) -> Option<f64> {
        share(self.all.verdicts.error, self.all.verdicts.total())
    }
}

/// How long calls took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many calls.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them took no longer.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Latency {
    /// One of its figures.
    pub const fn at(&self, quantile: Quantile) -> f64 {
        match quantile {
            Quantile::Mean => self.mean,
            Quantile::P50 => self.p50,
            Quantile::P95 => self.p95,
            Quantile::P99 => self.p99,
            Quantile::Max => self.max,
        }
    }
}

/// What repeats of the same cases say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeats {
    /// How often each case was asked, at most.
    pub most: u32,
    /// The mean of the rates of the single rounds.
    pub mean: Option<f64>,
    /// Their sample deviation.
    pub deviation: Option<f64>,
    /// For some k: the chance that one of k tries passes, and that all k do.
    pub by_tries: Vec<Tries>,
    /// Cases that passed and failed.
    pub flaky: Vec<Flaky>,
}

/// What k tries at a case come to, over the cases that were judged that often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tries {
    /// How many tries.
    pub k: u64,
    /// The chance that at least one passes.
    pub any: f64,
    /// The chance that all pass.
    pub all: f64,
}

/// A case that passed and failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaky {
    /// The case.
    pub case_id: String,
    /// Repeats that passed.
    pub passed: u64,
    /// Repeats that could be judged.
    pub judged: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A part of a whole; none of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
