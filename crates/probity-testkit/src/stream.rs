//! Answers in pieces, as each vendor documents its streams. They are made of the whole answers.

use serde_json::{Value, json};

use crate::{bedrock, question::Question, route::Dialect};

/// The type of a stream's content.
pub(crate) const fn content_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Ollama => "application/x-ndjson",
        Dialect::Bedrock => "application/vnd.amazon.eventstream",
        Dialect::OpenAi | Dialect::Responses | Dialect::Anthropic | Dialect::Gemini => {
            "text/event-stream"
        }
    }
}

/// A whole answer as a stream.
pub(crate) fn body(question: &Question, whole: &[u8]) -> Vec<u8> {
    let whole: Value = serde_json::from_slice(whole).expect("we wrote it");
    let text = match question.dialect {
        Dialect::OpenAi => openai(whole, question.stream_usage),
        Dialect::Responses => responses(&whole),
        Dialect::Anthropic => anthropic(whole),
        Dialect::Gemini => gemini(whole),
        Dialect::Ollama => ollama(whole),
        Dialect::Bedrock => return bedrock::stream(&whole, pieces),
    };
    text.into_bytes()
}

/// A text in pieces: each word with the blank after it.
fn pieces(text: &Value) -> Vec<String> {
    let text = text.as_str().unwrap_or_default();
    text.split_inclusive(' ').map(ToOwned::to_owned).collect()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn openai(mut whole: Value, with_usage: bool) -> String {
    let choice = whole["choices"][0].take();
    let message = &choice["message"];
    let chunk = |delta: Value, reason: &Value| {
        event(&json!({
            "id": whole["id"], "object": "chat.completion.chunk", "created": whole["created"],
            "model": whole["model"],
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        }))
    };
    let mut text = chunk(json!({ "role": "assistant", "content": "" }), &Value::Null);
    for key in ["content", "refusal"] {
        for piece in pieces(&message[key]) {
            text.push_str(&chunk(json!({ key: piece }), &Value::Null));
        }
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let mut first = call.clone();
        let arguments = first["function"]["arguments"].take();
        first["index"] = json!(index);
        first["function"]["arguments"] = json!("");
        text.push_str(&chunk(json!({ "tool_calls": [first] }), &Value::Null));
        let rest = json!({ "index": index, "function": { "arguments": arguments } });
        text.push_str(&chunk(json!({ "tool_calls": [rest] }), &Value::Null));
    }
    text.push_str(&chunk(json!({}), &choice["finish_reason"]));
    if with_usage {
        let last = json!({ "id": whole["id"], "choices": [], "usage": whole["usage"] });
        text.push_str(&event(&last));
    }
    text + "data: [DONE]\n\n"
}

fn responses(whole: &Value) -> String {
    let created = json!({ "id": whole["id"], "status": "in_progress", "output": [] });
    let mut text = named(&json!({ "type": "response.created", "response": created }));
    for item in whole["output"].as_array().into_iter().flatten() {
        for piece in pieces(&item["content"][0]["text"]) {
            text.push_str(&named(&json!({ "type": "response.output_text.delta", "delta": piece })));
        }
        for piece in pieces(&item["arguments"]) {
            let kind = "response.function_call_arguments.delta";
            text.push_str(&named(&json!({ "type": kind, "delta": piece })));
        }
        text.push_str(&named(&json!({ "type": "response.output_item.done", "item": item })));
    }
    let end = match whole["status"].as_str() {
        Some("completed") => "response.completed",
        _ => "response.incomplete",
    };
    text + &named(&json!({ "type": end, "response": whole }))
}

fn anthropic(mut whole: Value) -> String {
    let blocks = whole["content"].take();
    let (reason, usage) = (whole["stop_reason"].take(), whole["usage"].clone());
    whole["content"] = json!([]);
    whole["usage"]["output_tokens"] = json!(1);
    let mut text = named(&json!({ "type": "message_start", "message": whole }));
    for (index, block) in blocks.as_array().into_iter().flatten().enumerate() {
        let mut first = block.clone();
        let (kind, field, said) = match block["type"].as_str() {
            Some("tool_use") => {
                first["input"] = json!({});
                ("input_json_delta", "partial_json", Value::from(block["input"].to_string()))
            }
            _ => ("text_delta", "text", std::mem::replace(&mut first["text"], json!(""))),
        };
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": first });
        text.push_str(&named(&start));
        text.push_str(&named(&json!({ "type": "ping" })));
        for piece in pieces(&said) {
            let delta = json!({ "type": kind, field: piece });
            let delta = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            text.push_str(&named(&delta));
        }
        text.push_str(&named(&json!({ "type": "content_block_stop", "index": index })));
    }
    let end = json!({
        "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": usage["output_tokens"] },
    });
    text + &named(&end) + &named(&json!({ "type": "message_stop" }))
}

fn gemini(mut whole: Value) -> String {
    let mut text = String::new();
    let parts = whole.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    for part in parts.into_iter().flatten().filter(|it| it["text"].is_string()) {
        for piece in pieces(&part["text"]) {
            let content = json!({ "parts": [{ "text": piece }], "role": "model" });
            text.push_str(&event(&json!({
                "candidates": [{ "content": content, "index": 0 }],
                "modelVersion": whole["modelVersion"],
            })));
        }
    }
    let parts = whole.pointer_mut("/candidates/0/content/parts").and_then(Value::as_array_mut);
    if let Some(parts) = parts {
        parts.retain(|it| !it["text"].is_string());
    }
    text + &event(&whole)
}

fn ollama(mut whole: Value) -> String {
    let message = whole["message"].take();
    let line = |message: Value| {
        let line = json!({
            "model": whole["model"], "created_at": whole["created_at"], "message": message,
            "done": false,
        });
        format!("{line}\n")
    };
    let mut text: String = pieces(&message["content"])
        .into_iter()
        .map(|piece| line(json!({ "role": "assistant", "content": piece })))
        .collect::<Vec<_>>()
        .concat();
    if message["tool_calls"].is_array() {
        let calls = &message["tool_calls"];
        let said = json!({ "role": "assistant", "content": "", "tool_calls": calls });
        text.push_str(&line(said));
    }
    whole["message"] = json!({ "role": "assistant", "content": "" });
    format!("{text}{whole}\n")
}
