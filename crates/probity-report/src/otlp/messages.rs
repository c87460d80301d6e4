//! Messages in the form that OpenTelemetry has for them: JSON in a text.

use probity_core::request::{Image, Message, Part, Tool, ToolCall};
use serde_json::{Value, json};

/// What a model answered.
pub(super) struct Output<'a> {
    pub(super) reply: Option<&'a str>,
    pub(super) reasoning: Option<&'a str>,
    pub(super) tool_calls: &'a [ToolCall],
    pub(super) stop_reason: Option<&'a str>,
}

impl Output<'_> {
    /// The answer as a message; none if there is none.
    pub(super) fn written(&self) -> Option<String> {
        // Of an answer that does nothing but call tools, the reply is these calls.
        let calls = (!self.tool_calls.is_empty()).then(|| ToolCall::to_json(self.tool_calls));
        let text = self.reply.filter(|it| calls.as_deref() != Some(*it));
        let reasoning = self.reasoning.map(|it| json!({ "type": "reasoning", "content": it }));
        let text = text.map(|it| json!({ "type": "text", "content": it }));
        let calls = self.tool_calls.iter().map(tool_call);
        let parts: Vec<Value> = reasoning.into_iter().chain(text).chain(calls).collect();
        let reason = finish_reason(self.stop_reason, self.tool_calls);
        (!parts.is_empty()).then(|| {
            json!([{ "role": "assistant", "parts": parts, "finish_reason": reason }]).to_string()
        })
    }
}

/// What was said before.
pub(super) fn input(said: &[Message]) -> String {
    let message = |it: &Message| {
        let parts: Vec<Value> = it.content.iter().map(part).collect();
        json!({ "role": it.role.as_str(), "parts": parts })
    };
    said.iter().map(message).collect::<Value>().to_string()
}

/// What stands before a conversation.
pub(super) fn instructions(text: &str) -> String {
    json!([{ "type": "text", "content": text }]).to_string()
}

/// The tools that may be called; none if there are none.
pub(super) fn tools(tools: &[Tool]) -> Option<String> {
    let tool = |it: &Tool| json!({ "type": "function", "name": it.name, "description": it.description, "parameters": it.parameters });
    (!tools.is_empty()).then(|| tools.iter().map(tool).collect::<Value>().to_string())
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "content": &**text }),
        Part::Image(Image::Url(url)) => {
            json!({ "type": "uri", "modality": "image", "uri": &**url })
        }
        // Records have the name and the digest of a file, and not what is in it.
        Part::Image(Image::File(file)) => {
            json!({ "type": "file", "modality": "image", "mime_type": file.kind.as_str(), "file_id": &*file.digest })
        }
        Part::ToolCall(call) => tool_call(call),
        Part::ToolResult(result) => {
            json!({ "type": "tool_call_response", "id": result.id, "response": &*result.content })
        }
    }
}

fn tool_call(call: &ToolCall) -> Value {
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments })
}

/// A vendor's word for why a model stopped, as one of the convention's where they mean the same.
fn finish_reason(said: Option<&str>, calls: &[ToolCall]) -> String {
    let Some(said) = said else {
        return if calls.is_empty() { "stop" } else { "tool_call" }.to_owned();
    };
    let word = said.to_ascii_lowercase();
    let known = match word.as_str() {
        "stop" | "end_turn" | "stop_sequence" | "completed" | "eos" => "stop",
        "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => "length",
        "content_filter"
        | "content_filtered"
        | "refusal"
        | "safety"
        | "guardrail_intervened"
        | "prohibited_content"
        | "blocklist"
        | "recitation"
        | "spii" => "content_filter",
        "tool_use" | "tool_calls" | "function_call" => "tool_call",
        _ => said,
    };
    known.to_owned()
}
