//! What the server saw. Serialized for `GET /__seen`, with the field names as keys.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use hyper::HeaderMap;
use serde::{
    Serialize,
    ser::{SerializeMap, Serializer},
};
use serde_json::Value;

/// What the server saw since its start or the last `POST /__reset`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// All requests, except those under `/__`.
    pub requests: u64,
    /// Requests for an answer. Their numbers are what rules count by.
    pub asked: u64,
    /// Requests whose answer is not out yet.
    pub in_flight: u32,
    /// The most requests in flight at once.
    pub peak_in_flight: u32,
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose client went away before the answer was out.
    pub aborted: u64,
    /// Requests by path.
    pub paths: BTreeMap<String, u32>,
    /// Requests for an answer by model.
    pub models: BTreeMap<String, u32>,
    /// Requests by API key: bearer token, `x-api-key` or `api-key`.
    pub keys: BTreeMap<String, u32>,
    /// Requests for an answer by prompt, the last message of the user.
    pub prompts: BTreeMap<String, u32>,
    /// Requests by what they got: [`Answer::name`](crate::Answer::name), or `limited`
    /// (turned away), `invalid` (the vendor would not take it), `unknown_path`, `listed`.
    pub outcomes: BTreeMap<String, u32>,
    /// The last requests, oldest first.
    pub last: VecDeque<Received>,
}

impl Seen {
    /// How many requests got this outcome.
    pub fn outcome(&self, name: &str) -> u32 {
        self.outcomes.get(name).copied().unwrap_or(0)
    }

    /// How often this prompt was sent.
    pub fn prompt(&self, prompt: &str) -> u32 {
        self.prompts.get(prompt).copied().unwrap_or(0)
    }
}

/// One request as it came.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path with the query.
    pub path: String,
    /// The headers.
    #[serde(serialize_with = "headers_as_map")]
    pub headers: HeaderMap,
    /// The body's bytes; JSON in the serialized form.
    #[serde(serialize_with = "body_as_json")]
    pub body: Bytes,
}

impl Received {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header's value, if it is there and readable.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Counts one more, and allocates only for what is new.
pub(crate) fn count(counts: &mut BTreeMap<String, u32>, name: &str) {
    match counts.get_mut(name) {
        Some(n) => *n += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

fn headers_as_map<S: Serializer>(headers: &HeaderMap, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(headers.len()))?;
    for (name, value) in headers {
        map.serialize_entry(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))?;
    }
    map.end()
}

fn body_as_json<S: Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => value.serialize(serializer),
        Err(_) => String::from_utf8_lossy(body).serialize(serializer),
    }
}
