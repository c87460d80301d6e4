//! The span of a question: what a model, a scorer or the sandbox was asked for a result.

use probity_core::{
    failure::ErrorKind,
    record::{Asked, CaseRecord, Lane, Source, Usage},
    request::{Request, ToolCall},
};
use serde_json::Value;

use super::{
    Texts, messages,
    result::Told,
    span::{Attributes, Ids, Span, SpanId, SpanKind, Status},
};

/// What OpenTelemetry calls an error whose kind is not known.
const OTHER: &str = "_OTHER";

/// What was asked, and what came back.
pub(super) struct Question<'a> {
    operation: Operation,
    role: Option<&'a str>,
    turn: Option<u32>,
    backend: &'a str,
    request: &'a Request,
    reply: Option<&'a str>,
    reasoning: Option<&'a str>,
    tool_calls: &'a [ToolCall],
    stop_reason: Option<&'a str>,
    model: Option<&'a str>,
    source: Source,
    error: Option<Error<'a>>,
    usage: Usage,
    cost_usd: Option<f64>,
    calls: u32,
    ttft_ms: Option<u64>,
    /// From and to, in milliseconds.
    time: (i64, i64),
}

struct Error<'a> {
    kind: &'a str,
    message: &'a str,
    status: Option<u16>,
}

/// What is done, in the words of OpenTelemetry where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A model answers.
    Chat,
    /// Texts are compared by their embeddings.
    Embeddings,
    /// A model says how well a text answers a question.
    Rerank,
    /// A command is executed.
    ExecuteTool,
    /// Code of the suite scores a reply.
    Score,
}

impl Operation {
    /// What a record shows of it: who was asked, and for what.
    fn of(asked: &Asked) -> Self {
        if asked.backend == "sandbox" && asked.calls == 0 {
            return Self::ExecuteTool;
        }
        if !asked.role.starts_with("scorer ") {
            return Self::Chat;
        }
        let question = serde_json::from_str::<Value>(asked.request.prompt()).unwrap_or_default();
        let compares_texts = question.get("metric").is_some() && question.get("texts").is_some();
        // Code of a suite is no model, and is never counted as a call.
        match asked.model.is_some() || asked.calls > 0 {
            true if compares_texts => Self::Embeddings,
            true => Self::Rerank,
            false => Self::Score,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::ExecuteTool => "execute_tool",
            Self::Score => "score",
        }
    }

    /// The kind of span in the words of `OpenInference`, which Phoenix reads.
    const fn openinference(self) -> &'static str {
        match self {
            Self::Chat => "LLM",
            Self::Embeddings => "EMBEDDING",
            Self::Rerank => "RERANKER",
            Self::ExecuteTool => "TOOL",
            Self::Score => "EVALUATOR",
        }
    }

    /// Whether a model is asked.
    const fn asks_a_model(self) -> bool {
        match self {
            Self::Chat | Self::Embeddings | Self::Rerank => true,
            Self::ExecuteTool | Self::Score => false,
        }
    }
}

impl<'a> Question<'a> {
    /// The one question of a case that asks no others.
    pub(super) fn of_case(lane: &'a Lane, case: &'a CaseRecord, time: (i64, i64)) -> Self {
        Self {
            operation: Operation::Chat,
            role: None,
            turn: None,
            backend: &lane.backend,
            request: &case.request,
            reply: case.reply.as_deref(),
            reasoning: case.reasoning.as_deref(),
            tool_calls: &[],
            stop_reason: case.stop_reason.as_deref(),
            model: case.model.as_deref(),
            source: case.source,
            error: case.error.as_ref().map(|it| Error {
                kind: it.kind.as_str(),
                message: &it.message,
                status: it.status,
            }),
            usage: case.usage,
            cost_usd: case.cost_usd,
            calls: case.calls,
            ttft_ms: case.ttft_ms,
            time,
        }
    }

    /// One of several.
    pub(super) fn of_asked(asked: &'a Asked, time: (i64, i64)) -> Self {
        Self {
            operation: Operation::of(asked),
            role: Some(&asked.role),
            turn: asked.turn,
            backend: &asked.backend,
            request: &asked.request,
            reply: asked.reply.as_deref(),
            reasoning: asked.reasoning.as_deref(),
            tool_calls: &asked.tool_calls,
            stop_reason: asked.stop_reason.as_deref(),
            model: asked.model.as_deref(),
            source: asked.source,
            error: asked.error.as_deref().map(Error::of_text),
            usage: asked.usage,
            cost_usd: asked.cost_usd,
            calls: asked.calls,
            ttft_ms: None,
            time,
        }
    }

    pub(super) fn span(&self, told: &Told<'_>, case: Ids, own: SpanId) -> Span {
        let texts = told.options.texts;
        let is_subject = self.backend == told.lane.backend;
        let wanted = told.lane.model.as_deref().filter(|_| is_subject).or(self.model);
        let name = match self.operation.asks_a_model() {
            true => self.model.or(wanted).unwrap_or(self.backend),
            false => self.backend,
        };
        let attributes = Attributes::default()
            .with("openinference.span.kind", self.operation.openinference())
            .with("session.id", told.run.run_id.as_str())
            .with("probity.backend", self.backend)
            .with("probity.source", self.source.as_str())
            .maybe("probity.role", self.role)
            .with("probity.calls", self.calls)
            .maybe("probity.cost_usd", self.cost_usd)
            .maybe("error.type", self.error.as_ref().map(|it| it.kind))
            .maybe(
                "http.response.status_code",
                self.error.as_ref().and_then(|it| it.status).map(u32::from),
            );
        let attributes = match self.operation {
            Operation::Chat | Operation::Embeddings | Operation::Rerank => {
                let attributes = self.of_model(told, wanted, attributes);
                self.said(texts, attributes)
            }
            Operation::ExecuteTool => attributes
                .with("gen_ai.operation.name", self.operation.name())
                .with("gen_ai.tool.name", self.backend)
                .maybe("input.value", texts.told(Some(self.request.prompt())))
                .maybe("output.value", texts.told(self.reply)),
            Operation::Score => attributes
                .maybe("input.value", texts.told(Some(self.request.prompt())))
                .maybe("output.value", texts.told(self.reply)),
        };
        let is_asked_now = self.source == Source::Backend && self.operation.asks_a_model();
        Span {
            ids: Ids { trace: case.trace, span: own },
            parent: Some(case.span),
            name: format!("{} {name}", self.operation.name()),
            // Nobody else took part in what came from a cache or a recording.
            kind: if is_asked_now { SpanKind::Client } else { SpanKind::Internal },
            time: self.time,
            attributes,
            events: Vec::new(),
            link: None,
            status: match &self.error {
                None => Status::Unset,
                // Servers quote in their errors what they were sent.
                Some(error) => Status::Error(texts.told(Some(error.message.to_owned()))),
            },
        }
    }

    /// Who answered, how it was asked, and what that used.
    fn of_model(&self, told: &Told<'_>, wanted: Option<&str>, to: Attributes) -> Attributes {
        let sampling = &self.request.sampling;
        let provider = told.kind_of(self.backend).map_or(OTHER, provider);
        let conversation = self.turn.map(|_| told.conversation_id());
        let stops = told.options.texts.told(Some(&sampling.stop)).into_iter().flatten();
        #[expect(clippy::cast_precision_loss, reason = "far fewer milliseconds than 2^52")]
        let first_chunk = self.ttft_ms.map(|it| it as f64 / 1000.0);
        to.with("gen_ai.operation.name", self.operation.name())
            .with("gen_ai.provider.name", provider)
            .maybe("gen_ai.request.model", wanted)
            .maybe("gen_ai.response.model", self.model)
            .maybe("llm.model_name", self.model.or(wanted))
            .maybe("gen_ai.conversation.id", conversation)
            .maybe("gen_ai.request.temperature", sampling.temperature)
            .maybe("gen_ai.request.top_p", sampling.top_p)
            .maybe("gen_ai.request.max_tokens", sampling.max_tokens)
            .maybe("gen_ai.request.seed", sampling.seed)
            .maybe("gen_ai.request.presence_penalty", sampling.presence_penalty)
            .maybe("gen_ai.request.frequency_penalty", sampling.frequency_penalty)
            .list("gen_ai.request.stop_sequences", stops.map(String::as_str))
            .maybe("gen_ai.output.type", self.request.response_format.as_ref().map(|_| "json"))
            .list("gen_ai.response.finish_reasons", self.stop_reason)
            .maybe("gen_ai.response.time_to_first_chunk", first_chunk)
            .maybe("gen_ai.usage.input_tokens", self.usage.input_tokens)
            .maybe("gen_ai.usage.output_tokens", self.usage.output_tokens)
            .maybe("gen_ai.usage.cache_read.input_tokens", self.usage.cached_tokens)
            .maybe("llm.token_count.prompt", self.usage.input_tokens)
            .maybe("llm.token_count.completion", self.usage.output_tokens)
            .maybe("llm.token_count.prompt_details.cache_read", self.usage.cached_tokens)
    }

    /// What was said, unless texts are left out.
    fn said(&self, texts: Texts, to: Attributes) -> Attributes {
        if texts == Texts::LeftOut {
            return to;
        }
        let output = messages::Output {
            reply: self.reply,
            reasoning: self.reasoning,
            tool_calls: self.tool_calls,
            stop_reason: self.stop_reason,
        };
        let output = output.written();
        to.maybe("gen_ai.system_instructions", self.request.system().map(messages::instructions))
            .with("gen_ai.input.messages", messages::input(self.request.conversation()))
            .maybe("gen_ai.output.messages", output)
            .maybe("gen_ai.tool.definitions", messages::tools(&self.request.tools))
            .with("input.value", self.request.prompt())
            .maybe("output.value", self.reply)
    }
}

impl<'a> Error<'a> {
    /// An error that is recorded as a text, which begins with its kind where it is a backend's.
    fn of_text(text: &'a str) -> Self {
        let kind = text.split_once(": ").map(|(kind, _)| kind);
        let kind = kind.filter(|it| it.parse::<ErrorKind>().is_ok()).unwrap_or(OTHER);
        Self { kind, message: text, status: None }
    }
}

/// What OpenTelemetry calls who serves a kind of backend. It allows other names where it has none.
fn provider(kind: &str) -> &str {
    match kind {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "claude" => "anthropic",
        "copilot" | "github-models" => "github",
        "gemini" => "gcp.gemini",
        "openai-responses" | "codex" => "openai",
        "vertex" | "vertex-anthropic" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        kind => kind,
    }
}
