//! Tools that models may call, in the words of a suite.

use probity_core::located::Node;
use serde_json::{Map, Value, json};

use super::Filling;

impl Filling<'_, '_> {
    pub(super) fn tools(&mut self, node: &Node) {
        let items = match crate::is_list(node) {
            true => node.items().to_vec(),
            false => vec![node.clone()],
        };
        let mut tools = Vec::new();
        for item in &items {
            match self.loaded(item) {
                Some(Value::Array(inner)) => tools.extend(inner),
                Some(tool) => tools.push(tool),
                None => {}
            }
        }
        // Tools that the server runs itself are nothing that a case could judge: they are only sent.
        let is_function = |tool: &Value| {
            let kind = tool.get("type").and_then(Value::as_str);
            let declared = ["functionDeclarations", "function_declarations", "toolSpec"];
            kind == Some("function")
                || kind == Some("custom")
                || tool.get("name").is_some() && kind.is_none()
                || declared.iter().any(|it| tool.get(it).is_some())
        };
        let (functions, others): (Vec<Value>, Vec<Value>) =
            tools.into_iter().partition(is_function);
        if !others.is_empty() {
            let all = functions.into_iter().chain(others).collect();
            self.backend.extra_body.insert("tools".to_owned(), Value::Array(all));
        } else if !functions.is_empty() {
            self.provider.tools =
                Some(Value::Array(functions.into_iter().flat_map(flat).collect()));
        }
    }

    /// What tools were called before they were.
    pub(super) fn functions(&mut self, node: &Node) {
        let Some(value) = self.loaded(node) else { return };
        self.context.assumed(node, "`functions` are sent as `tools`", "");
        let all = value.as_array().cloned().unwrap_or_default().into_iter();
        let tools = all.map(|it| json!({ "type": "function", "function": it }));
        self.provider.tools = Some(tools.collect());
    }
}

/// Gemini's and Bedrock's tools, one by one.
fn flat(tool: Value) -> Vec<Value> {
    let declared = tool.get("functionDeclarations").or_else(|| tool.get("function_declarations"));
    if let Some(Value::Array(all)) = declared {
        return all.clone();
    }
    if let Some(spec) = tool.get("toolSpec") {
        let mut made = Map::new();
        for (name, pointer) in [
            ("name", "/name"),
            ("description", "/description"),
            ("parameters", "/inputSchema/json"),
        ] {
            if let Some(value) = spec.pointer(pointer) {
                made.insert(name.to_owned(), value.clone());
            }
        }
        return vec![Value::Object(made)];
    }
    vec![tool]
}

/// A choice of tools in the words of a suite.
pub(super) fn tool_choice(node: &Node) -> Option<Value> {
    let value = node.to_json();
    if let Some(word) = value.as_str() {
        return Some(Value::from(if word == "any" { "required" } else { word }));
    }
    let name = value
        .pointer("/function/name")
        .or_else(|| value.get("name"))
        .or_else(|| value.pointer("/tool/name"));
    match (value.get("type").and_then(Value::as_str), name) {
        (_, Some(name)) => Some(name.clone()),
        (Some("any" | "required"), None) => Some(Value::from("required")),
        (Some(word @ ("auto" | "none")), None) => Some(Value::from(word)),
        (_, None) => value.get("any").map(|_| Value::from("required")),
    }
}
