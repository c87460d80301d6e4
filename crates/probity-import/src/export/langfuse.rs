//! Runs as traces with scores, and suites as items of a dataset, in the form of Langfuse's public API.

use std::io;

use probity_core::{
    case::TestCase,
    classification::Verdict,
    record::{CallError, CaseRecord},
    request::Request,
    view::{Cases, LaneReport, RunView},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Exported, expected, model, pretty, records, result_id, scores, time};
use crate::wire::chat::{WireMessage, openai};

/// The body of `POST /api/public/ingestion`.
#[derive(Serialize)]
struct Batch {
    batch: Vec<Ingested>,
    metadata: Value,
}

/// One thing to take in. The same id twice is taken in once.
#[derive(Serialize)]
struct Ingested {
    id: String,
    timestamp: String,
    #[serde(rename = "type")]
    kind: &'static str,
    body: Value,
}

/// A run: a trace and a generation for each result, and its scores.
pub fn run(run: &RunView, cases: &dyn Cases) -> io::Result<Exported> {
    let mut batch = Vec::new();
    for (at, report) in run.lanes.iter().enumerate() {
        for record in records(cases, at)? {
            add(run, report, &record, &mut batch);
        }
    }
    let metadata = json!({ "batch_size": batch.len(), "sdk_name": "probity" });
    Ok(Exported::one("langfuse.json", pretty(&Batch { batch, metadata })?))
}

fn add(run: &RunView, report: &LaneReport, record: &CaseRecord, batch: &mut Vec<Ingested>) {
    let id = result_id(run, report, record);
    let begun = time(record.started_ms);
    let ended = time(record.started_ms.saturating_add_unsigned(record.latency_ms));
    let input: Vec<WireMessage> = record.request.messages.iter().flat_map(openai).collect();
    let mut push = |suffix: &str, kind: &'static str, body: Value| {
        batch.push(Ingested { id: format!("{id}-{suffix}"), timestamp: begun.clone(), kind, body });
    };
    let tags: Vec<&str> = record.case.tags.iter().map(String::as_str).collect();
    push(
        "trace",
        "trace-create",
        json!({
            "id": id, "timestamp": begun, "name": record.case_id, "sessionId": run.run_id,
            "input": input, "output": record.reply, "tags": tags,
            "metadata": {
                "suite": run.suite, "runner": report.lane.runner, "variant": report.lane.variant,
                "backend": report.lane.backend, "repeat": record.repeat,
                "expected": expected(record), "reason": record.why(),
            },
        }),
    );
    let level = if record.verdict == Verdict::Error { "ERROR" } else { "DEFAULT" };
    push(
        "generation",
        "generation-create",
        json!({
            "id": format!("{id}-generation"), "traceId": id, "name": report.title(),
            "startTime": begun, "endTime": ended,
            "model": record.model.as_deref().unwrap_or_else(|| model(report)),
            "input": input, "output": record.reply, "level": level,
            "statusMessage": record.error.as_ref().map(CallError::sentence),
            "usageDetails": { "input": record.usage.input_tokens, "output": record.usage.output_tokens },
            "costDetails": { "total": record.cost_usd },
        }),
    );
    let said = match record.verdict {
        Verdict::Pass => Some(1),
        Verdict::Fail => Some(0),
        Verdict::Error | Verdict::Undecided => None,
    };
    if let Some(value) = said {
        push(
            "verdict",
            "score-create",
            json!({
                "id": format!("{id}-verdict"), "traceId": id, "name": "verdict", "value": value,
                "dataType": "BOOLEAN", "comment": record.why(),
            }),
        );
    }
    for (at, score) in scores(record).iter().enumerate().filter(|(_, it)| it.name != super::VERDICT)
    {
        let Some(value) = score.amount() else { continue };
        push(
            &format!("score-{at}"),
            "score-create",
            json!({
                "id": format!("{id}-score-{at}"), "traceId": id, "name": score.name,
                "value": value, "dataType": "NUMERIC", "comment": score.reason,
            }),
        );
    }
}

/// A suite: a line for each case, the body of `POST /api/public/dataset-items`.
#[derive(Debug, Default)]
pub struct SuiteExport {
    exported: Exported,
    items: String,
}

impl SuiteExport {
    /// Takes in a case of a runner, with what it asks.
    pub fn case(
        &mut self,
        runner: &str,
        variant: Option<&str>,
        case: &TestCase,
        request: &Request,
    ) {
        let input: Vec<WireMessage> = request.messages.iter().flat_map(openai).collect();
        let id = match variant {
            Some(variant) => format!("{runner}/{variant}/{}", case.id),
            None => format!("{runner}/{}", case.id),
        };
        let item = json!({
            "datasetName": runner, "id": id, "input": input,
            "expectedOutput": case.criteria.expected_response,
            "metadata": {
                "case_id": case.id, "variant": variant, "tags": case.tags,
                "category": case.category, "assert": case.criteria.assertions,
                "execution": case.execution,
            },
        });
        self.items.push_str(&item.to_string());
        self.items.push('\n');
        if case.execution.is_some() {
            let what = "`execution` is metadata of the items; Langfuse does not check it";
            self.exported.lose(&format!("runner `{runner}`"), what);
        }
        if !case.criteria.assertions.is_empty() {
            let what = "assertions are metadata of the items; Langfuse does not check them";
            self.exported.lose(&format!("runner `{runner}`"), what);
        }
    }

    /// The file.
    pub fn finish(self) -> Exported {
        let Self { mut exported, items } = self;
        exported.files.push(("dataset-items.jsonl".to_owned(), items));
        exported
    }
}
