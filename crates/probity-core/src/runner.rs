//! The kinds of runners: what is done with a case.

use serde::{Deserialize, Serialize};

/// The kinds of runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerKind {
    /// Any prompt, any expectation.
    Respond,
    /// A request in words, a shell command as the answer.
    Command,
    /// Is the right skill chosen from an index?
    Activation,
    /// Are look-alike skills told apart?
    Confusion,
    /// Is the answer better with the skill than without?
    Effectiveness,
    /// Does the size of a skill pay off?
    SizeImpact,
    /// A program that runs cases of its own.
    Program,
}

impl RunnerKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Respond,
        Self::Command,
        Self::Activation,
        Self::Confusion,
        Self::Effectiveness,
        Self::SizeImpact,
        Self::Program,
    ];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Respond => "respond",
            Self::Command => "command",
            Self::Activation => "activation",
            Self::Confusion => "confusion",
            Self::Effectiveness => "effectiveness",
            Self::SizeImpact => "size_impact",
            Self::Program => "program",
        }
    }

    /// Whether its cases are about skills.
    pub const fn has_skills(self) -> bool {
        match self {
            Self::Activation | Self::Confusion | Self::Effectiveness | Self::SizeImpact => true,
            Self::Respond | Self::Command | Self::Program => false,
        }
    }

    /// Whether answers are compared by a judge.
    pub const fn compares(self) -> bool {
        matches!(self, Self::Effectiveness | Self::SizeImpact)
    }
}
