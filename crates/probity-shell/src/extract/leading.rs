//! A command that the reply begins with, before the words that explain it.

use super::{
    Found, Step, begins_as_command, is_comment, is_heading, is_keyword, is_sentence,
    line::{has_code_in_prose, is_introduced},
    trimmed,
};
use crate::{Script, Span};

/// The command at the start of a text, without the prose behind it.
pub(super) fn command(reply: &str, part: Span) -> Option<Found<'_>> {
    let lines = run_of_code(reply, part);
    let first = trimmed(reply, Span { end: end_of_line(reply, lines), ..lines });
    // Lines that do not make one command may still begin with one.
    let place = [lines, first].into_iter().find(|it| is_command(reply, *it))?;
    let steps: &[Step] = if place.end < part.end { &[Step::Prose] } else { &[] };
    Some(Found::at(reply, place, steps))
}

/// Whether a text is a command from beginning to end.
pub(super) fn is_all(reply: &str, part: Span) -> bool {
    run_of_code(reply, part).end == part.end && is_command(reply, part)
}

fn end_of_line(reply: &str, span: Span) -> usize {
    span.of(reply).find('\n').map_or(span.end, |at| span.start + at)
}

/// The lines up to the first that is prose. A blank line ends them too, except in a script, which says `#!` first or
/// begins with a comment.
fn run_of_code(reply: &str, part: Span) -> Span {
    let text = part.of(reply);
    let is_script = text.starts_with('#');
    let mut end = part.start;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if content.is_empty() && !is_script || is_prose(content) {
            break;
        }
        end += line.len();
    }
    trimmed(reply, Span { start: part.start, end })
}

fn is_prose(line: &str) -> bool {
    let is_item = ["- ", "* ", "**", "• "].iter().any(|it| line.starts_with(it));
    let is_capital = line.starts_with(char::is_uppercase) && !begins_as_command(line);
    !line.starts_with('#') && (is_item || is_capital || is_sentence(line) || is_heading(line))
}

fn is_command(reply: &str, place: Span) -> bool {
    let text = place.of(reply);
    let mut lines = text.lines().map(str::trim);
    let Some(first) = lines.find(|it| !it.is_empty() && !it.starts_with('#')) else { return false };
    // All of it is parsed below, so that a word which opens a loop is enough.
    let opens = first.split_whitespace().next().is_some_and(is_keyword);
    let begins = opens || begins_as_command(first) || has_option(first);
    begins
        && !is_introduced(text)
        && !is_prose(first)
        && !is_comment(text)
        && !has_code_in_prose(first)
        && Script::parse(text).is_ok()
}

/// `frobnicate --fast`: a program that no table knows, with an option.
fn has_option(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_name = |it: &str| {
        it.starts_with(|it: char| it.is_ascii_lowercase())
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.+".contains(&it))
    };
    let is_option = |it: &str| {
        it.strip_prefix('-')
            .is_some_and(|it| it.starts_with(|it: char| it == '-' || it.is_alphanumeric()))
    };
    words.next().is_some_and(is_name) && words.any(is_option)
}
