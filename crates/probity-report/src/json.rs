//! JSON: evaluation results, and every case.

pub mod consistency;

use std::io;

use probity_core::{
    evaluation::{EvaluationResult, rounded, time},
    metrics::Metrics,
    record::{CaseRecord, Lane},
    view::{Cases, RunView},
};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap as _, SerializeSeq as _},
};
use serde_json::{Map, Value, json};

use crate::answers;

/// One object for a single lane, else `{ "runners": [...], "consistency": [...] }`.
///
/// The same records are the same bytes: names are sorted, numbers rounded, times in UTC. No more
/// than one case is in memory.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    let lane = |(at, report)| Evaluation {
        result: EvaluationResult::of(run, report, Vec::new()),
        at,
        lane: &report.lane,
        cases,
    };
    let mut runners: Vec<Evaluation<'_>> = run.lanes.iter().enumerate().map(lane).collect();
    match runners.len() {
        1 => serde_json::to_writer_pretty(&mut *out, &runners.remove(0))?,
        _ => {
            let consistency = run.consistency.iter().map(consistency::value).map(sorted).collect();
            let all = Evaluations {
                consistency,
                macro_mean: run.macro_mean().map(rounded),
                micro_mean: run.micro_mean().map(rounded),
                runners,
            };
            serde_json::to_writer_pretty(&mut *out, &all)?;
        }
    }
    out.write_all(b"\n")
}

/// The evaluations of several lanes, with the names in order.
#[derive(Serialize)]
struct Evaluations<'a> {
    consistency: Vec<Value>,
    macro_mean: Option<f64>,
    micro_mean: Option<f64>,
    runners: Vec<Evaluation<'a>>,
}

/// The evaluation of a lane; the cases that did not pass are read while it is written.
struct Evaluation<'a> {
    result: EvaluationResult,
    at: usize,
    lane: &'a Lane,
    cases: &'a dyn Cases,
}

impl Serialize for Evaluation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = serde_json::to_value(&self.result).map_err(S::Error::custom)?;
        let Value::Object(entries) = sorted(value) else {
            return Err(S::Error::custom("a result is an object"));
        };
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for (name, value) in &entries {
            match name.as_str() {
                EvaluationResult::FAILED_CASES => map.serialize_entry(name, &FailedCases(self))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// The cases of a lane that did not pass.
struct FailedCases<'a>(&'a Evaluation<'a>);

impl Serialize for FailedCases<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(Evaluation { result, at, lane, cases }) = self;
        let (mut listed, mut unwritten) = (0, None);
        let mut list = serializer.serialize_seq(None)?;
        let read = answers::each(*cases, *at, lane, &mut |counted| {
            let Some(failed) = counted.failed_case() else { return Ok(()) };
            listed += 1;
            let failed = sorted(serde_json::to_value(failed)?);
            list.serialize_element(&failed).map_err(|error| {
                unwritten = Some(error);
                io::Error::other("the report cannot be written")
            })
        });
        if let Some(error) = unwritten {
            return Err(error);
        }
        read.map_err(S::Error::custom)?;
        // What does not add up here is a fault of this program, and must not look like a result.
        match result.validate_listing(listed).first() {
            None => list.end(),
            Some(wrong) => Err(S::Error::custom(format!("{}: {wrong}", result.lane()))),
        }
    }
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
    let mut value = json!({
        "runner": lane.runner,
        "variant": lane.variant,
        "backend": lane.backend,
        "replayed": lane.replayed,
        "imported": lane.imported,
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
        "ttft_ms": case.ttft_ms,
        "tokens_per_second": case.tokens_per_second,
        "elapsed_ms": case.elapsed_ms,
        "usage": case.usage,
        "cost_usd": case.cost_usd,
        "calls": case.calls,
        "failures": case.failures,
        "verdict": case.verdict.as_str(),
        "reason": case.why(),
        "classification": case.classification,
        "asked": case.asked,
    });
    if let Some(worker) = &case.worker {
        value["worker"] = worker.as_str().into();
    }
    value
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
    let mut figures: Map<String, Value> =
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if !metrics.derivations.is_empty() {
        figures.insert("derived".to_owned(), json!(metrics.derived_values()));
    }
    figures
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
