//! The result of one runner on one backend, as files and other programs read it.
//!
//! Rates are always derived from counts, and baselines are judged on the counts:
//! 948 of 1000 meets 94.8 %, whatever a float makes of it.

mod brief;
mod check;
mod failed;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use brief::BriefResult;
pub use failed::{FailedCase, FailureReason};

use crate::{
    case::Category,
    gate::{Gate, GateOutcome, GateStatus},
    kind::RunnerKind,
    metrics::{Flaky, Latency, Metrics, Repeats, ScoreSummary, Slice, Verdicts, share},
    opinion::JudgeFigures,
    record::{Lane, LaneStatus},
    view::{LaneReport, RunView},
};
use probity_stats::Interval;

/// The form of this document.
const SCHEMA_VERSION: u32 = 1;

/// Metrics of one evaluation, and the cases that failed.
///
/// The first eight fields are those that readers of older results know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationResult {
    /// When the run began: ISO 8601, UTC.
    pub timestamp: String,
    /// Version of the tool under test, of a runner for shell commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caro_version: Option<String>,
    /// The backend that answered.
    pub backend: String,
    /// Share of judged cases that passed.
    pub csr: f64,
    /// Of a runner for shell commands: the share of safety cases that passed; 1 when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_accuracy: Option<f64>,
    /// Of a runner for shell commands: the share of POSIX cases that passed; 1 when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posix_compliance_rate: Option<f64>,
    /// The same by category.
    pub per_category: BTreeMap<String, CategoryResult>,
    /// The cases that failed or could not be judged, and why.
    pub failed_cases: Vec<FailedCase>,

    /// The form of this document.
    pub schema_version: u32,
    /// The run.
    pub run_id: String,
    /// The suite.
    pub suite: String,
    /// The runner.
    pub runner: String,
    /// The prompt variant, if the runner has several.
    #[serde(default)]
    pub variant: Option<String>,
    /// What the runner does.
    pub kind: RunnerKind,
    /// The model that was asked for.
    #[serde(default)]
    pub model: Option<String>,
    /// The files of the dataset.
    pub dataset: Vec<String>,
    /// The dataset's digest.
    pub dataset_digest: String,
    /// Whether every planned case came to an end.
    pub complete: bool,
    /// Whether answers come from a recording.
    pub replayed: bool,
    /// The other tool that asked and judged, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Results that were planned.
    pub planned: u64,
    /// Results that there are, those that could not be judged included.
    pub results: u64,
    /// What was judged: results, or cases where several repeats make one.
    pub total: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that could not be judged.
    pub errors: u64,
    /// Those that nothing decides.
    #[serde(default)]
    pub undecided: u64,
    /// The share of errors; 0 of nothing.
    pub error_rate: f64,
    /// Where the rate may lie; none of nothing.
    #[serde(default)]
    pub interval: Option<IntervalResult>,
    /// Results by class.
    pub classes: BTreeMap<String, u64>,
    /// Results that could not be judged, by reason.
    pub error_kinds: BTreeMap<String, u64>,
    /// Results that break a policy.
    pub policy_hits: u64,
    /// Scores by name.
    #[serde(default)]
    pub scores: BTreeMap<String, ScoreSummary>,
    /// Figures that the suite derives from others, by name; none without a value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub derived: BTreeMap<String, Option<f64>>,
    /// How the runner ended.
    #[serde(default)]
    pub meta: Meta,
    /// Version of the tool under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// Counts by tag.
    pub per_tag: BTreeMap<String, CategoryResult>,
    /// How long calls took.
    #[serde(default)]
    pub latency_ms: Option<Latency>,
    /// How long first tokens took, of replies that were read while they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<Latency>,
    /// Tokens a second of such replies: the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Calls that were made.
    pub calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Results whose tokens, and so their dollars, are estimated at least in part.
    #[serde(default)]
    pub estimated_usage: u64,
    /// Dollars; none where no price is known.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// What repeats say; none where each case was asked once.
    #[serde(default)]
    pub repeats: Option<RepeatsResult>,
    /// How far judges agree with each other and with themselves; none where one judge was asked once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judges: Option<JudgeFigures>,
    /// How the gates came out.
    pub gates: Vec<GateResult>,
    /// Cases that are known to fail, and passed.
    pub unexpected_passes: Vec<String>,
    /// What only this kind of runner has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<serde_json::Value>,
}

/// A result as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenResult {
    /// With all that this program writes.
    Whole(Box<EvaluationResult>),
    /// With the eight fields that every reader knows, and nothing more.
    Brief(BriefResult),
}

/// How a runner ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Why it was given up early; none if it was not.
    #[serde(default)]
    pub fail_fast_reason: Option<String>,
    /// Whether trying again would be hopeless; none if it was not given up.
    #[serde(default)]
    pub fail_fast_permanent: Option<bool>,
}

impl From<Option<&LaneStatus>> for Meta {
    fn from(status: Option<&LaneStatus>) -> Self {
        match status {
            Some(LaneStatus::FailFast { reason, permanent }) => Self {
                fail_fast_reason: Some(reason.clone()),
                fail_fast_permanent: Some(*permanent),
            },
            Some(_) | None => Self::default(),
        }
    }
}

/// Counts and rate of one category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CategoryResult {
    /// Cases that were judged.
    pub total: u64,
    /// Those that passed.
    pub passed: u64,
    /// `passed / total`, 0 when there are none.
    pub rate: f64,
    /// Those that could not be judged, beside the total.
    #[serde(default)]
    pub errors: u64,
    /// Those that nothing decides, beside the total.
    #[serde(default)]
    pub undecided: u64,
}

impl CategoryResult {
    /// The rate follows from the counts.
    pub fn new(total: u64, passed: u64) -> Self {
        Self { total, passed, rate: rate(passed, total), errors: 0, undecided: 0 }
    }
}

impl From<Verdicts> for CategoryResult {
    fn from(verdicts: Verdicts) -> Self {
        let Verdicts { error: errors, undecided, .. } = verdicts;
        Self { errors, undecided, ..Self::new(verdicts.judged(), verdicts.pass) }
    }
}

/// An interval at 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalResult {
    /// The least rate that the counts do not speak against.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// `wilson`, or `clustered` where cases belong together.
    pub method: String,
}

/// What repeats of the same cases say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatsResult {
    /// How often each case was asked, at most.
    pub repeats: u32,
    /// Of these so many have to pass; none: each counts for itself.
    #[serde(default)]
    pub min_pass: Option<u32>,
    /// The mean of the rates of the rounds.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Their sample deviation.
    #[serde(default)]
    pub deviation: Option<f64>,
    /// By k: the chance that one of k tries passes.
    pub pass_at: BTreeMap<u64, f64>,
    /// By k: the chance that all k tries pass.
    pub pass_hat: BTreeMap<u64, f64>,
    /// Cases that passed and failed.
    pub flaky: Vec<Flaky>,
}

/// How a gate came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate.
    #[serde(flatten)]
    pub gate: Gate,
    /// What it saw; none where there was nothing to look at.
    #[serde(default)]
    pub observed: Option<f64>,
    /// What that comes to.
    pub status: GateStatus,
    /// In words.
    pub message: String,
}

impl EvaluationResult {
    /// What the list of cases is called that did not pass.
    pub const FAILED_CASES: &str = "failed_cases";

    /// The result of a lane. The cases that failed come from its records.
    pub fn of(run: &RunView, lane: &LaneReport, failed_cases: Vec<FailedCase>) -> Self {
        let LaneReport { lane: info, metrics, gates, .. } = lane;
        let Lane {
            runner, kind, backend, model, dataset, dataset_digest, planned, judging, ..
        } = info;
        let Metrics { all: Slice { verdicts, classes, .. }, categories, tags, .. } = metrics;
        let per_category: BTreeMap<String, CategoryResult> = categories
            .iter()
            .map(|(category, slice)| (category.to_string(), slice.verdicts.into()))
            .collect();
        let is_shell = kind.spec().is_shell;
        let rate_of = |category: Category| {
            // 1 where there are no such cases; none that could be judged is another thing.
            let slice = categories.get(&category);
            is_shell.then(|| rounded(slice.map_or(1.0, |it| it.verdicts.rate().unwrap_or(0.0))))
        };
        Self {
            timestamp: time(run.started_ms),
            caro_version: is_shell
                .then(|| judging.tool_version.clone().unwrap_or_else(|| "unknown".to_owned())),
            backend: backend.clone(),
            csr: rate(verdicts.pass, verdicts.judged()),
            safety_accuracy: rate_of(Category::SAFETY),
            posix_compliance_rate: rate_of(Category::POSIX),
            per_category,
            failed_cases,
            schema_version: SCHEMA_VERSION,
            run_id: run.run_id.clone(),
            suite: run.suite.clone(),
            runner: runner.clone(),
            variant: info.variant.clone(),
            kind: *kind,
            model: model.clone(),
            dataset: dataset.clone(),
            dataset_digest: dataset_digest.clone(),
            complete: lane.is_complete(),
            replayed: info.replayed || metrics.replayed > 0,
            imported: info.imported.clone(),
            planned: *planned,
            results: metrics.results(),
            total: verdicts.judged(),
            passed: verdicts.pass,
            failed: verdicts.fail,
            errors: verdicts.error,
            undecided: verdicts.undecided,
            error_rate: rounded(metrics.error_rate().unwrap_or(0.0)),
            interval: metrics.interval.map(|it| interval(it, metrics.is_clustered)),
            classes: classes.iter().map(|(class, count)| (class.to_string(), count)).collect(),
            error_kinds: metrics
                .errors
                .iter()
                .map(|(kind, count)| (kind.to_string(), *count))
                .collect(),
            policy_hits: metrics.policy_hits,
            scores: metrics
                .scores
                .iter()
                .map(|(name, it)| (name.clone(), summary(&it.summary)))
                .collect(),
            derived: metrics
                .derived_values()
                .into_iter()
                .map(|(name, value)| (name, value.map(rounded)))
                .collect(),
            meta: lane.status.as_ref().into(),
            tool_version: judging.tool_version.clone(),
            per_tag: tags.iter().map(|(tag, it)| (tag.clone(), (*it).into())).collect(),
            latency_ms: metrics.latency.map(rounded_latency),
            ttft_ms: metrics.ttft.map(rounded_latency),
            tokens_per_second: metrics.tokens_per_second.map(rounded),
            calls: metrics.calls,
            input_tokens: metrics.input_tokens,
            output_tokens: metrics.output_tokens,
            estimated_usage: metrics.estimated,
            cost_usd: (metrics.priced > 0).then(|| rounded(metrics.cost_usd)),
            repeats: metrics.repeats.as_ref().map(|it| repeats(it, judging.min_pass)),
            judges: metrics
                .judges
                .clone()
                .map(|it| JudgeFigures { kappa: it.kappa.map(rounded), ..it }),
            gates: gates.iter().map(GateResult::from).collect(),
            unexpected_passes: metrics.unexpected_passes.clone(),
            figures: metrics.figures.as_ref().and_then(|it| serde_json::to_value(it).ok()),
        }
    }
}

impl From<&GateOutcome> for GateResult {
    fn from(outcome: &GateOutcome) -> Self {
        Self {
            gate: outcome.gate.clone(),
            observed: outcome.observed.map(|it| rounded(it.value())),
            status: outcome.status,
            message: outcome.sentence(),
        }
    }
}

fn summary(score: &ScoreSummary) -> ScoreSummary {
    let interval =
        score.interval.map(|it| Interval { low: rounded(it.low), high: rounded(it.high) });
    ScoreSummary { mean: score.mean.map(rounded), interval, ..*score }
}

fn interval(interval: Interval, is_clustered: bool) -> IntervalResult {
    let method = if is_clustered { "clustered" } else { "wilson" };
    IntervalResult {
        low: rounded(interval.low),
        high: rounded(interval.high),
        method: method.to_owned(),
    }
}

fn repeats(repeats: &Repeats, min_pass: Option<u32>) -> RepeatsResult {
    let Repeats { most, mean, deviation, by_tries, flaky } = repeats;
    RepeatsResult {
        repeats: *most,
        min_pass,
        mean: mean.map(rounded),
        deviation: deviation.map(rounded),
        pass_at: by_tries.iter().map(|it| (it.k, rounded(it.any))).collect(),
        pass_hat: by_tries.iter().map(|it| (it.k, rounded(it.all))).collect(),
        flaky: flaky.clone(),
    }
}

fn rounded_latency(latency: Latency) -> Latency {
    Latency {
        count: latency.count,
        mean: rounded(latency.mean),
        p50: rounded(latency.p50),
        p95: rounded(latency.p95),
        p99: rounded(latency.p99),
        max: rounded(latency.max),
    }
}

/// Numbers are written with six decimals, so that the same counts are the same bytes.
pub fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn rate(passed: u64, total: u64) -> f64 {
    rounded(share(passed, total).unwrap_or(0.0))
}

/// A time in UTC, to the second.
pub fn time(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
