//! What became of each runner of a suite, for scripts.

use std::io;

use probity_core::{
    evaluation::{GateResult, time},
    gate::GateStatus,
    record::{Lane, LaneStatus},
    view::{LaneReport, RunView},
};
use serde_json::{Value, json};

use crate::{
    conclusion::Conclusion,
    json::{consistency, sorted},
};

/// The form of this document.
const SCHEMA_VERSION: u32 = 1;

/// Writes the summary.
pub fn write(run: &RunView, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &sorted(summary(run)))?;
    out.write_all(b"\n")
}

/// The summary of a suite that never came to run.
pub fn of_failure(suite: &str, why: &str) -> String {
    let summary = json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": null,
        "suite": suite,
        "timestamp": null,
        "duration_seconds": null,
        "conclusion": Conclusion::Unsound.as_str(),
        "error": why,
        "aborted": true,
        "total_calls": 0,
        "total_cost_usd": null,
        "planned": 0,
        "results": 0,
        "passed": 0,
        "failed": 0,
        "errors": 0,
        "undecided": 0,
        "suite_fail_fast": false,
        "fail_fast_runners": [],
        "fail_fast_backends": [],
        "consistency": [],
        "runners": [],
    });
    format!("{:#}\n", sorted(summary))
}

fn summary(run: &RunView) -> Value {
    let metrics = || run.lanes.iter().map(|lane| &lane.metrics);
    let of_fail_fast =
        |lane: &&LaneReport| matches!(lane.status, Some(LaneStatus::FailFast { .. }));
    let fail_fast: Vec<&Lane> =
        run.lanes.iter().filter(of_fail_fast).map(|report| &report.lane).collect();
    let priced = metrics().any(|it| it.priced > 0);
    json!({
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "suite": run.suite,
        "timestamp": time(run.started_ms),
        "duration_seconds": run.elapsed_ms().map(seconds),
        "conclusion": Conclusion::of(run).as_str(),
        "aborted": Conclusion::of(run) == Conclusion::Unsound,
        "total_calls": metrics().map(|it| it.calls).sum::<u64>(),
        "total_cost_usd": priced.then(|| metrics().map(|it| it.cost_usd).sum::<f64>()),
        "planned": run.lanes.iter().map(LaneReport::planned).sum::<u64>(),
        "results": run.lanes.iter().map(LaneReport::cases).sum::<u64>(),
        "passed": metrics().map(|it| it.all.verdicts.pass).sum::<u64>(),
        "failed": metrics().map(|it| it.all.verdicts.fail).sum::<u64>(),
        "errors": metrics().map(|it| it.all.verdicts.error).sum::<u64>(),
        "undecided": metrics().map(|it| it.all.verdicts.undecided).sum::<u64>(),
        "suite_fail_fast": !fail_fast.is_empty(),
        // The backend of each stands at the same place of the other list.
        "fail_fast_runners": fail_fast.iter().map(|lane| &lane.runner).collect::<Vec<_>>(),
        "fail_fast_backends": fail_fast.iter().map(|lane| &lane.backend).collect::<Vec<_>>(),
        "runners": run.lanes.iter().map(runner).collect::<Vec<_>>(),
        "consistency": run.consistency.iter().map(consistency::counts).collect::<Vec<_>>(),
    })
}

fn runner(report: &LaneReport) -> Value {
    let LaneReport { lane, status, metrics, gates, .. } = report;
    let (reason, permanent) = match status {
        Some(LaneStatus::FailFast { reason, permanent }) => {
            (Some(reason.as_str()), Some(*permanent))
        }
        Some(
            LaneStatus::Skipped { reason }
            | LaneStatus::Budget { reason }
            | LaneStatus::Decided { reason, .. }
            | LaneStatus::TimedOut { reason }
            | LaneStatus::GaveUp { reason }
            | LaneStatus::Broken { reason },
        ) => (Some(reason.as_str()), None),
        Some(LaneStatus::Interrupted) => (Some("interrupted"), None),
        Some(LaneStatus::Complete) | None => (None, None),
    };
    json!({
        "runner": lane.runner,
        "variant": lane.variant,
        "backend": lane.backend,
        "kind": lane.kind,
        "model": lane.model,
        "replayed": lane.replayed,
        "imported": lane.imported,
        "status": word(report),
        "reason": reason,
        "permanent": permanent,
        "planned": report.planned(),
        "results": report.cases(),
        "passed": metrics.all.verdicts.pass,
        "failed": metrics.all.verdicts.fail,
        "errors": metrics.all.verdicts.error,
        "undecided": metrics.all.verdicts.undecided,
        "calls": metrics.calls,
        "cost_usd": (metrics.priced > 0).then_some(metrics.cost_usd),
        "duration_seconds": metrics.period.map(|(first, last)| seconds(last.saturating_sub(first).try_into().unwrap_or(0))),
        "figures": metrics.figures,
        "derived": metrics.derived_values(),
        "gates": gates.iter().map(|gate| gate.status).max().map(GateStatus::as_str),
        "gate_results": gates.iter().map(GateResult::from).collect::<Vec<_>>(),
    })
}

/// What became of a lane, in one of a few words.
fn word(report: &LaneReport) -> &'static str {
    match &report.status {
        Some(LaneStatus::Complete | LaneStatus::Decided { .. }) => {
            match report.metrics.all.verdicts.judged() {
                // Every case came to an end, and none to an answer.
                0 => "error",
                _ => "ok",
            }
        }
        Some(LaneStatus::Broken { .. }) => "error",
        Some(LaneStatus::Skipped { .. }) => "skipped",
        Some(LaneStatus::TimedOut { .. }) => "timeout",
        Some(
            LaneStatus::FailFast { .. }
            | LaneStatus::Budget { .. }
            | LaneStatus::GaveUp { .. }
            | LaneStatus::Interrupted,
        )
        | None => "aborted",
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
