//! What a word becomes: variables assigned in the same text, literal substitutions, and names for all that is not known.

use super::{feed::Feed, walk::Walker};
use crate::{
    field::{self, CLOSE, Expand, OPEN, OPEN_QUOTED, SPLIT, STAR, TILDE},
    tree::{Parameter, ParameterOp, Part, Text},
};

/// Stands for text that was fetched from elsewhere.
pub(super) const DOWNLOAD: &str = "_download";
/// Stands for what a command prints.
const PRINTED: &str = "_printed";
/// Stands for a number.
const NUMBER: &str = "_number";
/// Stands for a process substitution; its place in the list of feeds follows.
pub(super) const PROCESS: &str = "_process";
/// Stands for what comes through a pipe.
pub(super) const INPUT: &str = "_input";

/// Values longer than this are not folded, so that no text can grow without bound.
const MAX_VALUE: usize = 4096;

impl Expand for Walker<'_> {
    fn expand(&mut self, part: &Part, out: &mut String) {
        match part {
            Part::Text { text, .. } => out.push_str(text),
            Part::Parameter(it) => self.parameter(it, out),
            Part::Command(it) => {
                let printed = self.substitution(&it.body);
                match printed {
                    Feed::Known(text) => push_value(text.trim_end_matches('\n'), it.quoted, out),
                    Feed::Download => push_unknown(DOWNLOAD, it.quoted, out),
                    Feed::Found(_) | Feed::Nothing | Feed::Secret | Feed::Unknown => {
                        push_unknown(PRINTED, it.quoted, out);
                    }
                }
            }
            Part::Arithmetic(it) => {
                self.word(&it.expression.word);
                push_unknown(NUMBER, true, out);
            }
            Part::Process(it) => {
                let printed = self.substitution(&it.body);
                match printed {
                    Feed::Download => push_unknown(DOWNLOAD, true, out),
                    Feed::Known(_)
                    | Feed::Found(_)
                    | Feed::Nothing
                    | Feed::Secret
                    | Feed::Unknown => {
                        let name = format!("{PROCESS}{}", self.processes.len());
                        self.processes.push(printed);
                        push_unknown(&name, true, out);
                    }
                }
            }
            Part::Array(it) => {
                for (at, (_, word)) in it.elements.iter().enumerate() {
                    if at > 0 {
                        out.push(SPLIT);
                    }
                    let element = field::encode_single(word, self);
                    out.push_str(&element);
                }
            }
        }
    }
}

impl Walker<'_> {
    fn parameter(&mut self, it: &Parameter, out: &mut String) {
        self.subscript(it.subscript.as_ref(), it.span);
        let operand = it.operands.first().map(|word| field::encode_single(word, self));
        for word in it.operands.iter().skip(1) {
            self.word(word);
        }
        let value = self.variable(it);
        match (it.op, value) {
            (
                ParameterOp::Value
                | ParameterOp::Error(_)
                | ParameterOp::Default(_)
                | ParameterOp::Assign(_),
                Some(value),
            ) => {
                push_value(&value, it.quoted, out);
            }
            (ParameterOp::Default(_) | ParameterOp::Assign(_), None) => match operand {
                Some(operand) if !self.is_forgotten(&it.name) => {
                    push_value(&operand, it.quoted, out);
                }
                Some(_) | None => push_unknown(&it.name, it.quoted, out),
            },
            (ParameterOp::Alternative(_), Some(_)) => {
                push_value(&operand.unwrap_or_default(), it.quoted, out);
            }
            (ParameterOp::Error(_), None) => {
                push_unknown(&format!("{}:?", it.name), it.quoted, out);
            }
            (ParameterOp::Slice, _) if is_first_slash(it, operand.as_deref()) => out.push('/'),
            (ParameterOp::Indirect, Some(name)) => match self.lookup(&name).map(str::to_owned) {
                Some(value) => push_value(&value, it.quoted, out),
                None => push_unknown(PRINTED, it.quoted, out),
            },
            (ParameterOp::Length, _) => push_unknown(NUMBER, true, out),
            (
                ParameterOp::Value
                | ParameterOp::Alternative(_)
                | ParameterOp::RemovePrefix(_)
                | ParameterOp::RemoveSuffix(_)
                | ParameterOp::Replace
                | ParameterOp::Slice
                | ParameterOp::Indirect
                | ParameterOp::Keys
                | ParameterOp::Names
                | ParameterOp::Case
                | ParameterOp::Transform
                | ParameterOp::Foreign,
                _,
            ) => push_unknown(&it.name, it.quoted, out),
        }
    }

    fn variable(&self, it: &Parameter) -> Option<String> {
        if let Some(value) = self.lookup(&it.name) {
            return match it.subscript.as_deref() {
                None | Some("@" | "*") => Some(value.to_owned()),
                Some(index) => value.split(SPLIT).nth(index.parse().ok()?).map(str::to_owned),
            };
        }
        if self.is_forgotten(&it.name) {
            return None;
        }
        match &*it.name {
            "HOME" => Some(TILDE.to_string()),
            "PWD" => Some(".".to_owned()),
            "TMPDIR" => Some("/tmp/tmpdir".to_owned()),
            "IFS" if !it.quoted => Some(SPLIT.to_string()),
            "SHELL" | "BASH" => Some("/bin/bash".to_owned()),
            _ => None,
        }
    }
}

/// `${PATH:0:1}` and its like are a way to write a slash.
fn is_first_slash(it: &Parameter, from: Option<&str>) -> bool {
    matches!(&*it.name, "PATH" | "HOME" | "PWD" | "SHELL")
        && from.is_some_and(|it| it.trim() == "0")
}

/// Unquoted values are split at blanks and their patterns are active.
fn push_value(value: &str, quoted: bool, out: &mut String) {
    if value.len() > MAX_VALUE || out.len() > MAX_VALUE * 4 {
        return push_unknown(PRINTED, quoted, out);
    }
    if quoted {
        return out.push_str(value);
    }
    for character in value.chars() {
        out.push(match character {
            ' ' | '\t' | '\n' => SPLIT,
            '*' => STAR,
            '?' => field::ANY,
            other => other,
        });
    }
}

/// Writes the name so that the text can be parsed again: a name that is none becomes one.
fn push_unknown(name: &str, quoted: bool, out: &mut String) {
    out.push(if quoted { OPEN_QUOTED } else { OPEN });
    out.push_str(if name.is_empty() { PRINTED } else { name });
    out.push(CLOSE);
}

/// A field that stands for one value that is not known.
pub(super) fn unknown(name: &str) -> String {
    let mut text = String::new();
    push_unknown(name, false, &mut text);
    text
}

/// The name of the value, if the whole text is one that is not known.
pub(super) fn whole_unknown(text: &str) -> Option<&str> {
    let name = text.strip_prefix([OPEN, OPEN_QUOTED])?.strip_suffix(CLOSE)?;
    field::is_literal(name).then_some(name)
}

/// Whether a text from elsewhere is part of this one.
pub(super) fn holds_download(text: &str) -> bool {
    text.contains(DOWNLOAD) && text.contains([OPEN, OPEN_QUOTED])
}

/// A variable and what is known about it.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: Text,
    /// `None`: it has a value, but the text does not hold it.
    pub(super) value: Option<String>,
}

impl Walker<'_> {
    /// The value of a variable, if the text holds it.
    pub(super) fn lookup(&self, name: &str) -> Option<&str> {
        self.variables.iter().rev().find(|it| it.name == name)?.value.as_deref()
    }

    fn is_forgotten(&self, name: &str) -> bool {
        self.variables.iter().rev().find(|it| it.name == name).is_some_and(|it| it.value.is_none())
    }

    /// Remembers a value; markers of a process or a download lose their sense with it.
    pub(super) fn assign(&mut self, name: &str, value: Option<String>) {
        let value = value.filter(|it| it.len() <= MAX_VALUE);
        if self.variables.len() < 512 {
            self.variables.push(Variable { name: Text::from(name), value });
        }
    }
}
