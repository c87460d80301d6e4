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
use serde_json::Value;

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

macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// One thing that had to be done to find a value. The names are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Step {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Step {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name used in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

steps! {
    /// A byte order mark or special blanks were removed.
    StrippedBlanks => "stripped_blanks",
    /// The value was the content of a fenced block.
    Fence => "fence",
    /// The value was found between other text by matching its brackets.
    BalancedScan => "balanced_scan",
    /// The value was found between the first and the last bracket.
    GreedyBrackets => "greedy_brackets",
    /// Commas with nothing before or after them were removed.
    TrailingCommas => "trailing_commas",
    /// Raw control characters or invalid backslashes in strings were escaped.
    Escapes => "escapes",
    /// The whole value was escaped once too often.
    Unescaped => "unescaped",
    /// Strings were in single, typographic, doubled, triple or back quotes.
    OtherQuotes => "other_quotes",
    /// Quotes inside a string were not escaped.
    InnerQuotes => "inner_quotes",
    /// A string had only one of its quotes.
    MissingQuotes => "missing_quotes",
    /// Comments were removed.
    Comments => "comments",
    /// Keys had no quotes.
    UnquotedKeys => "unquoted_keys",
    /// Strings had no quotes.
    UnquotedValues => "unquoted_values",
    /// Literals of Python or JavaScript were translated.
    ForeignLiterals => "foreign_literals",
    /// Numbers were written in a way that JSON does not know.
    Numbers => "numbers",
    /// Commas were missing between members.
    MissingCommas => "missing_commas",
    /// A colon was missing, or was another sign.
    MissingColons => "missing_colons",
    /// A key had no value, which became null.
    MissingValues => "missing_values",
    /// Dots that stand for something left out were removed.
    Ellipses => "ellipses",
    /// Strings joined by `+` were joined.
    Concatenation => "concatenation",
    /// A function around a value was removed.
    FunctionCalls => "function_calls",
    /// A set, a tuple or a list of pairs was rebuilt.
    ForeignContainers => "foreign_containers",
    /// Words that belong to no member were dropped.
    DroppedWords => "dropped_words",
    /// Brackets were missing or superfluous in the middle.
    Brackets => "brackets",
    /// The text was cut off and its open strings, arrays and objects were closed.
    ClosedTail => "closed_tail",
}

/// What was found in a text, and how.
#[derive(Debug, Clone, PartialEq)]
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
        JsonLevel::Lenient => lenient::find(text, wanted),
        JsonLevel::Repair => lenient::find(text, wanted).or_else(|| repair::find(text, wanted)),
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
