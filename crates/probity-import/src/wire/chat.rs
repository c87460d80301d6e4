//! Messages of a conversation, as OpenAI's API, promptfoo and Inspect write them.

use std::sync::Arc;

use probity_core::request::{Image, Message, Part, Request, Role, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct WireMessage {
    pub(crate) role: String,
    /// A text, a list of parts, or nothing beside calls.
    #[serde(default)]
    pub(crate) content: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    /// The tool that answers: Inspect's name of the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) function: Option<String>,
    /// The same: OpenAI's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

/// What is said in a message, and what was thought before.
#[derive(Debug, Default)]
pub(crate) struct SaidParts {
    pub(crate) parts: Vec<Part>,
    pub(crate) reasoning: Option<String>,
}

impl WireMessage {
    /// The message; none of a role that we do not know.
    pub(crate) fn read(&self) -> Option<Message> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" | "human" => Role::User,
            "assistant" | "ai" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            _ => return None,
        };
        if role == Role::Tool {
            let content: Arc<str> = joined(&self.said().parts).into();
            let name = self.function.clone().or_else(|| self.name.clone()).unwrap_or_default();
            let result = ToolResult { id: self.tool_call_id.clone(), name, content };
            return Some(Message { role, content: vec![Part::ToolResult(result)] });
        }
        let calls = self.tool_calls.iter().filter_map(tool_call).map(Part::ToolCall);
        let content = self.said().parts.into_iter().chain(calls).collect();
        Some(Message { role, content })
    }

    /// Its texts and images, without its calls.
    pub(crate) fn said(&self) -> SaidParts {
        let mut said = SaidParts::default();
        match &self.content {
            Value::String(text) => said.parts.push(Part::Text(text.as_str().into())),
            Value::Array(parts) => parts.iter().for_each(|it| said.add(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
        said
    }

    /// Its text, and its calls as JSON where it says nothing.
    pub(crate) fn answer(&self) -> String {
        let text = joined(&self.said().parts);
        let calls: Vec<ToolCall> = self.tool_calls.iter().filter_map(tool_call).collect();
        if text.trim().is_empty() && !calls.is_empty() { ToolCall::to_json(&calls) } else { text }
    }
}

impl SaidParts {
    fn add(&mut self, part: &Value) {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let url = || {
            let image = part.get("image_url").or_else(|| part.get("image"))?;
            image.get("url").unwrap_or(image).as_str()
        };
        if let Some(thought) = text("reasoning").or_else(|| text("thinking")) {
            self.reasoning.get_or_insert_default().push_str(thought);
        } else if let Some(text) = text("text") {
            self.parts.push(Part::Text(text.into()));
        } else if let Some(url) = url() {
            self.parts.push(Part::Image(Image::Url(url.into())));
        }
    }
}

/// A call, as OpenAI or as Inspect writes it.
fn tool_call(value: &Value) -> Option<ToolCall> {
    let name = value.get("function").and_then(Value::as_str);
    let Some(name) = name else { return ToolCall::from_json(value) };
    let id = value.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
    let arguments = value.get("arguments").cloned().unwrap_or_default();
    Some(ToolCall::new(id, name.to_owned(), arguments))
}

fn joined(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).map(|it| &**it).collect()
}

/// The request that a text stands for: a conversation in JSON, or a prompt.
pub(crate) fn request_of(text: &str) -> Request {
    let conversation = || {
        if !text.trim_start().starts_with('[') {
            return None;
        }
        let messages: Vec<WireMessage> = serde_json::from_str(text).ok()?;
        conversation(&messages)
    };
    conversation().unwrap_or_else(|| Request::new(None, text))
}

/// A conversation; none if it is empty or somebody of an unknown role has a say.
pub(crate) fn conversation(messages: &[WireMessage]) -> Option<Request> {
    let messages: Option<Vec<Message>> = messages.iter().map(WireMessage::read).collect();
    messages.filter(|it| !it.is_empty()).map(Request::of)
}

/// What a text or a list of messages asks.
pub(crate) fn asked(input: &Value) -> Option<Request> {
    match input {
        Value::String(text) => Some(Request::new(None, text.as_str())),
        Value::Array(_) => conversation(&Vec::<WireMessage>::deserialize(input).ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// A message as OpenAI's API has it.
pub(crate) fn openai(message: &Message) -> Vec<WireMessage> {
    let wire = |role: &str, content: Value| WireMessage {
        role: role.to_owned(),
        content,
        tool_calls: Vec::new(),
        tool_call_id: None,
        function: None,
        name: None,
    };
    let results: Vec<WireMessage> = message
        .tool_results()
        .map(|it| WireMessage {
            tool_call_id: it.id.clone(),
            name: Some(it.name.clone()),
            ..wire("tool", Value::from(&*it.content))
        })
        .collect();
    if !results.is_empty() {
        return results;
    }
    let call = |it: &ToolCall| {
        serde_json::json!({
            "id": it.id, "type": "function",
            "function": { "name": it.name, "arguments": it.arguments.to_string() },
        })
    };
    let tool_calls = message.tool_calls().map(call).collect();
    vec![WireMessage { tool_calls, ..wire(message.role.as_str(), content(message)) }]
}

/// What a message says: a text, or a list of parts where there are images.
pub(crate) fn content(message: &Message) -> Value {
    let mut images = message.images().peekable();
    if images.peek().is_none() {
        return Value::from(message.joined());
    }
    let part = |part: &Part| match part {
        Part::Text(text) => Some(serde_json::json!({ "type": "text", "text": &**text })),
        Part::Image(Image::Url(url)) => {
            Some(serde_json::json!({ "type": "image_url", "image_url": { "url": &**url } }))
        }
        // A record has the name of the file, and not its bytes.
        Part::Image(Image::File(file)) => {
            let text = format!("[image {}, {}]", file.path, file.digest);
            Some(serde_json::json!({ "type": "text", "text": text }))
        }
        Part::ToolCall(_) | Part::ToolResult(_) => None,
    };
    Value::Array(message.content.iter().filter_map(part).collect())
}
