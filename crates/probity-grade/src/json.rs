//! JSON in a model's reply.
//!
//! A reply is asked for JSON and often holds it in some wrapping: a fence, a
//! sentence before it, a comma too many. [`extract`] finds the value and lists
//! what it took to find it, so that a report can tell a clean reply from one
//! that was helped. It never fails, and its time is linear in the text.
//!
//! Two promises hold at every level. Text that is JSON is returned as it is,
//! with no steps. Text that holds no JSON gives no value: brackets are common in
//! prose (`[1]`, `[your name]`, `{x}`) and finding an array there would turn a
//! wrong answer into a right one. `json/evidence.rs` has the rule.

mod blanks;
mod evidence;
mod fences;
mod lenient;
mod repair;
mod rewrite;
mod scan;

use std::ops::Range;

use probity_core::{
    criteria::JsonLevel,
    json::{DuplicateKey, JsonError, Limits, Parsed, parse},
};
use serde::Serialize;
use serde_json::Value;

use fences::fences;

/// Which kind of value is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Any value. Inside prose only objects and arrays count: "5 apples" is not the number 5.
    #[default]
    Any,
    /// An object.
    Object,
    /// An array.
    Array,
}

pub use probity_core::details::JsonStep as Step;

/// What was found in a text, and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extraction {
    /// The value, if there is one.
    pub value: Option<Value>,
    /// What had to be done to find it, in the order of [`Step`]; empty without a value.
    pub steps: Vec<Step>,
    /// Why the whole text is not JSON; `None` if and only if it is.
    pub error: Option<JsonError>,
    /// The keys that the value's text repeats.
    pub duplicate_keys: Vec<DuplicateKey>,
    /// The bytes of the text that the value was read from.
    pub span: Option<Range<usize>>,
}

/// Finds the JSON value in a text.
///
/// A text that is JSON as a whole is returned whatever its kind is: digging an
/// object out of an array that the model meant as its answer would hide a mistake.
pub fn extract(text: &str, level: JsonLevel, wanted: Wanted) -> Extraction {
    let error = match parse(text, &Limits::default()) {
        Ok(parsed) => return Found::new(parsed, 0..text.len(), &[]).into_extraction(None),
        Err(error) => error,
    };
    let found = match level {
        JsonLevel::Strict => None,
        _ if text.len() > Limits::default().max_bytes => None,
        JsonLevel::Lenient => lenient::find(text, wanted, &fences(text)),
        JsonLevel::Repair => {
            let fences = fences(text);
            lenient::find(text, wanted, &fences).or_else(|| repair::find(text, wanted, &fences))
        }
    };
    match found {
        Some(found) => found.into_extraction(Some(error)),
        None => Extraction {
            value: None,
            steps: Vec::new(),
            error: Some(error),
            duplicate_keys: Vec::new(),
            span: None,
        },
    }
}

impl Wanted {
    /// The kind in the words of a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "value",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    /// Whether a value is of this kind.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
        }
    }

    /// Whether a value that starts with this bracket is wanted.
    fn opens_with(self, bracket: u8) -> bool {
        match self {
            Self::Any => matches!(bracket, b'{' | b'['),
            Self::Object => bracket == b'{',
            Self::Array => bracket == b'[',
        }
    }
}

/// A value with its place and its steps.
struct Found {
    parsed: Parsed,
    span: Range<usize>,
    steps: Vec<Step>,
}

impl Found {
    fn new(parsed: Parsed, span: Range<usize>, steps: &[Step]) -> Self {
        Self { parsed, span, steps: steps.to_vec() }
    }

    fn into_extraction(self, error: Option<JsonError>) -> Extraction {
        let Self { parsed: Parsed { value, duplicate_keys }, span, mut steps } = self;
        steps.sort_unstable();
        Extraction { value: Some(value), steps, error, duplicate_keys, span: Some(span) }
    }
}

#[cfg(test)]
mod tests;
