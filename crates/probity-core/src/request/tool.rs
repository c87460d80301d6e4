//! Tools that a model may call, its calls, and what they came to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes, as a JSON Schema of an object.
    pub parameters: Value,
}

impl Tool {
    pub(super) fn bytes(&self) -> usize {
        let description = self.description.as_ref().map_or(0, String::len);
        self.name.len() + description + self.parameters.to_string().len()
    }
}

/// Whether a model has to call a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// If it wants to.
    Auto,
    /// It must not.
    None,
    /// It has to call one.
    Required,
    /// It has to call this one.
    Tool(String),
}

/// A tool that a model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// What the answer of the tool refers to, where the vendor gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// What it is called with. Arguments that are not JSON are kept as text.
    pub arguments: Value,
    /// What the vendor wants to get back with the call, in a form that only its dialect knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

impl ToolCall {
    /// A call.
    pub fn new(id: Option<String>, name: String, arguments: Value) -> Self {
        Self { id, name, arguments, opaque: None }
    }

    /// A call whose arguments a vendor sends as text.
    pub fn with_text(id: Option<String>, name: String, arguments: &str) -> Self {
        let read = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
        Self::new(id, name, read)
    }

    /// A call as we write it, or as OpenAI or Anthropic does; none if it has no name.
    pub fn from_json(value: &Value) -> Option<Self> {
        let function = value.get("function").unwrap_or(value);
        let name = function.get("name")?.as_str()?.to_owned();
        let id = value.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
        let arguments = function.get("arguments").or_else(|| function.get("input"));
        Some(match arguments {
            Some(Value::String(text)) => Self::with_text(id, name, text),
            Some(arguments) => Self::new(id, name, arguments.clone()),
            None => Self::new(id, name, Value::Object(serde_json::Map::new())),
        })
    }

    /// Calls as JSON: what is shown and graded of a reply that does nothing else. Ids are
    /// left out, since they differ from call to call.
    pub fn to_json(calls: &[Self]) -> String {
        let shown = |call: &Self| {
            let Self { id: _, name, arguments, opaque: _ } = call;
            serde_json::json!({ "name": name, "arguments": arguments })
        };
        Value::Array(calls.iter().map(shown).collect()).to_string()
    }
}

/// What a tool that a model called came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that it answers, where the vendor gave it an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// What it says, as text.
    pub content: Arc<str>,
}
