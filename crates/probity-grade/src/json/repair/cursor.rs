//! Moving through the text and looking ahead of it.

use super::{Open, Repairer};
use crate::json::{
    Step,
    blanks::{is_blank, skip_blanks, skip_comment},
    evidence::key_length,
};

/// The longest key that is recognised ahead of the parser.
const KEY_REACH: usize = 128;

impl Repairer<'_> {
    pub(super) fn peek(&self) -> Option<char> {
        self.char_at(self.at)
    }

    pub(super) fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// The last character before `at` that is not blank, and where it is.
    pub(super) fn before(&self, at: usize, from: usize) -> Option<(usize, char)> {
        self.text[from..at]
            .char_indices()
            .rev()
            .find(|(_, it)| !is_blank(*it))
            .map(|(index, it)| (from + index, it))
    }

    pub(super) fn advance(&mut self) {
        if let Some(it) = self.peek() {
            self.at += it.len_utf8();
        }
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            let end = skip_blanks(self.text, self.at);
            let skipped = &self.text[self.at..end];
            self.note_blanks(skipped);
            self.at = end;
            let Some(end) = skip_comment(self.text, self.at) else {
                return;
            };
            self.note(Step::Comments);
            self.at = end;
        }
    }

    /// Where the next thing is after `at` that is neither blank nor comment.
    pub(super) fn look_past_blanks(&mut self, at: usize) -> usize {
        let start = at;
        let mut at = skip_blanks(self.text, at);
        while let Some(end) = skip_comment(self.text, at) {
            at = skip_blanks(self.text, end);
        }
        self.spend(at - start);
        at
    }

    /// Whether the text goes on with a key and its colon.
    pub(super) fn key_ahead(&mut self, at: usize) -> bool {
        let at = self.look_past_blanks(at);
        let reach =
            self.text.floor_char_boundary(at.saturating_add(KEY_REACH).min(self.text.len()));
        let piece = &self.text[at..reach];
        let Some(first) = piece.chars().next() else {
            return false;
        };
        let Some(quote) = Quote::of(first) else {
            return key_length(piece).is_some();
        };
        let inner = &piece[first.len_utf8()..];
        let Some(end) = inner.find(|it| quote.closes(it) || it == '\n') else {
            return false;
        };
        let after = inner[end..].trim_start_matches(|it| quote.closes(it));
        let found = after.trim_start().starts_with(':');
        self.spend(end);
        found
    }

    /// Whether any bracket of a kind is open.
    pub(super) fn inside(&self, kind: Open) -> bool {
        self.stack.contains(&kind)
    }
}

/// A family of quotes, any of which closes a string that one of them opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    CurlyDouble,
    CurlySingle,
    Back,
}

impl Quote {
    pub(super) fn of(it: char) -> Option<Self> {
        match it {
            '"' => Some(Self::Double),
            '\'' => Some(Self::Single),
            '“' | '”' | '„' | '‟' => Some(Self::CurlyDouble),
            '‘' | '’' | '‚' | '‛' => Some(Self::CurlySingle),
            '`' | '´' => Some(Self::Back),
            _ => None,
        }
    }

    pub(super) fn closes(self, it: char) -> bool {
        match self {
            Self::Double => it == '"',
            Self::Single => it == '\'',
            Self::CurlyDouble => matches!(it, '“' | '”' | '„' | '‟' | '"'),
            Self::CurlySingle => matches!(it, '‘' | '’' | '‚' | '‛' | '\''),
            Self::Back => matches!(it, '`' | '´'),
        }
    }
}
