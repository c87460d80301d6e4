//! What an import makes: a suite and its datasets, before they are written.
//!
//! The fields have the names that they have in a suite file; what is empty is not written.

use std::collections::BTreeMap;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, Matcher, RubricPrompt, ScorerErrors},
    reading::Reading,
    request::{ResponseFormat, Sampling},
};
use probity_load::{
    suite::BackendKind,
    template::{is_template, texts_in},
};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::note::At;

/// A suite, and the datasets that it names.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// What the suite says at its top, for whoever reads it.
    pub comments: Vec<String>,
    /// What is said at the top of the suite, for all runners.
    pub settings: SuiteSettings,
    /// Who can be asked.
    pub backends: Vec<BackendDraft>,
    /// What scores replies, each with the file of its function.
    pub scorers: Vec<ScorerDraft>,
    /// What is evaluated.
    pub runners: Vec<RunnerDraft>,
    /// The cases.
    pub datasets: Vec<DatasetDraft>,
    /// Functions of ours that are written beside the suite, by the names of their files.
    pub adapters: BTreeMap<String, String>,
}

impl Draft {
    /// The name of the scorer with a function of Node's, which sees these variables; it is added if there is
    /// none yet.
    pub fn scorer(&mut self, node: &str, env: Vec<String>) -> String {
        if let Some(known) = self.scorers.iter().find(|it| it.node == node) {
            return known.name.clone();
        }
        let stem = node.rsplit('/').next().unwrap_or(node);
        let usable = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let base: String = stem.chars().map(usable).collect();
        let is_taken = |name: &str| self.scorers.iter().any(|it| it.name == name);
        let mut name = base.clone();
        let mut number = 1;
        while is_taken(&name) {
            number += 1;
            name = format!("{base}-{number}");
        }
        self.scorers.push(ScorerDraft {
            name: name.clone(),
            node: node.to_owned(),
            is_adapter: false,
            env,
        });
        name
    }

    /// The name of the scorer that an adapter is, which sees these variables. It is added if there is none yet.
    pub fn adapted_scorer(&mut self, adapter: &str, env: &[&str]) -> String {
        let stem = adapter.split('.').next().unwrap_or(adapter);
        let known = self.scorers.iter().position(|it| it.is_adapter && it.node == adapter);
        let at = known.unwrap_or_else(|| {
            self.scorers.push(ScorerDraft {
                name: stem.to_owned(),
                node: adapter.to_owned(),
                is_adapter: true,
                env: Vec::new(),
            });
            self.scorers.len() - 1
        });
        for name in env {
            if !self.scorers[at].env.iter().any(|it| it == name) {
                self.scorers[at].env.push((*name).to_owned());
            }
        }
        stem.to_owned()
    }
}

/// A scorer: a function that Node runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScorerDraft {
    /// What assertions call it.
    #[serde(skip)]
    pub name: String,
    /// The file and the function in it, relative to the folder of the suite.
    pub node: String,
    /// Whether the file is one of the draft's adapters.
    #[serde(skip)]
    pub is_adapter: bool,
    /// Variables that it sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// Settings at the top of a suite.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SuiteSettings {
    /// Whether cases may bring code.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_code: bool,
    /// Calls in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// Whether gates judge the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<bool>,
    /// Limits of time.
    #[serde(skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// What counts as a refusal.
    #[serde(skip_serializing_if = "Refusal::is_empty")]
    pub refusal: Refusal,
    /// Answers of earlier calls.
    #[serde(skip_serializing_if = "Cache::is_empty")]
    pub cache: Cache,
    /// Figures that are derived from others: names and expressions, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "pairs")]
    pub derived: Vec<(String, String)>,
}

/// Names and values as a table, in their order.
fn pairs<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

/// What counts as a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Whether replies are looked at for refusals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detect: Option<bool>,
}

impl Refusal {
    const fn is_empty(&self) -> bool {
        self.detect.is_none()
    }
}

/// Limits of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeouts {
    /// Of one call, such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    /// Of one case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
}

impl Timeouts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Answers of earlier calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Whether they are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

impl Cache {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A backend.
#[derive(Clone, Debug, Serialize)]
pub struct BackendDraft {
    /// What runners call it.
    #[serde(skip)]
    pub name: String,
    /// Where it came from.
    #[serde(skip)]
    pub at: At,
    /// What is worth knowing about it.
    #[serde(skip)]
    pub comments: Vec<String>,
    /// What it is.
    #[serde(serialize_with = "kind")]
    pub kind: BackendKind,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where a server is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Headers and the variables that hold their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers_env: BTreeMap<String, String>,
    /// How words are chosen.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// The form of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// More fields of requests.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Whether replies are read while they are written.
    #[serde(skip_serializing_if = "is_false")]
    pub stream: bool,
    /// Calls in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u64>,
    /// The limit of one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Where requests of a backend of kind `http` go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How they are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Their headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Their body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// JSON Pointer to the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// JSON Pointer to the id of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// JSON Pointer to what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The service of AWS that requests are signed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_service: Option<String>,
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The file with the function, relative to the folder of the import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The adapter of the draft that is the function, instead of a file.
    #[serde(skip)]
    pub adapter: Option<String>,
    /// What the function is told.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Variables that the program or the function sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

impl BackendDraft {
    /// A backend with nothing but a name and a kind.
    pub fn new(name: impl Into<String>, kind: BackendKind, at: At) -> Self {
        Self {
            name: name.into(),
            at,
            comments: Vec::new(),
            kind,
            model: None,
            base_url: None,
            api_key_env: None,
            headers_env: BTreeMap::new(),
            sampling: Sampling::default(),
            response_format: None,
            extra_body: Map::new(),
            stream: false,
            max_concurrency: None,
            timeout: None,
            url: None,
            method: None,
            headers: BTreeMap::new(),
            body: None,
            reply: None,
            session: None,
            error: None,
            aws_service: None,
            command: Vec::new(),
            file: None,
            adapter: None,
            config: Map::new(),
            env: Vec::new(),
        }
    }

    /// The templates that a backend of kind `http` fills in for each request.
    pub(crate) fn templates(&self) -> Vec<&str> {
        if self.kind != BackendKind::Http {
            return Vec::new();
        }
        let body = self.body.iter().flat_map(texts_in);
        let others = self.url.iter().chain(self.headers.values()).map(String::as_str);
        body.chain(others).filter(|it| is_template(it)).collect()
    }
}

/// What templates of a request see beside the variables of a case.
pub(crate) const REQUEST_NAMES: &[&str] = &[
    "env",
    "frequency_penalty",
    "logprobs",
    "max_tokens",
    "messages",
    "model",
    "presence_penalty",
    "prompt",
    "seed",
    "session",
    "stop",
    "system",
    "temperature",
    "tools",
    "top_p",
];

/// A runner.
#[derive(Clone, Debug, Serialize)]
pub struct RunnerDraft {
    /// Unique in the suite.
    pub name: String,
    /// Where it came from.
    #[serde(skip)]
    pub at: At,
    /// What is worth knowing about it.
    #[serde(skip)]
    pub comments: Vec<String>,
    /// What it does with a case; `respond` if it does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Where its cases come from.
    #[serde(skip)]
    pub dataset: Vec<DatasetRef>,
    /// Who is asked.
    pub backends: Vec<String>,
    /// What is said about all its cases.
    #[serde(flatten)]
    pub setup: Setup,
    /// The ways in which it asks its cases.
    #[serde(skip)]
    pub prompts: Vec<VariantDraft>,
}

/// Where cases come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetRef {
    /// One of the draft's datasets, by its name.
    Draft(String),
    /// A function that makes them: `tests.py:generate`, relative to the folder of the import.
    Function(String),
    /// An adapter of the draft that makes them, if need be of one of its datasets.
    Adapter {
        /// The name of its file.
        name: String,
        /// The dataset.
        of: Option<String>,
    },
}

/// What a runner says about all its cases. Cases that need another setup need another runner.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Setup {
    /// What functions that make its cases are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_config: Option<Value>,
    /// Variables that functions see that make its prompts and cases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Who judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// The judge's prompt of `llm-rubric`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric_prompt: Option<RubricPrompt>,
    /// Who embeds texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
    /// The folder of the skills that cases are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<String>,
    /// Who plays the user of conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Instructions for cases that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Examples that cases are asked with.
    #[serde(skip)]
    pub examples: Option<Examples>,
    /// How often each case is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// How many of the repeats have to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_pass: Option<u32>,
    /// How replies are compared with what cases expect.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    /// How the answer is read that is compared.
    #[serde(flatten)]
    pub reading: Reading,
    /// Values of variables for cases that do not have them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_vars: BTreeMap<String, Value>,
    /// Assertions for all cases.
    #[serde(rename = "assert", skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<Assertion>,
    /// The share of the assertions that must hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// JavaScript that makes what is checked out of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    /// What it means if a scorer fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer_errors: Option<ScorerErrors>,
    /// Tools that are sent with all cases, as JSON or as the name of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Value>,
    /// Whether one has to be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// The form of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
}

/// Examples that cases are asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examples {
    /// The dataset of the draft that they are in.
    pub dataset: String,
    /// How many; all unless stated.
    pub count: Option<usize>,
    /// What they are drawn with; the first ones are taken otherwise.
    pub seed: Option<u64>,
}

/// One way in which a runner asks its cases.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantDraft {
    /// Its name; letters, digits and `- _ .`.
    pub name: String,
    /// Where it came from.
    pub at: At,
    /// What is worth knowing about it.
    pub comments: Vec<String>,
    /// What it asks.
    pub asks: Asks,
    /// The file of the user's that has the template and nothing else, from the folder of the suite.
    pub file: Option<String>,
    /// How words are chosen.
    pub sampling: Sampling,
}

/// What a variant asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Asks {
    /// A template.
    Template(String),
    /// A conversation; its texts are templates. In the form that suites have.
    Messages(Value),
    /// A template that makes a conversation, as JSON.
    MessagesTemplate(String),
    /// An adapter of the draft that makes the prompt, and the variables that it sees.
    Adapter {
        /// The name of its file.
        name: String,
        /// The variables.
        env: Vec<String>,
    },
    /// A function: `prompt.py:make`, relative to the folder of the import.
    Function(String),
}

/// A dataset.
#[derive(Clone, Debug, Default)]
pub struct DatasetDraft {
    /// The name of its file, without the suffix.
    pub name: String,
    /// What is worth knowing about it.
    pub comments: Vec<String>,
    /// Whether code reads it, which takes a line for each case.
    pub is_for_code: bool,
    /// Its cases.
    pub cases: Vec<CaseDraft>,
}

/// A case, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseDraft {
    /// The case.
    pub case: TestCase,
    /// Where it stands in the files of the other tool.
    pub at: At,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn kind<S: Serializer>(kind: &BackendKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(value: &bool) -> bool {
    !*value
}
