//! The words of a command as far as they are known without running anything.

use std::borrow::Cow;

use crate::tree::{Part, Span, Word};

/// One word of a command.
#[derive(Debug, Clone)]
pub(super) struct Arg<'a> {
    /// Its value up to the first expansion, quotes removed.
    pub(super) text: Cow<'a, str>,
    /// Whether that is all of it.
    pub(super) literal: bool,
    /// The word it is.
    pub(super) word: &'a Word,
}

impl<'a> Arg<'a> {
    /// Reads a word.
    pub(super) fn read(word: &'a Word) -> Self {
        let mut text = Cow::Borrowed("");
        for part in &word.parts {
            let Part::Text { text: piece, .. } = part else {
                return Arg { text, literal: false, word };
            };
            match text.is_empty() {
                true => text = Cow::Borrowed(piece.as_str()),
                false => text.to_mut().push_str(piece),
            }
        }
        Arg { text, literal: word.braces.is_empty(), word }
    }

    /// The whole value, if it is known.
    pub(super) fn value(&self) -> Option<&str> {
        self.literal.then_some(&*self.text)
    }

    /// Whether the whole value is known and is this one.
    pub(super) fn is(&self, text: &str) -> bool {
        self.literal && self.text == text
    }

    /// Nothing is known: it may be an option, an operand, or several of either.
    pub(super) fn is_open(&self) -> bool {
        !self.literal && self.text.is_empty()
    }

    /// Where it stands.
    pub(super) fn span(&self) -> Span {
        self.word.span
    }
}
