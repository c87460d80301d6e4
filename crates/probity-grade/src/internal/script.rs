//! Scripts and scorers of users, as grading sees them: it knows no language and starts no program.

use std::{fmt, sync::Arc};

use probity_core::{case::TestCase, json::Limits, scored::Scored};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{internal::similar::Similar, reply::Reply};

/// Compiles scripts. What it compiles is a pure function with bounds.
pub trait Scripts: fmt::Debug + Send + Sync {
    /// Compiles a script, or the script in the file that `source` names with `file://`.
    fn compile(&self, source: &str) -> Result<Arc<dyn Script>, String>;

    /// Whether a scorer may use the file that is named after `file://`.
    fn check_file(&self, named: &str) -> Result<(), String>;
}

/// A script that can be run.
pub trait Script: fmt::Debug + Send + Sync {
    /// What it makes of an output. `context` is a JSON object. An error is the script's own.
    fn run(&self, output: &Value, context: &str) -> Result<Value, String>;
}

/// Somebody who has to be asked about a reply, since grading asks nobody.
#[derive(Clone, Debug)]
pub struct ScorerCall {
    /// Which one.
    pub scorer: Scorer,
    /// What the assertion tells it.
    pub config: Option<Value>,
    /// The turn whose answer it is about, from 1; none if that is the last one.
    pub(crate) turn: Option<u32>,
    /// What makes its output out of the reply.
    pub(crate) transform: Option<Arc<dyn Script>>,
}

impl ScorerCall {
    /// Somebody who is asked about an output that is there already.
    pub fn outside(scorer: Scorer) -> Self {
        Self { scorer, config: None, turn: None, transform: None }
    }

    /// Which code is asked and what it is told, as it is recorded: an answer to another question
    /// is none to this one.
    pub fn question(&self) -> String {
        let code = match &self.scorer {
            Scorer::Named(name) => name.clone(),
            Scorer::Python(source) => source.clone(),
            Scorer::Exec(command) => command.join(" "),
            Scorer::Similar(similar) => similar.question(),
            Scorer::Rerank(query) => query.clone().unwrap_or_default(),
        };
        match &self.config {
            Some(config) => format!("{code}\n{config}"),
            None => code,
        }
    }
}

/// What a scorer is given.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorerInput {
    /// The reply, or what transforms made of it.
    pub output: Value,
    /// What it is told of the case, as a JSON object.
    pub context: String,
    /// What the reply answers.
    pub question: String,
}

impl ScorerInput {
    /// The output as a text.
    pub fn text(&self) -> String {
        text_of(&self.output)
    }
}

/// A scorer outside of the process, or a model that embeds or ranks texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scorer {
    /// One of the suite, by name.
    Named(String),
    /// Python: code, or the file that it names with `file://`.
    Python(String),
    /// A program that is run for one reply, with its arguments.
    Exec(Vec<String>),
    /// How near the reply is to texts.
    Similar(Similar),
    /// How relevant the reply is to a question; none: to that of the case.
    Rerank(Option<String>),
}

impl fmt::Display for Scorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "scorer `{name}`"),
            Self::Python(source) => match source.strip_prefix("file://") {
                Some(file) => write!(f, "scorer `{file}`"),
                None => f.write_str("Python scorer"),
            },
            Self::Exec(command) => {
                write!(f, "scorer `{}`", command.first().map_or("", String::as_str))
            }
            Self::Similar(_) => f.write_str("embeddings"),
            Self::Rerank(_) => f.write_str("reranker"),
        }
    }
}

/// What scripts are told of their case.
#[derive(Clone, Debug)]
pub(crate) struct CaseFacts {
    vars: Value,
    test: Box<RawValue>,
}

impl CaseFacts {
    pub(crate) fn new(case: &TestCase) -> Self {
        let vars = Value::Object(case.prompt_vars.clone().into_iter().collect());
        let test = Test { description: &case.id, vars: &case.prompt_vars, case };
        // Its keys are texts, so this cannot fail.
        let test =
            serde_json::value::to_raw_value(&test).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { vars, test }
    }

    /// The context of a script or scorer, as promptfoo's users know it.
    pub(crate) fn context(&self, reply: &Reply<'_, '_>, config: Option<&Value>) -> String {
        let result = reply.result;
        let logprobs = result.exchanges.last().and_then(|it| it.logprobs);
        let logprobs: Option<Vec<f64>> =
            logprobs.map(|it| it.0.iter().map(|it| it.logprob).collect());
        let context = Context {
            prompt: result.question(),
            vars: &self.vars,
            test: &self.test,
            config,
            provider: result.backend.map(|id| Provider { id, label: id }),
            log_probs: logprobs.as_deref(),
            provider_response: ProviderResponse {
                output: reply.original,
                finish_reason: result.stop_reason,
                latency_ms: result.latency_ms,
                cost: result.cost_usd,
            },
        };
        serde_json::to_string(&context).unwrap_or_else(|_| "{}".to_owned())
    }
}

#[derive(Serialize)]
struct Test<'a> {
    description: &'a str,
    vars: &'a std::collections::BTreeMap<String, Value>,
    #[serde(flatten)]
    case: &'a TestCase,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    prompt: Option<&'a str>,
    vars: &'a Value,
    test: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a Value>,
    provider: Option<Provider<'a>>,
    log_probs: Option<&'a [f64]>,
    provider_response: ProviderResponse<'a>,
}

#[derive(Serialize)]
struct Provider<'a> {
    id: &'a str,
    label: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProviderResponse<'a> {
    output: &'a str,
    finish_reason: Option<&'a str>,
    latency_ms: Option<f64>,
    cost: Option<f64>,
}

/// What a transform makes of a reply.
pub(crate) fn transform(
    script: &dyn Script,
    facts: &CaseFacts,
    reply: &Reply<'_, '_>,
) -> Result<Value, String> {
    let context = facts.context(reply, None);
    script.run(&reply.output(), &context).map_err(|why| format!("the transform failed: {why}"))
}

/// What a script says of a reply.
pub(crate) fn score(
    script: &dyn Script,
    config: Option<&Value>,
    threshold: Option<f64>,
    reply: &Reply<'_, '_>,
) -> Result<Scored, String> {
    let context = reply.facts.map_or_else(|| "{}".to_owned(), |it| it.context(reply, config));
    let failed = |why: String| format!("the script failed: {why}");
    let returned = script.run(&reply.output(), &context).map_err(failed)?;
    Scored::read(&returned, threshold).map_err(failed)
}

/// The text of what a transform made.
pub(crate) fn text_of(made: &Value) -> String {
    made.as_str().map_or_else(|| made.to_string(), ToOwned::to_owned)
}

/// What the stored answer of a scorer says.
pub(crate) fn stored(text: &str) -> Result<Value, String> {
    let parsed = probity_core::json::parse(text, &Limits::default());
    parsed.map(|it| it.value).map_err(|error| format!("the stored answer cannot be read: {error}"))
}
