//! What goes over the wire.

use std::{collections::BTreeMap, time::Duration};

use probity_core::record::InputDigest;
use probity_run::carrier::{Call, CallResult};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The version of this program: calls are for workers of the same one.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of what goes over the wire. It is part of what an offer is known by, so that those who speak another one
/// never get each other's messages.
pub(crate) const WIRE: u32 = 1;

/// The header that names the object with the body, where that is too large for a message.
pub(crate) const OBJECT: &str = "Probity-Object";

/// Reads a message.
///
/// By way of a tree: serde cannot hand numbers of any precision to flattened fields, which cases and executions have.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_value(serde_json::from_slice(body)?)
}

/// A call for a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallMessage {
    pub(crate) wire: u32,
    pub(crate) run: String,
    pub(crate) limit: Duration,
    /// How long the server waits to hear of it.
    pub(crate) ack_wait: Duration,
    pub(crate) call: Call,
}

/// What came of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) wire: u32,
    pub(crate) worker: String,
    /// How often the call had been delivered, with this time.
    pub(crate) delivery: u64,
    pub(crate) took: Duration,
    pub(crate) result: Result<CallResult, String>,
}

/// A worker says that it has begun a call, or that it handed it back.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) id: String,
    pub(crate) worker: String,
    pub(crate) delivery: u64,
    /// It was not begun, since the worker is about to leave.
    #[serde(default)]
    pub(crate) handed_back: bool,
}

/// What a worker needs to know of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunNote {
    /// The version of the wire.
    pub wire: u32,
    /// The version of the program that runs it.
    pub version: String,
    /// The run's id.
    pub run: String,
    /// What the suite is called.
    pub suite: String,
    /// The object with its definition.
    pub definition: String,
    /// What the run has calls for.
    pub offers: Vec<OfferNote>,
}

/// Something that workers can do for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferNote {
    /// What tells it from all others: whoever has the same does the same.
    pub digest: String,
    /// What it is.
    pub kind: OfferKind,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfferKind {
    /// Ask a backend.
    Backend {
        /// What the suite calls it.
        name: String,
        /// The model, if it is not the suite's.
        model: Option<String>,
        /// What for.
        seat: SeatUse,
    },
    /// Score with the programs of a suite.
    Scorers,
    /// Execute in the sandbox.
    Sandbox,
}

impl OfferKind {
    /// What people call it.
    pub fn shown(&self) -> String {
        match self {
            Self::Backend { name, model, seat } => {
                let what = match seat {
                    SeatUse::Answers => "",
                    SeatUse::Embeds => " (embeddings)",
                    SeatUse::Reranks => " (reranker)",
                };
                match model {
                    Some(model) => format!("{name} [{model}]{what}"),
                    None => format!("{name}{what}"),
                }
            }
            Self::Scorers => "scorers".to_owned(),
            Self::Sandbox => "sandbox".to_owned(),
        }
    }
}

/// What a backend is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeatUse {
    /// Answers.
    Answers,
    /// Embeddings of texts.
    Embeds,
    /// How relevant texts are.
    Reranks,
}

/// What of a suite makes a call what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// What the file says of backends and scorers.
    pub parts: Value,
    /// The suite's own rules for errors.
    pub error_rules: Option<String>,
}

impl Definition {
    /// The definition as one text.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Its keys are texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What tells an offer from all others: the versions, what the suite says of it, and the files that it is made of.
pub fn offer_digest(definition: &Definition, kind: &OfferKind, files: &[Vec<u8>]) -> String {
    let parts = &definition.parts;
    let said = match kind {
        OfferKind::Backend { name, .. } => sorted(&parts["backends"][name]),
        OfferKind::Scorers => sorted(&parts["scorers"]),
        OfferKind::Sandbox => Value::Null,
    };
    let shown = serde_json::to_string(kind).unwrap_or_default();
    let said = said.to_string();
    let rules = match kind {
        OfferKind::Backend { .. } => definition.error_rules.as_deref().unwrap_or(""),
        OfferKind::Scorers | OfferKind::Sandbox => "",
    };
    let wire = WIRE.to_le_bytes();
    let own = [VERSION.as_bytes(), &wire, shown.as_bytes(), said.as_bytes(), rules.as_bytes()];
    let files = files.iter().map(Vec::as_slice);
    InputDigest::of(own.into_iter().chain(files)).to_string()
}

/// The same value whatever order its keys were written in.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(map) => {
            let pairs: BTreeMap<&String, Value> =
                map.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// What a worker says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerNote {
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// The machine.
    pub host: String,
    /// What it does.
    pub offers: Vec<OfferNote>,
    /// What it does not do, and why.
    pub refused: Vec<Refusal>,
    /// How many calls it makes at the same time.
    pub slots: u64,
    /// How many it makes now.
    pub in_flight: u64,
    /// How many it has made.
    pub done: u64,
    /// How many of these came to nothing.
    pub failed: u64,
    /// Calls a second, over the last while.
    pub rate: f64,
    /// How long it is up, in seconds.
    pub up_s: u64,
    /// When it said this, in milliseconds since 1970 by its own clock.
    pub at_ms: i64,
    /// Whether it takes no more calls.
    #[serde(default)]
    pub leaving: bool,
}

/// Something that a worker does not do for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The suite.
    pub suite: String,
    /// What it is.
    pub what: String,
    /// Why not.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use probity_core::{case::TestCase, request::Request};
    use probity_run::carrier::Question;
    use serde_json::json;

    use super::*;

    fn backend(name: &str) -> OfferKind {
        OfferKind::Backend { name: name.to_owned(), model: None, seat: SeatUse::Answers }
    }

    #[test]
    fn an_offer_is_known_by_all_that_makes_it_what_it_is() {
        let parts =
            |url: &str| json!({ "backends": { "a": { "kind": "openai", "base_url": url } } });
        let of = |url: &str, rules: Option<&str>, kind: &OfferKind, files: &[Vec<u8>]| {
            let error_rules = rules.map(ToOwned::to_owned);
            offer_digest(&Definition { parts: parts(url), error_rules }, kind, files)
        };
        let plain = of("http://x", None, &backend("a"), &[]);
        assert_eq!(plain, of("http://x", None, &backend("a"), &[]));
        let other = OfferKind::Backend {
            name: "a".to_owned(),
            model: Some("m".to_owned()),
            seat: SeatUse::Answers,
        };
        for different in [
            of("http://y", None, &backend("a"), &[]),
            of("http://x", Some("rule"), &backend("a"), &[]),
            of("http://x", None, &other, &[]),
            of("http://x", None, &backend("a"), &[b"code".to_vec()]),
        ] {
            assert_ne!(plain, different);
        }
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        let definition = |text: &str| Definition {
            parts: serde_json::from_str(text).unwrap(),
            error_rules: None,
        };
        let one = definition(r#"{"backends":{"a":{"kind":"echo","x":{"b":1,"c":[1,2]}}}}"#);
        let other = definition(r#"{"backends":{"a":{"x":{"c":[1,2],"b":1},"kind":"echo"}}}"#);
        let digest = |it: &Definition| offer_digest(it, &backend("a"), &[]);
        assert_eq!(digest(&one), digest(&other));
    }

    #[test]
    fn a_call_with_a_case_that_has_numbers_is_read_as_it_was_written() {
        let case =
            r#"{"id":"a","prompt":"p","assert":[{"type":"contains","value":1.5,"weight":2}]}"#;
        let question = Question {
            request: Request::new(None, "p"),
            repeat: 0,
            case: Some(Box::new(TestCase::from_json(case).unwrap())),
            is_subject: true,
            sessions: BTreeMap::new(),
        };
        let call = Call::Ask(Box::new(question));
        let written = serde_json::to_vec(&call).unwrap();
        assert_eq!(read::<Call>(&written).unwrap(), call);
    }
}
