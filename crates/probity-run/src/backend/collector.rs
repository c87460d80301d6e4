//! Sends what happened to a collector of OpenTelemetry, over HTTP.
//!
//! It is not asked anything, so it is no backend; it shares their client and how secrets are kept out of what is told.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use reqwest::{
    StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::Deserialize;

use super::{
    address,
    http::{self, Client},
};
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

/// A collector, ready to be sent to.
#[derive(Debug)]
pub struct Collector {
    client: reqwest::Client,
    url: Url,
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
    Client(#[source] reqwest::Error),
    /// It was refused, or nobody answered.
    #[error("{url}: {message}")]
    Refused {
        /// Where it was sent to, without secrets.
        url: String,
        /// What was said, without secrets.
        message: String,
    },
}

/// What a collector answers.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    partial_success: Option<Partial>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Partial {
    rejected_spans: Option<Number>,
    error_message: Option<String>,
}

/// Numbers of 64 bits are texts, and not everywhere.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Number(u64),
}

/// Why a try came to nothing.
struct Failed {
    message: String,
    /// How long to wait before the next; none if that is hopeless.
    again_in: Option<Duration>,
}

impl Collector {
    /// A collector at an address, with headers as `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`.
    pub fn new(address: &str, headers: &str) -> Result<Self, CollectorError> {
        let refused = || CollectorError::Address(address::without_secrets(address));
        let mut url = address::parse(address).ok_or_else(refused)?;
        if !url.path().trim_end_matches('/').ends_with(TRACES) {
            let path = format!("{}/{TRACES}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let mut redactor = Redactor::default();
        address::add_secrets(&url, &mut redactor);
        let headers = read_headers(headers, &mut redactor)?;
        let client: Client = http::client().map_err(CollectorError::Client)?;
        Ok(Self { client: client.to(&url), url, headers, redactor, first_wait: FIRST_WAIT })
    }

    /// The same with shorter waits, for tests.
    #[must_use]
    pub fn with_first_wait(self, first_wait: Duration) -> Self {
        Self { first_wait, ..self }
    }

    /// Sends a message, again if that may help.
    pub async fn send(&self, body: String) -> Result<Taken, CollectorError> {
        let mut wait = self.first_wait;
        let mut tries = 1;
        loop {
            match self.send_once(body.clone()).await {
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

    async fn send_once(&self, body: String) -> Result<Taken, Failed> {
        let unreachable = |error: reqwest::Error| {
            let what =
                if error.is_timeout() { "no answer in time" } else { "the connection failed" };
            let why = std::error::Error::source(&error).map(|it| format!(": {it}"));
            let message = format!("{what}{}", why.unwrap_or_default());
            Failed { message, again_in: Some(Duration::ZERO) }
        };
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .timeout(LONGEST_TRY)
            .body(body);
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        let asked = asked.and_then(|it| it.trim().parse::<u64>().ok()).map(Duration::from_secs);
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            let room = MOST_BYTES.saturating_sub(text.len());
            text.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if room == 0 {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        if !status.is_success() {
            let is_transient = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            );
            let said: String = text.trim().chars().take(500).collect();
            let message = format!("HTTP {}: {said}", status.as_u16());
            let again_in = is_transient.then(|| asked.unwrap_or(Duration::ZERO));
            return Err(Failed { message, again_in });
        }
        Ok(self.taken(&text))
    }

    /// What an answer says of what was not taken. Some say nothing, or nothing in JSON.
    fn taken(&self, text: &str) -> Taken {
        let answer: Answer = serde_json::from_str(text).unwrap_or_default();
        let Partial { rejected_spans, error_message } = answer.partial_success.unwrap_or_default();
        let rejected = match rejected_spans {
            Some(Number::Text(text)) => text.parse().unwrap_or(0),
            Some(Number::Number(number)) => number,
            None => 0,
        };
        let message = error_message.filter(|it| !it.is_empty());
        Taken { rejected, message: message.map(|it| self.redactor.error_text(&it)), retries: 0 }
    }
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
