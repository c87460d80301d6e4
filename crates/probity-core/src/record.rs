//! What is kept of a run: its lanes, and one record for each case that came to an end.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    classification::{Primary, Verdict},
    evidence::JudgedBy,
    failure::ErrorKind,
    gate::{Gate, GateStatus},
    suite::RunnerKind,
};

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

/// Who gave an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The backend, when it was asked.
    #[default]
    Backend,
    /// The cache of earlier answers.
    Cache,
    /// A recording.
    Replay,
}

impl Source {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Backend, Self::Cache, Self::Replay];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Cache => "cache",
            Self::Replay => "replay",
        }
    }
}

/// One question of a case that asks several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// What it was asked for, such as `full` or `judge full vs baseline`.
    pub role: String,
    /// Who was asked.
    pub backend: String,
    /// The instructions that went before the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Arc<str>>,
    /// The prompt as it was sent.
    pub prompt: String,
    /// The reply as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that says it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who answered.
    pub source: Source,
    /// How long the last call took.
    pub latency_ms: u64,
    /// Tokens over all calls.
    pub usage: Usage,
    /// Dollars over all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
}

/// What an answer is kept as for later runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The answer to a case.
    Answer,
    /// One of several answers to a case that are going to be judged.
    Generation,
    /// What a judge said.
    Judgement,
}

impl Kept {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Answer, Self::Generation, Self::Judgement];

    /// What many of them are called.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Answer => "answers",
            Self::Generation => "generations",
            Self::Judgement => "judgements",
        }
    }
}

/// What one case came to on one backend.
#[derive(Clone, Debug, Serialize)]
pub struct CaseRecord {
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What was asked with which parameters; an answer to something else is no answer.
    pub input: InputDigest,
    /// The case as it stood in the dataset, as JSON.
    #[serde(skip)]
    pub case: Arc<str>,
    /// The prompt as it was sent.
    pub prompt: String,
    /// The instructions that went before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Arc<str>>,
    /// The reply as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// What the model thought before it answered, where the backend shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the model stopped, in the vendor's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The model that says it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who answered.
    pub source: Source,
    /// How long the last call took.
    pub latency_ms: u64,
    /// Tokens over all calls.
    pub usage: Usage,
    /// Dollars over all calls; none where nothing is known of a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
    /// Those that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
    /// When the first call was made, in milliseconds since 1970.
    pub started_ms: i64,
    /// From then to the end, waits included.
    pub elapsed_ms: u64,
    /// One of the eight.
    pub primary: Primary,
    /// What gates count.
    pub verdict: Verdict,
    /// The classification with its evidence.
    pub classification: Box<RawValue>,
    /// Every question in order, of a case that asks several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// What was asked with which parameters, in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputDigest(pub [u8; 16]);

impl InputDigest {
    /// The digest of some parts; where one ends and the next begins counts.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(bytes)
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for InputDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One runner on one backend within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The runner's name.
    pub runner: String,
    /// What the runner does.
    pub kind: RunnerKind,
    /// The backend's name.
    pub backend: String,
    /// The kind of backend.
    pub backend_kind: String,
    /// The model it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The dataset's digest.
    pub dataset_digest: String,
    /// The dataset's files.
    pub dataset: Vec<String>,
    /// Cases times repeats that the run is to bring to an end.
    pub planned: u64,
    /// How often each case is asked.
    pub repeat: u32,
    /// Whether answers come from a recording.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Who judges its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgedBy>,
    /// The skills that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<SkillsInfo>,
    /// How its results are judged.
    #[serde(flatten)]
    pub judging: Judging,
}

/// The skills that a lane is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsInfo {
    /// How many there are.
    pub count: u64,
    /// Characters of their index.
    pub index_characters: u64,
    /// Of their texts.
    pub digest: String,
}

/// How the results of a lane are counted, and what has to hold of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judging {
    /// What has to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Of the repeats of a case so many have to pass, and the case counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_pass: Option<u32>,
    /// Whether what could not be judged counts as failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_as_failures: bool,
    /// Cases that are known to fail.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub known_failures: BTreeSet<String>,
    /// The version of the tool under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
}

/// One result as it is kept.
#[derive(Clone, Debug)]
pub struct StoredCase {
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What was asked with which parameters.
    pub input: InputDigest,
    /// The case as JSON.
    pub definition: String,
    /// The instructions.
    pub system: Option<String>,
    /// The prompt as it was sent.
    pub prompt: String,
    /// The reply.
    pub reply: Option<String>,
    /// Why there is none.
    pub error: Option<CallError>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// The model that says it answered.
    pub model: Option<String>,
    /// Who answered.
    pub source: Source,
    /// How long the last call took.
    pub latency_ms: u64,
    /// Tokens.
    pub usage: Usage,
    /// Dollars.
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
    /// Those that failed.
    pub failures: Vec<FailedAttempt>,
    /// When the first call was made.
    pub started_ms: i64,
    /// From then to the end.
    pub elapsed_ms: u64,
    /// One of the eight.
    pub primary: Primary,
    /// What gates count.
    pub verdict: Verdict,
    /// The classification as JSON.
    pub classification: String,
    /// Every question in order, of a case that asks several.
    pub asked: Vec<Asked>,
}

/// How a lane ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneStatus {
    /// Every planned case came to an end.
    Complete,
    /// The same error again and again.
    FailFast {
        /// Its fingerprint.
        reason: String,
        /// Whether no retry could have mended it.
        permanent: bool,
    },
    /// It was not even begun, because the backend was given up before.
    Skipped {
        /// Why.
        reason: String,
    },
    /// The budget was used up.
    Budget {
        /// Which part of it.
        reason: String,
    },
    /// The gates were decided before every case had been asked.
    Decided {
        /// What they come to.
        gates: GateStatus,
        /// How sure that is.
        reason: String,
    },
    /// Somebody stopped the run.
    Interrupted,
    /// It took longer than it may.
    TimedOut {
        /// How long that is.
        reason: String,
    },
    /// A foreign runner gave up.
    GaveUp {
        /// What it said.
        reason: String,
    },
    /// Something is wrong that should not be.
    Broken {
        /// What.
        reason: String,
    },
}

impl LaneStatus {
    /// Whether every planned case came to an end.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }

    /// Whether its results say all that was asked of them.
    pub fn is_sound(&self) -> bool {
        matches!(self, Self::Complete | Self::Decided { .. })
    }
}

/// Why a case that had begun did not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aborted {
    /// Its backend was given up.
    FailFast,
    /// The budget was used up.
    Budget,
    /// Somebody stopped the run.
    Interrupted,
    /// Its runner took longer than it may.
    TimedOut,
    /// Our own fault.
    Broken,
}

impl Aborted {
    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::TimedOut => "timed_out",
            Self::Broken => "broken",
        }
    }
}
