//! Whether a command stays inside the standard.
//!
//! Three layers read the same tree: syntax, what the shell itself offers (expansions, variables, builtins), and the
//! utilities with their options and operands. Facts of the standard stand in `data/posix/`; `docs/posix.md` explains
//! the rules. Text inside quotes is text: nothing here looks at characters that a shell would not act on.

mod args;
mod awk;
mod builtins;
mod command;
mod conditions;
mod find;
mod foreign;
mod operands;
mod options;
mod rules;
mod scripts;
mod standard;
mod syntax;
#[cfg(test)]
mod tests;
mod words;

use std::{fmt, str::FromStr};

use rules::Rule;
use serde::Serialize;

use crate::{
    Script,
    tree::{Span, Text},
};

/// The edition of the standard that a command is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub enum Edition {
    /// POSIX.1-2017, Issue 7 with its corrections.
    #[serde(rename = "2017")]
    Posix2017,
    /// POSIX.1-2024, Issue 8.
    #[default]
    #[serde(rename = "2024")]
    Posix2024,
}

impl Edition {
    /// The year, as it is written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posix2017 => "2017",
            Self::Posix2024 => "2024",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A year that is no edition we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an edition of POSIX we know; `2017` and `2024` are")]
pub struct UnknownEdition(pub String);

impl FromStr for Edition {
    type Err = UnknownEdition;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "2017" => Ok(Self::Posix2017),
            "2024" => Ok(Self::Posix2024),
            other => Err(UnknownEdition(other.to_owned())),
        }
    }
}

/// Something that the standard does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule's id, which stays the same from release to release.
    pub rule: &'static str,
    /// Where it stands.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if there is something.
    pub instead: Option<String>,
}

/// A command that the standard does not have. It may still be fine: the shell text is not at fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownUtility {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub span: Span,
}

/// What was found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What it was held against.
    pub edition: Edition,
    /// What is outside the standard, in the order of the text.
    pub violations: Vec<Violation>,
    /// Commands that the standard does not have, in the order of the text.
    pub unknown_utilities: Vec<UnknownUtility>,
}

impl Report {
    /// Whether nothing is outside the standard; utilities that it does not have are no violation.
    pub fn is_compliant(&self) -> bool {
        self.violations.is_empty()
    }
}

/// A rule, for lists of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// Its id.
    pub id: &'static str,
    /// `syntax`, `expansion`, `builtin` or `utility`.
    pub layer: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What to write instead, where one line says it for all cases.
    pub instead: Option<&'static str>,
    /// A text that breaks it, if our parser reads one.
    pub example: Option<&'static str>,
}

/// All rules, by layer.
pub fn rules() -> impl Iterator<Item = RuleInfo> {
    Rule::ALL.iter().map(|rule| {
        let text = rule.text();
        RuleInfo {
            id: rule.id(),
            layer: text.layer.as_str(),
            says: &text.says,
            instead: text.instead.as_deref(),
            example: text.example.as_deref(),
        }
    })
}

/// Holds a text against an edition of the standard.
pub fn check(script: &Script<'_>, edition: Edition) -> Report {
    let mut checker = Checker::new(script.source, edition, 0);
    checker.statements(&script.body);
    checker.finish()
}

/// What turns a finding into none, known only when the whole text has been read.
#[derive(Debug)]
enum Unless {
    Never,
    /// The text assigns this variable itself.
    Assigned(Text),
    /// The text defines this function itself.
    Defined(Text),
}

impl Unless {
    /// Both lists are sorted.
    fn holds(&self, assigned: &[Text], defined: &[Text]) -> bool {
        match self {
            Self::Never => false,
            Self::Assigned(name) => assigned.binary_search(name).is_ok(),
            Self::Defined(name) => defined.binary_search(name).is_ok(),
        }
    }
}

/// Texts inside texts (`sh -c '...'`) are followed this far.
const MAX_NESTED: usize = 3;

/// Commands that run commands (`sudo env nice ...`) are followed this far.
const MAX_WRAPPED: usize = 16;

struct Checker<'t> {
    source: &'t str,
    edition: Edition,
    nested: usize,
    /// How many commands stand around the one being read.
    wrapped: usize,
    /// The command whose arguments are being read, if it could be a function.
    command: Option<Text>,
    violations: Vec<(Violation, Unless)>,
    unknown: Vec<(UnknownUtility, Unless)>,
    /// Variables of other shells that the text assigns.
    assigned: Vec<Text>,
    /// Functions and aliases that the text defines.
    defined: Vec<Text>,
}

impl<'t> Checker<'t> {
    fn new(source: &'t str, edition: Edition, nested: usize) -> Self {
        Checker {
            source,
            edition,
            nested,
            wrapped: 0,
            command: None,
            violations: Vec::new(),
            unknown: Vec::new(),
            assigned: Vec::new(),
            defined: Vec::new(),
        }
    }

    fn finish(self) -> Report {
        let Checker { edition, violations, unknown, mut assigned, mut defined, .. } = self;
        assigned.sort_unstable();
        defined.sort_unstable();
        let mut violations: Vec<Violation> = violations
            .into_iter()
            .filter(|(_, unless)| !unless.holds(&assigned, &defined))
            .map(|(violation, _)| violation)
            .collect();
        violations.sort_by_key(|it| it.span);
        let mut unknown_utilities: Vec<UnknownUtility> = unknown
            .into_iter()
            .filter(|(_, unless)| !unless.holds(&assigned, &defined))
            .map(|(utility, _)| utility)
            .collect();
        unknown_utilities.sort_by_key(|it| it.span);
        Report { edition, violations, unknown_utilities }
    }

    /// Reports what the rule says, in its own words.
    fn report(&mut self, rule: Rule, span: Span) {
        let text = rule.text();
        self.push(rule, span, text.says.clone(), text.instead.clone());
    }

    /// Reports with a message of its own; without an alternative, the rule's is given.
    fn report_with(&mut self, rule: Rule, span: Span, message: String, instead: Option<&str>) {
        let instead = instead.map(str::to_owned).or_else(|| rule.text().instead.clone());
        self.push(rule, span, message, instead);
    }

    fn push(&mut self, rule: Rule, span: Span, message: String, instead: Option<String>) {
        let unless = self.command.clone().map_or(Unless::Never, Unless::Defined);
        self.violations.push((Violation { rule: rule.id(), span, message, instead }, unless));
    }

    fn is_2017(&self) -> bool {
        match self.edition {
            Edition::Posix2017 => true,
            Edition::Posix2024 => false,
        }
    }
}
