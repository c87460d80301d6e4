//! What is kept of a run: its lanes, and one record for each case that came to an end.

mod call;
mod digest;
mod imported;
mod lane_key;
mod skills;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

pub use call::{CallError, FailedAttempt, Source, Spent, Usage};
pub use digest::InputDigest;
pub use imported::Imported;
pub use lane_key::LaneKey;
pub use skills::{SkillChanges, SkillsInfo};

use crate::{
    case::TestCase,
    classification::{Class, Classification, Verdict},
    derived::Derivation,
    evidence::JudgedBy,
    gate::{Decimal, Gate, GateStatus},
    kind::RunnerKind,
    named_enum,
    reply::Logprobs,
    request::{self, Request, ToolCall},
};

/// One question of a case that asks several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// What it was asked for, such as `full` or `judge full vs baseline`.
    pub role: String,
    /// The turn of the conversation that it belongs to, from 1; none for what stands beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Who was asked.
    pub backend: String,
    /// What was sent.
    #[serde(flatten, with = "request::short")]
    pub request: Request,
    /// The reply as it came; its calls as JSON where it does nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The tools that the model calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What the model thought before it answered, where the backend shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the model stopped, in the vendor's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// How likely each token was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Logprobs>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    /// The answer to a case.
    Answer,
    /// One of several answers to a case that are going to be judged.
    Generation,
    /// What a judge said.
    Judgement,
    /// The embedding of a text.
    Embedding,
}

impl CacheKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answer, Self::Generation, Self::Judgement, Self::Embedding];

    /// What many of them are called.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Answer => "answers",
            Self::Generation => "generations",
            Self::Judgement => "judgements",
            Self::Embedding => "embeddings",
        }
    }
}

/// The result of one case on one backend, as it is made, stored, read back and reported.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseRecord {
    /// The case's id.
    pub case_id: String,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What was asked with which parameters: the answer to another request is not an answer to this one.
    pub input: InputDigest,
    /// The case as it stood in the dataset.
    #[serde(skip)]
    pub case: Arc<TestCase>,
    /// What was sent.
    #[serde(flatten, with = "request::short")]
    pub request: Request,
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
    /// How long the last call took; of a conversation, all calls that were answered.
    pub latency_ms: u64,
    /// How long its first token took, where the reply was read while it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    /// Tokens a second after the first, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Tokens over all calls.
    pub usage: Usage,
    /// Dollars over all calls; none where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Calls that were made.
    pub calls: u32,
    /// The worker that made the last one, where it was not the run itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The calls that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
    /// When the first call was made, in milliseconds since 1970.
    pub started_ms: i64,
    /// From the first call to the end, waits included.
    pub elapsed_ms: u64,
    /// The class, which the classification fixes.
    #[serde(rename = "primary")]
    pub class: Class,
    /// What gates count.
    pub verdict: Verdict,
    /// The deciding rule, the scores, the evidence.
    pub classification: Classification,
    /// Every question in order, of a case that asks several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

impl CaseRecord {
    /// How long the texts are that were sent and that came back. What was sent is in the case as well.
    pub(crate) fn text_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let asked = self.asked.iter().map(|it| it.request.text_bytes() + length(&it.reply));
        let failures = self.failures.iter().map(|it| it.error.message.len());
        2 * self.request.text_bytes()
            + length(&self.reply)
            + length(&self.reasoning)
            + asked.sum::<usize>()
            + failures.sum::<usize>()
    }
}

/// One runner on one backend within a run, with one of its prompt variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The runner's name.
    pub runner: String,
    /// The name of the prompt variant, if the runner has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
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
    /// The other tool that asked and judged, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Who judges its answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgedBy>,
    /// All who do, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<JudgedBy>,
    /// The skills that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<SkillsInfo>,
    /// How its results are judged.
    #[serde(flatten)]
    pub judging: Judging,
}

impl Lane {
    /// What tells it from the others of its run.
    pub fn key(&self) -> LaneKey<'_> {
        let (variant, backend) = (self.variant.as_deref(), &self.backend);
        LaneKey { runner: &self.runner, variant, backend }
    }
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
    /// The share of undecided results that gates on verdicts allow.
    #[serde(default, skip_serializing_if = "Decimal::is_zero")]
    pub max_undecided: Decimal,
    /// Whether what could not be judged counts as failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errors_as_failures: bool,
    /// Cases that are known to fail.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub known_failures: BTreeSet<String>,
    /// The version of the tool under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// Figures that are derived from others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<Derivation>,
}

impl Judging {
    /// A verdict as gates and figures count it.
    pub fn counted(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Error if self.errors_as_failures => Verdict::Fail,
            Verdict::Pass | Verdict::Fail | Verdict::Error | Verdict::Undecided => verdict,
        }
    }
}

named_enum! {
    /// How far a run came.
    pub enum RunStatus ("a status of a run") {
        /// A process is at work on it.
        Running = "running",
        /// Every planned case came to an end.
        Complete = "complete",
        /// Its gates were decided before every case had been asked.
        Decided = "decided",
        /// It stopped before its end.
        Incomplete = "incomplete",
        /// It did not stop in good order, and nobody is at work on it.
        Killed = "killed",
    }
}

/// What else is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunInfo {
    /// The version that ran it.
    pub probity_version: String,
    /// The suite file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite_path: Option<String>,
    /// The cases that were chosen.
    #[serde(skip_serializing_if = "Selection::is_everything")]
    pub selection: Selection,
    /// The settings by key, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The runs that this one was merged from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// The run whose replies were judged again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescored_from: Option<String>,
    /// The file of another tool that its replies were read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// The choice of cases of a run. A resumed run makes the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// At most so many cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// A regular expression for ids and prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub category: Vec<String>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag: Vec<String>,
    /// Ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// The run whose failing cases are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// The run whose cases that ended in errors are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// So many random cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<u64>,
    /// A part such as `2/5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// How often each case is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Runners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<String>,
    /// Backends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// Prompt variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<String>,
    /// Skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skill: Vec<String>,
    /// Groups of look-alikes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// The model that is asked instead of the suite's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model that judges instead of the suite's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// Whether pairs are judged in both orders.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub swap: bool,
}

impl Selection {
    /// The first option that leaves cases out.
    pub fn limited_by(&self) -> Option<&'static str> {
        let limits = [
            ("limit", self.limit.is_some()),
            ("filter", self.filter.is_some()),
            ("category", !self.category.is_empty()),
            ("tag", !self.tag.is_empty()),
            ("cases", !self.cases.is_empty()),
            ("failing", self.failing.is_some()),
            ("errors", self.errors.is_some()),
            ("sample", self.sample.is_some()),
            ("shard", self.shard.is_some()),
        ];
        limits.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// Whether it chooses everything.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
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
    /// An external runner gave up.
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
    /// The name used in files.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::FailFast { .. } => "fail_fast",
            Self::Skipped { .. } => "skipped",
            Self::Budget { .. } => "budget",
            Self::Decided { .. } => "decided",
            Self::Interrupted => "interrupted",
            Self::TimedOut { .. } => "timed_out",
            Self::GaveUp { .. } => "gave_up",
            Self::Broken { .. } => "broken",
        }
    }

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
