//! An imported run as the events that a run of ours would have had.

use std::{collections::BTreeMap, sync::Arc};

use probity_core::{
    classification::{Classification, Rule, Verdict},
    details::{Criterion, Details, Trouble},
    event::{Event, Stamped, VERSION},
    failure::ErrorKind,
    kind::RunnerKind,
    record::{CallError, CaseRecord, Imported, Judging, Lane, RunInfo, Source},
};
use probity_grade::errors::{ErrorInput, ErrorRules};

use super::{ImportedLane, ImportedResult, ImportedRun, Outcome, Read, digest};

/// The kind of backend of lanes that another tool ran.
const BACKEND_KIND: &str = "imported";

/// What a store keeps of an imported run.
#[derive(Debug)]
pub struct Recorded {
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// What is known of it.
    pub info: RunInfo,
    /// All that happened.
    pub events: Vec<Stamped>,
}

impl Read {
    /// The events of the run. `file` is what the file is called, `now_ms` when it is read: what the
    /// tool does not say happened then.
    pub fn record(self, run_id: &str, file: &str, version: &str, now_ms: i64) -> Recorded {
        let Self { run, digest } = self;
        let ImportedRun { tool, started_ms, finished_ms, lanes, .. } = run;
        let started_ms = started_ms.unwrap_or(now_ms);
        let finished_ms = finished_ms.unwrap_or(started_ms).max(started_ms);
        let imported = Imported {
            tool: tool.to_string(),
            version: run.version,
            file: file.to_owned(),
            digest,
        };
        let info = RunInfo {
            probity_version: version.to_owned(),
            imported: Some(imported),
            ..RunInfo::default()
        };
        let complete = lanes.iter().all(|lane| lane.status.is_sound());
        let mut events = vec![Event::RunStarted {
            version: VERSION,
            run_id: run_id.to_owned(),
            resumed: false,
            done_before: vec![0; lanes.len()],
            lanes: lanes.iter().map(|it| lane(it, tool.as_str(), file)).collect(),
        }];
        let rules = ErrorRules::compile(None, &mut Vec::new());
        for (at, ImportedLane { status, results, .. }) in lanes.into_iter().enumerate() {
            for result in results {
                let record = Box::new(record(result, started_ms, rules.as_ref()));
                events.push(Event::CaseFinished { lane: at, record });
            }
            events.push(Event::LaneFinished { lane: at, status, calls: 0 });
        }
        events.push(Event::RunFinished { complete });
        let events = events.into_iter().map(|event| Stamped { at_ms: finished_ms, event });
        Recorded { started_ms, info, events: events.collect() }
    }
}

fn lane(imported: &ImportedLane, tool: &str, file: &str) -> Lane {
    let ImportedLane { runner, variant, backend, model, planned, repeat, results, .. } = imported;
    // The order in which cases were asked makes no other dataset.
    let cases: BTreeMap<&str, String> =
        results.iter().map(|it| (it.case.id.as_str(), it.case.to_json())).collect();
    let own = || digest(cases.values().map(String::as_bytes));
    let known = imported.dataset.clone();
    let (dataset_digest, dataset) = known.unwrap_or_else(|| (own(), vec![file.to_owned()]));
    Lane {
        runner: runner.clone(),
        variant: variant.clone(),
        kind: RunnerKind::default(),
        backend: backend.clone(),
        backend_kind: BACKEND_KIND.to_owned(),
        model: model.clone(),
        dataset_digest,
        dataset,
        planned: (*planned).max(results.len() as u64),
        repeat: *repeat,
        replayed: false,
        imported: Some(tool.to_owned()),
        judge: None,
        judges: Vec::new(),
        skills: None,
        judging: Judging::default(),
    }
}

fn record(result: ImportedResult, started_ms: i64, rules: Option<&ErrorRules>) -> CaseRecord {
    let ImportedResult { case, repeat, request, outcome, scores, .. } = result;
    let (rule, verdict, details, error) = judged(outcome, rules);
    let classification = Classification { scores, ..Classification::new(rule, details) };
    let latency_ms = result.latency_ms.unwrap_or(0);
    CaseRecord {
        case_id: case.id.clone(),
        repeat,
        input: request.digest(""),
        case: Arc::new(case),
        request,
        reply: result.reply,
        error,
        reasoning: result.reasoning,
        stop_reason: result.stop_reason,
        model: result.model,
        source: Source::Imported,
        latency_ms,
        ttft_ms: None,
        tokens_per_second: None,
        usage: result.usage,
        cost_usd: result.cost_usd,
        calls: 0,
        worker: None,
        failures: Vec::new(),
        started_ms: result.started_ms.unwrap_or(started_ms),
        elapsed_ms: latency_ms,
        class: classification.class(),
        verdict,
        classification,
        asked: Vec::new(),
    }
}

/// The rule that stands for what the tool found, and the error if there was one.
fn judged(
    outcome: Outcome,
    rules: Option<&ErrorRules>,
) -> (Rule, Verdict, Details, Option<CallError>) {
    let nothing = Details::default();
    match outcome {
        Outcome::Passed => (Rule::Pass, Verdict::Pass, nothing, None),
        Outcome::Failed => (Rule::Mismatch, Verdict::Fail, nothing, None),
        Outcome::Undecided => {
            let details = Details { criteria: Some(Criterion::None), ..nothing };
            (Rule::Pass, Verdict::Undecided, details, None)
        }
        Outcome::Error(message) => {
            let input = ErrorInput { text: &message, ..ErrorInput::default() };
            let kind = rules.map_or(ErrorKind::Unknown, |it| it.classify(&input).kind);
            // The verdict is that of the tool, so no other rule fits, whatever the kind.
            let rule = if kind == ErrorKind::Timeout {
                Rule::Timeout
            } else if kind == ErrorKind::Crash {
                Rule::Crash
            } else {
                Rule::Error
            };
            let details = Details {
                error_details: Some(message.clone()),
                reason: Some(Trouble::Call(kind)),
                ..nothing
            };
            (rule, Verdict::Error, details, Some(CallError::new(kind, message)))
        }
    }
}
