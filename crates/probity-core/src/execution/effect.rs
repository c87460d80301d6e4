//! What executing two commands found out about them.

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// What becomes of commands that reading does not decide.
    #[derive(Default)]
    pub enum ExecutionUse ("a use of execution") {
        /// They are not executed.
        #[default]
        Off = "off",
        /// They are executed, and what that shows is recorded. It decides nothing.
        Assist = "assist",
        /// They are executed, and that decides.
        Decide = "decide",
    }
}

named_enum! {
    /// Whether a run goes on where nothing can be executed.
    #[derive(Default)]
    pub enum SandboxNeed ("a need of a sandbox") {
        /// It does; cases that have to be executed are undecided.
        #[default]
        Optional = "optional",
        /// It does not start.
        Required = "required",
    }
}

named_enum! {
    /// What execution says about two commands.
    pub enum EffectVerdict ("a verdict on effects") {
        /// They did the same wherever they did anything.
        SameEffect = "same_effect",
        /// They did not.
        Different = "different",
        /// It cannot be said.
        Unknown = "unknown",
    }
}

/// Two commands that have to be executed, because reading does not tell how they compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectCall {
    /// The command of the reply.
    pub command: String,
    /// An accepted one.
    pub against: String,
}

/// How alike two commands are, from 0 to 1. It is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Likeness {
    /// In all; 1 if they are equal or have the same effect.
    pub overall: f64,
    /// Their words.
    pub words: f64,
    /// What they did; none where they were not executed or did nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<f64>,
}

/// What executing the command of a reply and an accepted one showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectFound {
    /// The command of the reply.
    pub command: String,
    /// The accepted one.
    pub against: String,
    /// What that says.
    pub verdict: EffectVerdict,
    /// Why, in a sentence.
    pub reason: String,
    /// The world that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<String>,
    /// The first difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// What differs only where names are odd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// The worlds in which they did the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agreed: Vec<String>,
    /// The worlds in which neither did anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// How alike they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likeness: Option<Likeness>,
}

impl EffectFound {
    /// What it shows, in a sentence.
    pub fn sentence(&self) -> String {
        match &self.difference {
            Some(difference) => format!("{}: {difference}", self.reason),
            None => self.reason.clone(),
        }
    }

    /// As it is stored.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`EffectFound::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|it| format!("the stored execution cannot be read: {it}"))
    }
}
