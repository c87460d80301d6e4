//! What is wrong with a file, and where.
//!
//! A problem carries the one line of source it is about, so that it can be shown
//! with the text under it even when the file was streamed and is long gone.

use std::{cell::Cell, ops::Range, sync::Arc};

use serde::Serialize;

/// Longest piece of a source line that a problem carries, in bytes.
const SHOWN_BYTES: usize = 200;

/// Something wrong with a file that its author can fix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Whether the file can be used all the same.
    pub severity: Severity,
    /// A stable name for this kind of problem, such as `duplicate-id`.
    pub code: &'static str,
    /// One sentence, lower case, no final period.
    pub message: String,
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Where in the file; none when the whole file is meant.
    pub place: Option<Place>,
    /// The id of the case it is about.
    pub case_id: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file can be used.
    Warning,
    /// It cannot.
    Error,
}

/// The code of a name that nothing reads.
pub const UNKNOWN_FIELD: &str = "unknown-field";

/// What becomes of names in a file that nothing reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKeys {
    /// A name that nothing reads is most often a misspelt one, and what it says would be lost.
    #[default]
    Refused,
    /// They are warned of and passed over.
    Allowed,
}

impl UnknownKeys {
    /// The problem as bad as it is meant to be.
    #[must_use]
    pub fn judge(self, problem: Problem) -> Problem {
        let refused = match self {
            Self::Allowed => false,
            Self::Refused => problem.code == UNKNOWN_FIELD && problem.severity == Severity::Warning,
        };
        if !refused {
            return problem;
        }
        let own = "a name of your own begins with `x-`; `run --allow-unknown` ignores all others";
        let help = problem.help.unwrap_or_else(|| own.to_owned());
        Problem { severity: Severity::Error, help: Some(help), ..problem }
    }
}

/// A place in a file, with the source line it is on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line, or the part of a long one around the place.
    pub source: String,
    /// What to underline, in bytes of `source`.
    pub highlight: Range<usize>,
}

/// A piece of a file that places are counted in: a whole file, or some lines of it.
#[derive(Debug)]
pub struct Source<'a> {
    text: &'a str,
    first_line: usize,
    /// Where each line starts. Counting lines anew for each of many cases would be quadratic.
    line_starts: Vec<usize>,
    /// The last byte whose column was asked for, and the characters before it on its line: a long
    /// line with many problems is counted through once.
    counted: Cell<(usize, usize)>,
}

impl<'a> Source<'a> {
    /// A whole file.
    pub fn file(text: &'a str) -> Self {
        Self::part(text, 1)
    }

    /// A part of a file that starts at a line.
    pub fn part(text: &'a str, first_line: usize) -> Self {
        let feeds = memchr::memchr_iter(b'\n', text.as_bytes());
        let line_starts = std::iter::once(0).chain(feeds.map(|at| at + 1)).collect();
        Self { text, first_line, line_starts, counted: Cell::new((0, 0)) }
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The line that a byte is on.
    pub fn line(&self, at: usize) -> usize {
        self.first_line + self.line_starts.partition_point(|start| *start <= at) - 1
    }

    /// Line and column of a byte range, and the line's text.
    ///
    /// A span outside the text or off a character boundary is moved to the nearest
    /// place that is not.
    pub fn place(&self, span: &Range<usize>) -> Place {
        let start = floor_boundary(self.text, span.start);
        let line = self.line(start);
        let line_start = self.line_starts[line - self.first_line];
        let next_line = self.line_starts.get(line - self.first_line + 1).copied();
        let line_text = &self.text[line_start..next_line.unwrap_or(self.text.len())];
        let line_text = line_text.strip_suffix('\n').unwrap_or(line_text);
        let line_text = line_text.strip_suffix('\r').unwrap_or(line_text);
        let highlight_start = (start - line_start).min(line_text.len());
        let end = floor_boundary(self.text, span.end.max(start)) - line_start;
        let highlight_end = end.clamp(highlight_start, line_text.len());
        let column = self.characters_before(line_start, start) + 1;
        let (source, highlight) = crop(line_text, highlight_start..highlight_end);
        Place { line, column, source, highlight }
    }
}

impl Source<'_> {
    /// How many characters there are from the start of a line to a byte of it.
    fn characters_before(&self, line_start: usize, at: usize) -> usize {
        let (known_at, known) = self.counted.get();
        let (from, before) = match line_start <= known_at && known_at <= at {
            true => (known_at, known),
            false => (line_start, 0),
        };
        let count = before + self.text[from..at].chars().count();
        self.counted.set((at, count));
        count
    }
}

/// Keeps the part of a long line around what is to be underlined.
fn crop(line: &str, highlight: Range<usize>) -> (String, Range<usize>) {
    if line.len() <= SHOWN_BYTES {
        return (line.to_owned(), highlight);
    }
    let from = floor_boundary(line, highlight.start.saturating_sub(SHOWN_BYTES / 3));
    let to = floor_boundary(line, from + SHOWN_BYTES);
    let start = highlight.start - from;
    let end = highlight.end.clamp(highlight.start, to.max(highlight.start)) - from;
    let lead = if from > 0 { "…" } else { "" };
    let trail = if to < line.len() { "…" } else { "" };
    let source = format!("{lead}{}{trail}", &line[from..to]);
    (source, start + lead.len()..end + lead.len())
}

/// The nearest character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = "first\nsécond line\nthird";
        let at = text.find("line").unwrap();
        let place = Source::file(text).place(&(at..at + 4));
        assert_eq!((place.line, place.column), (2, 8));
        assert_eq!(&place.source[place.highlight], "line");
    }

    #[test]
    fn a_long_line_is_cropped_around_the_place() {
        let text = format!("{}HERE{}", "ä".repeat(5_000), "b".repeat(5_000));
        let at = text.find("HERE").unwrap();
        let place = Source::file(&text).place(&(at..at + 4));
        assert_eq!(place.column, 5_001);
        assert!(place.source.len() < 260);
        assert_eq!(&place.source[place.highlight], "HERE");
    }

    #[test]
    fn any_span_has_a_place() {
        let text = "é\n";
        for start in 0..6 {
            for end in 0..6 {
                let place = Source::file(text).place(&(start..end));
                assert!(place.source.get(place.highlight.clone()).is_some(), "{start}..{end}");
            }
        }
    }
}
