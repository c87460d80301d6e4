//! How a reply differs from what was expected.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{details::Equivalence, evaluation::FailureReason, evidence::Win};

/// How a reply differs from what was expected. Texts are excerpts on one line.
///
/// The forms are told apart by their keys, which no two of them share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Difference {
    /// The command does something else, or its labels are others: `type`.
    Command(FailureReason),
    /// A matcher for shell commands found another command, or none.
    OtherCommand(Box<OtherCommand>),
    /// The text differs from the expected one.
    Text(TextDifference),
    /// The text is none of the expected ones.
    NoneOf(NoneOf),
    /// What the reply ought to contain is not there.
    Missing(Missing),
    /// The reply begins otherwise.
    Start(StartDifference),
    /// No match for a regular expression.
    Pattern(PatternDifference),
    /// JSON that differs at a place.
    Json(JsonDifference),
    /// Other skills were chosen.
    Choice(ChoiceDifference),
    /// The answer with the skill did not win.
    Duel(DuelDifference),
    /// An assertion did not hold; its score says why.
    Assertion(AssertionDifference),
    /// The gates of an external runner did not hold.
    Program(ProgramDifference),
}

macro_rules! closed {
    ($($(#[doc = $doc:literal])+ $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$meta])* pub $field: $type,)+
        }
    )+};
}

closed! {
    /// What a matcher for shell commands found.
    OtherCommand {
        /// The command in the reply; none if there is none.
        command: Option<String>,
        /// Why it cannot be read as shell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parse_error: Option<String>,
        /// How it compares with the nearest expected command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        equivalence: Option<Equivalence>,
        /// Why it compares so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The first place where the canonical forms part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        difference: Option<String>,
        /// The canonical forms of the expected command and of this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        canonical: Option<[String; 2]>,
    }

    /// Two texts and where they part.
    TextDifference {
        /// The first byte that differs.
        at: usize,
        /// The expected text around it.
        expected: String,
        /// The reply around it.
        actual: String,
    }

    /// Several texts of which the reply is none.
    NoneOf {
        /// The expected texts.
        expected_any_of: OneOrMany,
        /// The reply.
        actual: String,
    }

    /// Texts of which the reply contains none.
    Missing {
        /// The texts.
        missing: OneOrMany,
    }

    /// How the reply ought to begin, and how it does.
    StartDifference {
        /// The expected beginnings.
        expected_start: OneOrMany,
        /// The reply's beginning.
        actual: String,
    }

    /// Regular expressions of which none matches.
    PatternDifference {
        /// The expressions.
        pattern: OneOrMany,
    }

    /// The first place where two JSON values differ.
    JsonDifference {
        /// The place, as a JSON pointer.
        path: String,
        /// The value there that was expected; none if there ought to be none.
        expected: Option<String>,
        /// The value there in the reply; none if there is none.
        actual: Option<String>,
    }

    /// The skills that were expected and those that were chosen.
    ChoiceDifference {
        /// Any of these is right; none means that no skill may be chosen.
        expected: Vec<String>,
        /// The skills that the reply names.
        chosen: Vec<String>,
    }

    /// The scores of a comparison that was not won.
    DuelDifference {
        /// How the answer with more of the skill did.
        result: Win,
        /// Its points.
        more: f64,
        /// The points of the other answer.
        less: f64,
    }

    /// The first assertion that did not hold.
    AssertionDifference {
        /// Its type.
        assertion: String,
        /// The score of all assertions together.
        score: f64,
    }

    /// How an external runner ended.
    ProgramDifference {
        /// Its exit code.
        exit_code: Option<i32>,
    }
}

/// One text, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One text.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl FromIterator<String> for OneOrMany {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let mut texts: Vec<String> = texts.into_iter().collect();
        match (texts.len(), texts.pop()) {
            (1, Some(only)) => Self::One(only),
            (_, last) => {
                texts.extend(last);
                Self::Many(texts)
            }
        }
    }
}

impl OneOrMany {
    /// The texts.
    pub fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl fmt::Display for OneOrMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, text) in self.texts().iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}`{text}`")?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    /// Why the reply is wrong, in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(reason) => write!(f, "{reason}"),
            Self::OtherCommand(it) => write_command(it, f),
            Self::Text(TextDifference { at, expected, actual }) => {
                write!(f, "expected `{expected}`, got `{actual}`")?;
                if *at > 0 { write!(f, " (they part at byte {at})") } else { Ok(()) }
            }
            Self::NoneOf(NoneOf { expected_any_of, actual }) => {
                write!(f, "expected one of {expected_any_of}, got `{actual}`")
            }
            Self::Missing(Missing { missing }) => match missing.texts() {
                [_] => write!(f, "{missing} is missing"),
                _ => write!(f, "none of {missing} is there"),
            },
            Self::Start(StartDifference { expected_start, actual }) => {
                write!(f, "it does not start with {expected_start} but with `{actual}`")
            }
            Self::Pattern(PatternDifference { pattern }) => write!(f, "no match for {pattern}"),
            Self::Json(it) => write_json(it, f),
            Self::Choice(ChoiceDifference { expected, chosen }) => {
                let named = |names: &[String], none: &str| match names {
                    [] => none.to_owned(),
                    names => names.join(", "),
                };
                let (chosen, expected) = (named(chosen, "nothing"), named(expected, "no skill"));
                write!(f, "chosen: {chosen}; expected: {expected}")
            }
            Self::Duel(DuelDifference { result, more, less }) => {
                let result = result.as_str();
                write!(f, "{result}: {more:.2} points with the skill, {less:.2} without")
            }
            Self::Assertion(AssertionDifference { assertion, .. }) => {
                write!(f, "assertion `{assertion}` does not hold")
            }
            Self::Program(ProgramDifference { exit_code: Some(code) }) => {
                write!(f, "the runner's own gates do not hold (exit code {code})")
            }
            Self::Program(ProgramDifference { exit_code: None }) => {
                write!(f, "the runner's own gates do not hold")
            }
        }
    }
}

fn write_command(it: &OtherCommand, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(command) = &it.command else { return write!(f, "the reply has no shell command") };
    match (&it.parse_error, it.difference.as_ref().or(it.reason.as_ref())) {
        (Some(error), _) => write!(f, "`{command}` is not a shell command: {error}"),
        (None, Some(why)) => write!(f, "`{command}`: {why}"),
        (None, None) => write!(f, "`{command}` is not an expected command"),
    }
}

fn write_json(it: &JsonDifference, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let JsonDifference { path, expected, actual } = it;
    let place = if path.is_empty() { "the value" } else { path };
    match (expected, actual) {
        (Some(expected), Some(actual)) => write!(f, "{place}: expected {expected}, got {actual}"),
        (Some(expected), None) => write!(f, "{place}: expected {expected}, got nothing"),
        (None, Some(actual)) => write!(f, "{place}: expected nothing, got {actual}"),
        (None, None) => write!(f, "{place} differs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, sentence: &str) {
        let tree: serde_json::Value = serde_json::from_str(written).unwrap();
        let read: Difference = serde_json::from_value(tree.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), tree, "{read:?}");
        assert_eq!(read.to_string(), sentence);
    }

    #[test]
    fn every_form_is_read_back_and_reads_as_a_sentence() {
        check(r#"{"type":"incorrect_command"}"#, "incorrect command");
        check(
            r#"{"type":"safety_mismatch","expected":true,"actual":false}"#,
            "safety: expected safe, found unsafe",
        );
        check(r#"{"command":null}"#, "the reply has no shell command");
        check(
            r#"{"command":"ls","equivalence":"different","reason":"r","difference":"d","canonical":["a","b"]}"#,
            "`ls`: d",
        );
        check(r#"{"at":0,"expected":"a","actual":"b"}"#, "expected `a`, got `b`");
        check(r#"{"expected_any_of":["a","b"],"actual":"c"}"#, "expected one of `a`, `b`, got `c`");
        check(r#"{"missing":"refund"}"#, "`refund` is missing");
        check(r#"{"missing":["a","b"]}"#, "none of `a`, `b` is there");
        check(r#"{"expected_start":"A","actual":"b"}"#, "it does not start with `A` but with `b`");
        check(r#"{"pattern":"^a$"}"#, "no match for `^a$`");
        check(r#"{"path":"/b","expected":"3","actual":"2"}"#, "/b: expected 3, got 2");
        check(r#"{"path":"/b","expected":null,"actual":"2"}"#, "/b: expected nothing, got 2");
        check(r#"{"expected":[],"chosen":["x"]}"#, "chosen: x; expected: no skill");
        check(
            r#"{"result":"loss","more":2.5,"less":3.0}"#,
            "loss: 2.50 points with the skill, 3.00 without",
        );
        check(r#"{"assertion":"contains","score":0.5}"#, "assertion `contains` does not hold");
        check(r#"{"exit_code":1}"#, "the runner's own gates do not hold (exit code 1)");
    }
}
