//! What an error means.

use probity_core::failure::ErrorKind;
use probity_grade::errors::{ErrorInput, ErrorRules, ErrorVerdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

/// An error to be looked at.
#[derive(Debug, Deserialize)]
pub struct Request<'t> {
    #[serde(borrow, default)]
    id: Option<&'t RawValue>,
    backend: Option<String>,
    status: Option<u16>,
    exit_code: Option<i32>,
    signal: Option<String>,
    text: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    headers: Option<Map<String, Value>>,
}

impl<'t> super::Request<'t> for Request<'t> {
    fn id(&self) -> Option<&'t RawValue> {
        self.id
    }
}

/// What is known of errors whose requests do not say it.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'r> {
    /// The rules.
    pub rules: &'r ErrorRules,
    /// The backend.
    pub backend: Option<&'r str>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The exit code of a program.
    pub exit_code: Option<i32>,
    /// The signal that ended a program.
    pub signal: Option<&'r str>,
}

/// What an error is.
#[derive(Debug, Serialize)]
pub struct Answer {
    kind: ErrorKind,
    permanent: bool,
    retry_after: Option<f64>,
    evidence: String,
}

impl Settings<'_> {
    /// Says what the error of a request is.
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect();
        let found = self.rules.classify(&ErrorInput {
            backend: request.backend.as_deref().or(self.backend),
            status: request.status.or(self.status),
            exit_code: request.exit_code.or(self.exit_code),
            signal: request.signal.as_deref().or(self.signal),
            text: request.text.as_deref().unwrap_or(""),
            stdout: request.stdout.as_deref().unwrap_or(""),
            stderr: request.stderr.as_deref().unwrap_or(""),
            headers: &headers,
        });
        let ErrorVerdict { kind, permanent, retry_after, evidence } = found;
        Answer { kind, permanent, retry_after, evidence }
    }
}
