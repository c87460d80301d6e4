//! OpenAI evals: a log of events, one to a line, and samples.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chat::WireMessage;

/// A line of a log: the first says what is run, the last what it came to.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) spec: Option<Spec>,
    pub(crate) final_report: Option<Map<String, Value>>,
    pub(crate) sample_id: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) data: Value,
    pub(crate) created_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Spec {
    #[serde(default)]
    pub(crate) completion_fns: Vec<String>,
    pub(crate) eval_name: String,
    #[serde(default)]
    pub(crate) created_at: Option<String>,
}

/// What a model was asked and said.
#[derive(Debug, Deserialize)]
pub(crate) struct Sampling {
    /// A text, or messages.
    #[serde(default)]
    pub(crate) prompt: Value,
    /// A text, or a list of them.
    #[serde(default)]
    pub(crate) sampled: Value,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) usage: Option<Usage>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) completion_tokens: Option<u64>,
}

/// Whether what was said is right.
#[derive(Debug, Deserialize)]
pub(crate) struct Match {
    pub(crate) correct: Option<bool>,
    #[serde(default)]
    pub(crate) expected: Value,
    #[serde(default)]
    pub(crate) picked: Value,
    #[serde(default)]
    pub(crate) sampled: Value,
}

/// A sample of a dataset.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) input: Vec<WireMessage>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) ideal: Value,
}
