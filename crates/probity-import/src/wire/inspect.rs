//! Inspect's logs: `.json`, and the parts of an `.eval` archive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chat::WireMessage;

/// The version of the format that is written.
pub(crate) const VERSION: u32 = 2;

/// A log, or the header of one.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Log {
    pub(crate) version: u32,
    /// `started`, `success`, `cancelled` or `error`.
    pub(crate) status: String,
    pub(crate) eval: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Plan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Results>,
    #[serde(default)]
    pub(crate) stats: Stats,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<LogError>,
    #[serde(default)]
    pub(crate) samples: Option<Vec<Sample>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Spec {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) eval_id: String,
    #[serde(default)]
    pub(crate) run_id: String,
    pub(crate) created: String,
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) task_id: String,
    #[serde(default)]
    pub(crate) task_version: Value,
    #[serde(default)]
    pub(crate) dataset: Dataset,
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) config: Config,
    #[serde(default)]
    pub(crate) packages: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) scorers: Option<Vec<Scorer>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Dataset {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sample_ids: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shuffled: Option<bool>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epochs: Option<u32>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Scorer {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) options: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) metrics: Option<Value>,
    #[serde(default)]
    pub(crate) metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) config: Map<String, Value>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Step {
    pub(crate) solver: String,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Results {
    pub(crate) total_samples: u64,
    pub(crate) completed_samples: u64,
    pub(crate) scores: Vec<EvalScore>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct EvalScore {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) scorer: String,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    #[serde(default)]
    pub(crate) metrics: BTreeMap<String, Metric>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) value: Value,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Stats {
    pub(crate) started_at: String,
    pub(crate) completed_at: String,
    pub(crate) model_usage: BTreeMap<String, Usage>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LogError {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) traceback: String,
    #[serde(default)]
    pub(crate) traceback_ansi: String,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Sample {
    /// A text or a number.
    pub(crate) id: Value,
    pub(crate) epoch: u32,
    /// A text, or messages.
    pub(crate) input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) choices: Option<Vec<String>>,
    /// A text, or a list of texts.
    #[serde(default)]
    pub(crate) target: Value,
    #[serde(default)]
    pub(crate) messages: Vec<WireMessage>,
    #[serde(default)]
    pub(crate) output: Output,
    #[serde(default)]
    pub(crate) scores: Option<BTreeMap<String, SampleScore>>,
    #[serde(default)]
    pub(crate) metadata: Map<String, Value>,
    #[serde(default)]
    pub(crate) model_usage: BTreeMap<String, Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) total_time: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<LogError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Limit>,
    /// Somebody said that the sample does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) invalidation: Option<Value>,
    /// Long texts, by what stands for them.
    #[serde(default)]
    pub(crate) attachments: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Limit {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) limit: Value,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Output {
    pub(crate) model: String,
    pub(crate) choices: Vec<Choice>,
    /// The text of the first choice; older logs leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Choice {
    pub(crate) message: WireMessage,
    #[serde(default)]
    pub(crate) stop_reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens_cache_read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_cost: Option<f64>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct SampleScore {
    /// `C`, `I`, `P` or `N`, a number, a truth value, a list or a table of these.
    pub(crate) value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
}
