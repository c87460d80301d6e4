//! promptfoo's templates are nunjucks, ours are minijinja. Most of both is the same; this is the rest.

use probity_load::template;

use crate::cases::literal;

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'t> {
    /// Text, comments and whatever is raw.
    Text(&'t str),
    /// `{{ … }}` or `{% … %}`, with what is between the marks.
    Tag { open: &'t str, inner: &'t str, close: &'t str },
}

/// A template of ours that makes what theirs makes, or why there is none.
pub(super) fn translate(text: &str) -> Result<String, String> {
    if !template::is_template(text) {
        return Ok(text.to_owned());
    }
    if is_partial(text) {
        return Ok(literal(text));
    }
    let translated = map_tags(text, |inner| map_code(inner, &expression));
    // A comment of ours, which is nothing special there.
    template::check(&translated).map_err(|error| error.to_string())?;
    Ok(translated)
}

/// Gives a variable another name, in tags and outside of quotes.
pub(super) fn rename(text: &str, from: &str, to: &str) -> String {
    map_tags(text, |inner| map_code(inner, &|code| rename_in(code, from, to)))
}

/// What is between the braces, if a text is one `{{ … }}` and nothing else.
pub(super) fn only_expression(text: &str) -> Option<&str> {
    match pieces(text.trim()).as_slice() {
        [Piece::Tag { open, inner, .. }] if open.starts_with("{{") => Some(inner.trim()),
        _ => None,
    }
}

/// A text whose `{{ … }}` are replaced by marks, and what they were. None if it has other tags.
pub(super) fn marked(text: &str) -> Option<(String, Vec<String>)> {
    let (mut output, mut tags) = (String::new(), Vec::new());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => output.push_str(text),
            Piece::Tag { open, inner, close } if open.starts_with("{{") => {
                output.push_str(&mark(tags.len()));
                tags.push(format!("{open}{inner}{close}"));
            }
            Piece::Tag { .. } => return None,
        }
    }
    Some((output, tags))
}

/// Stands for a tag in what [`marked`] makes. It is a word in YAML and in strings of JSON.
pub(super) fn mark(number: usize) -> String {
    format!("\u{e000}{number}\u{e001}")
}

/// A text with its tags again.
pub(super) fn unmarked(text: &str, tags: &[String]) -> String {
    let mut output = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('\u{e000}') {
        let Some(end) = rest[start..].find('\u{e001}').map(|it| start + it) else { break };
        let number = rest[start + '\u{e000}'.len_utf8()..end].parse::<usize>().ok();
        output.push_str(&rest[..start]);
        output.push_str(number.and_then(|it| tags.get(it)).map_or("", String::as_str));
        rest = &rest[end + '\u{e001}'.len_utf8()..];
    }
    output + rest
}

/// promptfoo sends a text as it is if one of its lines ends within a tag.
fn is_partial(text: &str) -> bool {
    let has_raw = text.contains("raw %}") && text.contains("endraw");
    let open_at_end = |line: &str| {
        [("{{", '}'), ("{%", '%'), ("{#", '#')].iter().any(|(open, close)| {
            let mut rest = line;
            while let Some(at) = rest.find(open) {
                rest = &rest[at + open.len()..];
                if !rest.contains(*close) {
                    return true;
                }
            }
            false
        })
    };
    !has_raw && text.split('\n').any(open_at_end)
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while let Some(found) = text[at..].find('{') {
        let start = at + found;
        let close = match bytes.get(start + 1) {
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            Some(b'#') => "#}",
            Some(_) | None => {
                at = start + 1;
                continue;
            }
        };
        let Some(end) = tag_end(text, start + 2, close) else { break };
        let inner = &text[start + 2..end];
        let is_raw = close == "%}" && inner.trim_matches(['-', ' ', '\n', '\t']) == "raw";
        at = end + 2;
        if close == "#}" {
            continue;
        }
        if is_raw {
            at = text[at..].find("endraw").map_or(text.len(), |it| at + it);
            at = text[at..].find("%}").map_or(text.len(), |it| at + it + 2);
            continue;
        }
        if from < start {
            pieces.push(Piece::Text(&text[from..start]));
        }
        pieces.push(Piece::Tag { open: &text[start..start + 2], inner, close: &text[end..at] });
        from = at;
    }
    if from < text.len() {
        pieces.push(Piece::Text(&text[from..]));
    }
    pieces
}

/// Where a tag ends; marks in quotes do not count.
fn tag_end(text: &str, from: usize, close: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text[from..].char_indices() {
        match (quote, c) {
            (Some(_), '\\') => escaped = !escaped,
            (Some(open), c) if c == open && !escaped => quote = None,
            (Some(_), _) => escaped = false,
            (None, '"' | '\'') if close != "#}" => quote = Some(c),
            (None, _) if text[from + at..].starts_with(close) => return Some(from + at),
            (None, _) => {}
        }
    }
    // A quote that is not closed is an apostrophe.
    text[from..].find(close).map(|at| from + at)
}

fn map_tags(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut output = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => output.push_str(text),
            Piece::Tag { open, inner, close } => output.extend([open, &change(inner), close]),
        }
    }
    output
}

/// Changes what stands outside of quotes.
fn map_code(inner: &str, change: &dyn Fn(&str) -> String) -> String {
    let mut output = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = &rest[start..=start];
        let Some(length) = rest[start + 1..].find(quote) else { break };
        let end = start + 1 + length + 1;
        output.push_str(&change(&rest[..start]));
        output.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    output + &change(rest)
}

/// Spellings of JavaScript that nunjucks takes.
fn expression(code: &str) -> String {
    const SPELLINGS: &[(&str, &str)] = &[
        ("!==", "!="),
        ("===", "=="),
        (" && ", " and "),
        (" || ", " or "),
        (".toUpperCase()", "|upper"),
        (".toLowerCase()", "|lower"),
        (".trim()", "|trim"),
        (".toString()", "|string"),
        ("| safe", ""),
        ("|safe", ""),
    ];
    let mut code =
        SPELLINGS.iter().fold(code.to_owned(), |code, (from, to)| code.replace(from, to));
    while let Some(at) = code.match_indices(".length").map(|it| it.0).find(|at| {
        !code[at + ".length".len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }) {
        code.replace_range(at..at + ".length".len(), "|length");
    }
    code
}

fn rename_in(code: &str, from: &str, to: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut output = String::with_capacity(code.len());
    let mut rest = code;
    let mut before = ' ';
    while let Some(at) = rest.find(from) {
        let (head, tail) = rest.split_at(at);
        let previous = head.chars().next_back().unwrap_or(before);
        let next = tail[from.len()..].chars().next().unwrap_or(' ');
        let is_whole = !is_part(previous) && previous != '.' && !is_part(next);
        output.push_str(head);
        output.push_str(if is_whole { to } else { from });
        before = from.chars().next_back().unwrap_or(' ');
        rest = &tail[from.len()..];
    }
    output + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_javascript_are_translated() {
        let of = |text| translate(text).unwrap();
        assert_eq!(
            of("{% if items.length === 2 && ok %}{{ x.toUpperCase() }}{% endif %}"),
            "{% if items|length == 2 and ok %}{{ x|upper }}{% endif %}"
        );
        assert_eq!(
            of("{{ '===' }} === {% raw %}{{ a === b }}{% endraw %}"),
            "{{ '===' }} === {% raw %}{{ a === b }}{% endraw %}"
        );
        assert_eq!(of("Say {{ name"), "{% raw %}Say {{ name{% endraw %}");
        assert!(translate("{{ x | nosuch }}").is_err() || translate("{% nosuch %}").is_err());
    }

    #[test]
    fn a_variable_gets_another_name() {
        assert_eq!(
            rename("id {{ id }} {{ x.id }} {{ ident }} {{ 'id' }}", "id", "id_"),
            "id {{ id_ }} {{ x.id }} {{ ident }} {{ 'id' }}"
        );
    }

    #[test]
    fn tags_are_marked_and_come_back() {
        let text = "a {{ x }} b {{ \"}}\" }}";
        let (marked, tags) = marked(text).unwrap();
        assert_eq!(tags, ["{{ x }}", "{{ \"}}\" }}"]);
        assert_eq!(unmarked(&marked, &tags), text);
        assert_eq!(super::marked("{% if a %}"), None);
    }
}
