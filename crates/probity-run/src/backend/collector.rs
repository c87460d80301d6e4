//! Sends what happened to a collector of OpenTelemetry, over HTTP.
//!
//! It is not asked anything, so it is no backend; it shares their client and how secrets are kept out of what is told.

mod answer;

use std::time::Duration;

use percent_encoding::percent_decode_str;
use probity_http::{
    Error, Method, Request, StatusCode, Target, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};

use self::answer::Partial;
use super::{address, http::Client};
use crate::redact::Redactor;

/// Where traces are taken in, if an address names nothing else.
const TRACES: &str = "v1/traces";
/// How often a message is sent at most.
const MOST_TRIES: u32 = 5;
/// How long one try may take.
const LONGEST_TRY: Duration = Duration::from_secs(30);
/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait, whatever the collector asks for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// What is read of an answer.
const MOST_BYTES: usize = 64 << 10;

/// How messages are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, which not every collector takes.
    Json,
    /// Protobuf, which every collector takes.
    Protobuf,
}

impl Encoding {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        }
    }
}

/// An address, and what has to be known to send there.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Where the collector is.
    pub address: String,
    /// Whether the address is that of traces already, and nothing is added to it.
    pub is_whole: bool,
    /// Headers as `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`.
    pub headers: String,
    /// How messages are encoded.
    pub encoding: Encoding,
}

/// A collector, ready to be sent to.
#[derive(Debug)]
pub struct Collector {
    client: probity_http::Client,
    url: Url,
    target: Target,
    encoding: Encoding,
    headers: HeaderMap,
    redactor: Redactor,
    first_wait: Duration,
}

/// What a collector made of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Spans that it did not take.
    pub rejected: u64,
    /// Why, or what else it has to say.
    pub message: Option<String>,
    /// How often the message was sent again.
    pub retries: u32,
}

impl Taken {
    /// Counts what was made of another message. A collector may name any number.
    pub fn add(&mut self, other: &Self) {
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.retries = self.retries.saturating_add(other.retries);
    }
}

/// What an answer says of what was not taken, and what it would say of why nothing was. For those who test what is made of any bytes.
pub fn answered(body: &[u8], encoding: Encoding) -> (Taken, String) {
    let Partial { rejected, message } = answer::partial(body, encoding);
    (Taken { rejected, message, retries: 0 }, answer::complaint(body, encoding))
}

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The address is none.
    #[error("`{0}` is not the address of a server")]
    Address(String),
    /// The headers cannot be read.
    #[error("header {0} is not `name=value`")]
    Header(usize),
    /// There can be no client.
    #[error("no connection can be made")]
    Client(#[source] Error),
    /// It was refused, or nobody answered.
    #[error("{url}: {message}")]
    Refused {
        /// Where it was sent to, without secrets.
        url: String,
        /// What was said, without secrets.
        message: String,
    },
}

/// Why a try came to nothing.
struct Failed {
    message: String,
    /// How long to wait before the next; none if that is hopeless.
    again_in: Option<Duration>,
}

impl Collector {
    /// A collector, before anything is sent to it.
    pub fn new(to: &Destination) -> Result<Self, CollectorError> {
        let Destination { address, is_whole, headers, encoding } = to;
        let refused = || CollectorError::Address(address::without_secrets(address));
        let mut url = address::parse(address).ok_or_else(refused)?;
        if !is_whole && !url.path().trim_end_matches('/').ends_with(TRACES) {
            let path = format!("{}/{TRACES}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let mut redactor = Redactor::default();
        address::add_secrets(&url, &mut redactor);
        let mut headers = read_headers(headers, &mut redactor)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
        let client = Client::new(1).to(&url).map_err(CollectorError::Client)?;
        let target = Target::new(&url).map_err(|_| refused())?;
        let encoding = *encoding;
        Ok(Self { client, url, target, encoding, headers, redactor, first_wait: FIRST_WAIT })
    }

    /// The same with shorter waits, for tests.
    #[must_use]
    pub fn with_first_wait(self, first_wait: Duration) -> Self {
        Self { first_wait, ..self }
    }

    /// Sends a message, again if that may help.
    pub async fn send(&self, body: Vec<u8>) -> Result<Taken, CollectorError> {
        let mut wait = self.first_wait;
        let mut tries = 1;
        loop {
            let sent = tokio::time::timeout(LONGEST_TRY, self.send_once(body.clone())).await;
            match sent.unwrap_or_else(|_| Err(unreachable(&Error::Silence))) {
                Ok(taken) => return Ok(Taken { retries: tries - 1, ..taken }),
                Err(Failed { again_in: Some(asked), .. }) if tries < MOST_TRIES => {
                    tokio::time::sleep(asked.max(wait).min(LONGEST_WAIT)).await;
                    wait *= 2;
                    tries += 1;
                }
                Err(Failed { message, .. }) => {
                    let url = self.redactor.error_text(&address::shown(self.url.as_str()));
                    let message = self.redactor.error_text(&message);
                    return Err(CollectorError::Refused { url, message });
                }
            }
        }
    }

    async fn send_once(&self, body: Vec<u8>) -> Result<Taken, Failed> {
        let request = Request {
            method: Method::POST,
            target: &self.target,
            headers: self.headers.clone(),
            body: body.into(),
        };
        let mut response = self.client.send(request).await.map_err(|it| unreachable(&it))?;
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        let asked = asked.and_then(|it| it.trim().parse::<u64>().ok()).map(Duration::from_secs);
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|it| unreachable(&it))? {
            let room = MOST_BYTES.saturating_sub(text.len());
            text.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if room == 0 {
                break;
            }
        }
        // Whoever was sent to in one encoding may answer in the other, as proxies do.
        let is_json = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("json"));
        let encoding = match response.headers().get(CONTENT_TYPE) {
            Some(kind) if kind.to_str().is_ok_and(|it| it.contains("protobuf")) => {
                Encoding::Protobuf
            }
            Some(kind) if is_json(kind) => Encoding::Json,
            Some(_) | None => self.encoding,
        };
        if !status.is_success() {
            let is_transient = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            );
            let said = answer::complaint(&text, encoding);
            let message = format!("HTTP {}: {said}", status.as_u16());
            let again_in = is_transient.then(|| asked.unwrap_or(Duration::ZERO));
            return Err(Failed { message, again_in });
        }
        let Partial { rejected, message } = answer::partial(&text, encoding);
        let message = message.map(|it| self.redactor.error_text(&it));
        Ok(Taken { rejected, message, retries: 0 })
    }
}

/// Nobody answered, which may be otherwise a moment later.
fn unreachable(error: &Error) -> Failed {
    let what = if error.is_timeout() { "no answer in time" } else { "the connection failed" };
    let why = error.causes().next().map(|it| format!(": {it}"));
    let message = format!("{what}{}", why.unwrap_or_default());
    Failed { message, again_in: Some(Duration::ZERO) }
}

fn read_headers(text: &str, redactor: &mut Redactor) -> Result<HeaderMap, CollectorError> {
    let mut headers = HeaderMap::new();
    let pairs = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    for (at, pair) in pairs.enumerate() {
        let read = || {
            let (name, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let mut header = HeaderValue::from_str(&value).ok()?;
            header.set_sensitive(true);
            Some((HeaderName::try_from(name.trim()).ok()?, header, value.into_owned()))
        };
        // Which one, and not what stands in it.
        let (name, header, value) = read().ok_or(CollectorError::Header(at + 1))?;
        redactor.add_header(&value);
        headers.insert(name, header);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
