//! JSON: evaluation results, and every case.

pub mod consistency;

use std::io;

use probity_core::{
    evaluation::{EvaluationResult, rounded, time},
    metrics::Metrics,
    record::{CaseRecord, Lane},
    view::{Cases, RunView},
};
use serde_json::{Map, Value, json};

use crate::answers;

/// One object for a single runner on one backend, else `{ "runners": [...], "consistency": [...] }`.
///
/// The same records are the same bytes: names are sorted, numbers rounded, times in UTC.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    let mut results = evaluate(run, cases)?;
    let value = match results.len() {
        1 => serde_json::to_value(results.remove(0))?,
        _ => {
            let found: Vec<Value> = run.consistency.iter().map(consistency::value).collect();
            json!({
                "runners": results,
                "consistency": found,
                "micro_mean": run.micro_mean().map(rounded),
                "macro_mean": run.macro_mean().map(rounded),
            })
        }
    };
    serde_json::to_writer_pretty(&mut *out, &sorted(value))?;
    out.write_all(b"\n")
}

/// The evaluation results of a run, one for each runner and backend.
pub fn evaluate(run: &RunView, cases: &dyn Cases) -> io::Result<Vec<EvaluationResult>> {
    let mut results = Vec::with_capacity(run.lanes.len());
    for (at, lane) in run.lanes.iter().enumerate() {
        let mut failed = Vec::new();
        answers::each(cases, at, &lane.lane, &mut |counted| {
            failed.extend(counted.failed_case());
            Ok(())
        })?;
        let result = EvaluationResult::of(run, lane, failed);
        // What does not add up here is a fault of this program, and must not look like a result.
        match result.validate().first() {
            None => results.push(result),
            Some(wrong) => return Err(io::Error::other(format!("{}: {wrong}", lane.title()))),
        }
    }
    Ok(results)
}

/// Every case as a line.
pub fn write_lines(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    for (at, lane) in run.lanes.iter().enumerate() {
        cases.each(at, &mut |case| {
            serde_json::to_writer(&mut *out, &case_value(&lane.lane, case))?;
            out.write_all(b"\n")
        })?;
    }
    Ok(())
}

/// All that is known of a result.
pub fn case_value(lane: &Lane, case: &CaseRecord) -> Value {
    json!({
        "runner": lane.runner,
        "backend": lane.backend,
        "replayed": lane.replayed,
        "case_id": case.case_id,
        "repeat": case.repeat,
        "kind": lane.kind,
        "case": *case.case,
        "system": case.request.system(),
        "prompt": case.request.prompt(),
        "messages": (!case.request.is_plain()).then_some(&case.request.messages),
        "raw_response": case.reply,
        "reasoning": case.reasoning,
        "error": case.error,
        "stop_reason": case.stop_reason,
        "model": case.model,
        "source": case.source,
        "started": time(case.started_ms),
        "latency_ms": case.latency_ms,
        "elapsed_ms": case.elapsed_ms,
        "usage": case.usage,
        "cost_usd": case.cost_usd,
        "calls": case.calls,
        "failures": case.failures,
        "verdict": case.verdict.as_str(),
        "reason": case.why(),
        "classification": case.classification,
        "asked": case.asked,
    })
}

/// The figures of a lane that comparisons and trends have in common.
pub(crate) fn figures(metrics: &Metrics) -> Map<String, Value> {
    let verdicts = metrics.all.verdicts;
    let figures = [
        ("passed", json!(verdicts.pass)),
        ("failed", json!(verdicts.fail)),
        ("errors", json!(verdicts.error)),
        ("undecided", json!(verdicts.undecided)),
        ("rate", json!(verdicts.rate())),
        ("interval", json!(metrics.interval.map(|it| [it.low, it.high]))),
        ("latency_p95_ms", json!(metrics.latency.map(|it| it.p95))),
        ("cost_usd", json!((metrics.priced > 0).then_some(metrics.cost_usd))),
    ];
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The value with the names of every object in order.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(String, Value)> = object.into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            let entries = entries.into_iter().map(|(name, value)| (name, sorted(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
