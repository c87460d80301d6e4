//! Takes an answer out of a reply before it is compared.

mod fenced;
mod tagged;

use std::ops::Range;

use regex::Regex;

use crate::{
    number,
    pattern::{Pattern, TooCostly},
};

/// Which of several is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The first.
    First,
    /// The last.
    Last,
}

impl Take {
    pub(crate) fn of<T>(self, mut all: impl Iterator<Item = T>) -> Option<T> {
        match self {
            Self::First => all.next(),
            Self::Last => all.last(),
        }
    }
}

/// How much is taken after a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The rest of the line; the next line that is not blank, if the rest is.
    Line,
    /// The rest of the text.
    End,
}

/// What is taken out of a text. Blanks at both ends are left behind.
#[derive(Clone, Debug)]
pub enum Extraction {
    /// What an expression matches.
    Regex {
        /// The expression.
        pattern: Pattern,
        /// Which match.
        take: Take,
    },
    /// What stands after a marker.
    After {
        /// The marker.
        marker: Marker,
        /// Which occurrence of it.
        take: Take,
        /// How much.
        until: Until,
    },
    /// A number, with its sign, without its unit.
    Number(Take),
    /// What stands in `\boxed{…}`.
    Boxed(Take),
    /// A fenced block of code.
    CodeBlock {
        /// Its language; any if there is none.
        language: Option<String>,
        /// Which of several.
        take: Take,
    },
    /// What stands between a tag and its end.
    XmlTag {
        /// The tag's name.
        name: String,
        /// Which of several.
        take: Take,
    },
}

/// A text that stands before an answer, whatever the case of its letters.
#[derive(Clone, Debug)]
pub struct Marker {
    text: String,
    regex: Regex,
}

impl Marker {
    /// The marker of that text; none if it is blank or too long.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let regex = Regex::new(&format!("(?i){}", regex::escape(text))).ok()?;
        (!text.is_empty()).then(|| Self { text: text.to_owned(), regex })
    }
}

impl Extraction {
    /// Where the answer is, or what is not there.
    pub fn find(&self, text: &str) -> Result<Range<usize>, Absent> {
        let found = match self {
            Self::Regex { pattern, take } => {
                let found = pattern.find(text, *take);
                found.map_err(|TooCostly| Absent::TooCostly(pattern.as_str().to_owned()))?
            }
            Self::After { marker, take, until } => {
                let found = take.of(marker.regex.find_iter(text));
                found.and_then(|it| after(text, it.end(), *until))
            }
            Self::Number(take) => take.of(number::find(text)).map(|it| it.span),
            Self::Boxed(take) => tagged::boxed(text, *take),
            Self::CodeBlock { language, take } => fenced::find(text, language.as_deref(), *take),
            Self::XmlTag { name, take } => tagged::element(text, name, *take),
        };
        found.map(|span| trimmed(text, span)).ok_or_else(|| self.absent())
    }

    fn absent(&self) -> Absent {
        match self {
            Self::Regex { pattern, .. } => Absent::Match(pattern.as_str().to_owned()),
            Self::After { marker, .. } => Absent::After(marker.text.clone()),
            Self::Number(_) => Absent::Number,
            Self::Boxed(_) => Absent::Boxed,
            Self::CodeBlock { language, .. } => Absent::CodeBlock(language.clone()),
            Self::XmlTag { name, .. } => Absent::XmlTag(name.clone()),
        }
    }
}

/// What was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A match of an expression.
    Match(String),
    /// An expression has too many matches, or looks around and took too many steps.
    TooCostly(String),
    /// A text after a marker.
    After(String),
    /// A number.
    Number,
    /// `\boxed{…}`.
    Boxed,
    /// A block of code in a language.
    CodeBlock(Option<String>),
    /// A tag with its end.
    XmlTag(String),
}

impl std::fmt::Display for Absent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Match(pattern) => write!(f, "no match for `{pattern}`"),
            Self::TooCostly(pattern) => {
                write!(f, "`{pattern}` has too many matches, or took too many steps")
            }
            Self::After(marker) => write!(f, "no text after `{marker}`"),
            Self::Number => write!(f, "no number"),
            Self::Boxed => write!(f, "no `\\boxed{{…}}`"),
            Self::CodeBlock(None) => write!(f, "no code block"),
            Self::CodeBlock(Some(language)) => write!(f, "no code block in `{language}`"),
            Self::XmlTag(name) => write!(f, "no `<{name}>…</{name}>`"),
        }
    }
}

/// What stands after a marker that ends at a byte.
fn after(text: &str, end: usize, until: Until) -> Option<Range<usize>> {
    let rest = &text[end..];
    let start = end + rest.find(|c: char| !c.is_whitespace())?;
    match until {
        Until::End => Some(start..text.len()),
        Until::Line => {
            let line = text[start..].find('\n').map_or(text.len(), |length| start + length);
            Some(start..line)
        }
    }
}

fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let taken = &text[span.clone()];
    let start = span.start + (taken.len() - taken.trim_start().len());
    start..start + taken.trim().len()
}

#[cfg(test)]
mod tests;
