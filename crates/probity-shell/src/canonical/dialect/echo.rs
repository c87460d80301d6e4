//! `echo` joins its arguments with blanks, so that how they were split does not show.

use crate::{
    canonical::command::{Argv, Token, TokenKind},
    field::{self, Field},
};

pub(super) fn canonical(arguments: &[Field]) -> Argv {
    let is_option = |it: &&Field| {
        it.text.len() > 1
            && it.text.starts_with('-')
            && it.text[1..].bytes().all(|byte| matches!(byte, b'n' | b'e' | b'E'))
    };
    let options = arguments.iter().take_while(is_option).count();
    let (options, words) = arguments.split_at(options);
    let letters: String = options.iter().map(|it| &it.text[1..]).collect();
    let mut tokens = vec![Token::new(TokenKind::Program, "echo")];
    if letters.rfind('e') > letters.rfind('E') {
        tokens.push(Token::new(TokenKind::Option, "-e"));
    }
    if letters.contains('n') {
        tokens.push(Token::new(TokenKind::Option, "-n"));
    }
    let unsure = [field::STAR, field::ANY, field::BRACKET, field::TILDE, field::OPEN];
    let texts: Vec<&str> = words.iter().map(|it| &*it.text).collect();
    let joined = texts.join(" ");
    // A joined word that looks like an option would be read as one.
    let dashed = joined.starts_with('-')
        && joined[1..].bytes().all(|byte| matches!(byte, b'n' | b'e' | b'E'));
    // A value at the start could be an option.
    let begins = texts.first().is_some_and(|it| field::is_literal(it));
    match !begins || dashed || texts.iter().any(|it| it.contains(unsure)) {
        true => tokens.extend(texts.into_iter().map(Token::operand)),
        false => tokens.push(Token::operand(joined)),
    }
    Argv { tokens, known: true, input: None }
}
