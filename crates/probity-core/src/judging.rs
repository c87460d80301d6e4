//! The rules a suite brings for judging replies: policies, refusals, JSON, errors, shell commands.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    criteria::JsonLevel,
    execution::{ExecutionUse, SandboxNeed},
};

/// All rules of a suite. `probity-grade` compiles them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleConfig {
    /// The policies a reply must not break, in file order.
    pub policies: Vec<PolicyConfig>,
    /// What counts as a refusal.
    pub refusal: RefusalConfig,
    /// How much is forgiven when JSON is read out of a reply.
    pub json_level: JsonLevel,
    /// Rules of the error classifier that go before its own, as TOML.
    pub error_rules: Option<String>,
    /// How shell commands are judged.
    pub shell: ShellConfig,
    /// How commands are judged by what they do.
    pub grading: GradingConfig,
}

/// How commands are judged by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GradingConfig {
    /// What becomes of commands that reading does not decide.
    pub execution: ExecutionUse,
    /// Whether a run goes on where nothing can be executed.
    pub sandbox: SandboxNeed,
}

/// How shell commands are judged. What its parts mean is known to the crate that judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShellConfig {
    /// From which risk on a command counts as unsafe.
    pub level: Option<String>,
    /// The edition of the standard that commands are held against.
    pub posix_edition: Option<String>,
    /// Safety rules, each a table.
    pub rules: Vec<Value>,
    /// Commands that are allowed whatever the rules say, each a table.
    pub allow: Vec<Value>,
}

/// A named policy: a reply that contains any of these breaks it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyConfig {
    /// What it is called in results.
    pub name: String,
    /// How grave a breach is.
    pub severity: PolicySeverity,
    /// Whole words, whatever the case of their letters.
    pub words: Vec<String>,
    /// Text, to the letter.
    pub substrings: Vec<String>,
    /// Regular expressions.
    pub regexes: Vec<String>,
    /// One of the policies that come with the program.
    pub builtin: Option<String>,
}

/// How grave a breach of a policy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicySeverity {
    /// Worth knowing.
    Low,
    /// Worth a look.
    Medium,
    /// Not to be shipped.
    #[default]
    High,
    /// Not to be shown.
    Critical,
}

impl PolicySeverity {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What counts as a refusal beside, or instead of, the phrases that come with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalConfig {
    /// Phrases that refuse.
    pub phrases: Vec<String>,
    /// Phrases that never refuse, even where they look like it.
    pub allow: Vec<String>,
    /// Whether `phrases` stand instead of the built-in ones.
    pub replace: bool,
    /// Whether to search the whole reply and not only its opening.
    pub anywhere: bool,
    /// Whether what a reply says is never taken for a refusal.
    pub is_off: bool,
}
