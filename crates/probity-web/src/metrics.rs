//! Figures for Prometheus, in its text format: the latest run of each suite.
//!
//! Everything is a gauge, because the next run of a suite begins anew. Labels are names that suites have: there is none for a
//! case or a run, and a bound on how many series there can be.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use probity_core::{
    classification::{Class, Verdict},
    failure::ErrorKind,
    gate::GateStatus,
    metrics::{Latency, Slice},
    record::RunStatus,
    view::{LaneReport, RunView},
};
use probity_store::{Reader, RunRow};
use text::{Text, labels};

use crate::{problem::Problem, site::Site};

/// What Prometheus expects.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Suites that have series, those that ran last.
pub(crate) const MOST_SUITES: usize = 50;
/// Lanes that have series, over all suites.
const MOST_LANES: usize = 500;

/// What is shown of a run; much less than its view.
#[derive(Debug)]
pub(crate) struct RunFigures(Vec<LaneFigures>);

#[derive(Debug)]
struct LaneFigures {
    runner: String,
    variant: String,
    backend: String,
    planned: u64,
    all: Slice,
    cost_usd: Option<f64>,
    latency: Option<Latency>,
    ttft: Option<Latency>,
    tokens: [(&'static str, u64); 2],
    errors: BTreeMap<ErrorKind, u64>,
    gates: BTreeMap<GateStatus, u64>,
}

impl RunFigures {
    pub(crate) fn of(view: &RunView) -> Self {
        Self(view.lanes.iter().map(LaneFigures::of).collect())
    }
}

impl LaneFigures {
    fn of(report: &LaneReport) -> Self {
        let LaneReport { lane, metrics, .. } = report;
        let mut gates: BTreeMap<GateStatus, u64> =
            GateStatus::ALL.into_iter().map(|it| (it, 0)).collect();
        for gate in &report.gates {
            *gates.entry(gate.status).or_default() += 1;
        }
        Self {
            runner: lane.runner.clone(),
            variant: lane.variant.clone().unwrap_or_default(),
            backend: lane.backend.clone(),
            planned: lane.planned,
            all: metrics.all,
            cost_usd: (metrics.priced > 0).then_some(metrics.cost_usd),
            latency: metrics.latency,
            ttft: metrics.ttft,
            tokens: [("input", metrics.input_tokens), ("output", metrics.output_tokens)],
            errors: metrics.errors.clone(),
            gates,
        }
    }
}

/// A suite with series.
struct Suite {
    run: RunRow,
    labels: String,
}

/// A lane with series.
struct Series<'a> {
    labels: String,
    of: &'a LaneFigures,
}

/// The figures of a store.
pub(crate) fn text(site: &Site, reader: &Reader) -> Result<String, Problem> {
    let runs = reader.runs()?;
    let (mut suites, mut left_out) = latest(&runs);
    let mut figures = Vec::new();
    let mut lanes = 0;
    let mut kept = Vec::new();
    for suite in suites.drain(..) {
        let planned = reader.lanes(&suite.run)?.len();
        if lanes + planned > MOST_LANES {
            left_out += 1;
            continue;
        }
        lanes += planned;
        figures.push(site.figures(reader, &suite.run)?);
        kept.push(suite);
    }
    let mut series = Vec::new();
    for (suite, figures) in kept.iter().zip(&figures) {
        for of in &figures.0 {
            let own = [("runner", &of.runner), ("variant", &of.variant), ("backend", &of.backend)];
            let own = labels(&own.map(|(name, value)| (name, value.as_str())));
            series.push(Series { labels: format!("{},{own}", suite.labels), of });
        }
    }
    let mut text = Text::default();
    of_store(&mut text, &runs, left_out);
    of_suites(&mut text, &kept);
    of_lanes(&mut text, &series);
    Ok(text.finish())
}

/// The latest run of each suite, and how many suites are left out. Suites of the same name in two folders are two.
fn latest(runs: &[RunRow]) -> (Vec<Suite>, usize) {
    let mut known = BTreeSet::new();
    let mut suites = Vec::new();
    let mut left_out = 0;
    for run in runs {
        let file = run.info.suite_path.as_deref().unwrap_or_default();
        if !known.insert((run.suite.as_str(), file)) {
            continue;
        }
        if suites.len() == MOST_SUITES {
            left_out += 1;
            continue;
        }
        let labels = labels(&[("suite", &run.suite), ("file", file)]);
        suites.push(Suite { run: run.clone(), labels });
    }
    (suites, left_out)
}

fn of_store(text: &mut Text, runs: &[RunRow], left_out: usize) {
    let mut by_status: BTreeMap<&str, usize> =
        RunStatus::ALL.iter().map(|it| (it.as_str(), 0)).collect();
    for run in runs {
        *by_status.entry(run.status.as_str()).or_default() += 1;
    }
    text.family("probity_runs", "Runs in the store");
    for (status, count) in &by_status {
        text.sample(&labels(&[("status", status)]), count);
    }
    text.family("probity_suites_omitted", "Suites that have no series because there are too many");
    text.sample("", &left_out);
}

fn of_suites(text: &mut Text, suites: &[Suite]) {
    let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
    text.family("probity_run_started_timestamp_seconds", "When the latest run of a suite began");
    suites.iter().for_each(|it| text.sample(&it.labels, &seconds(it.run.started_ms)));
    text.family("probity_run_finished_timestamp_seconds", "When the latest run of a suite ended");
    for Suite { run, labels } in suites {
        if let Some(finished) = run.finished_ms {
            text.sample(labels, &seconds(finished));
        }
    }
    text.family(
        "probity_run_complete",
        "Whether every planned case of the latest run came to an end",
    );
    for Suite { run, labels } in suites {
        text.sample(labels, &u8::from(run.status == RunStatus::Complete));
    }
}

fn of_lanes(text: &mut Text, series: &[Series<'_>]) {
    text.family("probity_planned_results", "Results that the latest run of a suite is to have");
    series.iter().for_each(|it| text.sample(&it.labels, &it.of.planned));
    text.family("probity_results", "Results of the latest run by verdict, as gates count them");
    for it in series {
        let verdicts = it.of.all.verdicts;
        let counts = [
            (Verdict::Pass, verdicts.pass),
            (Verdict::Fail, verdicts.fail),
            (Verdict::Error, verdicts.error),
            (Verdict::Undecided, verdicts.undecided),
        ];
        let counts = counts.map(|(verdict, count)| (verdict.as_str(), count));
        text.each(&it.labels, "verdict", counts);
    }
    text.family("probity_classified_results", "Results of the latest run by class");
    for it in series {
        let classes = Class::ALL.map(|class| (class.as_str(), it.of.all.classes.get(class)));
        text.each(&it.labels, "class", classes);
    }
    text.family("probity_failed_calls", "Results without a reply, by the reason");
    for it in series {
        text.each(&it.labels, "reason", it.of.errors.iter().map(|(kind, it)| (kind.as_str(), *it)));
    }
    text.family("probity_pass_ratio", "Share that passed, of those that passed or failed");
    for it in series {
        if let Some(rate) = it.of.all.verdicts.rate() {
            text.sample(&it.labels, &rate);
        }
    }
    text.family("probity_gates", "Gates of the latest run, by how they came out");
    for it in series {
        text.each(
            &it.labels,
            "status",
            it.of.gates.iter().map(|(it, count)| (it.as_str(), *count)),
        );
    }
    text.family("probity_latency_seconds", "How long calls took: quantiles, and 1 is the longest");
    series.iter().for_each(|it| quantiles(text, &it.labels, it.of.latency.as_ref()));
    text.family("probity_first_token_seconds", "How long first tokens took, where that is known");
    series.iter().for_each(|it| quantiles(text, &it.labels, it.of.ttft.as_ref()));
    text.family("probity_tokens", "Tokens of prompts and replies");
    series.iter().for_each(|it| text.each(&it.labels, "type", it.of.tokens));
    text.family("probity_cost_usd", "Dollars that the run cost, as far as prices are known");
    for it in series {
        if let Some(cost) = it.of.cost_usd {
            text.sample(&it.labels, &cost);
        }
    }
}

fn quantiles(text: &mut Text, labels: &str, latency: Option<&Latency>) {
    let Some(Latency { p50, p95, p99, max, .. }) = latency else { return };
    for (quantile, ms) in [("0.5", p50), ("0.95", p95), ("0.99", p99), ("1", max)] {
        text.sample(&format!("{labels},quantile=\"{quantile}\""), &(ms / 1000.0));
    }
}
