//! `JetStream` by plain requests, with types of our own.
//!
//! The client's own types read numbers through untagged enums, which `arbitrary_precision` of `serde_json` breaks; and all that
//! is needed is here.

use std::{future::Future, time::Duration};

use async_nats::{Client, HeaderMap, Request};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// How long an answer of the server is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a server may take to come back when a run begins.
const WHILE: Duration = Duration::from_secs(15);

/// A stream has a message with that subject already.
pub(crate) const WRONG_LAST_SEQUENCE: u32 = 10071;
const NOT_FOUND: u16 = 404;
const UNAVAILABLE: u16 = 503;

/// Why the server did not do something.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum JsError {
    /// It cannot be reached now, or has no leader, or no `JetStream`.
    #[error("the server does not answer `{0}`")]
    Silent(String),
    /// It says no.
    #[error("{description} (error {err_code})")]
    Refused { code: u16, err_code: u32, description: String },
    /// What it says is not understood.
    #[error("the answer to `{0}` cannot be read: {1}")]
    Unread(String, String),
}

impl JsError {
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused { code: NOT_FOUND, .. })
    }

    pub(crate) fn is(&self, wanted: u32) -> bool {
        matches!(self, Self::Refused { err_code, .. } if *err_code == wanted)
    }

    /// Whether the same may be answered otherwise in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Silent(_) | Self::Refused { code: UNAVAILABLE, .. })
    }
}

#[derive(Deserialize)]
struct Envelope {
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct ApiError {
    code: u16,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

/// A stream as it is wanted. What is left out is as the server does it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StreamConfig {
    pub(crate) name: String,
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: &'static str,
    pub(crate) storage: &'static str,
    pub(crate) num_replicas: usize,
    /// In nanoseconds.
    pub(crate) max_age: u64,
    pub(crate) max_msgs_per_subject: i64,
    pub(crate) discard: &'static str,
    pub(crate) allow_rollup_hdrs: bool,
    pub(crate) max_consumers: i64,
    pub(crate) max_msgs: i64,
    pub(crate) max_bytes: i64,
}

/// What the server says of a stream.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StreamInfo {
    pub(crate) config: KnownConfig,
    pub(crate) state: StreamState,
}

/// What of the settings of a stream matters to us.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct KnownConfig {
    #[serde(default)]
    pub(crate) subjects: Vec<String>,
    pub(crate) retention: String,
    #[serde(default)]
    pub(crate) num_replicas: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StreamState {
    #[serde(default)]
    pub(crate) subjects: Option<std::collections::BTreeMap<String, u64>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AccountInfo {
    #[serde(default)]
    pub(crate) limits: AccountLimits,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct AccountLimits {
    #[serde(default)]
    pub(crate) max_streams: i64,
    #[serde(default)]
    pub(crate) max_storage: i64,
}

#[derive(Deserialize)]
struct PubAck {
    seq: u64,
}

/// A message as it is stored.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    #[serde(default)]
    data: String,
    /// When it was stored.
    pub(crate) time: String,
}

impl Stored {
    pub(crate) fn payload(&self) -> Vec<u8> {
        data_encoding::BASE64.decode(self.data.as_bytes()).unwrap_or_default()
    }
}

/// The requests.
#[derive(Clone, Debug)]
pub(crate) struct JetStream {
    pub(crate) client: Client,
}

impl JetStream {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn ask<T: DeserializeOwned>(&self, what: &str, body: &Value) -> Result<T, JsError> {
        let subject = format!("$JS.API.{what}");
        let payload = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        self.request(subject, Request::new().payload(payload)).await
    }

    async fn request<T: DeserializeOwned>(
        &self,
        subject: String,
        request: Request,
    ) -> Result<T, JsError> {
        let request = request.timeout(Some(PATIENCE));
        let answer = self.client.send_request(subject.clone(), request).await;
        let answer = answer.map_err(|_| JsError::Silent(subject.clone()))?.payload;
        let unread = |error: serde_json::Error| JsError::Unread(subject.clone(), error.to_string());
        let envelope: Envelope = serde_json::from_slice(&answer).map_err(unread)?;
        match envelope.error {
            Some(ApiError { code, err_code, description }) => {
                Err(JsError::Refused { code, err_code, description })
            }
            None => serde_json::from_slice(&answer).map_err(unread),
        }
    }

    /// What an account may use.
    pub(crate) async fn account(&self) -> Result<AccountInfo, JsError> {
        self.ask("INFO", &Value::Null).await
    }

    pub(crate) async fn stream(&self, name: &str) -> Result<StreamInfo, JsError> {
        self.ask(&format!("STREAM.INFO.{name}"), &Value::Null).await
    }

    /// The subjects that a stream has messages of.
    pub(crate) async fn subjects(&self, name: &str, filter: &str) -> Result<Vec<String>, JsError> {
        let mut all = Vec::new();
        loop {
            let body = json!({ "subjects_filter": filter, "offset": all.len() });
            let info: StreamInfo = self.ask(&format!("STREAM.INFO.{name}"), &body).await?;
            let page = info.state.subjects.unwrap_or_default();
            let count = page.len();
            all.extend(page.into_keys());
            // The server gives as many as this at a time.
            if count < 100_000 {
                return Ok(all);
            }
        }
    }

    /// Makes a stream, or has one that is there take more replicas. Another one in its place is refused.
    pub(crate) async fn ensure_stream(&self, config: &StreamConfig) -> Result<(), JsError> {
        let body = serde_json::to_value(config).unwrap_or_default();
        match self.stream(&config.name).await {
            Ok(found) => {
                let KnownConfig { subjects, retention, num_replicas } = found.config;
                if subjects != config.subjects || retention != config.retention {
                    let description = format!(
                        "the stream `{}` is there and is not ours: its subjects are {subjects:?}",
                        config.name
                    );
                    return Err(JsError::Refused { code: 400, err_code: 0, description });
                }
                if num_replicas < config.num_replicas {
                    let _: Value =
                        self.ask(&format!("STREAM.UPDATE.{}", config.name), &body).await?;
                }
                Ok(())
            }
            Err(error) if error.is_missing() => {
                let _: Value = self.ask(&format!("STREAM.CREATE.{}", config.name), &body).await?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a consumer that lasts, or changes it.
    pub(crate) async fn ensure_consumer(
        &self,
        stream: &str,
        name: &str,
        mut config: Value,
    ) -> Result<(), JsError> {
        config["durable_name"] = name.into();
        let body = json!({ "stream_name": stream, "config": config });
        let _: Value = self.ask(&format!("CONSUMER.DURABLE.CREATE.{stream}.{name}"), &body).await?;
        Ok(())
    }

    /// Takes a consumer away. One that is not there is no failure.
    pub(crate) async fn delete_consumer(&self, stream: &str, name: &str) -> Result<(), JsError> {
        let gone: Result<Value, JsError> =
            self.ask(&format!("CONSUMER.DELETE.{stream}.{name}"), &Value::Null).await;
        match gone {
            Err(error) if !error.is_missing() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes away what a stream has of a subject.
    pub(crate) async fn purge(&self, stream: &str, filter: &str) -> Result<(), JsError> {
        let body = json!({ "filter": filter });
        let _: Value = self.ask(&format!("STREAM.PURGE.{stream}"), &body).await?;
        Ok(())
    }

    /// Takes a message away. One that is not there is no failure.
    pub(crate) async fn delete(&self, stream: &str, seq: u64) -> Result<(), JsError> {
        let body = json!({ "seq": seq, "no_erase": true });
        let gone: Result<Value, JsError> =
            self.ask(&format!("STREAM.MSG.DELETE.{stream}"), &body).await;
        match gone {
            Err(JsError::Refused { .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The message with a number.
    pub(crate) async fn by_number(&self, stream: &str, seq: u64) -> Result<Stored, JsError> {
        self.message(stream, json!({ "seq": seq })).await
    }

    /// The last message of a subject.
    pub(crate) async fn last(&self, stream: &str, subject: &str) -> Result<Stored, JsError> {
        self.message(stream, json!({ "last_by_subj": subject })).await
    }

    /// The first message of a subject that has this number or a later one.
    pub(crate) async fn next(
        &self,
        stream: &str,
        subject: &str,
        seq: u64,
    ) -> Result<(u64, Stored), JsError> {
        let body = json!({ "seq": seq, "next_by_subj": subject });
        let found: Value = self.ask(&format!("STREAM.MSG.GET.{stream}"), &body).await?;
        let message = found["message"].clone();
        let unread =
            |error: serde_json::Error| JsError::Unread(subject.to_owned(), error.to_string());
        let seq = message["seq"].as_u64().unwrap_or(seq);
        Ok((seq, serde_json::from_value(message).map_err(unread)?))
    }

    async fn message(&self, stream: &str, body: Value) -> Result<Stored, JsError> {
        #[derive(Deserialize)]
        struct Found {
            message: Stored,
        }
        let found: Found = self.ask(&format!("STREAM.MSG.GET.{stream}"), &body).await?;
        Ok(found.message)
    }

    /// Puts a message into the stream of its subject, and gives its number.
    pub(crate) async fn publish(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<u64, JsError> {
        let mut request = Request::new().payload(payload);
        if !headers.is_empty() {
            request = request.headers(headers);
        }
        let ack: PubAck = self.request(subject, request).await?;
        Ok(ack.seq)
    }

    /// The same until the server is there. It is only refused for a reason that lasts.
    pub(crate) async fn publish_at_last(
        &self,
        subject: &str,
        headers: &HeaderMap,
        payload: &Bytes,
    ) -> Result<u64, JsError> {
        at_last(|| self.publish(subject.to_owned(), headers.clone(), payload.clone())).await
    }
}

/// Tries until the server is there.
pub(crate) async fn at_last<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, JsError>
where
    F: Future<Output = Result<T, JsError>>,
{
    let mut wait = Duration::from_millis(20);
    loop {
        match attempt().await {
            Err(error) if error.may_pass() => {
                sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(1));
            }
            done => return done,
        }
    }
}

/// Tries as long as a server may take to come back. One that is there and lacks something is not waited for any longer.
pub(crate) async fn for_a_while<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, JsError>
where
    F: Future<Output = Result<T, JsError>>,
{
    let begun = Instant::now();
    loop {
        match attempt().await {
            Err(error) if error.may_pass() && begun.elapsed() < WHILE => {
                sleep(Duration::from_millis(200)).await;
            }
            done => return done,
        }
    }
}

/// The header without which a second message of a subject would be stored.
pub(crate) fn only_once() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
    headers
}

/// How often a message was delivered, by the subject that it is acknowledged with.
pub(crate) fn delivery(reply: &str) -> Option<u64> {
    let tokens: Vec<&str> = reply.split('.').collect();
    let at = match tokens.len() {
        9 => 4,
        // With the domain and the account before the stream.
        11.. => 6,
        _ => return None,
    };
    tokens.get(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_a_message_came_is_read_off_its_reply() {
        assert_eq!(delivery("$JS.ACK.s.c.3.7.9.1700000000000000000.0"), Some(3));
        let longer = "$JS.ACK.hub.hash.s.c.2.7.9.1700000000000000000.0.token";
        assert_eq!(delivery(longer), Some(2));
        assert_eq!(delivery("_INBOX.x.y"), None);
    }
}
