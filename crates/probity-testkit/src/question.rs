//! Reading a request as the vendor would, so that a client's mistakes come to light.

use hyper::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    bedrock, gemini, responses,
    route::{Dialect, is_raw_predict},
};

/// What is asked, whatever the dialect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    /// The text of the user's last message.
    pub(crate) prompt: String,
    /// The API key.
    pub(crate) key: Option<String>,
    /// The instructions, where they are messages as well.
    pub(crate) system: String,
    /// Whether the answer comes in pieces.
    pub(crate) stream: bool,
    /// Whether the last of them has the count of tokens, which OpenAI has to be asked for.
    pub(crate) stream_usage: bool,
    /// What is wanted of the prompt.
    pub(crate) wants: Wants,
}

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// An answer to the prompt.
    Answer,
    /// The embedding of it.
    Embedding,
    /// How relevant it is to what stands in the place of instructions.
    Relevance,
}

/// Why the vendor would not take the request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) param: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
}

/// The API key that a request carries.
pub(crate) fn key(headers: &HeaderMap) -> Option<&str> {
    let value = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = value("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer.or_else(|| ["x-api-key", "api-key", "x-goog-api-key"].into_iter().find_map(value))
}

pub(crate) fn read(
    dialect: Dialect,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Question, Complaint> {
    match dialect {
        Dialect::OpenAi => read_openai(headers, body),
        Dialect::Anthropic if is_raw_predict(path) => read_vertex(headers, path, body),
        Dialect::Anthropic => read_anthropic(headers, body),
        Dialect::Ollama => read_ollama(headers, body),
        Dialect::Responses => responses::read(headers, body),
        Dialect::Gemini => gemini::read(headers, path, body),
        Dialect::Bedrock => bedrock::read(headers, path, body),
    }
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    model: Value,
    messages: Option<Vec<Message>>,
    #[serde(default)]
    max_tokens: Value,
    #[serde(default)]
    anthropic_version: Value,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Vec<Value>,
    #[serde(default)]
    tool_call_id: Value,
}

fn read_openai(headers: &HeaderMap, body: &[u8]) -> Result<Question, Complaint> {
    let is_json = headers
        .get("content-type")
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return Err(Complaint::plain("you must provide a model parameter"));
    }
    let request: Request = serde_json::from_slice(body).map_err(|error| {
        Complaint::plain(&format!(
            "We could not parse the JSON body of your request. (HINT: This likely means you \
             aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, \
             but what was sent was not valid JSON: {error}.)"
        ))
    })?;
    let Some(model) = text_of(&request.model) else {
        return Err(Complaint::plain("you must provide a model parameter"));
    };
    let messages = request.messages.ok_or_else(|| Complaint {
        message: "Missing required parameter: 'messages'.".to_owned(),
        param: Some("messages"),
        code: Some("missing_required_parameter"),
    })?;
    if messages.is_empty() {
        return Err(Complaint {
            message: "Invalid 'messages': empty array. Expected an array with minimum length 1, \
                      but got an empty array instead."
                .to_owned(),
            param: Some("messages"),
            code: Some("empty_array"),
        });
    }
    let roles = ["system", "developer", "user", "assistant", "tool", "function"];
    if let Some(message) = messages.iter().find(|it| !roles.contains(&it.role.as_str())) {
        return Err(Complaint {
            message: format!("Invalid value: '{}'. Supported values are: {roles:?}.", message.role),
            param: Some("messages[0].role"),
            code: Some("invalid_value"),
        });
    }
    if let Some(id) = unanswered_openai(&messages) {
        return Err(Complaint {
            message: format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding \
                 to each 'tool_call_id'. The following tool_call_ids did not have response \
                 messages: {id}"
            ),
            param: Some("messages"),
            code: None,
        });
    }
    let stream = request.stream == Some(true);
    if request.stream_options.is_some() && !stream {
        return Err(Complaint {
            message: "The 'stream_options' parameter is only allowed when 'stream' is enabled."
                .to_owned(),
            param: Some("stream_options"),
            code: None,
        });
    }
    let stream_usage = request.stream_options.is_some_and(|it| it.include_usage);
    let question = Question::new(Dialect::OpenAi, model, &messages, headers);
    Ok(Question { stream, stream_usage, ..question })
}

/// Anthropic's messages at Vertex AI: the model stands in the path, the version in the body.
fn read_vertex(headers: &HeaderMap, path: &str, body: &[u8]) -> Result<Question, Complaint> {
    let request: Request = serde_json::from_slice(body).map_err(|error| {
        Complaint::plain(&format!("The request body is not valid JSON: {error}"))
    })?;
    if !request.model.is_null() {
        return Err(Complaint::plain("model: Extra inputs are not permitted"));
    }
    if request.anthropic_version != "vertex-2023-10-16" {
        return Err(Complaint::plain("anthropic_version: Field required"));
    }
    let model = path.rsplit('/').next().and_then(|it| it.split(':').next()).unwrap_or_default();
    let stream = request.stream == Some(true);
    if stream != path.ends_with(":streamRawPredict") {
        return Err(Complaint::plain("stream: the path says something else"));
    }
    let messages = request.messages.unwrap_or_default();
    if messages.is_empty() || request.max_tokens.is_null() {
        return Err(Complaint::plain("messages, max_tokens: Field required"));
    }
    let model = model.to_owned();
    Ok(Question { stream, ..Question::new(Dialect::Anthropic, model, &messages, headers) })
}

fn read_anthropic(headers: &HeaderMap, body: &[u8]) -> Result<Question, Complaint> {
    if !headers.contains_key("anthropic-version") {
        return Err(Complaint::plain("anthropic-version: header is required"));
    }
    let request: Request = serde_json::from_slice(body).map_err(|error| {
        Complaint::plain(&format!("The request body is not valid JSON: {error}"))
    })?;
    let Some(model) = text_of(&request.model) else {
        return Err(Complaint::plain("model: Field required"));
    };
    if request.max_tokens.is_null() {
        return Err(Complaint::plain("max_tokens: Field required"));
    }
    if request.max_tokens.as_u64().is_none_or(|max| max == 0) {
        return Err(Complaint::plain("max_tokens: Input should be greater than or equal to 1"));
    }
    let Some(messages) = request.messages else {
        return Err(Complaint::plain("messages: Field required"));
    };
    if messages.is_empty() {
        return Err(Complaint::plain("messages: at least one message is required"));
    }
    if let Some(message) = messages.iter().find(|it| it.role == "system") {
        return Err(Complaint::plain(&format!(
            "messages: Unexpected role \"{}\". The Messages API accepts a top-level `system` \
             parameter, not \"system\" as an input message role.",
            message.role
        )));
    }
    if let Some(id) = unanswered_anthropic(&messages) {
        return Err(Complaint::plain(&format!(
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        )));
    }
    let stream = request.stream == Some(true);
    Ok(Question { stream, ..Question::new(Dialect::Anthropic, model, &messages, headers) })
}

fn read_ollama(headers: &HeaderMap, body: &[u8]) -> Result<Question, Complaint> {
    if body.is_empty() {
        return Err(Complaint::plain("missing request body"));
    }
    let request: Request =
        serde_json::from_slice(body).map_err(|error| Complaint::plain(&error.to_string()))?;
    let Some(model) = text_of(&request.model) else {
        return Err(Complaint::plain("model is required"));
    };
    // The real one takes this as the wish to load the model. No client of ours has that wish.
    let Some(messages) = request.messages.filter(|messages| !messages.is_empty()) else {
        return Err(Complaint::plain("messages is required"));
    };
    // It sends lines unless told not to.
    let stream = request.stream.unwrap_or(true);
    Ok(Question { stream, ..Question::new(Dialect::Ollama, model, &messages, headers) })
}

impl Question {
    fn new(dialect: Dialect, model: String, messages: &[Message], headers: &HeaderMap) -> Self {
        let key = key(headers).map(str::to_owned);
        let system = messages.iter().filter(|it| it.role == "system");
        let system = system.filter_map(|it| it.content.as_str()).collect();
        let prompt = prompt(messages);
        Self {
            dialect,
            model,
            prompt,
            system,
            key,
            stream: false,
            stream_usage: false,
            wants: Wants::Answer,
        }
    }
}

impl Complaint {
    pub(crate) fn plain(message: &str) -> Self {
        Self { message: message.to_owned(), param: None, code: None }
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A call that the messages after it do not answer, by its id.
fn unanswered_openai(messages: &[Message]) -> Option<&Value> {
    messages.iter().enumerate().find_map(|(at, message)| {
        let answers: Vec<&Value> = messages[at + 1..]
            .iter()
            .take_while(|it| it.role == "tool")
            .map(|it| &it.tool_call_id)
            .collect();
        let ids = message.tool_calls.iter().map(|it| &it["id"]);
        ids.into_iter().find(|id| !id.is_string() || !answers.contains(id))
    })
}

fn unanswered_anthropic(messages: &[Message]) -> Option<&Value> {
    let blocks = |at: usize| {
        messages.get(at).and_then(|it| it.content.as_array()).map(Vec::as_slice).unwrap_or_default()
    };
    (0..messages.len()).find_map(|at| {
        let answers: Vec<&Value> = blocks(at + 1).iter().map(|it| &it["tool_use_id"]).collect();
        let calls = blocks(at).iter().filter(|it| it["type"] == "tool_use");
        calls.map(|it| &it["id"]).find(|id| !id.is_string() || !answers.contains(id))
    })
}

fn prompt(messages: &[Message]) -> String {
    let last_of_user = messages.iter().rfind(|message| message.role == "user");
    match last_of_user.or(messages.last()).map(|message| &message.content) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn check(dialect: Dialect, body: &str, complaint: Option<&str>) {
        let headers =
            headers(&[("content-type", "application/json"), ("anthropic-version", "2023-06-01")]);
        let read = read(dialect, "", &headers, body.as_bytes());
        match complaint {
            Some(part) => {
                let message = read.expect_err(body).message;
                assert!(message.contains(part), "{message}");
            }
            None => assert!(read.is_ok(), "{read:?}"),
        }
    }

    #[test]
    fn a_request_that_the_vendor_would_refuse_is_refused() {
        let open = |body: &str, complaint| check(Dialect::OpenAi, body, complaint);
        open(r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#, None);
        open("{", Some("could not parse the JSON"));
        open(r#"{"messages":[{"role":"user","content":"hi"}]}"#, Some("model parameter"));
        open(r#"{"model":"m"}"#, Some("'messages'"));
        open(r#"{"model":"m","messages":[]}"#, Some("empty array"));
        open(r#"{"model":"m","messages":[{"role":"me","content":"hi"}]}"#, Some("'me'"));

        let anthropic = |body: &str, complaint| check(Dialect::Anthropic, body, complaint);
        let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
        anthropic(&format!(r#"{{"model":"m","max_tokens":9,{messages}}}"#), None);
        anthropic(&format!(r#"{{"model":"m",{messages}}}"#), Some("max_tokens: Field"));
        anthropic(&format!(r#"{{"model":"m","max_tokens":0,{messages}}}"#), Some("greater"));
        anthropic(&format!(r#"{{"max_tokens":9,{messages}}}"#), Some("model: Field"));
        anthropic(r#"{"model":"m","max_tokens":9}"#, Some("messages: Field"));
        anthropic(
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"hi"}]}"#,
            Some("Unexpected role"),
        );

        let ollama = |body: &str, complaint| check(Dialect::Ollama, body, complaint);
        ollama(&format!(r#"{{"model":"m",{messages}}}"#), None);
        ollama("", Some("missing request body"));
        ollama(&format!("{{{messages}}}"), Some("model is required"));
        ollama(r#"{"model":"m"}"#, Some("messages is required"));
    }

    #[test]
    fn anthropic_wants_its_version_header() {
        let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
        let complaint = read(Dialect::Anthropic, "", &HeaderMap::new(), body).unwrap_err();
        assert_eq!(complaint.message, "anthropic-version: header is required");
    }

    #[test]
    fn the_prompt_is_the_last_message_of_the_user() {
        let body = br#"{"model":"m","stream":false,"messages":[
            {"role":"user","content":"first"},
            {"role":"user","content":[{"type":"text","text":"se"},{"type":"text","text":"cond"}]},
            {"role":"assistant","content":"{"}]}"#;
        let headers = headers(&[("authorization", "Bearer sk-1")]);
        let question = read(Dialect::Ollama, "", &headers, body).unwrap();
        let expected = Question {
            dialect: Dialect::Ollama,
            model: "m".to_owned(),
            prompt: "second".to_owned(),
            key: Some("sk-1".to_owned()),
            system: String::new(),
            stream: false,
            stream_usage: false,
            wants: Wants::Answer,
        };
        assert_eq!(question, expected);
    }

    #[test]
    fn a_key_is_found_wherever_vendors_want_it() {
        assert_eq!(key(&headers(&[("x-api-key", "a")])), Some("a"));
        assert_eq!(key(&headers(&[("api-key", "b")])), Some("b"));
        assert_eq!(key(&headers(&[("authorization", "Basic c")])), None);
    }
}
