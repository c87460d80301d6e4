//! `printf` and `tr`: texts that can be written in more than one way.

use crate::{
    canonical::command::{Argv, Token, TokenKind},
    field::{self, Field},
    tree::Text,
};

/// `printf 'text\\n'` and `printf '%s\\n' text` write what `echo text` writes.
pub(super) fn printf(arguments: &[Field]) -> Option<Argv> {
    let text = match arguments {
        [format] => format.text.strip_suffix("\\n")?,
        [format, text] if format.text == "%s\\n" => &*text.text,
        _ => return None,
    };
    // What `echo` might take for an option or an escape, and what `printf` would take for a directive.
    let plain = field::is_literal(text)
        && !text.contains(['\\', '%'])
        && !text.starts_with('-')
        && !text.is_empty();
    let tokens = vec![Token::new(TokenKind::Program, "echo"), Token::operand(text)];
    plain.then_some(Argv { tokens, known: true, input: None })
}

const CLASSES: &[(&str, &str)] =
    &[("[:lower:]", "a-z"), ("[:upper:]", "A-Z"), ("[:digit:]", "0-9")];

/// Whether classes can be written as ranges: one alone, or the two of letters. Beside any other set a class is an error.
pub(super) fn are_classes(sets: &[Field]) -> bool {
    let texts: Vec<&str> = sets.iter().map(|it| &*it.text).collect();
    match &texts[..] {
        [only] => CLASSES.iter().any(|(name, _)| name == only),
        ["[:lower:]", "[:upper:]"] | ["[:upper:]", "[:lower:]"] => true,
        _ => false,
    }
}

/// `[:lower:]` and `a-z` are the same bytes to `tr`.
pub(super) fn set(text: &mut Text) {
    if let Some((_, range)) = CLASSES.iter().find(|(name, _)| *name == text) {
        *text = (*range).into();
    }
}
