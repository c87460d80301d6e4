//! Words after expansion, as far as it can be known: one string per argument.
//!
//! In a [`Field`] every plain character stands for itself. What a shell would still act on is a *marker*, a character
//! that no command can hold (the parser refuses them), so that code that reads options and operands works on plain
//! strings and can never mistake a quoted `*` for a pattern.

use crate::tree::{Part, Quoting, Span, Text, Word, has_bracket};

/// An unquoted `*`.
pub(crate) const STAR: char = '\u{FDD0}';
/// An unquoted `?`.
pub(crate) const ANY: char = '\u{FDD1}';
/// The opening bracket of an unquoted `[a-z]`; the rest follows as text.
pub(crate) const BRACKET: char = '\u{FDD2}';
/// An unquoted `~` where it means a home directory.
pub(crate) const TILDE: char = '\u{FDD3}';
/// Begins an unquoted expansion, whose value is split and globbed; its canonical text follows, then [`CLOSE`].
pub(crate) const OPEN: char = '\u{FDD7}';
/// Begins an expansion inside double quotes.
pub(crate) const OPEN_QUOTED: char = '\u{FDD8}';
/// Ends an expansion.
pub(crate) const CLOSE: char = '\u{FDD9}';
/// A place where an expansion splits one word into two.
pub(crate) const SPLIT: char = '\u{FDDA}';

/// The byte that every marker begins with, and little else: without one there is no marker.
pub(crate) const FIRST_BYTE: u8 = 0xEF;

const BRACE_OPEN: char = '\u{FDDB}';
const BRACE_COMMA: char = '\u{FDDC}';
const BRACE_CLOSE: char = '\u{FDDD}';
const BRACE_DOT: char = '\u{FDDE}';

/// More fields than this from one word are not written out.
const MAX_BRACE_FIELDS: usize = 64;

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its value, with markers for what is not known.
    pub text: Text,
    /// The word it comes from.
    pub span: Span,
}

impl Field {
    /// The value, if all of it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        is_literal(&self.text).then_some(&*self.text)
    }
}

/// Whether `text` holds no marker.
pub(crate) fn is_literal(text: &str) -> bool {
    !may_have_marker(text) || !text.contains(is_marker)
}

fn may_have_marker(text: &str) -> bool {
    memchr::memchr(FIRST_BYTE, text.as_bytes()).is_some()
}

/// Whether a character is a marker.
pub(crate) fn is_marker(character: char) -> bool {
    ('\u{FDD0}'..='\u{FDEF}').contains(&character)
}

/// Splits `text` at the first marker: what is known for certain, and the rest.
pub(crate) fn known_prefix(text: &str) -> &str {
    &text[..text.find(is_marker).unwrap_or(text.len())]
}

/// The text as one would write it, for people.
pub(crate) fn display(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            STAR => shown.push('*'),
            ANY => shown.push('?'),
            BRACKET => shown.push('['),
            TILDE => shown.push('~'),
            OPEN | OPEN_QUOTED => shown.push_str("${"),
            CLOSE => shown.push('}'),
            SPLIT => shown.push(' '),
            plain => shown.push(plain),
        }
    }
    shown
}

/// How expansions are written into a field.
pub(crate) trait Expand {
    /// Appends what `part` expands to, or its canonical text between [`OPEN`] and [`CLOSE`].
    fn expand(&mut self, part: &Part, out: &mut String);
}

/// Appends the fields that `word` becomes.
pub(crate) fn push_fields(word: &Word, expand: &mut impl Expand, fields: &mut Vec<Field>) {
    let text = encode(word, expand);
    if word.braces.is_empty() {
        return split(text, word.span, fields);
    }
    for text in expand_braces(&text) {
        split(text.into(), word.span, fields);
    }
}

fn split(text: Text, span: Span, fields: &mut Vec<Field>) {
    if !may_have_marker(&text) || !text.contains(SPLIT) {
        return fields.push(Field { text, span });
    }
    fields.extend(
        text.split(SPLIT).filter(|it| !it.is_empty()).map(|it| Field { text: it.into(), span }),
    );
}

/// The word as one field, braces left as they are: for values of assignments and targets of redirections.
pub(crate) fn encode_single(word: &Word, expand: &mut impl Expand) -> String {
    unmark_braces(&encode(word, expand))
}

fn encode(word: &Word, expand: &mut impl Expand) -> Text {
    // Most words are one piece that stands for itself.
    if let [Part::Text { text, quoting, .. }] = &*word.parts
        && (*quoting != Quoting::None || !is_special(text, !word.braces.is_empty()))
    {
        return text.clone();
    }
    let mut out = String::with_capacity(word.span.end.saturating_sub(word.span.start));
    for (at, part) in word.parts.iter().enumerate() {
        match part {
            Part::Text { text, quoting: Quoting::None, .. } => {
                let tilde = at == 0
                    && text.starts_with('~')
                    && begins_home(text)
                    && !follows_quoted_name(word, text);
                encode_bare(text, tilde, !word.braces.is_empty(), &mut out);
            }
            Part::Text { text, .. } => out.push_str(text),
            Part::Parameter(_)
            | Part::Command(_)
            | Part::Arithmetic(_)
            | Part::Process(_)
            | Part::Array(_) => {
                expand.expand(part, &mut out);
            }
        }
    }
    out.into()
}

/// `~`, `~/x`, `~user/x`: a tilde with something else after it is text.
fn begins_home(text: &str) -> bool {
    let name = text[1..].split('/').next().unwrap_or_default();
    name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b'+'))
}

/// `~"user"` is not a home directory: quoting any of the name turns the tilde into text.
fn follows_quoted_name(word: &Word, text: &str) -> bool {
    !text.contains('/') && word.parts.len() > 1
}

/// Whether a shell would act on any character of a text without quotes.
fn is_special(text: &str, braces: bool) -> bool {
    let special = |it: u8| {
        matches!(it, b'*' | b'?' | b'[' | b'~') || braces && matches!(it, b'{' | b'}' | b',' | b'.')
    };
    text.bytes().any(special)
}

fn encode_bare(text: &str, tilde: bool, braces: bool, out: &mut String) {
    if !is_special(text, braces) {
        return out.push_str(text);
    }
    let bracket = has_bracket(text);
    for (at, character) in text.char_indices() {
        out.push(match character {
            '*' => STAR,
            '?' => ANY,
            '[' if bracket => BRACKET,
            '~' if at == 0 && tilde => TILDE,
            // In what looks like an assignment a tilde may also follow these signs.
            '~' if out.ends_with(['=', ':']) => TILDE,
            '{' if braces => BRACE_OPEN,
            '}' if braces => BRACE_CLOSE,
            ',' if braces => BRACE_COMMA,
            '.' if braces => BRACE_DOT,
            other => other,
        });
    }
}

fn unmark_braces(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            BRACE_OPEN => '{',
            BRACE_CLOSE => '}',
            BRACE_COMMA => ',',
            BRACE_DOT => '.',
            other => other,
        })
        .collect()
}

/// Writes `a{b,c}` out as `ab`, `ac`. What would become too many stays as it is.
fn expand_braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut pending = vec![text.to_owned()];
    while let Some(next) = pending.pop() {
        if done.len() + pending.len() >= MAX_BRACE_FIELDS {
            return vec![unmark_braces(text)];
        }
        match first_brace(&next) {
            Some((open, close, choices)) => {
                let tail = &next[close + BRACE_CLOSE.len_utf8()..];
                let choices = choices.into_iter().rev();
                pending.extend(choices.map(|choice| format!("{}{choice}{tail}", &next[..open])));
            }
            None => done.push(unmark_braces(&next)),
        }
    }
    done
}

/// The first brace that expands: where it opens and closes, and what it stands for.
fn first_brace(text: &str) -> Option<(usize, usize, Vec<String>)> {
    let mut from = 0;
    while let Some(found) = text[from..].find(BRACE_OPEN) {
        let open = from + found;
        if let Some((close, choices)) = brace_at(text, open) {
            return Some((open, close, choices));
        }
        from = open + BRACE_OPEN.len_utf8();
    }
    None
}

fn brace_at(text: &str, open: usize) -> Option<(usize, Vec<String>)> {
    let start = open + BRACE_OPEN.len_utf8();
    let (mut depth, mut from, mut choices) = (0_usize, start, Vec::new());
    for (at, character) in text[start..].char_indices().map(|(at, it)| (start + at, it)) {
        match character {
            BRACE_OPEN => depth += 1,
            BRACE_CLOSE if depth > 0 => depth -= 1,
            BRACE_COMMA if depth == 0 => {
                choices.push(text[from..at].to_owned());
                from = at + BRACE_COMMA.len_utf8();
            }
            BRACE_CLOSE if choices.is_empty() => return Some((at, sequence(&text[start..at])?)),
            BRACE_CLOSE => {
                choices.push(text[from..at].to_owned());
                return Some((at, choices));
            }
            _ => {}
        }
    }
    None
}

/// `{1..5}` and `{a..e}`.
fn sequence(body: &str) -> Option<Vec<String>> {
    let plain = unmark_braces(body);
    let (first, last) = plain.split_once("..")?;
    if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let padded = |it: &str| it.len() > 1 && it.trim_start_matches('-').starts_with('0');
        if padded(&plain) || first.abs_diff(last) >= MAX_BRACE_FIELDS as u64 {
            return None;
        }
        let numbers: Vec<_> =
            (first.min(last)..=first.max(last)).map(|it| it.to_string()).collect();
        return Some(in_order(numbers, first > last));
    }
    let single =
        |it: &str| it.bytes().next().filter(|byte| it.len() == 1 && byte.is_ascii_alphabetic());
    let (first, last) = (single(first)?, single(last)?);
    if first.is_ascii_lowercase() != last.is_ascii_lowercase() {
        return None;
    }
    let letters: Vec<_> =
        (first.min(last)..=first.max(last)).map(|it| char::from(it).to_string()).collect();
    Some(in_order(letters, first > last))
}

fn in_order(mut items: Vec<String>, backwards: bool) -> Vec<String> {
    if backwards {
        items.reverse();
    }
    items
}

#[cfg(test)]
mod bash;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_marker_begins_with_one_byte() {
        for marker in '\u{FDD0}'..='\u{FDEF}' {
            assert_eq!(marker.to_string().as_bytes()[0], FIRST_BYTE);
            assert!(!is_literal(&format!("a{marker}b")));
        }
        assert!(is_literal("") && is_literal("aé") && is_literal("\u{FEFF}"));
    }
}
