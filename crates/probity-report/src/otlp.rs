//! OpenTelemetry: a run as spans with the attributes that are agreed on for generative AI, in the JSON of OTLP.
//!
//! A run is a span, each of its results one within it, and each question of a result one within that. What the checks of a
//! result came to are events `gen_ai.evaluation.result`. Ids are made of names, so that the same run has the same ids: whoever
//! takes them in twice can tell.

mod value;

use std::io;

use probity_core::{
    classification::Verdict,
    record::{Asked, CaseRecord, InputDigest, Lane},
    request::{Message, Part, Request, Role},
    view::{Cases, LaneReport, RunView},
};
use serde_json::{Value, json};
use value::{Attributes, nanos};

/// Spans of a message, at most.
const MOST_SPANS: usize = 512;
/// Bytes of a message after which it ends.
const MOST_BYTES: usize = 1 << 20;

/// What is told.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether prompts and replies are.
    pub texts: Texts,
    /// Whether a run is one trace.
    pub traces: Traces,
}

/// Whether prompts and replies are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// They are.
    Told,
    /// They are not, and neither are reasons, which quote them.
    LeftOut,
}

/// What is one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// The whole run.
    Run,
    /// Each result, with a link to the run.
    Case,
}

/// A message that a collector takes in: the body of `POST /v1/traces`, on one line.
#[derive(Debug)]
pub struct Batch {
    /// The message.
    pub body: String,
    /// How many spans it has.
    pub spans: usize,
}

/// Makes the messages of a run, one after the other. No more than one is in memory.
pub fn write(
    run: &RunView,
    cases: &dyn Cases,
    options: Options,
    each: &mut dyn FnMut(Batch) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = Out { run, spans: Vec::new(), bytes: 0, each };
    let root = Ids::of_run(run);
    let mut last_ms = run.started_ms;
    for (at, report) in run.lanes.iter().enumerate() {
        cases.each(at, &mut |case| {
            last_ms = last_ms.max(case.started_ms.saturating_add_unsigned(case.elapsed_ms));
            let told = Told { run, lane: &report.lane, case, options };
            told.spans(&root, &mut |span| out.push(&span))
        })?;
    }
    out.push(&run_span(run, &root, run.finished_ms.unwrap_or(last_ms)))?;
    out.flush()
}

/// Spans that are gathered into messages.
struct Out<'a> {
    run: &'a RunView,
    spans: Vec<String>,
    bytes: usize,
    each: &'a mut dyn FnMut(Batch) -> io::Result<()>,
}

impl Out<'_> {
    fn push(&mut self, span: &Value) -> io::Result<()> {
        let span = span.to_string();
        self.bytes += span.len();
        self.spans.push(span);
        if self.spans.len() >= MOST_SPANS || self.bytes >= MOST_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let resource = Attributes::default()
            .text("service.name", "probity")
            .text("service.version", &self.run.probity_version)
            .text("probity.run.id", &self.run.run_id)
            .finish();
        let scope = json!({ "name": "probity", "version": self.run.probity_version });
        let body = format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":{resource}}},"scopeSpans":[{{"scope":{scope},"spans":[{}]}}]}}]}}"#,
            self.spans.join(",")
        );
        let spans = self.spans.len();
        (self.spans, self.bytes) = (Vec::new(), 0);
        (self.each)(Batch { body, spans })
    }
}

/// The trace and the span of something.
struct Ids {
    trace: String,
    span: String,
}

impl Ids {
    fn new(parts: &[&str]) -> Self {
        let digest = |kind: &'static str| {
            let parts = parts.iter().map(|it| it.as_bytes());
            InputDigest::of([kind.as_bytes()].into_iter().chain(parts)).to_string()
        };
        Self { trace: digest("trace"), span: digest("span")[..16].to_owned() }
    }

    fn of_run(run: &RunView) -> Self {
        Self::new(&[&run.run_id])
    }
}

fn run_span(run: &RunView, ids: &Ids, ended_ms: i64) -> Value {
    let sum = |of: fn(&LaneReport) -> u64| run.lanes.iter().map(of).sum::<u64>();
    let attributes = Attributes::default()
        .text("openinference.span.kind", "CHAIN")
        .text("session.id", &run.run_id)
        .text("probity.run.id", &run.run_id)
        .text("probity.suite", &run.suite)
        .text("probity.run.status", run.status.as_str())
        .count("probity.results.pass", sum(|it| it.metrics.all.verdicts.pass))
        .count("probity.results.fail", sum(|it| it.metrics.all.verdicts.fail))
        .count("probity.results.error", sum(|it| it.metrics.all.verdicts.error))
        .count("probity.results.undecided", sum(|it| it.metrics.all.verdicts.undecided))
        .maybe("probity.gates", run.gate_status().map(|it| it.as_str().into()));
    json!({
        "traceId": ids.trace, "spanId": ids.span, "name": format!("run {}", run.suite), "kind": INTERNAL,
        "startTimeUnixNano": nanos(run.started_ms), "endTimeUnixNano": nanos(ended_ms.max(run.started_ms)),
        "attributes": attributes.finish(), "status": {},
    })
}

/// Kinds of spans.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// The status of a span that went wrong.
const ERROR: u8 = 2;

/// A result, and how it is told of.
struct Told<'a> {
    run: &'a RunView,
    lane: &'a Lane,
    case: &'a CaseRecord,
    options: Options,
}

/// A question of a result.
struct Question<'a> {
    role: Option<&'a str>,
    backend: &'a str,
    request: &'a Request,
    reply: Option<&'a str>,
    stop_reason: Option<&'a str>,
    model: Option<&'a str>,
    error: Option<(&'a str, &'a str)>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost_usd: Option<f64>,
    calls: u32,
    /// From and to, in milliseconds.
    span: (i64, i64),
}

impl<'a> Told<'a> {
    fn spans(&self, root: &Ids, each: &mut dyn FnMut(Value) -> io::Result<()>) -> io::Result<()> {
        let Self { run, lane, case, options } = self;
        let key = lane.key().to_string();
        let repeat = case.repeat.to_string();
        let mut ids = Ids::new(&[&run.run_id, &key, &case.case_id, &repeat]);
        if options.traces == Traces::Run {
            ids.trace.clone_from(&root.trace);
        }
        for (at, question) in self.questions().iter().enumerate() {
            let place = at.to_string();
            let own = Ids::new(&[&run.run_id, &key, &case.case_id, &repeat, &place]);
            each(self.call(question, &ids, &own))?;
        }
        each(self.result(&ids, root))
    }

    fn is_told(&self) -> bool {
        self.options.texts == Texts::Told
    }

    /// The span of the result.
    fn result(&self, ids: &Ids, root: &Ids) -> Value {
        let Self { run, lane, case, options } = self;
        let told = |text: Option<String>| text.filter(|_| self.is_told()).map(Value::from);
        let failed = match case.verdict {
            Verdict::Pass => None,
            Verdict::Fail | Verdict::Error | Verdict::Undecided => told(Some(case.why())),
        };
        let attributes = Attributes::default()
            .text("openinference.span.kind", "CHAIN")
            .text("session.id", &run.run_id)
            .text("probity.run.id", &run.run_id)
            .text("probity.runner", &lane.runner)
            .maybe("probity.variant", lane.variant.as_deref().map(Value::from))
            .text("probity.backend", &lane.backend)
            .text("probity.case.id", &case.case_id)
            .count("probity.repeat", u64::from(case.repeat))
            .maybe("probity.category", case.case.category.as_ref().map(|it| it.as_str().into()))
            .list("tag.tags", case.case.tags.iter().map(String::as_str))
            .text("probity.class", case.class.as_str())
            .text("probity.verdict", case.verdict.as_str())
            .text("probity.source", case.source.as_str())
            .maybe("probity.cost_usd", case.cost_usd.map(Value::from))
            .maybe("probity.reason", failed)
            .maybe("input.value", told(Some(case.request.shown().into_owned())))
            .maybe("output.value", told(case.reply.clone()))
            .maybe("error.type", case.error.as_ref().map(|it| it.kind.as_str().into()));
        let mut span = json!({
            "traceId": ids.trace, "spanId": ids.span, "name": format!("case {}", case.case_id), "kind": INTERNAL,
            "startTimeUnixNano": nanos(case.started_ms), "endTimeUnixNano": nanos(self.ended_ms()),
            "attributes": attributes.finish(), "events": self.events(), "status": {},
        });
        match options.traces {
            Traces::Run => span["parentSpanId"] = root.span.as_str().into(),
            Traces::Case => span["links"] = json!([{ "traceId": root.trace, "spanId": root.span }]),
        }
        if case.verdict == Verdict::Error {
            span["status"] = json!({ "code": ERROR, "message": told(Some(case.why())) });
        }
        span
    }

    fn ended_ms(&self) -> i64 {
        self.case.started_ms.saturating_add_unsigned(self.case.elapsed_ms)
    }

    /// What the checks came to, and the calls that failed.
    fn events(&self) -> Vec<Value> {
        let Self { case, .. } = self;
        let ended = nanos(self.ended_ms());
        let event = |attributes: Attributes| json!({ "name": "gen_ai.evaluation.result", "timeUnixNano": ended, "attributes": attributes.finish() });
        let label = |passed: bool| if passed { "pass" } else { "fail" };
        let scores = case.classification.scores.iter().map(|score| {
            event(
                Attributes::default()
                    .text("gen_ai.evaluation.name", &score.name)
                    .maybe("gen_ai.evaluation.score.value", score.value.map(Value::from))
                    .text("gen_ai.evaluation.score.label", label(score.passed))
                    .maybe(
                        "gen_ai.evaluation.explanation",
                        score.reason.as_deref().filter(|_| self.is_told()).map(Value::from),
                    ),
            )
        });
        let why = (case.verdict != Verdict::Pass && self.is_told()).then(|| case.why());
        let value = match case.verdict {
            Verdict::Pass => Some(1.0),
            Verdict::Fail => Some(0.0),
            Verdict::Error | Verdict::Undecided => None,
        };
        let verdict = event(
            Attributes::default()
                .text("gen_ai.evaluation.name", "verdict")
                .maybe("gen_ai.evaluation.score.value", value.map(Value::from))
                .text("gen_ai.evaluation.score.label", case.verdict.as_str())
                .maybe("gen_ai.evaluation.explanation", why.map(Value::from)),
        );
        let failures = case.failures.iter().map(|failed| {
            let attributes = Attributes::default()
                .text("error.type", failed.error.kind.as_str())
                .count("probity.attempt", u64::from(failed.attempt))
                .count("probity.latency_ms", failed.latency_ms)
                .maybe("http.response.status_code", failed.error.status.map(Value::from));
            json!({ "name": "probity.attempt.failed", "timeUnixNano": nanos(case.started_ms), "attributes": attributes.finish() })
        });
        scores.chain([verdict]).chain(failures).collect()
    }

    /// The questions of the result. When each of several was asked is not recorded: they follow each other.
    fn questions(&self) -> Vec<Question<'a>> {
        let Self { lane, case, .. } = self;
        if case.asked.is_empty() {
            let to = self.ended_ms();
            let from = to.saturating_sub_unsigned(case.latency_ms).max(case.started_ms);
            let error = case.error.as_ref();
            return vec![Question {
                role: None,
                backend: &lane.backend,
                request: &case.request,
                reply: case.reply.as_deref(),
                stop_reason: case.stop_reason.as_deref(),
                model: case.model.as_deref(),
                error: error.map(|it| (it.kind.as_str(), it.message.as_str())),
                input_tokens: case.usage.input_tokens,
                output_tokens: case.usage.output_tokens,
                cost_usd: case.cost_usd,
                calls: case.calls,
                span: (from, to),
            }];
        }
        let mut from = case.started_ms;
        let each = |asked: &'a Asked| {
            let to = from.saturating_add_unsigned(asked.latency_ms).min(self.ended_ms()).max(from);
            let span = (from, to);
            from = to;
            Question {
                role: Some(&asked.role),
                backend: &asked.backend,
                request: &asked.request,
                reply: asked.reply.as_deref(),
                stop_reason: asked.stop_reason.as_deref(),
                model: asked.model.as_deref(),
                error: asked.error.as_deref().map(|it| ("_OTHER", it)),
                input_tokens: asked.usage.input_tokens,
                output_tokens: asked.usage.output_tokens,
                cost_usd: asked.cost_usd,
                calls: asked.calls,
                span,
            }
        };
        case.asked.iter().map(each).collect()
    }

    /// The span of a question.
    fn call(&self, question: &Question<'_>, case: &Ids, own: &Ids) -> Value {
        let lane = self.lane;
        let is_subject = question.backend == lane.backend;
        let wanted = lane.model.as_deref().filter(|_| is_subject).or(question.model);
        let reasons = question.stop_reason.into_iter();
        let input = self.is_told().then(|| messages(question.request.conversation()));
        let output = question.reply.filter(|_| self.is_told()).map(|text| {
            let part = json!({ "type": "text", "content": text });
            let reason = question.stop_reason.unwrap_or("stop");
            json!([{ "role": "assistant", "parts": [part], "finish_reason": reason }]).to_string()
        });
        let system = question.request.system().filter(|_| self.is_told());
        let system = system.map(|it| json!([{ "type": "text", "content": it }]).to_string());
        let attributes = Attributes::default()
            .text("openinference.span.kind", "LLM")
            .text("gen_ai.operation.name", "chat")
            .maybe("gen_ai.provider.name", is_subject.then(|| provider(&lane.backend_kind).into()))
            .maybe("gen_ai.request.model", wanted.map(Value::from))
            .maybe("gen_ai.response.model", question.model.map(Value::from))
            .maybe("llm.model_name", question.model.or(wanted).map(Value::from))
            .list("gen_ai.response.finish_reasons", reasons)
            .maybe_count("gen_ai.usage.input_tokens", question.input_tokens)
            .maybe_count("gen_ai.usage.output_tokens", question.output_tokens)
            .maybe_count("llm.token_count.prompt", question.input_tokens)
            .maybe_count("llm.token_count.completion", question.output_tokens)
            .text("gen_ai.conversation.id", &self.case.case_id)
            .maybe("gen_ai.system_instructions", system.map(Value::from))
            .maybe("gen_ai.input.messages", input.map(Value::from))
            .maybe("gen_ai.output.messages", output.map(Value::from))
            .text("session.id", &self.run.run_id)
            .text("probity.backend", question.backend)
            .maybe("probity.role", question.role.map(Value::from))
            .count("probity.calls", u64::from(question.calls))
            .maybe("probity.cost_usd", question.cost_usd.map(Value::from))
            .maybe("error.type", question.error.map(|(kind, _)| kind.into()));
        let name = question.model.or(wanted).unwrap_or(question.backend);
        let mut span = json!({
            "traceId": case.trace, "spanId": own.span, "parentSpanId": case.span, "name": format!("chat {name}"), "kind": CLIENT,
            "startTimeUnixNano": nanos(question.span.0), "endTimeUnixNano": nanos(question.span.1),
            "attributes": attributes.finish(), "status": {},
        });
        if let Some((_, message)) = question.error {
            span["status"] = json!({ "code": ERROR, "message": message });
        }
        span
    }
}

/// What OpenTelemetry calls who serves a kind of backend.
fn provider(kind: &str) -> &str {
    match kind {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "gemini" => "gcp.gemini",
        "openai-responses" => "openai",
        "vertex" | "vertex-anthropic" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        kind => kind,
    }
}

/// Messages in the form that OpenTelemetry has for them.
fn messages(said: &[Message]) -> String {
    let role = |role: Role| role.as_str();
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "text", "content": &**text }),
        Part::Image(_) => json!({ "type": "image" }),
        Part::ToolCall(call) => {
            json!({ "type": "tool_call", "name": call.name, "arguments": call.arguments })
        }
        Part::ToolResult(result) => {
            json!({ "type": "tool_call_response", "response": result.content })
        }
    };
    let message = |it: &Message| {
        let parts: Vec<Value> = it.content.iter().map(part).collect();
        json!({ "role": role(it.role), "parts": parts })
    };
    Value::from(said.iter().map(message).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests;
