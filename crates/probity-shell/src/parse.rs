//! From text to `tree`: the only module that knows the parser crate.
//!
//! Length and nesting are limited before anything recursive runs, so that no text can exhaust the stack. A text that the
//! parser had to mend counts as broken: a command that a shell would refuse is not judged by what it might have meant.

mod convert;
mod precheck;

use convert::{Base, Converter};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use shuck_parser::parser::{ParseStatus, Parser};

use crate::tree::{Span, Stmt};

/// The longest text that is read.
pub const MAX_BYTES: usize = 1024 * 1024;

/// A parsed text.
#[derive(Debug, Clone)]
pub struct Script<'t> {
    /// The text; every [`Span`] of the tree is a range of it.
    pub source: &'t str,
    /// Its commands, in order.
    pub(crate) body: Vec<Stmt>,
}

/// Why a text could not be read as shell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing but blanks.
    #[error("there is no command in it")]
    Empty,
    /// Longer than [`MAX_BYTES`].
    #[error("it is longer than {} KiB", MAX_BYTES / 1024)]
    TooLong,
    /// A character that no shell text can hold, or that the tree keeps for itself.
    #[error("it holds the character {character:?}, which no command can")]
    Character {
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
    /// Nested deeper than anyone writes.
    #[error("it is nested too deeply")]
    TooDeep,
    /// A shell would refuse it.
    #[error("{message}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where.
        span: Span,
    },
}

impl ParseError {
    /// Where in the text the trouble is, if it is at one place.
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Empty | Self::TooLong | Self::TooDeep => None,
            Self::Character { character, at } => {
                Some(Span { start: *at, end: at + character.len_utf8() })
            }
            Self::Syntax { span, .. } => Some(*span),
        }
    }
}

/// As what it says, and where.
impl Serialize for ParseError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ParseError", 2)?;
        fields.serialize_field("message", &self.to_string())?;
        fields.serialize_field("span", &self.span())?;
        fields.end()
    }
}

impl<'t> Script<'t> {
    /// Parses a text as bash does, which reads all that POSIX has. A comment alone is a script without commands.
    pub fn parse(source: &'t str) -> Result<Self, ParseError> {
        if source.trim().is_empty() {
            return Err(ParseError::Empty);
        }
        let body = match parse_body(source, Depth::default(), Base::Offset(0)) {
            Err(error @ ParseError::Syntax { .. }) => parse_joined(source).ok_or(error)?,
            other => other?,
        };
        Ok(Script { source, body })
    }

    /// Whether nothing would run: only comments.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }
}

/// How many parsers already run around this one: backquotes and operands are parsed on their own.
#[derive(Debug, Clone, Copy, Default)]
struct Depth(usize);

impl Depth {
    /// Each level costs a parser's stack, so it is kept far below the parser's own limit.
    const MAX: usize = 12;

    fn deeper(self) -> Result<Self, ParseError> {
        match self.0 < Self::MAX {
            true => Ok(Self(self.0 + 1)),
            false => Err(ParseError::TooDeep),
        }
    }
}

fn parse_body(source: &str, depth: Depth, base: Base) -> Result<Vec<Stmt>, ParseError> {
    precheck::check(source)?;
    let parsed = Parser::with_fuel(source, fuel(source)).parse();
    if parsed.status != ParseStatus::Clean {
        return Err(syntax_error(source, &parsed));
    }
    let converter = Converter::new(source, depth, base);
    let body = converter.statements(&parsed.file.body);
    match (&body, converter.misread()) {
        // Behind an empty pair of quotes the same word is read as it should be.
        (Err(_), Some(at)) => {
            let rewritten = format!("{}\"\"{}", &source[..at], &source[at..]);
            let base = base.within(source.len());
            parse_body(&rewritten, depth.deeper()?, base)
        }
        _ => body,
    }
}

/// Steps that the parser may take. Real commands need twice their length, and a few more. What is nested is read again and
/// again, and a step may look at all that is left of the text: a long one gets no more than it needs.
fn fuel(source: &str) -> usize {
    (source.len() * 8 + 1000).min(source.len().max(50_000) * 2)
}

/// A shell joins continued lines before it looks for words, so that even `&&` may be broken in two; the parser does not.
/// Where that is why it failed, the joined text is read instead, and only the whole has a place.
fn parse_joined(source: &str) -> Option<Vec<Stmt>> {
    let joined = precheck::join_lines(source)?;
    parse_body(&joined, Depth::default(), Base::Within(Span { start: 0, end: source.len() })).ok()
}

fn syntax_error(source: &str, parsed: &shuck_parser::parser::ParseResult) -> ParseError {
    let (message, span) = match parsed.diagnostics.first() {
        Some(first) => (first.message.clone(), convert::plain_span(first.span)),
        None => (parsed.strict_error().to_string(), Span { start: 0, end: source.len() }),
    };
    if message.contains("too deep") || message.contains("fuel") {
        return ParseError::TooDeep;
    }
    ParseError::Syntax { message, span }
}
