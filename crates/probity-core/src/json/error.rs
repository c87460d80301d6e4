//! Why and where a text is not JSON.
//!
//! The wording is part of the product: reports are compared across runs.

use std::fmt;

use serde::{Serialize, Serializer};

/// Why a text is not JSON, and where it stopped being JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{kind} at line {line}, column {column} (byte {offset})")]
pub struct JsonError {
    /// What is wrong.
    pub kind: JsonErrorKind,
    /// The byte where it is wrong, from 0.
    pub offset: usize,
    /// The line of that byte, from 1. Only a line feed ends a line.
    pub line: usize,
    /// The character of that line, from 1.
    pub column: usize,
}

/// What is wrong with a text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonErrorKind {
    /// Something else should be here.
    Unexpected {
        /// What should be here, as the message says it.
        expected: &'static str,
        /// What is here; `None` is the end of the text.
        found: Option<char>,
    },
    /// A string has no closing quote.
    UnclosedString,
    /// A string holds a control character that must be escaped.
    ControlCharacter(char),
    /// A backslash is followed by something that makes no escape.
    InvalidEscape(char),
    /// `\u` is not followed by four hexadecimal digits.
    InvalidUnicodeEscape,
    /// A number starts with a superfluous zero.
    LeadingZero,
    /// The text starts with a byte order mark.
    ByteOrderMark,
    /// Arrays and objects nest deeper than the limit.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The text is longer than the limit.
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Where the parser stopped; the line is counted only when someone will read it.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) kind: JsonErrorKind,
    pub(super) offset: usize,
}

impl JsonError {
    /// Whether the text ended inside a value: more text might have made it JSON.
    pub fn is_truncation(&self) -> bool {
        matches!(
            self.kind,
            JsonErrorKind::Unexpected { found: None, .. } | JsonErrorKind::UnclosedString
        )
    }

    pub(super) fn locate(text: &str, stop: Stop) -> Self {
        let Stop { kind, offset } = stop;
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            kind,
            offset,
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl Serialize for JsonErrorKind {
    /// As the message says it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { expected, found: None } => {
                write!(f, "expected {expected}, found the end of the text")
            }
            Self::Unexpected { expected, found: Some(found) } => {
                write!(f, "expected {expected}, found `{}`", shown(*found))
            }
            Self::UnclosedString => write!(f, "expected `\"` before the end of the text"),
            Self::ControlCharacter(found) => {
                write!(f, "unescaped control character `{}` in a string", found.escape_debug())
            }
            Self::InvalidEscape(found) => {
                write!(f, "invalid escape `\\{}`", shown(*found))
            }
            Self::InvalidUnicodeEscape => {
                write!(f, "expected four hexadecimal digits after `\\u`")
            }
            Self::LeadingZero => write!(f, "a number must not start with a superfluous `0`"),
            Self::ByteOrderMark => write!(f, "the text starts with a byte order mark"),
            Self::TooDeep { limit } => {
                write!(f, "arrays and objects nest deeper than {limit} levels")
            }
            Self::TooLarge { limit } => write!(f, "the text is longer than {limit} bytes"),
        }
    }
}

/// A character as a terminal may safely show it.
fn shown(found: char) -> String {
    match found {
        '"' | '\'' | '\\' => found.to_string(),
        other => other.escape_debug().to_string(),
    }
}
