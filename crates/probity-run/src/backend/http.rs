//! Servers that are asked over HTTP.
//!
//! A dialect turns a question into a body and a body into a reply; everything else,
//! limits, errors and keys, is the same for all of them.

mod errors;

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use jiff::Timestamp;
use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    record::CallError,
    request::{self, Need, Sampling},
};
use probity_grade::{Rules, errors::exhausted_for};
use probity_http::{
    Method, Proxies, Request, Response, Settings, Target, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Ask, Failed, Reply,
    address::{self, shown},
    dialect::{StreamSpec, Undecoded},
    language::{Language, Outgoing, Spoken},
    sigv4::{Signer, Unsigned},
    silence::{is_silent_about, silence},
    stream::{Listener, Misheard},
};
use crate::{apart::apart_if_long, clock::wall_ms, process, redact::Redactor};

/// Largest answer that is read, in bytes.
pub(super) const LARGEST_BODY: usize = 32 << 20;
/// How long a connection is kept that nobody uses. Servers close theirs after five seconds, often, and a
/// request that is on its way then costs a try.
const IDLE: Duration = Duration::from_secs(4);
/// How long it may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Largest error that is read, in bytes.
const LARGEST_ERROR: usize = 64 << 10;

/// A server.
#[derive(Debug)]
pub struct Http {
    client: probity_http::Client,
    /// Where requests go, unless a question has an address of its own.
    target: Option<Target>,
    language: Language,
    kind: &'static str,
    headers: HeaderMap,
    signer: Option<Signer>,
    redactor: Redactor,
    rules: &'static Rules,
    /// Whether the server did not take a JSON Schema.
    refuses_schemas: AtomicBool,
    /// Who answers instead, in a simulation.
    #[cfg(all(feature = "simulated", not(test)))]
    pub(crate) simulated: Option<std::sync::Arc<dyn crate::simulated::Server>>,
}

/// What a server needs to be asked.
#[derive(Debug)]
pub(super) struct HttpConfig {
    /// How it is spoken to.
    pub(super) language: Language,
    /// Its kind, for the rules of errors.
    pub(super) kind: &'static str,
    /// Keys and whatever else it wants.
    pub(super) headers: HeaderMap,
    /// Who signs requests, if they are signed.
    pub(super) signer: Option<Signer>,
    /// What must not be kept.
    pub(super) redactor: Redactor,
}

/// What a server says of itself, without a call to a model.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    /// The models it lists, if it has a list; an error if it does not answer.
    pub models: Result<Option<Vec<String>>, CallError>,
    /// How long the answer took.
    pub latency: Duration,
}

/// The connections that all backends share.
#[derive(Clone, Debug)]
pub struct Client {
    /// To other machines, through the proxies that the environment names.
    outside: probity_http::Client,
    /// To this machine, where a proxy elsewhere would find nothing, or something else.
    loopback: probity_http::Client,
}

impl Client {
    /// The one client that all backends share, which has so many calls in flight at most: as many connections are kept, or
    /// those that are closed would have to be made again at once.
    pub fn new(most_in_flight: usize) -> Self {
        let settings = |proxies| Settings {
            most_idle: most_in_flight,
            idle_limit: IDLE,
            connect_limit: CONNECT_LIMIT,
            proxies,
        };
        Self {
            outside: probity_http::Client::new(settings(Proxies::OfSystem)),
            loopback: probity_http::Client::new(settings(Proxies::Unused)),
        }
    }

    /// The connections to a server. Certificates are read only if it needs any.
    pub(super) fn to(&self, url: &Url) -> Result<probity_http::Client, probity_http::Error> {
        let client = match address::is_loopback(url) {
            true => &self.loopback,
            false => &self.outside,
        };
        client.prepare(&Target::new(url)?)?;
        Ok(client.clone())
    }
}

impl Http {
    /// A server that is asked through a client.
    pub(super) fn new(
        client: probity_http::Client,
        config: HttpConfig,
        rules: &'static Rules,
    ) -> Self {
        let HttpConfig { language, kind, mut headers, signer, redactor } = config;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let target = Url::parse(language.url()).ok().and_then(|it| Target::new(&it).ok());
        let refuses_schemas = AtomicBool::new(false);
        Self {
            client,
            target,
            language,
            kind,
            headers,
            signer,
            redactor,
            rules,
            refuses_schemas,
            #[cfg(all(feature = "simulated", not(test)))]
            simulated: None,
        }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        self.language.url()
    }

    /// Where it is, without a password and without what its query says.
    pub fn shown_url(&self) -> String {
        self.redactor.cleaned(shown(self.url()))
    }

    /// Asks, and waits no longer than `limit`.
    pub async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        let outcome = match tokio::time::timeout(limit, self.exchange(ask)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let seconds = limit.as_secs_f64();
                let message = format!("no complete answer within {seconds} s");
                Err(CallError::new(ErrorKind::Timeout, message).into())
            }
        };
        outcome.map_err(|mut failed| {
            failed.error.url = Some(self.shown_url());
            failed
        })
    }

    /// Whether a name in its list of models is the one that is asked for.
    pub fn is_same_model(&self, listed: &str, model: &str) -> bool {
        self.language.bare_model(listed) == self.language.bare_model(model)
    }

    /// Asks for the list of models, which costs nothing; of a server that has none we know of,
    /// only whether it answers.
    pub async fn probe(&self, limit: Duration) -> HttpProbe {
        let began = Instant::now();
        let probed = async {
            match &self.language {
                Language::Dialect(spoken) => self.list_models(spoken).await.map(Some),
                Language::Custom(_) => self.greet().await.map(|()| None),
            }
        };
        let models = match tokio::time::timeout(limit, probed).await {
            Ok(models) => models,
            Err(_) => Err(CallError::new(ErrorKind::Timeout, "no answer in time")),
        };
        HttpProbe { models, latency: began.elapsed() }
    }

    /// Whether the server answers at all, whatever it says.
    async fn greet(&self) -> Result<(), CallError> {
        let (method, headers) = (Method::OPTIONS, HeaderMap::new());
        let sent = self.send(method, self.url(), headers, Vec::new()).await;
        sent.map(drop).map_err(|error| self.unreachable(&error))
    }

    async fn list_models(&self, spoken: &Spoken) -> Result<Vec<String>, CallError> {
        let url = &spoken.models_url;
        let headers = self.request_headers(&Method::GET, url, HeaderMap::new(), &[])?;
        let sent = self.send(Method::GET, url, headers, Vec::new()).await;
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        // Some servers list hundreds of models, each at length.
        let body = read_body(&mut response, LARGEST_BODY).await;
        if !status.is_success() {
            let text = body.unwrap_or_default();
            let text = &text[..text.len().min(LARGEST_ERROR)];
            return Err(self.refused(status, response.headers(), &String::from_utf8_lossy(text)));
        }
        let body = body.map_err(|error| self.broken_off(error, LARGEST_BODY))?;
        let list = json_of(&body);
        let Some(models) = listed_models(&list) else {
            let text = String::from_utf8_lossy(&body);
            return Err(match list.get("error").is_some_and(|error| !error.is_null()) {
                true => self.refused(status, response.headers(), &text),
                false => self.not_understood("it is not a list of models", &body),
            });
        };
        Ok(models.iter().map(|name| self.redactor.clean(name).into_owned()).collect())
    }

    /// The body for a question as it is sent, without secrets; an error if it cannot be filled in.
    pub fn shown_body(&self, ask: &Ask<'_>) -> Result<Value, CallError> {
        self.language.shown_body(ask)
    }

    /// Those of some settings of a request that it cannot take.
    pub fn ignored(&self, sampling: &Sampling) -> Vec<&'static str> {
        let ignored = self.language.ignored(sampling);
        sampling.names().filter(|it| ignored.contains(it)).collect()
    }

    /// Whether the server is known to keep to a JSON Schema that is sent along.
    pub(super) fn keeps_schemas(&self) -> bool {
        self.language.keeps_schemas()
    }

    /// Whether the server did not take a JSON Schema.
    pub(super) fn refuses_schemas(&self) -> bool {
        self.refuses_schemas.load(Ordering::Relaxed)
    }

    pub(super) fn spare_schemas(&self) {
        self.refuses_schemas.store(true, Ordering::Relaxed);
    }

    /// What the server cannot be told.
    pub fn lacks(&self) -> Cow<'static, [Need]> {
        self.language.lacks()
    }

    /// Whether the server is told which conversation a request belongs to.
    pub(super) fn has_sessions(&self) -> bool {
        match &self.language {
            Language::Dialect(_) => false,
            Language::Custom(custom) => custom.has_sessions(),
        }
    }

    /// Whether requests are made of more of a case than what it asks.
    pub(super) fn is_told_of_cases(&self) -> bool {
        matches!(self.language, Language::Custom(_))
    }

    /// What a case brings into a request beside what it asks, where that can be anything.
    pub(super) fn own_values(&self, case: &TestCase) -> Option<Value> {
        match &self.language {
            Language::Dialect(_) => None,
            Language::Custom(custom) => Some(custom.own_values(case)),
        }
    }

    async fn exchange(&self, ask: &Ask<'_>) -> Result<Reply, Failed> {
        let Outgoing { method, url, headers, body } = self.language.outgoing(ask)?;
        let body = body.unwrap_or_default();
        let headers = self.request_headers(&method, &url, headers, &body)?;
        let began = Instant::now();
        #[cfg(all(feature = "simulated", not(test)))]
        let sent = match &self.simulated {
            Some(server) => server.answer(ask).await,
            None => self.send(method, &url, headers, body).await,
        };
        #[cfg(not(all(feature = "simulated", not(test))))]
        let sent = self.send(method, &url, headers, body).await;
        let mut response = sent.map_err(|error| {
            let is_call = !error.io_error().is_some_and(process::is_out_of_files);
            Failed { is_call, ..self.unreachable(&error).into() }
        })?;
        let status = response.status();
        // A server that cannot do it answers as if it had not been asked to.
        let stream = self.language.stream().filter(|_| !is_json(response.headers()));
        if let Some(stream) = stream.filter(|_| status.is_success()) {
            return Box::pin(self.follow(stream, &mut response, ask, began)).await;
        }
        let most = if status.is_success() { LARGEST_BODY } else { LARGEST_ERROR };
        let body = read_body(&mut response, most).await;
        if !status.is_success() {
            // What came of the explanation is better than nothing.
            let text = body.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            return Err(self.refused(status, response.headers(), &text).into());
        }
        let body = body.map_err(|error| self.broken_off(error, most))?;
        apart_if_long(body.len(), || {
            let decoded = self.language.decode(without_mark(&body), ask);
            self.answered(ask.request, decoded, &response, &body)
        })
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, probity_http::Error> {
        let target = match &self.target {
            Some(target) if url == self.url() => Cow::Borrowed(target),
            Some(_) | None => Cow::Owned(Target::parse(url)?),
        };
        let request = Request { method, target: &target, headers, body: body.into() };
        self.client.send(request).await
    }

    /// The headers of a request: those of every request, its own, and its signature.
    fn request_headers(
        &self,
        method: &Method,
        url: &str,
        own: HeaderMap,
        body: &[u8],
    ) -> Result<HeaderMap, CallError> {
        let mut headers = self.headers.clone();
        headers.extend(own);
        if let Some(signer) = &self.signer
            && let Some(url) = address::parse(url)
        {
            let request = Unsigned { method, url: &url, headers: &headers, body };
            let now = Timestamp::from_millisecond(wall_ms()).unwrap_or_default();
            let signed = signer.sign(&request, now).map_err(|error| {
                CallError::new(ErrorKind::Auth, format!("the request cannot be signed: {error}"))
            })?;
            headers.extend(signed);
        }
        Ok(headers)
    }

    /// Reads a reply while it is written.
    async fn follow(
        &self,
        stream: &StreamSpec,
        response: &mut Response,
        ask: &Ask<'_>,
        began: Instant,
    ) -> Result<Reply, Failed> {
        let mut listener = Listener::new(stream);
        let (mut first_token, mut length) = (None, 0);
        // Of an answer that does not say what it is, what came before the first event.
        let mut unheard = (!is_stream(response.headers())).then(Vec::new);
        while !listener.is_ended() {
            let chunk = response.chunk().await.map_err(|error| self.unreachable(&error))?;
            let Some(chunk) = chunk else { break };
            length += chunk.len();
            if length > LARGEST_BODY {
                return Err(self.broken_off(BodyError::TooLarge, LARGEST_BODY).into());
            }
            if let Some(body) = unheard.as_mut().filter(|_| !listener.has_heard()) {
                body.extend_from_slice(&chunk);
            }
            match listener.hear(&chunk) {
                Ok(true) => drop(first_token.get_or_insert_with(|| began.elapsed())),
                Ok(false) => {}
                Err(Misheard { why, event }) => {
                    return self.answered(ask.request, Err(why), response, event.as_bytes());
                }
            }
        }
        let latency = Some(began.elapsed());
        match (listener.finish(), unheard) {
            (Some(Ok(reply)), _) => {
                drain(response).await;
                let reply = Reply { latency, first_token, ..reply };
                self.answered(ask.request, Ok(reply), response, &[])
            }
            (Some(Err(Misheard { why, event })), _) => {
                self.answered(ask.request, Err(why), response, event.as_bytes())
            }
            (None, Some(body)) => {
                let decoded = self.language.decode(without_mark(&body), ask);
                self.answered(ask.request, decoded, response, &body)
            }
            (None, None) => self.answered(ask.request, Err(Undecoded::Cut), response, &[]),
        }
    }

    /// What the body of an answer comes to.
    fn answered(
        &self,
        request: &request::Request,
        decoded: Result<Reply, Undecoded>,
        response: &Response,
        body: &[u8],
    ) -> Result<Reply, Failed> {
        let (status, headers) = (response.status(), response.headers());
        match decoded.map(Reply::with_reasoning_apart) {
            Ok(reply) if is_silent_about(&reply, request) => Err(silence(&reply)),
            Ok(reply) => Ok(self.presented(reply, headers)),
            Err(Undecoded::Error) => {
                Err(self.refused(status, headers, &String::from_utf8_lossy(body)).into())
            }
            Err(Undecoded::Shape(what)) => Err(self.not_understood(what, body).into()),
            Err(Undecoded::Nothing(pointer)) => {
                let what = format!("it has nothing at `{pointer}`");
                Err(self.not_understood(&what, body).into())
            }
            Err(Undecoded::Cut) => {
                let message = "the answer breaks off: its stream ended before its end";
                let error = CallError::new(ErrorKind::Network, message);
                Err(CallError { status: Some(status.as_u16()), ..error }.into())
            }
        }
    }

    /// The reply without keys, and with what the headers say.
    fn presented(&self, reply: Reply, headers: &HeaderMap) -> Reply {
        let wait = with_headers(headers, exhausted_for);
        let exhausted_for = wait.and_then(|it| Duration::try_from_secs_f64(it).ok());
        Reply { exhausted_for, ..self.redactor.clean_reply(reply) }
    }
}

/// A body as JSON; null if it is none.
pub(super) fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(without_mark(body)).unwrap_or_default()
}

/// The names in a list of models, whoever's list it is; none if it is no such list.
pub(super) fn listed_models(list: &Value) -> Option<Vec<String>> {
    let lists = ["data", "models", "modelSummaries", "publisherModels"];
    let entries = lists.iter().find_map(|key| list.get(key)?.as_array())?;
    let names = ["id", "name", "model", "modelId"];
    let name = |entry: &Value| {
        names.iter().find_map(|key| entry.get(key)?.as_str()).map(ToOwned::to_owned)
    };
    Some(entries.iter().filter_map(name).collect())
}

/// A body without the mark that some servers put before JSON.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Whether an answer says that it is one JSON value.
fn is_json(headers: &HeaderMap) -> bool {
    content_type(headers) == "application/json"
}

/// Whether an answer says that it comes in events.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = content_type(headers);
    kind == "text/event-stream" || kind.ends_with("ndjson") || kind.ends_with(".eventstream")
}

/// What an answer says that it is, without parameters.
fn content_type(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or("");
    kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Lets a stream that said all come to its end, so that its connection can be used again.
async fn drain(response: &mut Response) {
    const PATIENCE: Duration = Duration::from_millis(50);
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // A connection that is not at its end by then is closed.
    let _ = tokio::time::timeout(PATIENCE, rest).await;
}

pub(super) enum BodyError {
    TooLarge,
    Broken(probity_http::Error),
}

/// Bytes of a body that there is room for at once, whatever a server says of its length.
const UNPROVEN_BODY: usize = 1 << 20;

/// Reads a body up to a size. Of a body that breaks off, or is larger, nothing is used.
pub(super) async fn read_body(response: &mut Response, most: usize) -> Result<Vec<u8>, BodyError> {
    let expected = response.content_length().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
    let expected = expected.min(most);
    let mut body = Vec::with_capacity(expected.min(UNPROVEN_BODY));
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        let length = body.len() + chunk.len();
        if length > most {
            return Err(BodyError::TooLarge);
        }
        if length > body.capacity() && length <= expected {
            body.reserve_exact(expected - body.len());
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
        &Timestamp::from_millisecond(wall_ms())
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
