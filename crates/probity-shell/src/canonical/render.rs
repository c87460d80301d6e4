//! A canonical form as shell text.

use super::{CommandForm, Compound, Form, Join};
use crate::field::{ANY, BRACKET, CLOSE, OPEN, OPEN_QUOTED, STAR, TILDE};

/// Signs that mean nothing to a shell.
const BARE: &str = "_-./:=@%+,]^";

/// The form as text that reads back to the same form.
pub(super) fn form(form: &Form) -> String {
    match form {
        Form::Command(it) => command(it),
        Form::Compound(it) => compound(it),
        Form::Text(text) => text.clone(),
    }
}

fn command(it: &CommandForm) -> String {
    let CommandForm { assignments, tokens, redirects, .. } = it;
    let mut out = String::with_capacity(tokens.iter().map(|it| it.text.len() + 3).sum());
    let mut is_first = true;
    let mut blank = |out: &mut String| {
        if !std::mem::take(&mut is_first) {
            out.push(' ');
        }
    };
    for assignment in assignments {
        blank(&mut out);
        out.push_str(assignment);
    }
    for token in tokens {
        blank(&mut out);
        push_word(&token.text, &mut out);
    }
    for redirect in redirects {
        blank(&mut out);
        out.push_str(&redirect.text());
    }
    out
}

fn compound(it: &Compound) -> String {
    let Compound { join, parts, redirects } = it;
    let mut text = match join {
        Join::List => parts.iter().map(entry).collect::<Vec<_>>().join(" "),
        Join::Pipe(joints) => {
            joined(parts, joints.iter().skip(1).map(|with| if *with { " |& " } else { " | " }))
        }
        Join::AndOr(ands) => {
            joined(parts, ands.iter().map(|and| if *and { " && " } else { " || " }))
        }
        Join::Not => format!("! {}", operand(&parts[0])),
        Join::Background => format!("{} &", operand(&parts[0])),
        Join::Subshell => format!("( {} )", form(&parts[0])),
        Join::Keyword(words) => keywords(words, parts),
    };
    if matches!(join, Join::List) && !redirects.is_empty() {
        text = format!("{{ {} }}", terminated(text));
    }
    for redirect in redirects {
        text.push(' ');
        text.push_str(redirect);
    }
    text
}

fn keywords(words: &[String], parts: &[Form]) -> String {
    // A word before a command, rather than around it.
    if let ([word], [part]) = (words, parts) {
        return format!("{word} {}", operand(part));
    }
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        text.push_str(word);
        if let Some(part) = parts.get(at) {
            text.push(' ');
            text.push_str(&entry(part));
            text.push(' ');
        }
    }
    text
}

/// A command as an entry of a list, with what ends it.
fn entry(part: &Form) -> String {
    terminated(form(part))
}

fn terminated(mut text: String) -> String {
    if !text.ends_with('&') && !text.ends_with('\n') {
        text.push(';');
    }
    text
}

fn joined<'s>(parts: &[Form], mut signs: impl Iterator<Item = &'s str>) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push_str(signs.next().unwrap_or(" "));
        }
        text.push_str(&operand(part));
    }
    text
}

/// A command as an operand of an operator: lists need braces there.
fn operand(part: &Form) -> String {
    match part {
        Form::Compound(it) => match it.join {
            Join::List | Join::AndOr(_) | Join::Background if it.redirects.is_empty() => {
                format!("{{ {} }}", entry(part))
            }
            Join::Pipe(_) => format!("{{ {} }}", entry(part)),
            Join::List
            | Join::AndOr(_)
            | Join::Background
            | Join::Not
            | Join::Subshell
            | Join::Keyword(_) => compound(it),
        },
        Form::Command(_) | Form::Text(_) => form(part),
    }
}

/// An encoded word as shell text.
pub(super) fn word(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_word(text, &mut out);
    out
}

fn push_word(text: &str, out: &mut String) {
    // Most words need no quotes and hold nothing that a shell acts on.
    let is_bare =
        text.bytes().all(|it| it.is_ascii_alphanumeric() || BARE.contains(char::from(it)));
    match text {
        "" => out.push_str("''"),
        _ if is_bare && !text.starts_with('=') => out.push_str(text),
        _ => out.push_str(&quoted(text)),
    }
}

/// A word as shell text, with quotes where they are needed.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            STAR | ANY | BRACKET | TILDE | OPEN | OPEN_QUOTED => {
                flush(&mut plain, &mut out);
                match character {
                    STAR => out.push('*'),
                    ANY => out.push('?'),
                    BRACKET => out.push('['),
                    TILDE => out.push('~'),
                    _ => expansion(character == OPEN_QUOTED, &mut rest, &mut out),
                }
            }
            other => plain.push(other),
        }
    }
    flush(&mut plain, &mut out);
    out
}

fn expansion(quoted: bool, rest: &mut std::str::Chars<'_>, out: &mut String) {
    if quoted {
        out.push('"');
    }
    let mut depth = 1;
    for character in rest.by_ref() {
        match character {
            OPEN | OPEN_QUOTED => depth += 1,
            CLOSE => depth -= 1,
            other => out.push(other),
        }
        if depth == 0 {
            break;
        }
    }
    if quoted {
        out.push('"');
    }
}

fn flush(plain: &mut String, out: &mut String) {
    if plain.is_empty() {
        return;
    }
    let first = out.is_empty();
    let bare = |it: char| it.is_alphanumeric() || BARE.contains(it);
    // A word that could be taken for something else by its first character keeps its quotes.
    let safe = plain.chars().all(bare) && !(first && plain.starts_with('=')) || plain == "{}";
    match safe {
        true => out.push_str(plain),
        false => {
            out.push('\'');
            out.push_str(&plain.replace('\'', r"'\''"));
            out.push('\'');
        }
    }
    plain.clear();
}

/// The value of an assignment, where a tilde or a pattern is no different from text in quotes.
pub(super) fn assigned(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => word(text),
    }
}
