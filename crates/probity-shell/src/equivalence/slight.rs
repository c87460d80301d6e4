//! What differs slightly: where it makes no difference in most places, execution may say that two commands do the same.
//!
//! The options are those of `data/slight.toml`. All others are taken to mean something, whatever worlds show.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{
    canonical::{CommandForm, Compound, Form, Token, TokenKind},
    field,
};

const QUIET: &str = "2> /dev/null";

/// A form without slashes at the ends of paths, quotes around variables, redirections of complaints to nowhere, options that
/// are slight, and `-type f` of `find`.
pub(super) fn gist(form: &Form) -> Form {
    match form {
        Form::Command(it) => Form::Command(Box::new(gist_of_command(it))),
        Form::Compound(it) => {
            let Compound { join, parts, redirects } = &**it;
            let redirects = redirects.iter().filter(|it| **it != QUIET).cloned().collect();
            let parts = parts.iter().map(gist).collect();
            Form::Compound(Box::new(Compound { join: join.clone(), parts, redirects }))
        }
        Form::Text(text) => Form::Text(plain(text)),
    }
}

fn gist_of_command(command: &CommandForm) -> CommandForm {
    let CommandForm { assignments, tokens, redirects, known } = command;
    let words: Vec<String> = tokens.iter().map(Token::display).collect();
    let is_file = |at: usize| words.get(at..at + 2).is_some_and(|it| it == ["-type", "f"]);
    let mut kept = Vec::with_capacity(tokens.len());
    let mut program = String::new();
    let searches = words.first().is_some_and(|it| it == "find");
    for (at, (token, word)) in tokens.iter().zip(&words).enumerate() {
        if token.kind == TokenKind::Program {
            program = program_after(&program, word);
        }
        // What `find` runs is run for each file, where nobody looks.
        let is_option = token.kind == TokenKind::Option && !searches && is_slight(&program, word);
        let is_type = is_file(at) || at.checked_sub(1).is_some_and(is_file);
        let is_left_out = is_option || (is_type && program == "find");
        if !is_left_out {
            kept.push(Token { kind: token.kind, text: plain(word).into() });
        }
    }
    let redirects = redirects.iter().filter(|it| it.to_string() != QUIET).cloned().collect();
    CommandForm { assignments: assignments.clone(), tokens: kept, redirects, known: *known }
}

/// What the table calls the program that a word names: that of a command, or a subcommand of the one before.
fn program_after(before: &str, word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or_default().to_owned();
    let whole = format!("{before} {name}");
    if TABLE.contains_key(&whole) { whole } else { name }
}

fn is_slight(program: &str, option: &str) -> bool {
    TABLE.get(program).is_some_and(|it| it.options.iter().any(|it| it == option))
}

fn plain(word: &str) -> String {
    let bare = word.replace("\"${", "${").replace("}\"", "}");
    let path = bare.trim_end_matches('/');
    let path = path.strip_prefix("./").filter(|it| !it.is_empty()).unwrap_or(path);
    if path.is_empty() { bare } else { path.to_owned() }
}

/// Programs that write what their words say, whatever else there is.
const CONSTANT: &[&str] =
    &["basename", "dirname", "echo", "expr", "factor", "false", "printf", "seq", "true"];

/// Whether a form does the same everywhere, so that one execution says all about it.
pub(super) fn is_constant(form: &Form) -> bool {
    match form {
        Form::Command(it) => {
            let CommandForm { assignments, tokens, redirects, known } = &**it;
            let programs = tokens.iter().filter(|it| it.kind == TokenKind::Program);
            let mut programs = programs.map(Token::display);
            let is_plain = |it: &Token| field::is_literal(&it.text);
            *known
                && assignments.is_empty()
                && redirects.is_empty()
                && programs.all(|it| CONSTANT.contains(&&*it))
                && tokens.iter().all(is_plain)
        }
        Form::Compound(_) | Form::Text(_) => false,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slight {
    options: Vec<String>,
}

static TABLE: LazyLock<BTreeMap<String, Slight>> = LazyLock::new(|| table!("slight"));
