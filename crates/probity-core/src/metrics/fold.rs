//! Folds results into the figures of a lane.

use std::collections::BTreeMap;

use probity_stats::{
    USUAL_LEVEL,
    attempts::{pass_at_k, pass_hat_k},
    proportion::{Group, clustered, wilson_95},
    spread::{Moments, percentile},
};

use super::{
    Flaky, Metrics, ResultFacts, Tries, Verdicts, WorkerFigures, float, score::ScoreFold,
    times::Times,
};
use crate::{
    classification::Verdict,
    kind,
    opinion::JudgeFold,
    record::{Judging, Source},
};

/// Folds results into figures. They come in the order of their cases.
#[derive(Debug)]
pub struct Fold<'j> {
    judging: &'j Judging,
    metrics: Metrics,
    latencies: Times,
    first_tokens: Times,
    speeds: Vec<f64>,
    /// What each worker did, and how long its calls took.
    workers: BTreeMap<String, (WorkerFigures, Times)>,
    /// The case whose repeats are coming in.
    current: Option<Current>,
    /// Counts of cases that belong together, by group.
    groups: BTreeMap<String, Verdicts>,
    /// How many cases of no group have these counts: there may be a million, and they hardly differ.
    lone: BTreeMap<(u64, u64), usize>,
    has_groups: bool,
    /// By repeat.
    rounds: Vec<Verdicts>,
    /// How many cases passed so often of so many.
    tries: BTreeMap<(u64, u64), u64>,
    figures: kind::Fold,
    judges: JudgeFold,
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
            metrics: Metrics {
                max_undecided: judging.max_undecided,
                derivations: judging.derived.clone(),
                ..Metrics::default()
            },
            scores: BTreeMap::new(),
            latencies: Times::default(),
            first_tokens: Times::default(),
            speeds: Vec::new(),
            workers: BTreeMap::new(),
            current: None,
            groups: BTreeMap::new(),
            lone: BTreeMap::new(),
            has_groups: false,
            rounds: Vec::new(),
            tries: BTreeMap::new(),
            figures: kind::Fold::default(),
            judges: JudgeFold::default(),
        }
    }

    /// Takes in the next result.
    pub fn add(&mut self, mut outcome: ResultFacts) {
        if outcome.verdict == Verdict::Error {
            self.metrics.all.unjudged += 1;
            if let Some(category) = &outcome.category {
                self.metrics.categories.entry(category.clone()).or_default().unjudged += 1;
            }
        }
        outcome.verdict = self.judging.counted(outcome.verdict);
        self.count(&outcome);
        outcome.judged.drain(..).for_each(|it| self.judges.add(&it));
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
        if let Some(category) = &outcome.category {
            metrics.categories.entry(category.clone()).or_default().classes.add(outcome.class);
        }
        metrics.policy_hits += u64::from(outcome.breaks_policy);
        for score in &outcome.scores {
            let fold = match self.scores.get_mut(&*score.name) {
                Some(known) => known,
                None => self.scores.entry(score.name.to_string()).or_default(),
            };
            fold.add(score, outcome);
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
            Source::Backend | Source::Imported => {}
            Source::Cache => metrics.cached += 1,
            Source::Replay => metrics.replayed += 1,
        }
        // An answer from the cache took no time, another tool may not say what one took, and an
        // error says how long it was waited for.
        let is_timed = match outcome.source {
            Source::Backend | Source::Replay => true,
            Source::Cache => false,
            Source::Imported => outcome.latency_ms > 0,
        };
        if is_timed && outcome.error.is_none() {
            self.latencies.push(outcome.latency_ms);
            outcome.ttft_ms.into_iter().for_each(|it| self.first_tokens.push(it));
            self.speeds.extend(outcome.tokens_per_second);
        }
        if let Some(worker) = &outcome.worker {
            if !self.workers.contains_key(worker) {
                self.workers.insert(worker.clone(), Default::default());
            }
            if let Some((figures, latencies)) = self.workers.get_mut(worker) {
                figures.results += 1;
                figures.errors += u64::from(outcome.error.is_some());
                if outcome.error.is_none() {
                    latencies.push(outcome.latency_ms);
                }
            }
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
            None => *self.lone.entry((counted.pass, counted.judged())).or_default() += 1,
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
        let Self { judging, mut metrics, groups, lone, has_groups, .. } = self;
        metrics.latency = self.latencies.finish();
        metrics.ttft = self.first_tokens.finish();
        metrics.tokens_per_second = percentile(&mut self.speeds, 50.0);
        metrics.workers = self
            .workers
            .into_iter()
            .map(|(name, (figures, latencies))| {
                (name, WorkerFigures { latency: latencies.finish(), ..figures })
            })
            .collect();
        metrics.figures = self.figures.finish();
        metrics.judges = self.judges.finish();
        metrics.scores =
            self.scores.into_iter().map(|(name, fold)| (name, fold.finish())).collect();
        let Verdicts { pass, .. } = metrics.all.verdicts;
        let judged = metrics.all.verdicts.judged();
        // Repeats of a case belong together as much as cases of a group do.
        let is_clustered = has_groups || (self.rounds.len() > 1 && judging.min_pass.is_none());
        let of_groups = is_clustered
            .then(|| {
                let named = groups.values().map(|it| Group { passed: it.pass, total: it.judged() });
                let lone = lone.into_iter().flat_map(|((passed, total), cases)| {
                    std::iter::repeat_n(Group { passed, total }, cases)
                });
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
