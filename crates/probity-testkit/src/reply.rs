//! Proper answers in each dialect. Typed instead of `json!`: benches measure against them.

use bytes::Bytes;
use hyper::{Response, header::HeaderValue};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::{Call, Finish, Reply},
    bedrock, embeddings, gemini,
    question::{Question, Wants},
    rerank, responses,
    route::Dialect,
    stream,
};

/// When everything was made: answers do not depend on the clock.
const CREATED: u64 = 1_767_225_600;
const CREATED_AT: &str = "2026-01-01T00:00:00Z";

/// The answer to the request with this number.
pub(crate) fn answer(question: &Question, reply: &Reply, number: u64) -> Response<Bytes> {
    let text = reply.text.of(&question.prompt);
    let said = Said {
        model: reply.model.as_deref().unwrap_or(&question.model),
        tokens_in: question.prompt.len().div_ceil(4),
        tokens_out: text.len().div_ceil(4),
        text: &text,
        number,
    };
    let (body, id_header) = match question.dialect {
        Dialect::OpenAi => (openai(&said, reply), "x-request-id"),
        Dialect::Anthropic => (anthropic(&said, reply), "request-id"),
        Dialect::Ollama => (ollama(&said, reply), "x-request-id"),
        Dialect::Responses => (responses::answer(&said, reply), "x-request-id"),
        Dialect::Gemini => (gemini::answer(&said, reply), "x-request-id"),
        Dialect::Bedrock => (bedrock::answer(&said, reply), "x-amzn-requestid"),
    };
    let body = match question.wants {
        Wants::Answer => body,
        Wants::Embedding => embeddings::answer(question, reply),
        Wants::Relevance => rerank::answer(question, reply),
    };
    let body = if question.stream { stream::body(question, &body) } else { body };
    let mut response = json_response(200, body);
    let id = HeaderValue::try_from(format!("req_{number:012}")).expect("digits are fine");
    response.headers_mut().insert(id_header, id);
    if question.stream {
        let kind = HeaderValue::from_static(stream::content_type(question.dialect));
        response.headers_mut().insert("content-type", kind);
    }
    response
}

/// The list of models.
pub(crate) fn models(dialect: Dialect, models: &[String]) -> Response<Bytes> {
    let each = |entry: fn(&String) -> Value| models.iter().map(entry).collect::<Vec<_>>();
    let list = match dialect {
        Dialect::OpenAi | Dialect::Responses => json!({ "object": "list", "data": each(|id| json!({
            "id": id, "object": "model", "created": CREATED, "owned_by": "probity",
        })) }),
        Dialect::Anthropic => json!({
            "data": each(|id| json!({
                "type": "model", "id": id, "display_name": id, "created_at": CREATED_AT,
            })),
            "has_more": false,
            "first_id": models.first(),
            "last_id": models.last(),
        }),
        Dialect::Gemini => gemini::models(models),
        Dialect::Bedrock => bedrock::models(models),
        Dialect::Ollama => json!({ "models": each(|name| json!({
            "name": name, "model": name, "modified_at": CREATED_AT, "size": 98_362_432,
            "digest": "9077fe9d2ae1a4a41a868836b56b8163731a8fe16621397028c2c76f838c6907",
            "details": {
                "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
                "parameter_size": "134.52M", "quantization_level": "Q4_1",
            },
        })) }),
    };
    json_response(200, list.to_string().into_bytes())
}

/// Ollama's version.
pub(crate) fn version() -> Response<Bytes> {
    json_response(200, br#"{"version":"0.12.6"}"#.to_vec())
}

pub(crate) fn json_response(status: u16, body: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status.try_into().expect("our statuses are between 100 and 999");
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

pub(crate) struct Said<'a> {
    pub(crate) model: &'a str,
    pub(crate) text: &'a str,
    pub(crate) tokens_in: usize,
    pub(crate) tokens_out: usize,
    pub(crate) number: u64,
}

#[derive(Serialize)]
struct OpenAi<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [OpenAiChoice<'a>; 1],
    usage: OpenAiUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_fingerprint: Option<&'a str>,
}

#[derive(Serialize)]
struct OpenAiChoice<'a> {
    index: u32,
    message: OpenAiMessage<'a>,
    logprobs: (),
    finish_reason: &'a str,
}

#[derive(Serialize)]
struct OpenAiMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Value>,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct OpenAiUsage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
}

fn openai(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let (finish_reason, content, refusal, tool_calls) = match &reply.finish {
        Finish::Stop => ("stop", Some(said.text), None, None),
        Finish::Length => ("length", Some(said.text), None, None),
        Finish::ContentFilter => ("content_filter", Some(said.text), None, None),
        Finish::Refusal => ("stop", None, Some(said.text), None),
        Finish::Other(word) => (word.as_str(), Some(said.text), None, None),
        Finish::ToolUse => {
            let call = json!([{
                "id": format!("call_{:012}", said.number),
                "type": "function",
                "function": {
                    "name": reply.call.name, "arguments": reply.call.arguments.to_string(),
                },
            }]);
            ("tool_calls", None, None, Some(call))
        }
    };
    to_json(&OpenAi {
        id: format!("chatcmpl-{:012}", said.number),
        object: "chat.completion",
        created: CREATED,
        model: said.model,
        choices: [OpenAiChoice {
            index: 0,
            message: OpenAiMessage { role: "assistant", content, refusal, tool_calls },
            logprobs: (),
            finish_reason,
        }],
        usage: OpenAiUsage {
            prompt_tokens: said.tokens_in,
            completion_tokens: said.tokens_out,
            total_tokens: said.tokens_in + said.tokens_out,
        },
        system_fingerprint: reply.fingerprint.as_deref(),
    })
}

#[derive(Serialize)]
struct Anthropic<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Value>,
    stop_reason: &'a str,
    stop_sequence: (),
    usage: AnthropicUsage,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct AnthropicUsage {
    input_tokens: usize,
    cache_creation_input_tokens: usize,
    cache_read_input_tokens: usize,
    output_tokens: usize,
}

fn anthropic(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let stop_reason = match &reply.finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolUse => "tool_use",
        Finish::ContentFilter | Finish::Refusal => "refusal",
        Finish::Other(word) => word,
    };
    let content = match reply.finish {
        Finish::ToolUse => {
            let id = format!("toolu_{:012}", said.number);
            let Call { name, arguments } = &reply.call;
            vec![json!({ "type": "tool_use", "id": id, "name": name, "input": arguments })]
        }
        // A model that says nothing leaves no block.
        Finish::Stop
        | Finish::Length
        | Finish::ContentFilter
        | Finish::Refusal
        | Finish::Other(_)
            if said.text.is_empty() =>
        {
            Vec::new()
        }
        Finish::Stop
        | Finish::Length
        | Finish::ContentFilter
        | Finish::Refusal
        | Finish::Other(_) => vec![json!({ "type": "text", "text": said.text })],
    };
    to_json(&Anthropic {
        id: format!("msg_{:012}", said.number),
        r#type: "message",
        role: "assistant",
        model: said.model,
        content,
        stop_reason,
        stop_sequence: (),
        usage: AnthropicUsage {
            input_tokens: said.tokens_in,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
            output_tokens: said.tokens_out,
        },
    })
}

#[derive(Serialize)]
struct Ollama<'a> {
    model: &'a str,
    created_at: &'static str,
    message: OllamaMessage<'a>,
    done: bool,
    #[serde(flatten)]
    end: OllamaEnd<'a>,
}

#[derive(Serialize)]
struct OllamaMessage<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Value>,
}

#[derive(Serialize)]
struct OllamaEnd<'a> {
    done_reason: &'a str,
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
    prompt_eval_duration: u64,
    eval_count: usize,
    eval_duration: u64,
}

fn ollama(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let done_reason = match &reply.finish {
        Finish::Stop | Finish::ContentFilter | Finish::ToolUse | Finish::Refusal => "stop",
        Finish::Length => "length",
        Finish::Other(word) => word,
    };
    let (content, tool_calls) = match reply.finish {
        Finish::ToolUse => {
            let Call { name, arguments } = &reply.call;
            ("", Some(json!([{ "function": { "name": name, "arguments": arguments } }])))
        }
        Finish::Stop
        | Finish::Length
        | Finish::ContentFilter
        | Finish::Refusal
        | Finish::Other(_) => (said.text, None),
    };
    let end = OllamaEnd {
        done_reason,
        total_duration: 5_000_000,
        load_duration: 1_000_000,
        prompt_eval_count: said.tokens_in,
        prompt_eval_duration: 2_000_000,
        eval_count: said.tokens_out,
        eval_duration: 2_000_000,
    };
    to_json(&Ollama {
        model: said.model,
        created_at: CREATED_AT,
        message: OllamaMessage { role: "assistant", content, tool_calls },
        done: true,
        end,
    })
}

fn to_json<T: Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("our types have text keys only")
}
