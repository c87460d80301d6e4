//! Reads the notation of `refusal.toml`, in which one line stands for many phrases.
//!
//! `(a|b)` is either, `[a|b]` is either or nothing, `{name}` is a list from the
//! `lists` table, `_` is up to one word of any kind, `…` is up to four, and `^`
//! in front means "only at the start of a sentence".

use std::{collections::BTreeMap, ops::ControlFlow, rc::Rc};

use super::{
    automaton::{Vocabulary, WordId},
    words::{self, Folded},
};

/// A phrase ready for the automaton; it begins with a word.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) anchored: bool,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Word(WordId),
    /// Up to this many words of any kind.
    Gap(usize),
    /// Shared, since one list stands in many lines.
    Either(Rc<[Vec<Self>]>),
    Maybe(Vec<Vec<Self>>),
}

/// Why a line of the notation cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GrammarError {
    #[error("`{open}` is never closed")]
    Open { open: char },
    #[error("`{found}` closes nothing")]
    Close { found: char },
    #[error("there is no list named `{name}`")]
    List { name: String },
    #[error("a phrase must begin with a word")]
    Start,
}

/// Named choices, read once and used by many lines.
pub(super) type Lists = BTreeMap<String, Rc<[Vec<Piece>]>>;

/// Reads the lines of a list. They can name no other list.
pub(super) fn read_list(
    lines: &[String],
    vocabulary: &mut Vocabulary,
) -> Result<Rc<[Vec<Piece>]>, GrammarError> {
    let none = Lists::new();
    let lines = lines.iter();
    let choices = lines.map(|line| read(line, &none, vocabulary).map(|it| it.pieces));
    choices.collect()
}

/// Reads one line of the notation.
pub(super) fn read(
    line: &str,
    lists: &Lists,
    vocabulary: &mut Vocabulary,
) -> Result<Grammar, GrammarError> {
    let (anchored, line) = match line.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let mut reader = Reader { rest: line, lists, vocabulary };
    let pieces = reader.sequence()?;
    match reader.rest.chars().next() {
        Some(found) => Err(GrammarError::Close { found }),
        None if !begins_with_word(&pieces) => Err(GrammarError::Start),
        None => Ok(Grammar { anchored, pieces }),
    }
}

/// The words of any text, with contractions spelled out.
fn words_of(text: &str, vocabulary: &mut Vocabulary) -> Vec<Piece> {
    let mut pieces = Vec::new();
    words::each(text, |word, _| {
        add_word(word, vocabulary, &mut pieces);
        ControlFlow::Continue(())
    });
    pieces
}

fn add_word(word: &Folded, vocabulary: &mut Vocabulary, pieces: &mut Vec<Piece>) {
    if let Some(known) = vocabulary.get(word) {
        pieces.extend(known.iter().map(|&id| Piece::Word(id)));
    } else {
        let parts = word.parts().map(|part| Piece::Word(vocabulary.add(part)));
        pieces.extend(parts);
    }
}

fn begins_with_word(pieces: &[Piece]) -> bool {
    match pieces.first() {
        Some(Piece::Word(_)) => true,
        Some(Piece::Either(choices)) => choices.iter().all(|choice| begins_with_word(choice)),
        Some(Piece::Maybe(choices)) => {
            choices.iter().all(|choice| begins_with_word(choice)) && begins_with_word(&pieces[1..])
        }
        Some(Piece::Gap(_)) | None => false,
    }
}

struct Reader<'a> {
    rest: &'a str,
    lists: &'a Lists,
    vocabulary: &'a mut Vocabulary,
}

impl Reader<'_> {
    /// Reads until the end, a `|` or a closing bracket, which it leaves.
    fn sequence(&mut self) -> Result<Vec<Piece>, GrammarError> {
        let mut pieces = Vec::new();
        loop {
            let plain = self.rest.find(['(', ')', '[', ']', '{', '}', '|', '_', '…']);
            let (text, rest) = self.rest.split_at(plain.unwrap_or(self.rest.len()));
            pieces.extend(words_of(text, self.vocabulary));
            self.rest = rest;
            let Some(mark) = rest.chars().next() else {
                return Ok(pieces);
            };
            if matches!(mark, '|' | ')' | ']' | '}') {
                return Ok(pieces);
            }
            self.rest = &rest[mark.len_utf8()..];
            pieces.push(match mark {
                '(' => Piece::Either(self.choices('(', ')')?.into()),
                '[' => Piece::Maybe(self.choices('[', ']')?),
                '{' => Piece::Either(self.list()?),
                '_' => Piece::Gap(1),
                _ => Piece::Gap(4),
            });
        }
    }

    fn choices(&mut self, open: char, close: char) -> Result<Vec<Vec<Piece>>, GrammarError> {
        let mut choices = Vec::new();
        loop {
            choices.push(self.sequence()?);
            let mark = self.rest.chars().next().ok_or(GrammarError::Open { open })?;
            self.rest = &self.rest[mark.len_utf8()..];
            if mark == close {
                return Ok(choices);
            }
            if mark != '|' {
                return Err(GrammarError::Close { found: mark });
            }
        }
    }

    fn list(&mut self) -> Result<Rc<[Vec<Piece>]>, GrammarError> {
        let (name, rest) = self.rest.split_once('}').ok_or(GrammarError::Open { open: '{' })?;
        self.rest = rest;
        let list =
            self.lists.get(name).ok_or_else(|| GrammarError::List { name: name.to_owned() })?;
        Ok(Rc::clone(list))
    }
}
