//! Reads a run result from one line of a results file.

use std::path::Path;

use probity_core::{
    case::TestCase,
    classification::Classification,
    failure::ErrorKind,
    kind::RunnerKind,
    located::{Node, NodeValue},
    record::Asked,
    request::ToolCall,
    run_result::{RunError, RunResult},
};

use crate::case::{self, Fields, Findings};

/// A run result and its case.
#[derive(Debug)]
pub struct RunRecord<'n> {
    /// The case's id.
    pub case_id: &'n str,
    /// The suite that the case belongs to.
    pub suite_id: Option<&'n str>,
    /// The kind of the runner, where the line says it.
    pub kind: Option<RunnerKind>,
    /// What came back.
    pub result: RunResult<'n>,
    /// How to tell whether it is right.
    pub case: TestCase,
    /// The tools that were called, where the line says it and nothing more of the conversation.
    pub tool_calls: Vec<ToolCall>,
    /// Every question of a case that asked several.
    pub asked: Vec<Asked>,
    /// What was found when the line was written; only results of this program have it.
    pub classified: Option<Classification>,
}

/// Reads a run result. Fields that judging does not need may be anything.
pub fn decode<'n>(node: &'n Node, findings: &mut Findings) -> Option<RunRecord<'n>> {
    let mut own = Findings::default();
    let record = read(node, &mut own);
    let usable = !own.any_error();
    findings.0.append(&mut own.0);
    record.filter(|_| usable)
}

fn read<'n>(node: &'n Node, findings: &mut Findings) -> Option<RunRecord<'n>> {
    let mut fields = Fields::open(node, "a run result", findings)?;
    let Some(case_id) = fields.get("case_id").or_else(|| fields.get("id")) else {
        let message = "field `case_id` is missing".to_owned();
        fields.findings().error("missing-field", &node.span, message);
        return None;
    };
    let Some(case_id) = case_id.as_str() else {
        let message = format!("field `case_id` must be a string, not {}", case_id.kind());
        fields.findings().error("wrong-type", &case_id.span, message);
        return None;
    };
    let has_outcome =
        ["raw_response", "error", "tool_calls"].iter().any(|key| node.get(key).is_some());
    if !has_outcome {
        let message = "neither `raw_response` nor `error` is there".to_owned();
        let help = "a call without a reply has `\"raw_response\": null`".to_owned();
        fields.findings().error_with_help("missing-field", &node.span, message, help);
    }
    let result = RunResult {
        prompt: node.get("prompt").and_then(Node::as_str),
        backend: node.get("backend").and_then(Node::as_str),
        raw_response: fields.str("raw_response"),
        error: error(&mut fields),
        limit_seconds: number(&mut fields, "limit_seconds"),
        stop_reason: fields.str("stop_reason").or_else(|| fields.str("finish_reason")),
        latency_ms: fields.number("latency_ms"),
        ttft_ms: fields.number("ttft_ms"),
        cost_usd: fields.number("cost_usd"),
        ..RunResult::default()
    };
    let suite_id = fields.str("suite_id");
    let kind = match fields.get("kind").and_then(Node::as_str) {
        Some(name) if RunnerKind::NAMES.contains(&name) => name.parse().ok(),
        // A `kind` that is not one of ours is the caller's own.
        Some(_) | None => None,
    };
    // Results that this program wrote hold their case as a whole.
    let whole = node.get("case").filter(|it| matches!(it.value, NodeValue::Object(_)));
    let case = match whole {
        None => case::of_result(&mut fields),
        Some(whole) => case::decode(whole, Path::new(""), fields.findings()).case?,
    };
    let own = |key: &str| whole.and_then(|_| node.get(key)).map(Node::to_json);
    let asked = own("asked").and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default();
    let classified = own("classification").and_then(|it| serde_json::from_value(it).ok());
    let tool_calls = tool_calls(&mut fields);
    Some(RunRecord { case_id, suite_id, kind, result, case, tool_calls, asked, classified })
}

/// The tools that were called, as we write them or as a vendor does.
fn tool_calls(fields: &mut Fields<'_, '_>) -> Vec<ToolCall> {
    let Some(node) = fields.get("tool_calls") else { return Vec::new() };
    let calls = node.to_json();
    let calls = calls.as_array().map(|it| it.iter().map(ToolCall::from_json).collect());
    let calls: Option<Option<Vec<ToolCall>>> = calls;
    calls.flatten().unwrap_or_else(|| {
        let message = "field `tool_calls` must be a list of calls, each with a `name`".to_owned();
        fields.findings().error("wrong-type", &node.span, message);
        Vec::new()
    })
}

/// An error is a text, or a table with `message`, `kind`, `status`, `exit_code`, `signal`.
fn error<'n>(fields: &mut Fields<'n, '_>) -> Option<RunError<'n>> {
    let backend = fields.str("backend");
    let Some(node) = fields.get("error") else {
        let kind = kind(fields, "error_kind")?;
        return Some(RunError { kind: Some(kind), backend, ..RunError::default() });
    };
    match &node.value {
        NodeValue::String(message) => Some(RunError {
            message,
            kind: kind(fields, "error_kind"),
            backend,
            ..RunError::default()
        }),
        NodeValue::Object(_) => {
            let mut inner = Fields::open(node, "`error`", fields.findings())?;
            Some(RunError {
                message: inner.str("message").unwrap_or(""),
                kind: kind(&mut inner, "kind"),
                backend: inner.str("backend").or(backend),
                status: inner.digits("status").and_then(|it| it.parse().ok()),
                exit_code: inner.digits("exit_code").and_then(|it| it.parse().ok()),
                signal: inner.digits("signal"),
                stdout: inner.str("stdout").unwrap_or(""),
                stderr: inner.str("stderr").unwrap_or(""),
            })
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Array(_) => {
            let message = format!("field `error` must be a string or a table, not {}", node.kind());
            fields.findings().error("wrong-type", &node.span, message);
            None
        }
    }
}

fn kind(fields: &mut Fields<'_, '_>, key: &str) -> Option<ErrorKind> {
    fields.one_of(key, "kind of error", &ErrorKind::NAMES, |name| name.parse().ok())
}

fn number<'n>(fields: &mut Fields<'n, '_>, key: &str) -> Option<&'n str> {
    fields.number(key)?;
    match &fields.get(key)?.value {
        NodeValue::Number(text) => Some(text),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => None,
    }
}
