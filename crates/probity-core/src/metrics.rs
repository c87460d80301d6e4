//! Figures of one lane, folded from its results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::Category,
    classification::{Class, Counts, Verdict},
    failure::ErrorKind,
    gate::Decimal,
    kind::{self, Evidence, Figures},
    record::{Judging, Source, Spent, Usage},
    score::Score,
};
use probity_stats::{
    Interval, USUAL_LEVEL,
    attempts::{pass_at_k, pass_hat_k},
    proportion::{Group, clustered, wilson_95},
    spread::{Moments, percentile},
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
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
    /// When the first call was made, in milliseconds since 1970.
    pub started_ms: i64,
    /// From then to the end.
    pub elapsed_ms: u64,
    /// What a skill runner found.
    pub evidence: Option<Box<Evidence>>,
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
        match verdict {
            Verdict::Pass => self.pass += 1,
            Verdict::Fail => self.fail += 1,
            Verdict::Error => self.error += 1,
            Verdict::Undecided => self.undecided += 1,
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
    pub scores: BTreeMap<String, ScoreSummary>,
    /// The share of undecided results that gates on verdicts allow.
    pub max_undecided: Decimal,
    /// Results without a reply, by reason.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// How long calls took.
    pub latency: Option<Latency>,
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
    /// Results that have a price.
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
    /// What only this kind of runner has.
    pub figures: Option<Figures>,
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
    }

    /// The share of results that could not be judged; none of nothing.
    pub fn error_rate(&self) -> Option<f64> {
        share(self.all.verdicts.error, self.all.verdicts.total())
    }
}

/// One named score over all results that have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreSummary {
    /// Results that have a value.
    pub count: u64,
    /// Results that have none, because nobody could say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unscored: u64,
    /// Results for which it was enough.
    pub passed: u64,
    /// The mean of the values.
    pub mean: Option<f64>,
    /// The mean's 95 % confidence interval.
    pub interval: Option<Interval>,
}

#[derive(Debug, Default)]
struct ScoreFold {
    unscored: u64,
    passed: u64,
    values: Moments,
    all_or_nothing: bool,
    has_any: bool,
    held: u64,
}

impl ScoreFold {
    fn add(&mut self, score: &Score) {
        self.passed += u64::from(score.passed);
        let Some(value) = score.value else {
            self.unscored += 1;
            return;
        };
        self.values.push(value);
        let is_one = value >= 1.0;
        let is_bit = value <= 0.0 || is_one;
        self.all_or_nothing = is_bit && (self.all_or_nothing || !self.has_any);
        self.has_any = true;
        self.held += u64::from(is_one);
    }

    fn finish(self) -> ScoreSummary {
        let count = self.values.count();
        // A mean of zeros and ones is a share; other means have the interval of a mean.
        let interval = match self.all_or_nothing {
            true => wilson_95(self.held, count),
            false => self
                .values
                .interval(USUAL_LEVEL)
                .map(|it| Interval { low: it.low.max(0.0), high: it.high.min(1.0) }),
        };
        ScoreSummary {
            count,
            unscored: self.unscored,
            passed: self.passed,
            mean: self.values.mean(),
            interval,
        }
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

/// Folds results into figures. They come in the order of their cases.
#[derive(Debug)]
pub struct Fold<'j> {
    judging: &'j Judging,
    metrics: Metrics,
    latencies: Vec<f64>,
    /// The case whose repeats are coming in.
    current: Option<Current>,
    /// Counts of cases that belong together, by group.
    groups: BTreeMap<String, Verdicts>,
    /// Counts of cases that belong to no group but were asked several times.
    lone: Vec<Group>,
    has_groups: bool,
    /// By repeat.
    rounds: Vec<Verdicts>,
    /// How many cases passed so often of so many.
    tries: BTreeMap<(u64, u64), u64>,
    figures: kind::Fold,
    /// By name.
    scores: BTreeMap<String, ScoreFold>,
}

#[derive(Debug)]
struct Current {
    outcome: ResultFacts,
    verdicts: Verdicts,
}

impl<'j> Fold<'j> {
    /// An empty one.
    pub fn new(judging: &'j Judging) -> Self {
        Self {
            judging,
            metrics: Metrics { max_undecided: judging.max_undecided, ..Metrics::default() },
            scores: BTreeMap::new(),
            latencies: Vec::new(),
            current: None,
            groups: BTreeMap::new(),
            lone: Vec::new(),
            has_groups: false,
            rounds: Vec::new(),
            tries: BTreeMap::new(),
            figures: kind::Fold::default(),
        }
    }

    /// Takes in the next result.
    pub fn add(&mut self, mut outcome: ResultFacts) {
        if outcome.verdict == Verdict::Error {
            self.metrics.all.unjudged += 1;
            if let Some(category) = outcome.category {
                self.metrics.categories.entry(category).or_default().unjudged += 1;
            }
            if self.judging.errors_as_failures {
                outcome.verdict = Verdict::Fail;
            }
        }
        self.count(&outcome);
        if let Some(evidence) = &outcome.evidence {
            let ResultFacts { case_id, verdict, .. } = &outcome;
            self.figures.add(kind::Seen { case_id, verdict: *verdict, evidence });
        }
        match &mut self.current {
            Some(current) if current.outcome.case_id == outcome.case_id => {
                current.verdicts.add(outcome.verdict);
            }
            _ => {
                self.close_case();
                let mut verdicts = Verdicts::default();
                verdicts.add(outcome.verdict);
                self.current = Some(Current { outcome, verdicts });
            }
        }
    }

    /// Counts what every result counts for by itself.
    fn count(&mut self, outcome: &ResultFacts) {
        let metrics = &mut self.metrics;
        metrics.all.classes.add(outcome.class);
        if let Some(category) = outcome.category {
            metrics.categories.entry(category).or_default().classes.add(outcome.class);
        }
        metrics.policy_hits += u64::from(outcome.breaks_policy);
        for score in &outcome.scores {
            match self.scores.get_mut(&*score.name) {
                Some(known) => known.add(score),
                None => self.scores.entry(score.name.to_string()).or_default().add(score),
            }
        }
        if let Some(kind) = outcome.error {
            *metrics.errors.entry(kind).or_default() += 1;
        }
        let begun = outcome.started_ms;
        let ended = begun.saturating_add_unsigned(outcome.elapsed_ms);
        let (first, last) = metrics.period.unwrap_or((begun, ended));
        metrics.period = Some((first.min(begun), last.max(ended)));
        metrics.calls += u64::from(outcome.calls);
        metrics.input_tokens += outcome.usage.input_tokens.unwrap_or(0);
        metrics.output_tokens += outcome.usage.output_tokens.unwrap_or(0);
        metrics.estimated += u64::from(outcome.usage.estimated);
        metrics.cost_usd += outcome.cost_usd.unwrap_or(0.0);
        metrics.priced += u64::from(outcome.cost_usd.is_some());
        match outcome.source {
            Source::Backend => {}
            Source::Cache => metrics.cached += 1,
            Source::Replay => metrics.replayed += 1,
        }
        // An answer from the cache took no time, and an error says how long it was waited for.
        if outcome.source != Source::Cache && outcome.error.is_none() {
            self.latencies.push(float(outcome.latency_ms));
        }
        let round = usize::try_from(outcome.repeat).unwrap_or(usize::MAX);
        if round >= self.rounds.len() {
            self.rounds.resize(round + 1, Verdicts::default());
        }
        self.rounds[round].add(outcome.verdict);
    }

    /// Counts a case when all its repeats are in.
    fn close_case(&mut self) {
        let Some(Current { outcome, verdicts }) = self.current.take() else { return };
        let verdict = of_case(&verdicts, self.judging.min_pass);
        let counted = match self.judging.min_pass {
            None => verdicts,
            Some(_) => {
                let mut once = Verdicts::default();
                once.add(verdict);
                once
            }
        };
        let metrics = &mut self.metrics;
        match (verdict, self.judging.known_failures.contains(&outcome.case_id)) {
            (Verdict::Fail, false) => metrics.unexpected_failures += 1,
            (Verdict::Pass, true) => metrics.unexpected_passes.push(outcome.case_id.clone()),
            (Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided, _) => {}
        }
        metrics.all.verdicts.merge(counted);
        if let Some(category) = outcome.category {
            metrics.categories.entry(category).or_default().verdicts.merge(counted);
        }
        for tag in outcome.tags {
            metrics.tags.entry(tag).or_default().merge(counted);
        }
        match outcome.group {
            Some(group) => {
                self.has_groups = true;
                self.groups.entry(group).or_default().merge(counted);
            }
            None => self.lone.push(Group { passed: counted.pass, total: counted.judged() }),
        }
        if verdicts.judged() > 0 {
            *self.tries.entry((verdicts.pass, verdicts.judged())).or_default() += 1;
        }
        if verdicts.pass > 0 && verdicts.fail > 0 {
            let (passed, judged) = (verdicts.pass, verdicts.judged());
            let flaky = Flaky { case_id: outcome.case_id, passed, judged };
            metrics.repeats.get_or_insert_default().flaky.push(flaky);
        }
    }

    /// The figures.
    pub fn finish(mut self) -> Metrics {
        self.close_case();
        let Self { judging, mut metrics, mut latencies, groups, lone, has_groups, .. } = self;
        metrics.latency = latency(&mut latencies);
        metrics.figures = self.figures.finish();
        metrics.scores =
            self.scores.into_iter().map(|(name, fold)| (name, fold.finish())).collect();
        let Verdicts { pass, .. } = metrics.all.verdicts;
        let judged = metrics.all.verdicts.judged();
        // Repeats of a case belong together as much as cases of a group do.
        let is_clustered = has_groups || (self.rounds.len() > 1 && judging.min_pass.is_none());
        let of_groups = is_clustered
            .then(|| {
                let named = groups.values().map(|it| Group { passed: it.pass, total: it.judged() });
                let all: Vec<Group> = named.chain(lone).collect();
                clustered(&all, USUAL_LEVEL).map(|it| it.interval)
            })
            .flatten();
        metrics.is_clustered = of_groups.is_some();
        metrics.interval = of_groups.or_else(|| wilson_95(pass, judged));
        match self.rounds.len() {
            0 | 1 => metrics.repeats = None,
            rounds => {
                let repeats = metrics.repeats.get_or_insert_default();
                repeats.most = u32::try_from(rounds).unwrap_or(u32::MAX);
                let rates: Moments = self.rounds.iter().filter_map(Verdicts::rate).collect();
                (repeats.mean, repeats.deviation) = (rates.mean(), rates.deviation());
                repeats.by_tries = by_tries(&self.tries, rounds as u64);
            }
        }
        metrics
    }
}

/// What the repeats of a case come to: so many of them have to pass, or all.
pub fn of_case(verdicts: &Verdicts, min_pass: Option<u32>) -> Verdict {
    let least = min_pass.map_or(verdicts.total(), u64::from);
    if verdicts.pass >= least {
        Verdict::Pass
    } else if verdicts.pass.saturating_add(verdicts.undecided) >= least {
        Verdict::Undecided
    } else if verdicts.total().saturating_sub(verdicts.fail) >= least {
        Verdict::Error
    } else {
        Verdict::Fail
    }
}

/// For k = 1, 2, 4 and so on, and the number of repeats.
fn by_tries(tries: &BTreeMap<(u64, u64), u64>, rounds: u64) -> Vec<Tries> {
    let mut ks: Vec<u64> =
        std::iter::successors(Some(1), |k| Some(k * 2)).take_while(|k| *k < rounds).collect();
    ks.push(rounds);
    let mean = |k: u64, chance: fn(u64, u64, u64) -> Option<f64>| {
        let (mut sum, mut count) = (0.0, 0);
        for ((passed, judged), cases) in tries.iter().filter(|((_, judged), _)| *judged >= k) {
            sum += chance(*judged, *passed, k)? * float(*cases);
            count += cases;
        }
        (count > 0).then(|| sum / float(count))
    };
    ks.into_iter()
        .filter_map(|k| Some(Tries { k, any: mean(k, pass_at_k)?, all: mean(k, pass_hat_k)? }))
        .collect()
}

fn latency(values: &mut [f64]) -> Option<Latency> {
    let max = values.iter().copied().max_by(f64::total_cmp)?;
    let moments: Moments = values.iter().copied().collect();
    let mut at = |percent| percentile(values, percent);
    Some(Latency {
        count: moments.count(),
        mean: moments.mean()?,
        p50: at(50.0)?,
        p95: at(95.0)?,
        p99: at(99.0)?,
        max,
    })
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
mod tests {
    use super::*;

    fn outcome(case_id: &str, repeat: u32, verdict: Verdict) -> ResultFacts {
        ResultFacts {
            case_id: case_id.to_owned(),
            repeat,
            category: None,
            tags: Vec::new(),
            group: None,
            class: match verdict {
                Verdict::Pass | Verdict::Undecided => Class::Pass,
                Verdict::Fail => Class::Refusal,
                Verdict::Error => Class::Error,
            },
            verdict,
            breaks_policy: false,
            scores: Vec::new(),
            error: (verdict == Verdict::Error).then_some(ErrorKind::Server),
            source: Source::Backend,
            latency_ms: 10,
            usage: Usage::default(),
            cost_usd: None,
            calls: 1,
            started_ms: 1000,
            elapsed_ms: 10,
            evidence: None,
        }
    }

    fn fold(judging: &Judging, outcomes: Vec<ResultFacts>) -> Metrics {
        let mut fold = Fold::new(judging);
        outcomes.into_iter().for_each(|it| fold.add(it));
        fold.finish()
    }

    const PASS: Verdict = Verdict::Pass;
    const FAIL: Verdict = Verdict::Fail;
    const ERROR: Verdict = Verdict::Error;

    fn rounds(cases: &[(&str, &[Verdict])]) -> Vec<ResultFacts> {
        let of_case = |(id, verdicts): &(&str, &[Verdict])| {
            let verdicts = verdicts.iter().zip(0..);
            verdicts.map(|(verdict, repeat)| outcome(id, repeat, *verdict)).collect::<Vec<_>>()
        };
        cases.iter().flat_map(of_case).collect()
    }

    #[test]
    fn errors_leave_the_rate_unless_asked() {
        let cases: &[(&str, &[Verdict])] = &[("a", &[PASS]), ("b", &[FAIL]), ("c", &[ERROR])];
        let metrics = fold(&Judging::default(), rounds(cases));
        assert_eq!(metrics.all.verdicts, Verdicts { pass: 1, fail: 1, error: 1, undecided: 0 });
        assert_eq!(metrics.all.verdicts.rate(), Some(0.5));
        assert_eq!(metrics.errors[&ErrorKind::Server], 1);
        assert_eq!(metrics.latency.map(|it| it.count), Some(2));
        let strict = Judging { errors_as_failures: true, ..Judging::default() };
        assert_eq!(fold(&strict, rounds(cases)).all.verdicts.rate(), Some(1.0 / 3.0));
    }

    #[test]
    fn repeats_say_how_steady_a_case_is() {
        let cases: &[(&str, &[Verdict])] =
            &[("a", &[PASS, PASS]), ("b", &[PASS, FAIL]), ("c", &[FAIL, FAIL])];
        let metrics = fold(&Judging::default(), rounds(cases));
        assert_eq!(metrics.all.verdicts, Verdicts { pass: 3, fail: 3, error: 0, undecided: 0 });
        assert!(metrics.is_clustered);
        let repeats = metrics.repeats.unwrap();
        assert_eq!(repeats.flaky.len(), 1);
        assert_eq!((repeats.flaky[0].passed, repeats.flaky[0].judged), (1, 2));
        // pass@1 is the rate; pass@2: a and b; pass^2: a alone.
        let tries: Vec<(u64, f64, f64)> =
            repeats.by_tries.iter().map(|it| (it.k, it.any, it.all)).collect();
        assert_eq!(tries, [(1, 0.5, 0.5), (2, 2.0 / 3.0, 1.0 / 3.0)]);
        // The rounds: 2 of 3 and 1 of 3.
        assert_eq!(repeats.mean, Some(0.5));
        assert!((repeats.deviation.unwrap() - (1.0_f64 / 18.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn m_of_n_counts_a_case_once() {
        let cases: &[(&str, &[Verdict])] = &[
            ("a", &[PASS, PASS, FAIL]),
            ("b", &[PASS, FAIL, FAIL]),
            ("c", &[PASS, ERROR, FAIL]),
            ("d", &[ERROR, FAIL, FAIL]),
        ];
        let judging = Judging { min_pass: Some(2), ..Judging::default() };
        let metrics = fold(&judging, rounds(cases));
        assert_eq!(metrics.all.verdicts, Verdicts { pass: 1, fail: 2, error: 1, undecided: 0 });
        assert_eq!(metrics.results(), 12);
        assert!(!metrics.is_clustered);
    }

    #[test]
    fn known_failures_are_told_apart() {
        let cases: &[(&str, &[Verdict])] = &[
            ("a", &[PASS, PASS]),
            ("b", &[PASS, FAIL]),
            ("c", &[FAIL, FAIL]),
            ("d", &[ERROR, PASS]),
        ];
        let known = ["a", "c", "d"].map(str::to_owned);
        let judging = Judging { known_failures: known.into(), ..Judging::default() };
        let metrics = fold(&judging, rounds(cases));
        assert_eq!(metrics.unexpected_failures, 1);
        assert_eq!(metrics.unexpected_passes, ["a"]);
    }

    #[test]
    fn groups_widen_the_interval() {
        let grouped = |with_group: bool| {
            let outcomes = (0..40).map(|at| ResultFacts {
                group: with_group.then(|| format!("g{}", at / 10)),
                ..outcome(&format!("{at:02}"), 0, if at < 20 { PASS } else { FAIL })
            });
            fold(&Judging::default(), outcomes.collect())
        };
        let width = |it: &Metrics| it.interval.map(|it| it.high - it.low).unwrap();
        assert!(width(&grouped(true)) > 1.5 * width(&grouped(false)));
    }
}
