//! Strict JSON: RFC 8259 and nothing more.
//!
//! There is one parser. It takes linear time, never recurses deeper than its
//! limits allow, and says where and why it stopped in words that do not change
//! between releases. Anything more forgiving lives in `probity_grade::json`.

mod build;
mod error;
mod parser;

use serde::Serialize;
use serde_json::{Number, Value};

use crate::located::Node;
use build::{Located, Plain};
use parser::Parser;

pub use error::{JsonError, JsonErrorKind};

/// How much a text may ask of the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How deep arrays and objects may nest. Never more than [`HIGHEST_DEPTH`] is allowed.
    pub max_depth: usize,
    /// How many bytes the text may have.
    pub max_bytes: usize,
}

/// The nesting that no [`Limits`] can exceed, because each level takes stack space.
pub const HIGHEST_DEPTH: usize = 1024;

/// How many repeated keys are listed; a text that repeats more is no better described by more.
pub const MAX_DUPLICATE_KEYS: usize = 16;

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: 512, max_bytes: 64 << 20 }
    }
}

/// A value and what its text said that the value cannot show.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value. Numbers keep their digits; of a repeated key the last value is kept.
    pub value: Value,
    /// The keys that were repeated, at most [`MAX_DUPLICATE_KEYS`] of them.
    pub duplicate_keys: Vec<DuplicateKey>,
}

/// A key that its object already had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DuplicateKey {
    /// The key.
    pub key: String,
    /// Where the value is, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// The byte where the repetition of the key starts.
    pub offset: usize,
}

/// Parses a text that is one JSON value and nothing else.
pub fn parse(text: &str, limits: &Limits) -> Result<Parsed, JsonError> {
    let mut parser = Parser::new(text, 0, limits, Plain::default());
    let value = parser.document().map_err(|stop| JsonError::locate(text, stop))?;
    Ok(Parsed { value, duplicate_keys: parser.builder.duplicate_keys })
}

/// Parses a text that is one JSON value, and keeps the place of every part of it.
pub fn parse_located(text: &str, limits: &Limits) -> Result<Node, JsonError> {
    let mut parser = Parser::new(text, 0, limits, Located);
    parser.document().map_err(|stop| JsonError::locate(text, stop))
}

/// Parses the value that starts at a byte of a text, and says at which byte it ended.
///
/// Blanks before the value are skipped, and whatever follows it is not looked at.
/// Places are those of the whole text. An offset that is not at a character is an
/// error like any other: no value starts there.
pub fn parse_prefix(
    text: &str,
    start: usize,
    limits: &Limits,
) -> Result<(Parsed, usize), JsonError> {
    let mut parser = Parser::new(text, start, limits, Plain::default());
    let (value, end) = parser.prefix().map_err(|stop| JsonError::locate(text, stop))?;
    Ok((Parsed { value, duplicate_keys: parser.builder.duplicate_keys }, end))
}

impl Parsed {
    /// Forgets the places of a value, and lists the keys that are lost with them.
    pub fn from_node(node: Node) -> Self {
        let mut plain = Plain::default();
        let value = plain.value(node);
        Self { value, duplicate_keys: plain.duplicate_keys }
    }
}

/// A number with all its digits; a spelling that is not JSON's, as TOML may have, stays a string.
fn number(literal: &str) -> Value {
    match literal.parse::<Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(literal.to_owned()),
    }
}

#[cfg(test)]
mod tests;
