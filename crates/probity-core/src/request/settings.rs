//! How a model is to answer.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// How words are chosen. What is not set is left to whoever is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// How freely to choose words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of likely words to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The longest reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Makes a reply repeatable, where the server can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Whether to tell how likely each token of the reply was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<bool>,
    /// How much less likely words become that were said before, from -2 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// The same, for each time that they were said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Sampling {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The names of those that are set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let Self { temperature, top_p, max_tokens, seed, stop, logprobs, .. } = self;
        let Self { presence_penalty, frequency_penalty, .. } = self;
        [
            ("temperature", temperature.is_some()),
            ("top_p", top_p.is_some()),
            ("max_tokens", max_tokens.is_some()),
            ("seed", seed.is_some()),
            ("stop", !stop.is_empty()),
            ("logprobs", *logprobs == Some(true)),
            ("presence_penalty", presence_penalty.is_some()),
            ("frequency_penalty", frequency_penalty.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
    }

    /// These settings, and where they are silent, others.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            max_tokens: self.max_tokens.or(other.max_tokens),
            seed: self.seed.or(other.seed),
            logprobs: self.logprobs.or(other.logprobs),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
            stop: if self.stop.is_empty() { &other.stop } else { &self.stop }.clone(),
        }
    }
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseFormat {
    /// Any JSON.
    Json,
    /// JSON that satisfies a schema. Many cases share one.
    Schema(Arc<Value>),
}

impl ResponseFormat {
    /// The schema, if there is one.
    pub fn schema(&self) -> Option<&Value> {
        match self {
            Self::Json => None,
            Self::Schema(schema) => Some(schema),
        }
    }

    /// As files have it: `json`, or a schema.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::String(name) if name == "json" => Some(Self::Json),
            Value::Object(_) => Some(Self::Schema(Arc::new(value))),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => None,
        }
    }
}

impl Serialize for ResponseFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json => serializer.serialize_str("json"),
            Self::Schema(schema) => schema.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ResponseFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("neither `json` nor a JSON Schema"))
    }
}
