//! The kinds of runners: what is done with a case.

use crate::named_enum;

named_enum! {
    /// The kinds of runners.
    pub enum RunnerKind ("a kind of runner") {
        /// Any prompt, any expectation.
        Respond = "respond",
        /// A request in words, a shell command as the answer.
        Command = "command",
        /// Is the right skill chosen from an index?
        Activation = "activation",
        /// Are look-alike skills told apart?
        Confusion = "confusion",
        /// Is the answer better with the skill than without?
        Effectiveness = "effectiveness",
        /// Does the size of a skill pay off?
        SizeImpact = "size_impact",
        /// A program that runs cases of its own.
        Program = "program",
    }
}

impl RunnerKind {
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
