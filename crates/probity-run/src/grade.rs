//! From what came back to the record that is kept.

use std::time::Duration;

use probity_core::{
    record::{CallError, CaseRecord, FailedAttempt, Source, Usage},
    run_result::{RunError, RunResult},
};
use probity_grade::classify;
use serde_json::value::{RawValue, to_raw_value};

use crate::{backend::Reply, source::Prepared};

/// All that the calls of a case came to.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) calls: u32,
    pub(crate) failures: Vec<FailedAttempt>,
    pub(crate) usage: Usage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) latency: Duration,
    pub(crate) limit: Duration,
    pub(crate) started_ms: i64,
    pub(crate) elapsed: Duration,
}

/// Judges a case, and makes the record of it.
pub(crate) fn record(
    case: Prepared,
    backend_kind: &str,
    answer: Result<Reply, CallError>,
    spent: Spent,
) -> CaseRecord {
    let (reply, error) = match answer {
        Ok(reply) => (Some(reply), None),
        Err(error) => (None, Some(error)),
    };
    let limit_seconds = spent.limit.as_secs_f64().to_string();
    let latency_ms = millis(spent.latency);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let result = RunResult {
        raw_response: reply.as_ref().map(|reply| reply.text.as_str()),
        error: error.as_ref().map(|error| RunError {
            message: &error.message,
            kind: Some(error.kind),
            backend: Some(backend_kind),
            status: error.status,
            exit_code: error.exit_code,
            signal: error.signal.as_deref(),
            ..RunError::default()
        }),
        limit_seconds: Some(&limit_seconds),
        stop_reason: reply.as_ref().and_then(|reply| reply.stop_reason.as_deref()),
        latency_ms: Some(latency_ms as f64),
        cost_usd: spent.cost_usd,
    };
    let classification = classify(&case.expectation, &result);
    let verdict = case.expectation.verdict(&classification);
    let (text, stop_reason, model, source) = match reply {
        Some(reply) => (Some(reply.text), reply.stop_reason, reply.model, reply.source),
        None => (None, None, None, Source::Backend),
    };
    CaseRecord {
        case_id: case.case_id,
        repeat: case.repeat,
        input: case.input,
        case: case.case,
        prompt: case.prompt,
        system: case.system,
        reply: text,
        error,
        stop_reason,
        model,
        source,
        latency_ms,
        usage: spent.usage,
        cost_usd: spent.cost_usd,
        calls: spent.calls,
        failures: spent.failures,
        started_ms: spent.started_ms,
        elapsed_ms: millis(spent.elapsed),
        primary: classification.primary(),
        verdict,
        classification: to_raw_value(&classification).unwrap_or_else(|_| null()),
    }
}

fn null() -> Box<RawValue> {
    RawValue::from_string("null".to_owned()).expect("`null` is JSON")
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
