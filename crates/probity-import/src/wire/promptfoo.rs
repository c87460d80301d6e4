//! promptfoo's results: `promptfoo eval -o FILE.json`, and a line of `-o FILE.jsonl`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A file of results. Versions 2, 3 and 4 differ in fields that are not read.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) eval_id: Option<String>,
    pub(crate) results: Summary,
    #[serde(default)]
    pub(crate) config: Config,
    #[serde(default)]
    pub(crate) shareable_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<String>,
    #[serde(default, skip_serializing)]
    pub(crate) runtime_options: Option<RuntimeOptions>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promptfoo_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exported_at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RuntimeOptions {
    #[serde(default)]
    pub(crate) repeat: Option<u32>,
}

/// What is read of the configuration that stands beside the results.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) prompts: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) providers: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) tests: Value,
    #[serde(default, skip_serializing)]
    pub(crate) evaluate_options: Option<RuntimeOptions>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Summary {
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) timestamp: Option<String>,
    #[serde(default)]
    pub(crate) prompts: Vec<CompletedPrompt>,
    pub(crate) results: Vec<Row>,
    #[serde(default)]
    pub(crate) stats: Stats,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Stats {
    pub(crate) successes: u64,
    pub(crate) failures: u64,
    pub(crate) errors: u64,
    pub(crate) token_usage: TokenUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<f64>,
}

/// A prompt on a provider.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct CompletedPrompt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    pub(crate) raw: String,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<PromptMetrics>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptMetrics {
    pub(crate) score: f64,
    pub(crate) test_pass_count: u64,
    pub(crate) test_fail_count: u64,
    pub(crate) test_error_count: u64,
    pub(crate) assert_pass_count: u64,
    pub(crate) assert_fail_count: u64,
    pub(crate) total_latency_ms: f64,
    pub(crate) token_usage: TokenUsage,
    pub(crate) named_scores: Map<String, Value>,
    pub(crate) named_scores_count: Map<String, Value>,
    pub(crate) cost: f64,
}

/// One result.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) prompt_idx: usize,
    #[serde(default)]
    pub(crate) test_idx: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prompt_id: Option<String>,
    pub(crate) prompt: Prompt,
    pub(crate) provider: Provider,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) vars: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<Response>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) success: bool,
    #[serde(default)]
    pub(crate) score: Option<f64>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) named_scores: Map<String, Value>,
    #[serde(default)]
    pub(crate) latency_ms: Option<f64>,
    #[serde(default)]
    pub(crate) cost: Option<f64>,
    #[serde(default)]
    pub(crate) grading_result: Option<Grading>,
    /// 0: none, 1: an assertion, 2: an error. Older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure_reason: Option<u8>,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) test_case: TestCase,
    #[serde(default, deserialize_with = "nullable")]
    pub(crate) metadata: Map<String, Value>,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Prompt {
    pub(crate) raw: String,
    #[serde(default)]
    pub(crate) label: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(from = "WrittenProvider")]
pub(crate) struct Provider {
    pub(crate) id: String,
    pub(crate) label: Option<String>,
}

/// Older versions write the id alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenProvider {
    Id(String),
    Whole {
        id: String,
        #[serde(default)]
        label: Option<String>,
    },
}

impl From<WrittenProvider> for Provider {
    fn from(written: WrittenProvider) -> Self {
        match written {
            WrittenProvider::Id(id) => Self { id, label: None },
            WrittenProvider::Whole { id, label } => Self { id, label },
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    /// A text, or what a provider or a transform made instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_usage: Option<TokenUsage>,
    #[serde(default)]
    pub(crate) cached: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finish_reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokenUsage {
    pub(crate) total: Option<u64>,
    pub(crate) prompt: Option<u64>,
    pub(crate) completion: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) num_requests: Option<u64>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grading {
    pub(crate) pass: bool,
    /// None where it is not a number.
    #[serde(default)]
    pub(crate) score: Option<f64>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub(crate) named_scores: Map<String, Value>,
    #[serde(default)]
    pub(crate) component_results: Option<Vec<Self>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) assertion: Option<Assertion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<GradingMetadata>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GradingMetadata {
    /// The judge could not be asked, or answered something that is no judgement.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) grader_error: bool,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Assertion {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metric: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<f64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct TestCase {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub(crate) vars: Map<String, Value>,
    #[serde(rename = "assert", deserialize_with = "nullable")]
    pub(crate) assertions: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threshold: Option<f64>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Map::is_empty")]
    pub(crate) options: Map<String, Value>,
}

/// What may be null, and is empty then.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
