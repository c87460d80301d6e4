//! Servers that are asked over HTTP.
//!
//! A dialect turns a question into a body and a body into a reply; everything else,
//! limits, errors and keys, is the same for all of them.

use std::{error::Error as _, time::Duration};

use jiff::Timestamp;
use probity_core::{failure::ErrorKind, record::CallError};
use probity_grade::{
    Rules,
    errors::{ErrorInput, exhausted_for},
};
pub use reqwest::Client;
use reqwest::{
    Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, LOCATION},
};
use serde_json::{Map, Value};

use super::{Ask, Failed, Reply, anthropic, ollama, openai};
use crate::{clock::now_ms, redact::Redactor};

/// Largest answer that is read, in bytes.
const LARGEST_BODY: usize = 32 << 20;
/// Largest error that is read, in bytes.
const LARGEST_ERROR: usize = 64 << 10;

/// The language a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// Ollama's chat.
    Ollama,
}

impl Dialect {
    /// The address of the one endpoint that answers prompts. A query stays at its end.
    pub fn endpoint(self, base_url: &str) -> String {
        let (base, query) = split_query(base_url);
        let base = base.trim_end_matches('/');
        let (tail, _) = self.tails();
        let missing = match self {
            // People copy the whole address, too.
            _ if base.ends_with(tail) => "",
            Self::Anthropic if !base.ends_with("/v1") => "/v1/messages",
            Self::Openai | Self::Anthropic | Self::Ollama => tail,
        };
        format!("{base}{missing}{query}")
    }

    /// The address of the list of models.
    fn models(self, endpoint: &str) -> String {
        let (path, query) = split_query(endpoint);
        let (tail, list) = self.tails();
        format!("{}{list}{query}", path.strip_suffix(tail).unwrap_or(path))
    }

    /// How the endpoint ends, and what the list of models has instead.
    fn tails(self) -> (&'static str, &'static str) {
        match self {
            Self::Openai => ("/chat/completions", "/models"),
            Self::Anthropic => ("/messages", "/models"),
            Self::Ollama => ("/api/chat", "/api/tags"),
        }
    }

    fn encode(self, fields: &Map<String, Value>, ask: &Ask<'_>) -> Vec<u8> {
        let body = match self {
            Self::Openai | Self::Ollama => openai::body(fields, ask),
            Self::Anthropic => anthropic::body(fields, ask),
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn decode(self, body: &[u8]) -> Result<Reply, Undecoded> {
        match self {
            Self::Openai => openai::decode(body),
            Self::Anthropic => anthropic::decode(body),
            Self::Ollama => ollama::decode(body),
        }
    }
}

/// An address without its query, and the query with its question mark.
fn split_query(url: &str) -> (&str, &str) {
    url.split_at(url.find('?').unwrap_or(url.len()))
}

/// Why a body is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecoded {
    /// It reports an error, whatever the status says.
    Error,
    /// It is not what the server is documented to send.
    Shape(&'static str),
}

/// A server.
#[derive(Debug)]
pub struct Http {
    client: Client,
    dialect: Dialect,
    kind: &'static str,
    url: String,
    headers: HeaderMap,
    /// The fields that are the same in every body.
    fields: Map<String, Value>,
    redactor: Redactor,
    rules: &'static Rules,
}

/// What a server needs to be asked.
#[derive(Debug)]
pub struct HttpConfig {
    /// Its language.
    pub dialect: Dialect,
    /// Its kind, for the rules of errors.
    pub kind: &'static str,
    /// The address of its endpoint.
    pub url: String,
    /// Keys and whatever else it wants.
    pub headers: HeaderMap,
    /// The fields that are the same in every body.
    pub fields: Map<String, Value>,
    /// What must not be kept.
    pub redactor: Redactor,
}

/// What a server says of itself, without a call to a model.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    /// The models it lists; an error if it does not answer.
    pub models: Result<Vec<String>, CallError>,
    /// How long the answer took.
    pub latency: Duration,
}

/// The one client that all backends share.
///
/// Nothing is retried in it and no redirect is followed: a call that is not seen did
/// not happen, and a key must not travel to another host.
pub fn client() -> Result<Client, reqwest::Error> {
    // Fails only if a provider is installed already, which is as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("probity/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(1024)
        .build()
}

impl Http {
    /// A server that is asked through a client.
    pub fn new(client: Client, config: HttpConfig, rules: &'static Rules) -> Self {
        let HttpConfig { dialect, kind, url, mut headers, fields, redactor } = config;
        headers.insert(CONTENT_TYPE, reqwest::header::HeaderValue::from_static("application/json"));
        Self { client, dialect, kind, url, headers, fields, redactor, rules }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it is, without a password and without what its query says.
    pub fn shown_url(&self) -> String {
        self.redactor.cleaned(shown(&self.url))
    }

    /// Asks, and waits no longer than `limit`.
    pub async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        match tokio::time::timeout(limit, self.exchange(ask)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let seconds = limit.as_secs_f64();
                let message = format!("no complete answer within {seconds} s");
                Err(CallError::new(ErrorKind::Timeout, message).into())
            }
        }
    }

    /// Asks for the list of models, which costs nothing.
    pub async fn probe(&self, limit: Duration) -> HttpProbe {
        let began = tokio::time::Instant::now();
        let models = match tokio::time::timeout(limit, self.list_models()).await {
            Ok(models) => models,
            Err(_) => Err(CallError::new(ErrorKind::Timeout, "no answer in time")),
        };
        HttpProbe { models, latency: began.elapsed() }
    }

    async fn list_models(&self) -> Result<Vec<String>, CallError> {
        let request = self.client.get(self.dialect.models(&self.url)).headers(self.headers.clone());
        let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        // Some servers list hundreds of models, each at length.
        let body = read_body(&mut response, LARGEST_BODY).await;
        if !status.is_success() {
            let text = body.unwrap_or_default();
            let text = &text[..text.len().min(LARGEST_ERROR)];
            return Err(self.refused(status, response.headers(), &String::from_utf8_lossy(text)));
        }
        let body = body.map_err(|error| self.broken_off(error, LARGEST_BODY))?;
        let list: Value = serde_json::from_slice(&body).unwrap_or_default();
        let entries = ["data", "models"].iter().find_map(|key| list.get(key)?.as_array());
        let Some(entries) = entries else {
            let text = String::from_utf8_lossy(&body);
            return Err(match list.get("error").is_some_and(|error| !error.is_null()) {
                true => self.refused(status, response.headers(), &text),
                false => self.not_understood("it is no list of models", &body),
            });
        };
        let name = |entry: &Value| {
            let name = ["id", "name", "model"].iter().find_map(|key| entry.get(key)?.as_str());
            name.map(|name| self.redactor.clean(name).into_owned())
        };
        Ok(entries.iter().filter_map(name).collect())
    }

    async fn exchange(&self, ask: &Ask<'_>) -> Result<Reply, Failed> {
        let body = self.dialect.encode(&self.fields, ask);
        let request = self.client.post(&self.url).headers(self.headers.clone()).body(body);
        let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let most = if status.is_success() { LARGEST_BODY } else { LARGEST_ERROR };
        let body = read_body(&mut response, most).await;
        if !status.is_success() {
            // What came of the explanation is better than nothing.
            let text = body.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            return Err(self.refused(status, response.headers(), &text).into());
        }
        let body = body.map_err(|error| self.broken_off(error, most))?;
        let headers = response.headers();
        match self.dialect.decode(&body) {
            Ok(reply) if is_silent(&reply) => Err(silence(&reply)),
            Ok(reply) => Ok(self.presented(reply, headers)),
            Err(Undecoded::Error) => {
                Err(self.refused(status, headers, &String::from_utf8_lossy(&body)).into())
            }
            Err(Undecoded::Shape(what)) => Err(self.not_understood(what, &body).into()),
        }
    }

    /// The reply without keys, and with what the headers say.
    fn presented(&self, reply: Reply, headers: &HeaderMap) -> Reply {
        let clean = |text: Option<String>| text.map(|text| self.redactor.cleaned(text));
        let wait = with_headers(headers, exhausted_for);
        Reply {
            text: self.redactor.cleaned(reply.text),
            stop_reason: clean(reply.stop_reason),
            model: clean(reply.model),
            exhausted_for: wait.and_then(|it| Duration::try_from_secs_f64(it).ok()),
            ..reply
        }
    }

    /// The server answered, and the answer is an error.
    fn refused(&self, status: StatusCode, headers: &HeaderMap, text: &str) -> CallError {
        let verdict = with_headers(headers, |headers| {
            let input = ErrorInput {
                backend: Some(self.kind),
                status: Some(status.as_u16()),
                text,
                headers,
                ..ErrorInput::default()
            };
            let verdict = self.rules.errors().classify(&input);
            let window = verdict.retry_after.or_else(|| exhausted_for(headers));
            (verdict.kind, verdict.permanent, window)
        });
        let (kind, permanent, retry_after) = verdict;
        let target = headers.get(LOCATION).filter(|_| status.is_redirection());
        let said = match (target, text.trim()) {
            (Some(target), _) => {
                let target = String::from_utf8_lossy(target.as_bytes());
                let target = self.redactor.error_text(&shown_target(&target));
                format!("it redirects to `{target}`, which is not followed")
            }
            (None, "") => status.canonical_reason().unwrap_or("no explanation").to_owned(),
            (None, text) => self.redactor.error_text(&message_of(text)),
        };
        CallError {
            permanent,
            retry_after,
            status: Some(status.as_u16()),
            ..CallError::new(kind, format!("HTTP {}: {said}", status.as_u16()))
        }
    }

    /// There was no answer.
    fn unreachable(&self, error: &reqwest::Error) -> CallError {
        let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Network };
        let mut message = match error {
            error if error.is_connect() => "failed to connect".to_owned(),
            error if error.is_request() => "the connection failed".to_owned(),
            _ => "the request failed".to_owned(),
        };
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        CallError::new(kind, self.redactor.error_text(&message))
    }

    /// The answer began and did not end.
    fn broken_off(&self, error: BodyError, most: usize) -> CallError {
        match error {
            BodyError::TooLarge => {
                let message = format!("the answer is larger than {} MiB", most >> 20);
                CallError::new(ErrorKind::Server, message)
            }
            BodyError::Broken(error) => self.unreachable(&error),
        }
    }

    /// The server answered 200, with something that no such server sends.
    fn not_understood(&self, what: &str, body: &[u8]) -> CallError {
        // Cut last: a key that is cut in two is not recognised.
        let text = String::from_utf8_lossy(&body[..body.len().min(LARGEST_ERROR)]);
        let mut shown = self.redactor.error_text(text.trim());
        shown.truncate(shown.floor_char_boundary(200));
        let error = match shown.is_empty() {
            true => CallError::new(ErrorKind::Empty, "the answer is empty: it has no body"),
            false => {
                let message = format!("the answer is not understood: {what}; it begins `{shown}`");
                CallError::new(ErrorKind::Server, message)
            }
        };
        CallError { status: Some(200), ..error }
    }
}

/// An address as it may be shown, however short its secrets are.
fn shown(address: &str) -> String {
    let Ok(url) = Url::parse(address) else { return "[redacted]".to_owned() };
    let user = match (url.username(), url.password()) {
        ("", None) => String::new(),
        (_, None) => "[redacted]@".to_owned(),
        (user, Some(_)) => format!("{user}:[redacted]@"),
    };
    let host = url.host_str().unwrap_or("");
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let hidden = |pair: &str| match pair.split_once('=') {
        Some((name, _)) => format!("{name}=[redacted]"),
        None => "[redacted]".to_owned(),
    };
    let query = url.query().map_or_else(String::new, |query| {
        format!("?{}", query.split('&').map(hidden).collect::<Vec<_>>().join("&"))
    });
    format!("{}://{user}{host}{port}{}{query}", url.scheme(), url.path())
}

/// Where a redirect leads, without a query: it may hold what our own address holds.
fn shown_target(target: &str) -> String {
    match split_query(target) {
        (_, "") => target.to_owned(),
        (path, _) => format!("{path}?[redacted]"),
    }
}

/// A number of tokens. What is no such number is left out, and the reply is kept.
pub(super) fn count(value: Option<Value>) -> Option<u64> {
    const MOST: f64 = 1e12;
    let number = value?.as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    (0.0..MOST).contains(&number).then_some(number as u64)
}

/// Stop reasons with which a reply without text is a reply: somebody kept it from being
/// said, its length was used up, or a tool was called instead. Asking again would bring,
/// and cost, the same.
const SPEECHLESS: &[&str] = &[
    "content_filter",
    "refusal",
    "safety",
    "guardrail",
    "blocked",
    "max_tokens",
    "max_output_tokens",
    "length",
    "tool_use",
    "tool_calls",
    "function_call",
];

/// Whether nothing was said, and nothing says why.
pub(super) fn is_silent(reply: &Reply) -> bool {
    let explained = || {
        let reason = reply.stop_reason.as_deref().unwrap_or("").to_ascii_lowercase();
        SPEECHLESS.iter().any(|word| reason.contains(word))
    };
    reply.text.trim().is_empty() && !explained()
}

/// The error that silence is. It was paid for.
pub(super) fn silence(reply: &Reply) -> Failed {
    let reason = reply.stop_reason.as_deref().unwrap_or("none");
    let message = format!("the reply is empty (stop reason: {reason})");
    let error = CallError { status: Some(200), ..CallError::new(ErrorKind::Empty, message) };
    Failed { error: Box::new(error), usage: reply.usage, cost_usd: reply.cost_usd }
}

/// The sentence in an error's body, or all of it.
fn message_of(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let error = value.get("error").unwrap_or(&value);
    let said = |value: &Value| {
        let text = value.as_str().or_else(|| value.get("message")?.as_str());
        text.map(ToOwned::to_owned)
    };
    let kind = ["type", "code", "status"].iter().find_map(|key| error.get(key)?.as_str());
    match (said(error).or_else(|| said(value.get("detail")?)), kind) {
        (Some(message), Some(kind)) => format!("{message} ({kind})"),
        (Some(message), None) => message,
        (None, _) => text.to_owned(),
    }
}

enum BodyError {
    TooLarge,
    Broken(reqwest::Error),
}

/// Reads a body up to a size. Of a body that breaks off, or is larger, nothing is used.
async fn read_body(response: &mut Response, most: usize) -> Result<Vec<u8>, BodyError> {
    let expected = response.content_length().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let mut body = Vec::with_capacity(expected.min(most).min(1 << 20));
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Hands out the headers as text, with a date even where the server has no clock.
fn with_headers<T>(headers: &HeaderMap, use_them: impl FnOnce(&[(&str, &str)]) -> T) -> T {
    // Most answers bring nothing to look at.
    let counts = |name: &str| name.contains("ratelimit") || name.contains("retry-after");
    if !headers.keys().any(|name| counts(name.as_str())) {
        return use_them(&[]);
    }
    let now = jiff::fmt::rfc2822::to_string(
        &Timestamp::from_millisecond(now_ms())
            .unwrap_or_default()
            .to_zoned(jiff::tz::TimeZone::UTC),
    );
    let now = now.unwrap_or_default();
    let mut pairs: Vec<(&str, &str)> = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    pairs.push(("date", &now));
    use_them(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dialect_has_its_endpoint() {
        let endpoint = |dialect: Dialect, base| dialect.endpoint(base);
        assert_eq!(endpoint(Dialect::Openai, "http://h/v1/"), "http://h/v1/chat/completions");
        assert_eq!(endpoint(Dialect::Anthropic, "http://h"), "http://h/v1/messages");
        assert_eq!(endpoint(Dialect::Anthropic, "http://h/v1"), "http://h/v1/messages");
        assert_eq!(endpoint(Dialect::Ollama, "http://h/"), "http://h/api/chat");
        assert_eq!(Dialect::Openai.models("http://h/v1/chat/completions"), "http://h/v1/models");
        assert_eq!(Dialect::Anthropic.models("http://h/v1/messages"), "http://h/v1/models");
        assert_eq!(Dialect::Ollama.models("http://h/api/chat"), "http://h/api/tags");
        assert_eq!(endpoint(Dialect::Anthropic, "http://h/v1/messages"), "http://h/v1/messages");
    }

    #[test]
    fn a_query_stays_at_the_end() {
        let both = |dialect: Dialect, base| {
            let endpoint = dialect.endpoint(base);
            (dialect.models(&endpoint), endpoint)
        };
        let expected = |models: &str, endpoint: &str| (models.to_owned(), endpoint.to_owned());
        assert_eq!(
            both(Dialect::Anthropic, "http://h/p?key=a/b"),
            expected("http://h/p/v1/models?key=a/b", "http://h/p/v1/messages?key=a/b")
        );
        assert_eq!(
            both(Dialect::Openai, "http://h/v1/?api-version=1"),
            expected(
                "http://h/v1/models?api-version=1",
                "http://h/v1/chat/completions?api-version=1"
            )
        );
        assert_eq!(
            both(Dialect::Ollama, "http://h?k=v"),
            expected("http://h/api/tags?k=v", "http://h/api/chat?k=v")
        );
    }

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(
            shown("http://u:p@[::1]:8080/v1/x?key=abc&flag&n=1"),
            "http://u:[redacted]@[::1]:8080/v1/x?key=[redacted]&[redacted]&n=[redacted]"
        );
        assert_eq!(shown("https://token@h/v1"), "https://[redacted]@h/v1");
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in proptest::collection::vec(0_u8.., 0..200)) {
            for dialect in [Dialect::Openai, Dialect::Anthropic, Dialect::Ollama] {
                let _ = dialect.decode(&body);
            }
            let _ = message_of(&String::from_utf8_lossy(&body));
        }
    }

    #[test]
    fn a_reply_without_text_is_a_reply_where_the_stop_reason_explains_it() {
        let silent = |dialect: Dialect, body: &str| {
            is_silent(&dialect.decode(body.as_bytes()).expect("an answer"))
        };
        let anthropic = |body| silent(Dialect::Anthropic, body);
        assert!(!anthropic(r#"{"content":[],"stop_reason":"max_tokens"}"#));
        assert!(!anthropic(
            r#"{"content":[{"type":"thinking","thinking":"hm"}],"stop_reason":"max_tokens"}"#
        ));
        assert!(!anthropic(r#"{"content":[{"type":"tool_use"}],"stop_reason":"tool_use"}"#));
        assert!(anthropic(r#"{"content":[{"text":" "}],"stop_reason":"end_turn"}"#));
        let openai = |body| silent(Dialect::Openai, body);
        assert!(!openai(r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#));
        assert!(!openai(
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{}]},"finish_reason":"stop"}]}"#
        ));
        assert!(openai(r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#));
        let ollama = |body| silent(Dialect::Ollama, body);
        assert!(!ollama(r#"{"message":{"content":""},"done":true,"done_reason":"length"}"#));
        assert!(!ollama(
            r#"{"message":{"content":"","tool_calls":[{}]},"done":true,"done_reason":"stop"}"#
        ));
    }

    #[test]
    fn the_sentence_of_an_error_is_found() {
        let cases = [
            (r#"{"error":{"message":"bad key","type":"auth"}}"#, "bad key (auth)"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded (overloaded_error)",
            ),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            ("<html>Bad gateway</html>", "<html>Bad gateway</html>"),
            ("[1]", "[1]"),
        ];
        for (body, expected) in cases {
            assert_eq!(message_of(body), expected);
        }
    }
}
