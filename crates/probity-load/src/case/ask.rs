//! What is asked beyond a prompt: conversations, tools, forms of answers.
//!
//! Messages and tools are read as vendors write them, too: people copy them.

use std::{path::Path, sync::Arc};

use data_encoding::BASE64;
use probity_core::{
    case::AskSpec,
    json,
    located::{Node, NodeValue},
    request::{
        Image, ImageType, Message, Part, Role, Sampling, Tool, ToolCall, ToolChoice, ToolResult,
    },
};
use serde_json::{Value, json};

use super::{Fields, Findings};
use crate::{
    bounded,
    dataset::{Format, parse_yaml},
    suite::{decode_response_format, decode_sampling},
};

/// Reads what is asked beyond a prompt. Files are looked for in `folder`.
pub(crate) fn decode(fields: &mut Fields<'_, '_>, folder: &Path) -> AskSpec {
    let messages = fields.get("messages");
    let messages = messages.map(|node| messages_of(node, folder, fields.findings()));
    let tools = fields.get("tools");
    let tools = tools.and_then(|node| tools_of(node, folder, fields.findings()));
    let choice = fields.get("tool_choice");
    let tool_choice = choice.and_then(|node| tool_choice_of(node, fields.findings()));
    if let (Some(ToolChoice::Tool(name)), Some(tools)) = (&tool_choice, &tools)
        && !tools.iter().any(|it| it.name == *name)
    {
        let (span, message) = (fields.span("tool_choice"), format!("there is no tool `{name}`"));
        fields.findings().error("unknown-tool", &span, message);
    }
    AskSpec {
        messages: messages.unwrap_or_default(),
        tools,
        tool_choice,
        response_format: decode_response_format(fields),
        sampling: settings_of(fields),
    }
}

/// How words are chosen.
pub(crate) fn settings_of(fields: &mut Fields<'_, '_>) -> Sampling {
    const KNOWN: &[&str] = &[
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "stop",
        "logprobs",
        "presence_penalty",
        "frequency_penalty",
    ];
    let inner = fields.get("settings").and_then(|node| {
        let mut inner = Fields::new(node, "`settings`", KNOWN, fields.findings())?;
        Some(decode_sampling(&mut inner))
    });
    inner.unwrap_or_default()
}

/// The messages of a conversation.
pub(crate) fn messages_of(node: &Node, folder: &Path, findings: &mut Findings) -> Vec<Message> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("field `messages` must be a list of messages, not {}", node.kind());
        findings.error("wrong-type", &node.span, message);
        return Vec::new();
    };
    if items.is_empty() {
        findings.error("missing-field", &node.span, "`messages` is empty".to_owned());
    }
    items.iter().filter_map(|item| message_of(item, folder, findings)).collect()
}

fn message_of(node: &Node, folder: &Path, findings: &mut Findings) -> Option<Message> {
    const KNOWN: &[&str] = &["role", "content", "tool_calls", "tool_call_id", "name"];
    let mut fields = Fields::new(node, "a message", KNOWN, findings)?;
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let names = roles.map(Role::as_str);
    if fields.get("role").is_none() {
        fields.required_text("role");
        return None;
    }
    let role = fields.one_of("role", "role", &names, |name| match name {
        // What OpenAI calls it now.
        "developer" => Some(Role::System),
        name => roles.into_iter().find(|it| it.as_str() == name),
    })?;
    let content = fields.get("content");
    let calls = fields.get("tool_calls").map(Node::items).unwrap_or_default();
    let mut parts = match content.map(|it| &it.value) {
        None => Vec::new(),
        Some(NodeValue::String(text)) if role == Role::Tool => {
            vec![Part::ToolResult(ToolResult {
                id: fields.text("tool_call_id"),
                name: fields.text("name").unwrap_or_default(),
                content: text.as_str().into(),
            })]
        }
        Some(NodeValue::String(text)) => vec![Part::Text(text.as_str().into())],
        Some(_) => content
            .and_then(|it| parts_of(it, "content", folder, fields.findings()))
            .unwrap_or_default(),
    };
    parts.extend(calls.iter().filter_map(|it| call_of(it, fields.findings())).map(Part::ToolCall));
    // Parts that could not be read were reported.
    let has_content = content.is_some_and(|it| it.as_str().is_some() || !it.items().is_empty());
    if parts.is_empty() && !has_content {
        let message = "a message needs `content` or `tool_calls`".to_owned();
        fields.findings().error("missing-field", &node.span, message);
    }
    Some(Message { role, content: parts })
}

/// The parts of what is said in a field that is not a text.
pub(super) fn parts_of(
    node: &Node,
    key: &str,
    folder: &Path,
    findings: &mut Findings,
) -> Option<Vec<Part>> {
    let NodeValue::Array(items) = &node.value else {
        let message = format!("`{key}` must be a text or a list of parts");
        findings.error("wrong-type", &node.span, message);
        return None;
    };
    Some(items.iter().filter_map(|item| part_of(item, folder, findings)).collect())
}

/// A part as we write it, or as OpenAI and Anthropic do.
fn part_of(node: &Node, folder: &Path, findings: &mut Findings) -> Option<Part> {
    const KNOWN: &[&str] =
        &["text", "image", "tool_call", "tool_result", "type", "image_url", "source"];
    if let Some(text) = node.as_str() {
        return Some(Part::Text(text.into()));
    }
    let fields = Fields::new(node, "a part of a message", KNOWN, findings)?;
    let text_at = |path: &[&str]| path.iter().try_fold(node, |it, key| it.get(key))?.as_str();
    let image = [&["image"][..], &["image_url", "url"], &["image_url"], &["source", "url"]];
    if let Some(text) = text_at(&["text"]) {
        return Some(Part::Text(text.into()));
    }
    if let Some(place) = image.iter().find_map(|path| text_at(path)) {
        let span = node.span.clone();
        return match image_at(place, folder) {
            Ok(image) => Some(Part::Image(image)),
            Err(why) => {
                let message = format!("the image `{}` cannot be sent: {why}", shown(place));
                findings.error("bad-image", &span, message);
                None
            }
        };
    }
    if let Some(call) = fields.get("tool_call") {
        return call_of(call, findings).map(Part::ToolCall);
    }
    // As records have it: files were read when the case was.
    if let Ok(part) = serde_json::from_value(node.to_json()) {
        return Some(part);
    }
    let message = "a part of a message has `text`, `image`, `tool_call` or `tool_result`";
    findings.error("missing-field", &node.span, message.to_owned());
    None
}

/// The beginning of an address that may hold a whole image.
fn shown(place: &str) -> &str {
    &place[..place.floor_char_boundary(80)]
}

/// An image by URL, in a data URL, or in a file.
pub(crate) fn image_at(place: &str, folder: &Path) -> Result<Image, String> {
    if let Some(data) = place.strip_prefix("data:") {
        let (_, encoded) = data.split_once(";base64,").ok_or("it is no Base64")?;
        let bytes = BASE64.decode(encoded.trim().as_bytes()).map_err(|error| error.to_string())?;
        return Image::from_bytes("data:", bytes).map_err(|error| error.to_string());
    }
    if place.starts_with("http://") || place.starts_with("https://") || place.contains("{{") {
        return Ok(Image::Url(place.into()));
    }
    let name = place.strip_prefix("file://").unwrap_or(place);
    let bytes = bounded::read_named(folder, name, Image::LARGEST);
    let bytes = bytes.map_err(|error| error.to_string())?;
    Image::from_bytes(name, bytes).map_err(|error| error.to_string())
}

/// What a file holds: the value of JSON or YAML, an image as a data URL, else its text.
pub(crate) fn file_value(name: &str, folder: &Path) -> Result<Value, String> {
    let bytes = bounded::read_named(folder, name, Image::LARGEST);
    let bytes = bytes.map_err(|error| error.to_string())?;
    if let Some(kind) = ImageType::of(&bytes) {
        return Ok(format!("data:{kind};base64,{}", BASE64.encode(&bytes)).into());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is neither text nor an image")?;
    match Format::of_path(Path::new(name)) {
        Some(Format::Json) => {
            let read = json::parse(&text, &json::Limits::default());
            read.map(|it| it.value).map_err(|error| error.to_string())
        }
        Some(Format::Yaml) => {
            let read = parse_yaml(&text).map_err(|error| error.message)?;
            Ok(read.to_json())
        }
        Some(Format::Toml | Format::Jsonl | Format::Csv) | None => Ok(text.into()),
    }
}

/// A call as we write it, or as a vendor does.
fn call_of(node: &Node, findings: &mut Findings) -> Option<ToolCall> {
    let call = ToolCall::from_json(&node.to_json());
    if call.is_none() {
        findings.error("missing-field", &node.span, "a tool call has no `name`".to_owned());
    }
    call
}

/// A list of tools, or the file that holds it.
pub(crate) fn tools_of(node: &Node, folder: &Path, findings: &mut Findings) -> Option<Arc<[Tool]>> {
    let list = match node.as_str() {
        None => node.to_json(),
        Some(name) => {
            let name = name.strip_prefix("file://").unwrap_or(name);
            let text = bounded::read_named_text(folder, name, bounded::LARGEST_SUITE);
            let read = text.map_err(|error| error.to_string()).and_then(|text| {
                let read = json::parse(&text, &json::Limits::default());
                read.map(|it| it.value).map_err(|error| error.to_string())
            });
            match read {
                Ok(list) => list,
                Err(why) => {
                    let message = format!("failed to load the tools `{name}`: {why}");
                    findings.error("unreadable-file", &node.span, message);
                    return None;
                }
            }
        }
    };
    let Value::Array(items) = list else {
        let message = "`tools` must be a list of tools, or the name of a file with one".to_owned();
        findings.error("wrong-type", &node.span, message);
        return None;
    };
    let mut tools: Vec<Tool> = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        match tool_of(item) {
            Ok(tool) if tools.iter().any(|it| it.name == tool.name) => {
                let message = format!("tool `{}` is there twice", tool.name);
                findings.error("duplicate-tool", &node.span, message);
            }
            Ok(tool) => tools.push(tool),
            Err(why) => {
                let message = format!("tool {} of `tools` {why}", at + 1);
                findings.error("bad-tool", &node.span, message);
            }
        }
    }
    Some(tools.into())
}

/// A tool as we write it, or as OpenAI, Anthropic and Gemini do.
fn tool_of(mut value: Value) -> Result<Tool, &'static str> {
    let inner = value.get_mut("function").map(Value::take);
    let mut value = inner.filter(Value::is_object).unwrap_or(value);
    let name = value.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
    let Some(name) = name.filter(|it| !it.trim().is_empty()) else { return Err("has no `name`") };
    let description = value.get("description").and_then(Value::as_str).map(ToOwned::to_owned);
    let keys = ["parameters", "input_schema", "parametersJsonSchema", "inputSchema"];
    let parameters = keys.iter().find_map(|key| value.get_mut(key).map(Value::take));
    let parameters = parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    match parameters.is_object() {
        true => Ok(Tool { name, description, parameters }),
        false => Err("has `parameters` that are no JSON Schema"),
    }
}

/// `auto`, `none`, `required` or the name of a tool.
pub(crate) fn tool_choice_of(node: &Node, findings: &mut Findings) -> Option<ToolChoice> {
    let named = |path: &[&str]| path.iter().try_fold(node, |it, key| it.get(key))?.as_str();
    match node.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required" | "any") => Some(ToolChoice::Required),
        Some(name) => Some(ToolChoice::Tool(name.to_owned())),
        None => {
            let paths = [&["tool"][..], &["name"], &["function", "name"]];
            let name = paths.iter().find_map(|path| named(path));
            if name.is_none() {
                let message = "`tool_choice` is `auto`, `none`, `required` or the name of a tool";
                findings.error("wrong-type", &node.span, message.to_owned());
            }
            name.map(|it| ToolChoice::Tool(it.to_owned()))
        }
    }
}
