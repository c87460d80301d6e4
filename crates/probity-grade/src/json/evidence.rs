//! What tells JSON from brackets in prose.
//!
//! Prose is full of brackets: footnotes `[1]`, placeholders `[your name]`,
//! templates `{x}`, intervals `[0, 1]`, code. The rule is that something must
//! show that JSON was meant:
//!
//! - An object shows it by a key. An empty one does not: `fn main() {}`.
//! - An array shows it by a string or an object in it, unless it is a subscript,
//!   a link or assigned to something. An array of numbers, or an empty one, must
//!   stand apart: at the start of a line or after a colon, with nothing after it
//!   on its line.
//! - The argument of a function counts only if the text starts with the call.
//! - Broken arrays and objects, which only the repair level reads, must begin
//!   like JSON: with a quote or with a key and its colon. Bare words in square
//!   brackets count only if the text starts with them and they are a list.
//!
//! None of this applies to a text or a fenced block that is JSON as a whole.

use std::ops::Range;

use serde_json::Value;

use super::blanks::{is_blank, skip_blanks_and_comments};

/// How many bytes are looked at to tell what a bracket starts.
const REACH: usize = 4096;

/// How many bytes before a bracket are searched for the call that it is in.
const CALL_REACH: usize = 256;

/// Whether a value that was found inside other text was meant as one.
pub(super) fn convinces(text: &str, span: &Range<usize>, value: &Value) -> bool {
    match call_around(text, span.start) {
        Some(Call::Code) => return false,
        Some(Call::Wrapper) => return true,
        None => {}
    }
    match value {
        Value::Object(map) if !map.is_empty() => true,
        Value::Array(items) if items.iter().any(carries_text) => !is_code(text, span),
        Value::Object(_) | Value::Array(_) => stands_apart(text, span),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn carries_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(carries_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether square brackets belong to code, as in `x["a"]` or `for x in ["a"]:`, or to a link.
fn is_code(text: &str, span: &Range<usize>) -> bool {
    follows_name(text, span.start)
        || text[span.end..].starts_with(['(', '[', ':'])
        || text[span.end..].strip_prefix('.').is_some_and(|it| it.starts_with(char::is_alphabetic))
}

/// The call that a bracket is in, if it is in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    /// It is the first argument of a call that starts the text, as in JSONP.
    Wrapper,
    /// It is an argument of some other call.
    Code,
}

fn call_around(text: &str, at: usize) -> Option<Call> {
    let from = text.floor_char_boundary(at.saturating_sub(CALL_REACH));
    let from = from + text[from..at].rfind("\n\n").unwrap_or(0);
    let mut closed = 0_usize;
    for (index, it) in text[from..at].char_indices().rev() {
        match it {
            ')' => closed += 1,
            '(' if closed > 0 => closed -= 1,
            '(' => {
                let before = &text[..from + index];
                let name = text[from..from + index].trim_end_matches(is_name).len() + from;
                let is_first = text[from + index + 1..at].trim().is_empty();
                let starts_text = name < CALL_REACH && skip_blanks_and_comments(before, 0) == name;
                let call = if is_first && starts_text { Call::Wrapper } else { Call::Code };
                return (name < before.len()).then_some(call);
            }
            _ => {}
        }
    }
    None
}

fn is_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '_' | '$' | '.')
}

/// Whether a bracket follows a name or an equals sign.
fn follows_name(text: &str, at: usize) -> bool {
    if text[..at].trim_end_matches([' ', '\t']).ends_with('=') {
        return true;
    }
    text[..at]
        .chars()
        .next_back()
        .is_some_and(|it| it.is_alphanumeric() || matches!(it, '_' | ')' | ']' | '"' | '\''))
}

/// Whether a value has a line to itself, or the end of a line after a colon.
fn stands_apart(text: &str, span: &Range<usize>) -> bool {
    let before = text[..span.start].trim_end_matches([' ', '\t', '\r']);
    let leads = before.is_empty() || before.ends_with(['\n', ':']);
    let body = before.trim_end().ends_with(')');
    let after = text[span.end..].trim_start_matches([' ', '\t', '\r', '.', ',', ';']);
    leads && !body && (after.is_empty() || after.starts_with('\n'))
}

/// Whether an unclosed bracket starts a value that was cut off.
pub(super) fn starts_value(text: &str, open: usize) -> bool {
    let inside = reach(text, open + 1);
    let rest = &inside[skip_separators(inside)..];
    if text[open..].starts_with('{') {
        return rest.starts_with(['"', '\'', '“']) || key_length(rest).is_some();
    }
    match rest.chars().next() {
        Some('"' | '{' | '[') => true,
        Some('-' | '0'..='9') => {
            let numbers = |it: char| it.is_ascii_digit() || is_blank(it) || ",.-+".contains(it);
            // Half-open intervals are written `[0, 1)`.
            !rest.trim_start_matches(numbers).starts_with(')')
        }
        Some(_) => ["true", "false", "null"].iter().any(|word| rest.starts_with(word)),
        None => false,
    }
}

/// Where a bracket stands that may start broken JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing but blanks and comments is before it.
    Start,
    /// Other text is before it.
    Inside,
}

/// Whether a bracket starts something that was meant as JSON, however broken it is.
///
/// `end` is the byte after the bracket that closes it, if one does.
pub(super) fn suggests(text: &str, open: usize, end: Option<usize>, place: Place) -> bool {
    if place == Place::Inside {
        match call_around(text, open) {
            Some(Call::Code) => return false,
            Some(Call::Wrapper) => return true,
            None => {}
        }
        let span = open..end.unwrap_or(text.len());
        if text[open..].starts_with('[') && is_code(text, &span) {
            return false;
        }
    }
    let outermost = open;
    let mut open = open;
    // Nested brackets are looked through, so that `[[{"a": 1` is as good as `{"a": 1`.
    for _ in 0..8 {
        let inside = reach(text, open + 1);
        let at = open + 1 + skip_separators(inside);
        let rest = reach(text, at);
        let is_object = text[open..].starts_with('{');
        let Some(first) = rest.chars().next() else {
            return place == Place::Start;
        };
        if text[open + 1..].starts_with(['#', '%']) {
            // A template: `{# comment #}` or `{% block %}`.
            return false;
        }
        match first {
            '{' | '[' if !is_object || first == '{' => {
                open = at;
            }
            '"' if is_object => return true,
            '"' => return place == Place::Start || end.is_none() || quoted_member(rest, first),
            '\\' => return rest[1..].starts_with('"'),
            '\'' | '‘' | '’' | '“' | '”' | '`' | '´' => {
                return place == Place::Start || quoted_member(rest, first);
            }
            '}' | ']' => {
                let after = rest.trim_start_matches(|it| is_blank(it) || "}],;`".contains(it));
                let alone = skip_blanks_and_comments(after, 0) == after.len();
                return place == Place::Start && (alone || open != outermost);
            }
            _ if is_object => return suggests_object(rest, place),
            _ => return suggests_list(text, open, end, place),
        }
    }
    place == Place::Start
}

/// Whether a quoted piece is followed by what follows a key or an item.
fn quoted_member(rest: &str, quote: char) -> bool {
    let inner = &rest[quote.len_utf8()..];
    let closing = |it: char| match quote {
        '"' => it == '"',
        _ => matches!(it, '\'' | '’' | '‘' | '”' | '“' | '`' | '´'),
    };
    inner.find(closing).is_some_and(|at| {
        let after = inner[at..].trim_start_matches(closing).trim_start();
        after.starts_with([':', ',', ']', '}'])
    })
}

/// Whether the inside of braces begins with a bare key that is not code, a format or mathematics.
fn suggests_object(rest: &str, place: Place) -> bool {
    if rest.starts_with("...") || rest.starts_with('…') {
        return place == Place::Start;
    }
    let Some(length) = key_length(rest) else {
        return place == Place::Start && suggests_odd_key(rest);
    };
    let key = rest[..length].trim_end();
    let value = &rest[length + 1..];
    let body = &rest[..rest.find('}').unwrap_or(rest.len())];
    let is_code = body.contains(";\n") || body.contains("; ") || body.ends_with(';');
    let is_set = !key.is_empty()
        && value.trim_start().strip_prefix(key).is_some_and(|it| it.starts_with(is_blank));
    let is_format = value.starts_with(['.', '<', '>', '^', '%']);
    !is_code && !(place == Place::Inside && (is_set || is_format))
}

/// Keys that only a text which is nothing else may have: with blanks, with `=`, or with half their quotes.
fn suggests_odd_key(rest: &str) -> bool {
    let line = &rest[..rest.find(['\n', '}', ';']).unwrap_or(rest.len())];
    let Some(at) = line.find([':', '=']) else {
        return false;
    };
    let key = line[..at].trim_end();
    let words = key.split_whitespace().count();
    (1..=4).contains(&words) && !key.contains(['(', ')', '<', '>'])
}

/// The length of a bare key and the blanks after it, if a colon follows that is not part of a URL.
pub(super) fn key_length(rest: &str) -> Option<usize> {
    let is_name = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$' | '-' | '.');
    let name = rest.find(|it| !is_name(it))?;
    let blanks = rest[name..].find(|it| !matches!(it, ' ' | '\t'))?;
    let length = name + blanks;
    let after = &rest[length..];
    (name > 0 && after.starts_with(':') && !after.starts_with("://")).then_some(length)
}

/// Whether the inside of square brackets is a list of numbers or single words.
fn suggests_list(text: &str, open: usize, end: Option<usize>, place: Place) -> bool {
    let inner_end = end.map_or(text.len(), |end| end - 1);
    let inner = reach(&text[..inner_end], open + 1);
    let whole = end.is_none_or(|end| {
        text[end..].trim_matches(|it| is_blank(it) || ",;`".contains(it)).is_empty()
    });
    let mut items = inner.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty());
    if place == Place::Inside {
        let is_number = |item: &str| item.parse::<f64>().is_ok() || matches!(item, "..." | "…");
        let some_number = inner.contains(|it: char| it.is_ascii_digit());
        return some_number
            && items.all(is_number)
            && end.is_some_and(|end| stands_apart(text, &(open..end)));
    }
    let starts_number = inner.trim_start().starts_with(|it: char| it.is_ascii_digit());
    let holds_string = items.clone().any(|item| item.starts_with(['"', '\'', '{', '[']));
    if holds_string || whole && starts_number && inner.contains('"') {
        return true;
    }
    let is_list = inner.trim().contains([',', '\n']);
    if inner.trim().starts_with("...") || inner.trim().starts_with('…') {
        return whole || is_list;
    }
    let single_word = |item: &str| {
        let mut words = item.split_whitespace();
        words.clone().count() == 1 || words.all(|word| word.parse::<f64>().is_ok())
    };
    let is_plain = !inner.contains(['{', '"', ':']);
    (whole || is_list) && (items.all(single_word) || whole && end.is_some() && is_list && is_plain)
}

/// The first byte that is not blank, a comma, or part of a comment.
fn skip_separators(text: &str) -> usize {
    let mut at = skip_blanks_and_comments(text, 0);
    while text[at..].starts_with(',') {
        at = skip_blanks_and_comments(text, at + 1);
    }
    at
}

/// A piece of the text from `at` on that is short enough to be looked at again and again.
fn reach(text: &str, at: usize) -> &str {
    &text[at..text.floor_char_boundary(at.saturating_add(REACH).min(text.len()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_braces_stand_for_an_object_only_at_its_start() {
        for dots in ["...}", "… }"] {
            assert!(suggests_object(dots, Place::Start), "{dots}");
            assert!(!suggests_object(dots, Place::Inside), "{dots}");
        }
    }

    #[test]
    fn code_and_formats_in_braces_are_no_objects() {
        assert!(suggests_object("a: 1}", Place::Start));
        for code in ["a: 1; b: 2}", "a: 1;\nb: 2}", "a: 1;}"] {
            assert!(!suggests_object(code, Place::Start), "{code}");
        }
        assert!(suggests_object("a: 1}", Place::Inside));
        assert!(!suggests_object("a:.2f}", Place::Inside));
    }
}
