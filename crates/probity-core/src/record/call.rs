//! Calls of backends: how they fail, and what they use.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{failure::ErrorKind, named_enum};

/// A call that came to nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    /// Why.
    pub kind: ErrorKind,
    /// Whether trying again is hopeless.
    pub permanent: bool,
    /// What was said about it, without secrets.
    pub message: String,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The exit code of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// How long the service asks to wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
    /// The address that was called, without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl CallError {
    /// An error of a kind, as permanent as its kind is.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            permanent: kind.is_permanent(),
            message: message.into(),
            status: None,
            exit_code: None,
            signal: None,
            retry_after: None,
            url: None,
        }
    }

    /// What happened and where, in one sentence.
    pub fn sentence(&self) -> String {
        match &self.url {
            Some(url) if !self.message.contains(url.as_str()) => {
                format!("{} ({url})", self.message)
            }
            Some(_) | None => self.message.clone(),
        }
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self.kind {
            ErrorKind::Auth => Some("check the key; `probity doctor` shows where it comes from"),
            ErrorKind::Quota => Some("the account has nothing left to spend"),
            ErrorKind::Network => Some("is the server running? `probity doctor` checks it"),
            ErrorKind::NotFound => Some("`probity doctor` lists the models of the server"),
            ErrorKind::NotInstalled => Some("`probity doctor` shows which programs are found"),
            ErrorKind::RateLimit
            | ErrorKind::Overloaded
            | ErrorKind::Server
            | ErrorKind::Timeout
            | ErrorKind::BadRequest
            | ErrorKind::TooLarge
            | ErrorKind::BadFlag
            | ErrorKind::ContentFilter
            | ErrorKind::Crash
            | ErrorKind::Empty
            | ErrorKind::Unknown => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// A try that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Counted from 1 within the case.
    pub attempt: u32,
    /// Why it failed.
    pub error: CallError,
    /// How long it took.
    pub latency_ms: u64,
    /// How long was waited before the next try; none if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// The worker that made it, where it was not the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// Tokens, as the backend counted them or as they were estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the prompt, and known to the server from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Whether any of it is an estimate, because the backend did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Usage {
    /// All tokens together.
    pub fn total(&self) -> u64 {
        self.input_tokens.unwrap_or(0) + self.output_tokens.unwrap_or(0)
    }

    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
        Self {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// What calls used that came to no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// How many there were.
    pub calls: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their dollars, as far as prices are known.
    pub cost_usd: f64,
}

impl Spent {
    /// Counts calls.
    pub fn add(&mut self, calls: u64, usage: Usage, cost_usd: Option<f64>) {
        self.calls = self.calls.saturating_add(calls);
        self.usage = self.usage.plus(usage);
        self.cost_usd += cost_usd.unwrap_or(0.0);
    }
}

named_enum! {
    /// Who gave an answer.
    #[derive(Default)]
    pub enum Source ("a source of answers") {
        /// The backend, when it was asked.
        #[default]
        Backend = "backend",
        /// The cache of earlier answers.
        Cache = "cache",
        /// A recording.
        Replay = "replay",
        /// A backend that another tool asked.
        Imported = "imported",
    }
}
