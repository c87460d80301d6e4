//! Figures for Prometheus, in its text format: the latest run of each suite.
//!
//! Everything is a gauge, because the next run of a suite begins anew. Labels are names that suites have: there is none for a
//! case or a run, and a bound on how many series there can be.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use probity_core::{
    classification::{Class, Verdict},
    record::RunStatus,
};
use probity_store::{Reader, RunRow};

use crate::{problem::Problem, site::Site};

/// What Prometheus expects.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Suites that have series, those that ran last.
const MOST_SUITES: usize = 50;
/// Lanes that have series, over all suites.
const MOST_LANES: usize = 500;
/// Bytes of a label's value.
const LONGEST_LABEL: usize = 120;

/// A lane of the latest run of a suite.
struct Series {
    labels: String,
    verdicts: [(Verdict, u64); Verdict::ALL.len()],
    classes: [(Class, u64); Class::ALL.len()],
    pass_rate: Option<f64>,
    cost_usd: Option<f64>,
    planned: u64,
}

/// The figures of a store.
pub(crate) fn text(site: &Site, reader: &Reader) -> Result<String, Problem> {
    let runs = reader.runs()?;
    let mut latest: Vec<&RunRow> = Vec::new();
    let mut known = BTreeSet::new();
    for run in &runs {
        if known.insert(run.suite.as_str()) {
            latest.push(run);
        }
    }
    let mut left_out = latest.len().saturating_sub(MOST_SUITES);
    latest.truncate(MOST_SUITES);
    let mut series = Vec::new();
    for run in &latest {
        let lanes = reader.lanes(run)?;
        if series.len() + lanes.len() > MOST_LANES {
            left_out += 1;
            continue;
        }
        let standings = site.standings(reader, run)?;
        for (lane, standing) in lanes.iter().zip(standings.iter()) {
            let labels = [
                ("suite", run.suite.as_str()),
                ("runner", &lane.lane.runner),
                ("variant", lane.lane.variant.as_deref().unwrap_or_default()),
                ("backend", &lane.lane.backend),
            ];
            let counted = &standing.counted;
            series.push(Series {
                labels: shown(&labels),
                verdicts: [
                    (Verdict::Pass, counted.pass),
                    (Verdict::Fail, counted.fail),
                    (Verdict::Error, counted.error),
                    (Verdict::Undecided, counted.undecided),
                ],
                classes: Class::ALL.map(|class| (class, standing.results.classes.get(class))),
                pass_rate: counted.rate(),
                cost_usd: (standing.results.priced > 0).then_some(standing.results.cost_usd),
                planned: lane.lane.planned,
            });
        }
    }
    Ok(render(&runs, &latest, &series, left_out))
}

fn render(runs: &[RunRow], latest: &[&RunRow], series: &[Series], left_out: usize) -> String {
    let mut out = Out::default();
    let mut by_status: BTreeMap<&str, usize> =
        RunStatus::ALL.iter().map(|it| (it.as_str(), 0)).collect();
    for run in runs {
        *by_status.entry(run.status.as_str()).or_default() += 1;
    }
    out.family("probity_runs", "Runs in the store");
    by_status.iter().for_each(|(status, count)| {
        out.sample("probity_runs", &shown(&[("status", status)]), count);
    });
    out.family("probity_suites_omitted", "Suites that have no series because there are too many");
    out.sample("probity_suites_omitted", "", &left_out);
    let seconds = |ms: i64| format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
    out.family("probity_run_started_timestamp_seconds", "When the latest run of a suite began");
    for run in latest {
        let labels = shown(&[("suite", &run.suite)]);
        out.sample("probity_run_started_timestamp_seconds", &labels, &seconds(run.started_ms));
    }
    out.family("probity_run_finished_timestamp_seconds", "When the latest run of a suite ended");
    for run in latest {
        if let Some(finished) = run.finished_ms {
            let labels = shown(&[("suite", &run.suite)]);
            out.sample("probity_run_finished_timestamp_seconds", &labels, &seconds(finished));
        }
    }
    out.family(
        "probity_run_complete",
        "Whether every planned case of the latest run came to an end",
    );
    for run in latest {
        let is_complete = u8::from(run.status == RunStatus::Complete);
        out.sample("probity_run_complete", &shown(&[("suite", &run.suite)]), &is_complete);
    }
    out.family("probity_planned_results", "Results that the latest run of a suite is to have");
    series.iter().for_each(|it| out.sample("probity_planned_results", &it.labels, &it.planned));
    out.family(
        "probity_results",
        "Results of the latest run of a suite by verdict, as gates count them",
    );
    for it in series {
        for (verdict, count) in &it.verdicts {
            let labels = format!("{},verdict=\"{verdict}\"", it.labels);
            out.sample("probity_results", &labels, count);
        }
    }
    out.family("probity_classified_results", "Results of the latest run of a suite by class");
    for it in series {
        for (class, count) in &it.classes {
            let labels = format!("{},class=\"{class}\"", it.labels);
            out.sample("probity_classified_results", &labels, count);
        }
    }
    out.family(
        "probity_pass_ratio",
        "Share of results that passed, of those that passed or failed",
    );
    for it in series {
        if let Some(rate) = it.pass_rate {
            out.sample("probity_pass_ratio", &it.labels, &rate);
        }
    }
    out.family(
        "probity_cost_usd",
        "Dollars that the latest run of a suite cost, as far as prices are known",
    );
    for it in series {
        if let Some(cost) = it.cost_usd {
            out.sample("probity_cost_usd", &it.labels, &cost);
        }
    }
    out.0
}

#[derive(Default)]
struct Out(String);

impl Out {
    fn family(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    fn sample(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}

/// Labels, with what has a meaning in the format escaped. What is too long ends early.
fn shown(labels: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| {
        let end = value.floor_char_boundary(LONGEST_LABEL.min(value.len()));
        let value = value[..end].replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_label() {
        let labels = shown(&[("suite", "a\\b\"} 1\nprobity_runs 9"), ("runner", "")]);
        assert_eq!(labels, r#"suite="a\\b\"} 1\nprobity_runs 9",runner="""#);
        let long = shown(&[("suite", &"é".repeat(200))]);
        assert_eq!(long.len(), "suite=\"\"".len() + 120);
    }
}
