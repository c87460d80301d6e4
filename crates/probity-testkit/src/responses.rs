//! OpenAI's responses: requests and answers as its reference describes them. Errors are those
//! of the chat completions.

use hyper::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::{Finish, Reply},
    question::{Complaint, Question, Wants, key},
    reply::Said,
    route::Dialect,
};

#[derive(Deserialize)]
struct Request {
    model: Option<String>,
    #[serde(default)]
    input: Vec<Input>,
    #[serde(default)]
    instructions: String,
    messages: Option<Value>,
    max_tokens: Option<Value>,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
struct Input {
    role: Option<String>,
    #[serde(default)]
    content: String,
}

pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Question, Complaint> {
    let request: Request = serde_json::from_slice(body)
        .map_err(|error| Complaint::plain(&format!("We could not parse the JSON body: {error}")))?;
    let Request { model, input, instructions, messages, max_tokens, stream } = request;
    if messages.is_some() {
        return Err(Complaint::plain(
            "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to \
             'input'.",
        ));
    }
    if max_tokens.is_some() {
        return Err(Complaint::plain(
            "Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved \
             to 'max_output_tokens'.",
        ));
    }
    let Some(model) = model else {
        return Err(Complaint::plain("Missing required parameter: 'model'."));
    };
    let Some(last) = input.into_iter().rfind(|it| it.role.as_deref() == Some("user")) else {
        return Err(Complaint::plain("Missing required parameter: 'input'."));
    };
    Ok(Question {
        dialect: Dialect::Responses,
        model,
        prompt: last.content,
        key: key(headers).map(str::to_owned),
        system: instructions,
        stream,
        stream_usage: false,
        wants: Wants::Answer,
    })
}

pub(crate) fn answer(said: &Said<'_>, reply: &Reply) -> Vec<u8> {
    let message = |kind: &str, field: &str| {
        json!({
            "type": "message", "id": format!("msg_{:012}", said.number), "status": "completed",
            "role": "assistant", "content": [{ "type": kind, field: said.text }],
        })
    };
    let (item, status, reason) = match &reply.finish {
        Finish::Stop => (message("output_text", "text"), "completed", None),
        Finish::Length => (message("output_text", "text"), "incomplete", Some("max_output_tokens")),
        Finish::ContentFilter => {
            (message("output_text", "text"), "incomplete", Some("content_filter"))
        }
        Finish::Refusal => (message("refusal", "refusal"), "completed", None),
        Finish::Other(word) => (message("output_text", "text"), "incomplete", Some(word.as_str())),
        Finish::ToolUse => {
            let call = json!({
                "type": "function_call", "id": format!("fc_{:012}", said.number),
                "call_id": format!("call_{:012}", said.number), "name": reply.call.name,
                "arguments": reply.call.arguments.to_string(), "status": "completed",
            });
            (call, "completed", None)
        }
    };
    let body = json!({
        "id": format!("resp_{:012}", said.number), "object": "response", "status": status,
        "error": null, "incomplete_details": reason.map(|reason| json!({ "reason": reason })),
        "model": said.model, "output": [item],
        "usage": {
            "input_tokens": said.tokens_in, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": said.tokens_out, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": said.tokens_in + said.tokens_out,
        },
    });
    body.to_string().into_bytes()
}
