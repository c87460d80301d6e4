//! Runs as logs that `inspect view` and `read_eval_log` read, one for each lane.

use std::{collections::BTreeMap, io};

use probity_core::{
    classification::Verdict,
    record::{CallError, CaseRecord, LaneStatus, Usage},
    request::{Message, Role},
    score::Score,
    view::{Cases, LaneReport, RunView},
};
use serde_json::{Map, Value, json};

use super::{Exported, VERDICT, expected, lane_file, model, pretty, records, scores, time};
use crate::names::Names;
use crate::wire::{
    chat::{WireMessage, content},
    inspect::{
        Choice, Config, Dataset, EvalScore, Log, LogError, Metric, Output, Plan, Results, Sample,
        SampleScore, Scorer, Spec, Stats, Step, Usage as WireUsage, VERSION,
    },
};

/// The logs of a run.
pub fn run(run: &RunView, cases: &dyn Cases) -> io::Result<Exported> {
    let mut exported = Exported::default();
    let mut names = Names::default();
    for (at, report) in run.lanes.iter().enumerate() {
        let log = log(run, report, &records(cases, at)?);
        // `inspect view` lists files whose names begin with a time.
        let begun = time(run.started_ms).replace([':', '.'], "-");
        let name = format!("{begun}_{}", lane_file(&mut names, report.lane.key(), ".json"));
        exported.files.push((name, pretty(&log)?));
    }
    Ok(exported)
}

fn log(run: &RunView, report: &LaneReport, records: &[CaseRecord]) -> Log {
    let samples: Vec<Sample> = records.iter().map(|it| sample(report, it)).collect();
    let (status, error) = match &report.status {
        Some(LaneStatus::Complete | LaneStatus::Decided { .. }) => ("success", None),
        Some(
            LaneStatus::FailFast { reason, .. }
            | LaneStatus::GaveUp { reason }
            | LaneStatus::Broken { reason },
        ) => ("error", Some(failure(reason.clone()))),
        Some(
            LaneStatus::Interrupted
            | LaneStatus::Skipped { .. }
            | LaneStatus::Budget { .. }
            | LaneStatus::TimedOut { .. },
        )
        | None => ("cancelled", None),
    };
    let mut ids: Vec<&str> = records.iter().map(|it| it.case_id.as_str()).collect();
    ids.dedup();
    let usage = records.iter().fold(Usage::default(), |sum, it| sum.plus(it.usage));
    Log {
        version: VERSION,
        status: status.to_owned(),
        eval: Spec {
            eval_id: run.run_id.clone(),
            run_id: run.run_id.clone(),
            created: time(run.started_ms),
            task: report.lane.key().task(),
            task_id: report.title(),
            task_version: Value::from(0),
            dataset: Dataset {
                name: report.lane.dataset.first().cloned(),
                samples: Some(ids.len() as u64),
                sample_ids: Some(ids.iter().map(|it| Value::from(*it)).collect()),
                shuffled: Some(false),
            },
            model: model(report).to_owned(),
            config: Config { epochs: Some(report.lane.repeat.max(1)) },
            packages: BTreeMap::from([("probity".to_owned(), run.probity_version.clone())]),
            metadata: Some(Map::from_iter([
                ("backend".to_owned(), Value::from(report.lane.backend.as_str())),
                ("suite".to_owned(), Value::from(run.suite.as_str())),
            ])),
            scorers: Some(vec![scorer()]),
        },
        plan: Some(Plan {
            name: "plan".to_owned(),
            steps: vec![Step { solver: "generate".to_owned(), params: Map::new() }],
            config: Map::new(),
        }),
        results: Some(results(report, &samples)),
        stats: Stats {
            started_at: time(run.started_ms),
            completed_at: time(run.finished_ms.unwrap_or(run.started_ms)),
            model_usage: BTreeMap::from([(model(report).to_owned(), wire_usage(usage, None))]),
        },
        error,
        samples: Some(samples),
    }
}

fn scorer() -> Scorer {
    let metrics = json!([{ "name": "inspect_ai/accuracy", "options": {} }]);
    let name = VERDICT.to_owned();
    Scorer { name, options: Some(Map::new()), metrics: Some(metrics), metadata: None }
}

/// The pass rate, and the mean of each score.
fn results(report: &LaneReport, samples: &[Sample]) -> Results {
    let metric = |name: &str, value: Option<f64>| {
        let metric = Metric { name: name.to_owned(), value: json!(value?), params: Map::new() };
        Some((name.to_owned(), metric))
    };
    let rate = metric("accuracy", report.metrics.all.verdicts.rate());
    let score = |name: &str, metrics: Vec<(String, Metric)>| EvalScore {
        name: name.to_owned(),
        scorer: name.to_owned(),
        params: Map::new(),
        metrics: metrics.into_iter().collect(),
    };
    let verdict = score(VERDICT, rate.into_iter().collect());
    let means = report.metrics.scores.iter().filter(|(name, _)| *name != VERDICT);
    let means = means.map(|(name, figures)| {
        score(name, metric("mean", figures.summary.mean).into_iter().collect())
    });
    let completed = samples.iter().filter(|it| it.error.is_none()).count();
    Results {
        total_samples: report.lane.planned,
        completed_samples: completed as u64,
        scores: std::iter::once(verdict).chain(means).collect(),
    }
}

fn failure(message: String) -> LogError {
    LogError { message, traceback: String::new(), traceback_ansi: String::new() }
}

fn sample(report: &LaneReport, record: &CaseRecord) -> Sample {
    let request = &record.request;
    let reply = record.reply.clone();
    let answer = reply.as_ref().map(|text| assistant(text));
    let input = match request.is_plain() && request.system().is_none() {
        true => Value::from(request.prompt()),
        false => json!(request.messages.iter().flat_map(messages_of).collect::<Vec<_>>()),
    };
    let messages = request.messages.iter().flat_map(messages_of).chain(answer.clone()).collect();
    let usage = wire_usage(record.usage, record.cost_usd);
    let model = record.model.clone().unwrap_or_else(|| model(report).to_owned());
    let stop = |message| Choice { message, stop_reason: Some(stop_reason(record)) };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let seconds = |ms: u64| Some(ms as f64 / 1000.0).filter(|it| *it > 0.0);
    let tags = record.case.tags.iter().map(|it| Value::from(it.as_str()));
    let category = record.case.category.as_ref();
    let metadata = [
        ("tags", Value::Array(tags.collect())),
        ("category", category.map_or(Value::Null, |it| Value::from(it.as_str()))),
        ("reason", Value::from(record.why())),
    ];
    let error = record.error.as_ref().map(CallError::sentence);
    let error = error.or_else(|| (record.verdict == Verdict::Error).then(|| record.why()));
    Sample {
        id: Value::from(record.case_id.as_str()),
        epoch: record.repeat + 1,
        input,
        choices: None,
        target: target(record),
        messages,
        output: Output {
            model: model.clone(),
            choices: answer.into_iter().map(stop).collect(),
            completion: Some(reply.unwrap_or_default()),
            usage: Some(usage.clone()),
            time: seconds(record.latency_ms),
            error: None,
        },
        scores: Some(sample_scores(record)),
        metadata: metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        model_usage: BTreeMap::from([(model, usage)]),
        started_at: Some(time(record.started_ms)),
        completed_at: Some(time(record.started_ms.saturating_add_unsigned(record.elapsed_ms))),
        total_time: seconds(record.elapsed_ms),
        error: error.map(failure),
        limit: None,
        invalidation: None,
        attachments: BTreeMap::new(),
    }
}

/// A text, or a list of texts.
fn target(record: &CaseRecord) -> Value {
    match expected(record) {
        Value::Null => Value::from(""),
        target @ Value::String(_) => target,
        Value::Array(texts) if texts.iter().all(Value::is_string) => Value::Array(texts),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Value::from(other.to_string())
        }
    }
}

/// The verdict, and the scores behind it. What was not judged has no verdict.
fn sample_scores(record: &CaseRecord) -> BTreeMap<String, SampleScore> {
    let said = match record.verdict {
        Verdict::Pass => Some("C"),
        Verdict::Fail => Some("I"),
        Verdict::Error | Verdict::Undecided => None,
    };
    let verdict = said.map(|value| SampleScore {
        value: Value::from(value),
        answer: record.actual().map(ToOwned::to_owned),
        explanation: Some(record.why()),
        metadata: None,
    });
    let verdict = verdict.map(|it| (VERDICT.to_owned(), it));
    let mut all: BTreeMap<String, SampleScore> = BTreeMap::new();
    for Score { name, kind, value, passed, weight, reason, .. } in scores(record) {
        let Some(value) = value.filter(|_| name != VERDICT) else { continue };
        let facts = [("type", json!(kind)), ("passed", json!(passed)), ("weight", json!(weight))];
        let metadata = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let score = SampleScore {
            value: json!(value),
            answer: None,
            explanation: reason,
            metadata: Some(metadata),
        };
        // Several checks of one kind are told apart.
        let mut unique = name.to_string();
        let mut count = 1;
        while all.contains_key(&unique) {
            count += 1;
            unique = format!("{name}-{count}");
        }
        all.insert(unique, score);
    }
    all.extend(verdict);
    all
}

/// Inspect's word for why a model stopped.
fn stop_reason(record: &CaseRecord) -> String {
    let known = match record.stop_reason.as_deref().unwrap_or("stop") {
        "length" | "max_tokens" | "MAX_TOKENS" | "model_length" => "max_tokens",
        "tool_calls" | "tool_use" | "function_call" => "tool_calls",
        "content_filter" | "refusal" | "SAFETY" => "content_filter",
        _ => "stop",
    };
    known.to_owned()
}

fn wire_usage(usage: Usage, cost_usd: Option<f64>) -> WireUsage {
    WireUsage {
        input_tokens: usage.input_tokens.unwrap_or(0),
        output_tokens: usage.output_tokens.unwrap_or(0),
        total_tokens: usage.total(),
        input_tokens_cache_read: usage.cached_tokens,
        total_cost: cost_usd,
    }
}

fn assistant(text: &str) -> WireMessage {
    wire(Role::Assistant, Value::from(text))
}

fn wire(role: Role, content: Value) -> WireMessage {
    WireMessage {
        role: role.as_str().to_owned(),
        content,
        tool_calls: Vec::new(),
        tool_call_id: None,
        function: None,
        name: None,
    }
}

/// A message as Inspect has it.
fn messages_of(message: &Message) -> Vec<WireMessage> {
    let results: Vec<WireMessage> = message
        .tool_results()
        .map(|it| WireMessage {
            tool_call_id: it.id.clone(),
            function: Some(it.name.clone()),
            ..wire(Role::Tool, Value::from(&*it.content))
        })
        .collect();
    if !results.is_empty() {
        return results;
    }
    let calls = message.tool_calls().map(|it| {
        let arguments = match it.arguments.is_object() {
            true => it.arguments.clone(),
            false => json!({ "arguments": it.arguments }),
        };
        let id = it.id.clone().unwrap_or_else(|| it.name.clone());
        json!({ "id": id, "function": it.name, "arguments": arguments, "type": "function" })
    });
    let mut said = content(message);
    // Inspect's images have no table around their address.
    if let Value::Array(parts) = &mut said {
        parts.iter_mut().for_each(image);
    }
    vec![WireMessage { tool_calls: calls.collect(), ..wire(message.role, said) }]
}

fn image(part: &mut Value) {
    if let Some(url) = part.pointer("/image_url/url") {
        *part = json!({ "type": "image", "image": url });
    }
}
