//! Backends of kind `http`: requests and replies that the suite itself describes.

use std::{collections::BTreeMap, ops::Range};

use probity_core::{
    json::{self, Limits},
    located::{Node, NodeValue},
};
use serde_json::Value;

use super::{
    BackendConfig, BackendKind, headers_of,
    keys::{KEY_IN_FILE, names_key},
};
use crate::{
    case::{Fields, Findings},
    suite::check_texts,
    template,
};

/// Fields that only a backend of kind `http` has.
pub(super) const OF_CUSTOM: &[&str] =
    &["url", "method", "headers", "body", "reply", "error", "usage", "session", "aws_service"];
/// Fields of other servers that would do nothing here.
pub(super) const OF_DIALECTS: &[&str] = &["base_url", "response_format", "extra_body"];

/// A request, and where the reply stands in its answer. Texts are templates.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomHttp {
    /// Where it goes.
    pub url: String,
    /// How it is sent.
    pub method: Method,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    pub body: Option<CustomBody>,
    /// JSON Pointer to the reply; without one, all of the answer is the reply.
    pub reply: Option<String>,
    /// JSON Pointer to what is wrong, if anything is.
    pub error: Option<String>,
    /// What a call used.
    pub usage: UsagePointers,
    /// JSON Pointer to the id that the server gives a conversation; without one, it gets ours.
    pub session: Option<String>,
    /// The service of AWS that requests are signed for.
    pub aws_service: Option<String>,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum CustomBody {
    /// A text.
    Text(String),
    /// JSON whose texts are templates.
    Json(Value),
}

/// JSON Pointers to what a call used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsagePointers {
    /// Tokens of the prompt.
    pub input_tokens: Option<String>,
    /// Tokens of the reply.
    pub output_tokens: Option<String>,
    /// Tokens of the prompt that were cached.
    pub cached_tokens: Option<String>,
    /// Dollars.
    pub cost_usd: Option<String>,
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    #[default]
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Get, Self::Post, Self::Put, Self::Patch];

    /// The name used in files, and in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
        }
    }
}

impl CustomHttp {
    /// Every text of it that is a template.
    pub fn templates(&self) -> Vec<&str> {
        let mut all = vec![self.url.as_str()];
        all.extend(self.headers.values().map(String::as_str));
        match &self.body {
            Some(CustomBody::Text(text)) => all.push(text),
            Some(CustomBody::Json(value)) => all.extend(template::texts_in(value)),
            None => {}
        }
        all
    }

    /// The scheme and the host of its address, which are the same for every request.
    pub fn origin(&self) -> &str {
        let after_scheme = self.url.find("://").map_or(0, |at| at + 3);
        let rest = &self.url[after_scheme..];
        // The braces of a template may hold a slash.
        let host = rest.find("}}").filter(|_| rest.starts_with("{{")).map_or(0, |at| at + 2);
        let end = rest[host..].find(['/', '?']).map_or(rest.len(), |at| host + at);
        &self.url[..after_scheme + end]
    }
}

pub(super) fn decode(fields: &mut Fields<'_, '_>, kind: BackendKind) -> Option<CustomHttp> {
    if kind != BackendKind::Http {
        return None;
    }
    let url = fields.text("url")?;
    let methods = Method::ALL.map(Method::as_str);
    let method = fields.one_of("method", "method", &methods, |name| {
        Method::ALL.into_iter().find(|it| it.as_str() == name)
    });
    Some(CustomHttp {
        url,
        method: method.unwrap_or_default(),
        headers: decode_headers(fields),
        body: decode_body(fields),
        reply: decode_pointer(fields, "reply"),
        error: decode_pointer(fields, "error"),
        usage: decode_usage(fields).unwrap_or_default(),
        session: decode_pointer(fields, "session"),
        aws_service: fields.text("aws_service"),
    })
}

/// Whether what such a backend says can be used.
pub(super) fn check(config: &BackendConfig, fields: &mut Fields<'_, '_>) {
    let Some(custom) = &config.custom else { return };
    for key in ["url", "headers", "body"] {
        if let Some(node) = fields.get(key) {
            check_texts(key, node, fields.findings());
        }
    }
    let span = fields.span("url");
    if custom.url.contains('#') && !template::is_template(&custom.url) {
        let message = "`url` must not have a fragment: no server gets to see it".to_owned();
        fields.findings().error("bad-url", &span, message);
    }
    // What is no template was reported with its place.
    let origin = custom.origin();
    if template::check(origin).is_ok() && !template::names_only_env(origin) {
        let message = "the host of `url` must be the same for every case".to_owned();
        let help = "only `{{ env.NAME }}` can be filled in there".to_owned();
        fields.findings().error_with_help("bad-url", &span, message, help);
    }
    if custom.aws_service.is_some() && config.api_key_env.is_some() {
        let span = fields.span("api_key_env");
        let message = "a request that `aws_service` signs has no `api_key_env`".to_owned();
        let help =
            "signatures are made with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`".to_owned();
        fields.findings().error_with_help("foreign-field", &span, message, help);
    }
    if custom.method == Method::Get && custom.body.is_some() {
        let span = fields.span("body");
        let message = "a request with the method `GET` has no `body`".to_owned();
        fields.findings().error("foreign-field", &span, message);
    }
}

fn decode_headers(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    for entry in fields.get("headers").map(Node::entries).unwrap_or_default() {
        if let Some(value) = entry.node.as_str() {
            check_secret(&entry.key, value, &entry.key_span, fields.findings());
        }
    }
    headers_of(fields, "headers", "its value, a string")
}

/// A header that is there for a key takes it from a variable.
fn check_secret(name: &str, value: &str, span: &Range<usize>, findings: &mut Findings) {
    if names_key(name) && !template::is_template(value) {
        let message = "a key has no place in a suite file".to_owned();
        let help = "put it into a variable, and name that as `{{ env.NAME }}`".to_owned();
        findings.error_with_help(KEY_IN_FILE, span, message, help);
    }
}

fn decode_body(fields: &mut Fields<'_, '_>) -> Option<CustomBody> {
    let node = fields.get("body")?;
    match &node.value {
        NodeValue::String(text) => {
            // JSON that is written as a text is filled in like a table.
            let read = json::parse(text, &Limits::default()).ok().map(|it| it.value);
            let read = read.filter(|it| it.is_object() || it.is_array());
            Some(read.map_or_else(|| CustomBody::Text(text.clone()), CustomBody::Json))
        }
        NodeValue::Array(_) | NodeValue::Object(_) => Some(CustomBody::Json(node.to_json())),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
            let message =
                format!("`body` must be a table, a list or a string, not {}", node.kind());
            fields.findings().error("wrong-type", &node.span, message);
            None
        }
    }
}

fn decode_usage(fields: &mut Fields<'_, '_>) -> Option<UsagePointers> {
    const KNOWN: &[&str] = &["input_tokens", "output_tokens", "cached_tokens", "cost_usd"];
    let node = fields.get("usage")?;
    let mut inner = Fields::new(node, "`usage`", KNOWN, fields.findings())?;
    Some(UsagePointers {
        input_tokens: decode_pointer(&mut inner, "input_tokens"),
        output_tokens: decode_pointer(&mut inner, "output_tokens"),
        cached_tokens: decode_pointer(&mut inner, "cached_tokens"),
        cost_usd: decode_pointer(&mut inner, "cost_usd"),
    })
}

/// A JSON Pointer; the empty one is the whole answer.
fn decode_pointer(fields: &mut Fields<'_, '_>, key: &str) -> Option<String> {
    let text = fields.str(key)?;
    if !text.is_empty() && !text.starts_with('/') {
        let span = fields.span(key);
        let message = format!("`{key}` must be a JSON Pointer, which begins with `/`");
        let help = "such as \"/choices/0/message/content\"".to_owned();
        fields.findings().error_with_help("bad-pointer", &span, message, help);
        return None;
    }
    Some(text.to_owned())
}
