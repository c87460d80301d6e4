//! One example of a dataset.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::criteria::Criteria;

/// One example: what is asked, and how to tell whether the answer is right.
///
/// The first seven fields are those of a shell-command case. `None` and empty
/// collections mean that the file does not have the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TestCase {
    /// Unique within its dataset.
    pub id: String,
    /// What is asked, a template over `prompt_vars`.
    pub prompt: String,
    /// The command that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_command: Option<String>,
    /// Other commands that answer it as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_commands: Vec<String>,
    /// Which check decides a shell-command case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Whether the command is safe to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<bool>,
    /// Whether the command is portable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posix_compliant: Option<bool>,
    /// For whoever reads the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Instructions that go before the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Values for the prompt's variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_vars: BTreeMap<String, Value>,
    /// How to tell whether a reply is right.
    #[serde(flatten)]
    pub criteria: Criteria,
    /// Free labels to filter and group by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How hard it is meant to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    /// The systems it makes sense on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platform: Vec<String>,
    /// What a sandbox has to find after running the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<Value>,
    /// What a case of a skill-routing dataset expects.
    #[serde(flatten)]
    pub routing: Routing,
    /// What a judge looks at, in a case of a skill-effectiveness dataset.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rubric: Vec<RubricCriterion>,
    /// The terms it may be used under; those of its file where it says none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
}

/// The skills a routing case expects to be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Routing {
    /// The skill that a case of a skill dataset is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Any of these is right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_skills: Vec<String>,
    /// Any of these will do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub acceptable_skills: Vec<String>,
    /// False where no skill may be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_activate: Option<bool>,
    /// The group of look-alikes it is chosen from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// One thing a judge scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RubricCriterion {
    /// Unique within its rubric.
    pub name: String,
    /// Its share; the weights of a rubric add up to 1.
    pub weight: f64,
    /// What the judge is told.
    pub description: String,
}

/// What a case asks of a shell command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandCase {
    /// The commands that answer it, the first one first.
    pub commands: Vec<String>,
    /// Which check decides.
    pub category: Option<Category>,
    /// Whether the command is safe to run.
    pub safe: Option<bool>,
    /// Whether the command is portable.
    pub posix_compliant: Option<bool>,
}

impl CommandCase {
    /// The case, if it says anything.
    pub fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl Routing {
    /// Whether a skill is to be chosen.
    pub fn is_positive(&self) -> bool {
        self.should_activate.unwrap_or(!self.expected_skills.is_empty())
    }
}

impl TestCase {
    /// Every command that answers the case, the first one first.
    pub fn accepted_commands(&self) -> impl Iterator<Item = &str> {
        self.expected_command.iter().chain(&self.expected_commands).map(String::as_str)
    }

    /// What the case asks of a shell command, if it is about one.
    pub fn command_case(&self) -> Option<CommandCase> {
        let commands: Vec<String> = self.accepted_commands().map(ToOwned::to_owned).collect();
        let Self { category, safe, posix_compliant, .. } = *self;
        CommandCase { commands, category, safe, posix_compliant }.if_any()
    }

    /// Whether anything in the case says when a reply is right.
    pub fn has_criteria(&self) -> bool {
        self.category.is_some()
            || self.accepted_commands().next().is_some()
            || !self.criteria.is_empty()
            || self.execution.is_some()
            || self.routing != Routing::default()
            || !self.rubric.is_empty()
    }
}

/// Which check decides a shell-command case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Does the command do what the expected one does?
    Correctness,
    /// Is the command as safe as the label says?
    Safety,
    /// Is the command as portable as the label says?
    Posix,
}

impl Category {
    /// All three, in reporting order.
    pub const ALL: [Self; 3] = [Self::Correctness, Self::Safety, Self::Posix];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Safety => "safety",
            Self::Posix => "posix",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Category {
    type Err = UnknownCategory;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str() == text)
            .ok_or_else(|| UnknownCategory(text.to_owned()))
    }
}

/// A name that is no category.
#[derive(Debug, thiserror::Error)]
#[error("unknown category `{0}`")]
pub struct UnknownCategory(String);
