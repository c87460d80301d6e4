//! Programs of `awk`: blanks that cannot matter.
//!
//! A program is the row of its tokens. Blanks matter where they make two tokens of one, between a name and a bracket, and
//! where they join two values; there they stay as they are. Where it is not certain how a program is cut into tokens, all
//! of it stays as it is.

use crate::{
    awk::{self, Token},
    field,
    tree::Text,
};

/// Marks that blanks on either side say nothing about.
const LOOSE: &[&str] = &[
    "{", "}", ";", ",", "\n", "=", "+=", "-=", "*=", "/=", "%=", "^=", "**=", "==", "!=", "<=",
    ">=", "<", ">", "&&", "||", "~", "!~", "*", "/", "%", "^", "**", "?", ":", "|", "|&", ">>",
];

/// Names that are no value: what follows them begins an expression.
const KEYWORDS: &[&str] = &[
    "print", "printf", "return", "case", "in", "BEGIN", "END", "else", "do", "getline", "delete",
    "exit", "length",
];

/// Takes needless blanks out of a program.
pub(super) fn tidied(program: &mut Text) {
    if !field::is_literal(program) {
        return;
    }
    if let Some(tidy) = without_blanks(program) {
        *program = tidy.into();
    }
}

/// The program without needless blanks; `None` if it is not certain which are.
fn without_blanks(program: &str) -> Option<String> {
    let placed = awk::placed(program);
    let tokens: Vec<Token<'_>> = placed.iter().map(|it| it.0).collect();
    if !are_certain(&tokens) {
        return None;
    }
    // Whether there are blanks before each token, and after the last.
    let mut gaps = Vec::with_capacity(placed.len() + 1);
    let mut end = 0;
    for place in
        placed.iter().map(|it| it.1.clone()).chain(std::iter::once(program.len()..program.len()))
    {
        let gap = &program[end..place.start];
        if !gap.bytes().all(|it| matches!(it, b' ' | b'\t')) {
            return None;
        }
        gaps.push(!gap.is_empty());
        end = place.end;
    }
    let mut tidy = String::with_capacity(program.len());
    for (at, (_, place)) in placed.iter().enumerate() {
        if at > 0 && gaps[at] && !is_needless(&tokens, &gaps, at) {
            tidy.push(' ');
        }
        tidy.push_str(&program[place.clone()]);
    }
    Some(tidy)
}

/// Whether every awk cuts the program as we do, blanks or not.
fn are_certain(tokens: &[Token<'_>]) -> bool {
    // For each open bracket, whether it is that of a condition; what follows such a one is no operator.
    let mut open = Vec::new();
    let mut condition = false;
    let mut before = None;
    for token in tokens {
        let certain = match (before, token) {
            // It could be a pattern.
            (Some(Token::Mark(")")), Token::Mark("/" | "/=")) => !condition,
            (before, Token::Mark("/" | "/=")) => before.is_some_and(is_value),
            // `1e+5` is one number.
            (Some(Token::Number(number)), Token::Mark("+" | "-")) => {
                !number.ends_with(['e', 'E', 'p', 'P'])
            }
            (Some(Token::Mark(":")), Token::Mark(":")) => false,
            (_, Token::Name(name)) => !name.contains("::"),
            _ => true,
        };
        if !certain {
            return false;
        }
        match token {
            Token::Mark("(") => {
                open.push(matches!(before, Some(Token::Name("if" | "while" | "for"))));
            }
            Token::Mark(")") => condition = open.pop().unwrap_or(true),
            Token::Name(_)
            | Token::Number(_)
            | Token::Text(_)
            | Token::Pattern(_)
            | Token::Mark(_) => {}
        }
        before = Some(*token);
    }
    true
}

/// Whether a token ends a value, so that an operator follows.
fn is_value(token: Token<'_>) -> bool {
    match token {
        Token::Name(name) => !KEYWORDS.contains(&name),
        Token::Number(_) | Token::Text(_) => true,
        Token::Mark(mark) => matches!(mark, ")" | "]"),
        Token::Pattern(_) => false,
    }
}

/// Whether the blanks before a token say nothing.
fn is_needless(tokens: &[Token<'_>], gaps: &[bool], at: usize) -> bool {
    let (left, right) = (tokens[at - 1], tokens[at]);
    let loose = |it: Token<'_>| matches!(it, Token::Mark(mark) if LOOSE.contains(&mark));
    let needless = loose(left)
        || loose(right)
        || matches!(left, Token::Mark("(" | "[" | "!"))
        || matches!(right, Token::Mark(")" | "]"))
        || matches!((left, right), (Token::Name("if" | "while" | "for"), Token::Mark("(")))
        || subtracts(tokens, gaps, at - 1)
        || subtracts(tokens, gaps, at);
    needless && !merge(left, right)
}

/// Whether a token is a sign between two values with as many blanks before it as after it. `a -1` may be meant as two
/// values side by side.
fn subtracts(tokens: &[Token<'_>], gaps: &[bool], at: usize) -> bool {
    matches!(tokens[at], Token::Mark("+" | "-"))
        && at > 0
        && is_value(tokens[at - 1])
        && gaps[at] == gaps[at + 1]
}

/// Whether two marks without a blank between them would be read as others.
fn merge(left: Token<'_>, right: Token<'_>) -> bool {
    let (Token::Mark(one), Token::Mark(two)) = (left, right) else { return false };
    awk::tokens(&format!("{one}{two}")) != [left, right]
}
