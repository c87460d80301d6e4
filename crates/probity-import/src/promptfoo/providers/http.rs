//! Providers that are servers of the user's own: `http`, and `webhook`.

use std::ops::Range;

use probity_core::located::{Node, NodeValue};
use probity_load::{suite::BackendKind, template};
use serde_json::{Map, Value, json};

use super::{
    Described,
    keys::{self, Place},
    path::pointer,
};
use crate::{
    cases::text,
    draft::BackendDraft,
    promptfoo::{Context, Table, transform},
};

const USED: &[&str] = &[
    "url",
    "method",
    "headers",
    "body",
    "request",
    "useHttps",
    "transformResponse",
    "responseParser",
    "queryParams",
    "auth",
    "sessionParser",
    "timeout",
];
/// Keys that change nothing of what is asked.
const SILENT: &[&str] = &["maxRetries", "tokenEstimation", "validateStatus", "stateful", "inputs"];

/// A backend and the transform of its replies.
pub(super) struct Made {
    pub(super) backend: BackendDraft,
    pub(super) transform: Option<String>,
}

pub(super) fn read(
    url: Option<String>,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<Made> {
    backend.kind = BackendKind::Http;
    let empty = Node { span: described.node.span.clone(), value: NodeValue::Object(Vec::new()) };
    let config = described.config.unwrap_or(&empty);
    let known: Vec<&str> = USED.iter().chain(SILENT).copied().collect();
    context.unused_keys(config, Table::HttpConfig, &known);
    backend.url = text(config, "url").or(url);
    backend.method = text(config, "method").map(|it| it.to_uppercase());
    read_headers(config, &mut backend, context);
    let place = Place { backend: &backend.name, what: "the field" };
    let body = config.get("body").filter(|it| !matches!(it.value, NodeValue::Null));
    backend.body = body.map(|it| place.tree(it, context));
    // Why it cannot be read is noted.
    if backend.body.as_ref().is_some_and(Value::is_null) {
        return None;
    }
    if let Some(request) = config.get("request") {
        read_request(request, config, &mut backend, context)?;
    }
    let Some(url) = backend.url.take() else {
        context.lost(described.node, "an `http` provider without `url`", "give it a `url`");
        return None;
    };
    let place = Place { backend: &backend.name, what: "the address under" };
    backend.url = Some(place.url(&url, &described.node.span, context));
    read_query(config, &mut backend, context);
    read_auth(config, &mut backend, context);
    read_session(config, &mut backend, context);
    if let Some(milliseconds) = context.number_within::<u64>(&described.env, config, "timeout") {
        backend.timeout = Some(format!("{}s", milliseconds.div_ceil(1000).max(1)));
    }
    if backend.method.is_none() && backend.body.is_none() {
        backend.method = Some("GET".to_owned());
    }
    quote_body(&mut backend);
    let transform = read_reply(config, &mut backend, context);
    Some(Made { backend, transform })
}

/// A server that is told the prompt and answers with `output`.
pub(super) fn webhook(
    url: &str,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> BackendDraft {
    backend.kind = BackendKind::Http;
    let place = Place { backend: &backend.name, what: "the address under" };
    backend.url = Some(place.url(url, &described.node.span, context));
    let mut body = json!({ "prompt": "{{ prompt }}" });
    if let Some(config) = described.config {
        let place = Place { backend: &backend.name, what: "the field" };
        body["config"] = place.tree(config, context);
    }
    backend.body = Some(body);
    backend.reply = Some("/output".to_owned());
    backend
}

fn read_headers(config: &Node, backend: &mut BackendDraft, context: &mut Context<'_>) {
    for entry in config.get("headers").map(Node::entries).unwrap_or_default() {
        let Some(value) = text(config.get("headers").unwrap_or(config), &entry.key) else {
            continue;
        };
        add_header(&entry.key, value, &entry.key_span, backend, context);
    }
}

fn add_header(
    name: &str,
    value: String,
    span: &Range<usize>,
    backend: &mut BackendDraft,
    context: &mut Context<'_>,
) {
    let place = Place { backend: &backend.name, what: "the header" };
    let value = place.text(name, value, span, context);
    backend.headers.insert(name.to_owned(), value);
}

/// A request as it goes over the wire.
fn read_request(
    node: &Node,
    config: &Node,
    backend: &mut BackendDraft,
    context: &mut Context<'_>,
) -> Option<()> {
    let written = node.as_str().unwrap_or_default();
    let from_file = match written.strip_prefix("file://") {
        Some(name) => match context.source.text(name) {
            Ok(text) => Some(text.text),
            Err(error) => {
                context.unreadable(node, &error);
                return None;
            }
        },
        None => None,
    };
    let request = from_file.as_deref().unwrap_or(written).trim().replace("\r\n", "\n");
    let (head, body) = request.split_once("\n\n").unwrap_or((&request, ""));
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split_whitespace();
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let mut host = None;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let (name, value) = (name.trim().to_lowercase(), value.trim());
        match name.as_str() {
            "host" => host = Some(value.to_owned()),
            "content-length" => {}
            _ => {
                add_header(&name, value.to_owned(), &node.span, backend, context);
            }
        }
    }
    let Some(host) = host else {
        context.lost(
            node,
            "a `request` without `Host`",
            "describe it with `url`, `headers` and `body`",
        );
        return None;
    };
    let is_plain = text(config, "useHttps").as_deref() == Some("false");
    backend.url = Some(format!("{}://{host}{path}", if is_plain { "http" } else { "https" }));
    backend.method = Some(method.to_uppercase());
    if !body.trim().is_empty() {
        backend.body = Some(Value::from(body.trim()));
    }
    Some(())
}

fn read_query(config: &Node, backend: &mut BackendDraft, context: &mut Context<'_>) {
    let place = Place { backend: &backend.name, what: "the parameter" };
    let Some(url) = &mut backend.url else { return };
    let Some(parameters) = config.get("queryParams") else { return };
    for entry in parameters.entries() {
        let value = text(parameters, &entry.key).unwrap_or_default();
        let value = place.text(&entry.key, value, &entry.key_span, context);
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format_args!("{}={value}", entry.key).to_string());
    }
}

fn read_auth(config: &Node, backend: &mut BackendDraft, context: &mut Context<'_>) {
    let Some(auth) = config.get("auth") else { return };
    let variable = |value: Option<String>, context: &Context<'_>| match context.env.told(&value?) {
        super::Told::Variable(name) => Some(name),
        super::Told::Text(_) | super::Told::Unknown(_) => None,
    };
    match text(auth, "type").as_deref() {
        Some("bearer") => {
            let name = variable(text(auth, "token"), context);
            let name = name.unwrap_or_else(|| {
                let name = keys::variable(&backend.name, "token");
                let advice = format!("put it into the variable `{name}`");
                context.assumed(auth, "the token of `auth` is not copied", advice);
                name
            });
            backend.api_key_env = Some(name);
        }
        Some("api_key") if text(auth, "placement").as_deref() != Some("query") => {
            let name = variable(text(auth, "value"), context);
            let name = name.unwrap_or_else(|| {
                let name = keys::variable(&backend.name, "api_key");
                let advice = format!("put it into the variable `{name}`");
                context.assumed(auth, "the key of `auth` is not copied", advice);
                name
            });
            let header = text(auth, "keyName").unwrap_or_else(|| "x-api-key".to_owned());
            backend.headers_env.insert(header, name);
        }
        kind => {
            let what = format!("`auth` of the kind `{}`", kind.unwrap_or_default());
            context.lost(auth, what, "send a header with `headers` and `{{ env.NAME }}`");
        }
    }
}

/// The server's own id of a conversation.
fn read_session(config: &Node, backend: &mut BackendDraft, context: &mut Context<'_>) {
    let Some(node) = config.get("sessionParser") else { return };
    // The script is given the headers beside the body.
    let place = node.as_str().and_then(|script| pointer(script, &["data"]));
    let in_body = place.as_deref().and_then(|it| it.strip_prefix("/body"));
    let found = in_body.filter(|it| it.is_empty() || it.starts_with('/')).map(ToOwned::to_owned);
    match found {
        Some(place) => {
            backend.session = Some(place);
            let renamed = |text: &str| text.replace("sessionId", "session");
            backend.url = backend.url.as_deref().map(renamed);
            backend.headers.values_mut().for_each(|it| *it = renamed(it));
            if let Some(body) = &mut backend.body {
                rename_session(body);
            }
        }
        None => {
            let advice = "name the place of the id with `session`, a JSON Pointer";
            context.lost(node, "`sessionParser` that is more than a path in the body", advice);
        }
    }
}

fn rename_session(body: &mut Value) {
    match body {
        Value::String(text) if template::is_template(text) => {
            *text = text.replace("sessionId", "session");
        }
        Value::Array(items) => items.iter_mut().for_each(rename_session),
        Value::Object(map) => map.values_mut().for_each(rename_session),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// TOML has no null, so a body that has one is written as JSON.
fn quote_body(backend: &mut BackendDraft) {
    if let Some(body) = backend.body.as_mut().filter(|it| has_null(it)) {
        *body = Value::from(body.to_string());
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Where the reply stands: a place, or what a script makes of all that the server says.
fn read_reply(
    config: &Node,
    backend: &mut BackendDraft,
    context: &mut Context<'_>,
) -> Option<String> {
    let node = config.get("transformResponse").or_else(|| config.get("responseParser"))?;
    let script = node.as_str()?;
    let in_file = match script.trim().strip_prefix("file://") {
        Some(named) => Some(exported(named, node, context)?),
        None => None,
    };
    let script = in_file.as_deref().unwrap_or(script);
    match pointer(script, &["json", "data"]) {
        Some(place) if place.is_empty() => None,
        Some(place) => {
            backend.reply = Some(place);
            None
        }
        None => Some(of_response(script)),
    }
}

/// The function that a file exports, as an expression. Only files that need no others can be written out.
fn exported(named: &str, node: &Node, context: &mut Context<'_>) -> Option<String> {
    let (path, function) = probity_load::function::split_name(named);
    let code = match context.source.text(path) {
        Ok(text) => text.text,
        Err(error) => {
            context.unreadable(node, &error);
            return None;
        }
    };
    if transform::needs_more(&code) || transform::is_typescript(path) {
        let what =
            format!("`transformResponse` from `{path}`, which needs more than JavaScript itself");
        let advice =
            "name the place of the reply with `reply`, or write the script as a `transform`";
        context.lost(node, what, advice);
        return None;
    }
    let code = code.replace("export default", "module.exports =");
    let chosen = match function {
        Some(name) => format!("module.exports.{name}"),
        None => "(module.exports.default || module.exports)".to_owned(),
    };
    Some(format!(
        "(json, text) => {{\nconst module = {{ exports: {{}} }};\n{code}\nreturn {chosen}(json, text);\n}}"
    ))
}

/// A script that is given what the server says as `json` and `text`.
pub(super) fn of_response(script: &str) -> String {
    let script = script.trim().trim_end_matches(';');
    let call = match transform::is_function(script) {
        true => format!("({script})(json, text)"),
        false => format!("({script})"),
    };
    format!(
        "const text = output;\nlet json = null;\ntry {{ json = JSON.parse(output); }} catch {{}}\n\
         const made = {call};\nreturn made && made.output !== undefined ? made.output : made;"
    )
}

/// What of a map is not null.
pub(super) fn known(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_with_a_function_in_it_is_not_called() {
        let made = of_response("(json.items || []).map(x => x.y)");
        assert!(made.contains("const made = ((json.items || []).map(x => x.y));"), "{made}");
        let made = of_response("(json, text) => json.a || text");
        assert!(made.contains("((json, text) => json.a || text)(json, text);"), "{made}");
    }
}
