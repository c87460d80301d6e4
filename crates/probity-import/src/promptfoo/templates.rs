//! Templates as prompts have them: translated, with variables of other names, with marks for their tags.

use probity_load::template;

use super::nunjucks;

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
    let translated = nunjucks::prompt(text);
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
        // What follows is no template: no part of it is read again.
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
    None
}

/// A text with what is between the marks of its tags changed.
pub(super) fn map_tags(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut output = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => output.push_str(text),
            Piece::Tag { open, inner, close } => output.extend([open, &change(inner), close]),
        }
    }
    output
}

/// The paths that a text writes out as they are: `a` and `b.c` of `{{ a }} {{ b.c }}`.
pub(super) fn written_paths(text: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    for piece in pieces(text) {
        if let Piece::Tag { open: "{{", inner, .. } = piece {
            paths.extend(only_path(inner).map(|it| it.0));
        }
    }
    paths
}

/// A text with some of these paths replaced.
pub(super) fn map_written_paths(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let mut output = String::with_capacity(text.len());
    for piece in pieces(text) {
        let (open, inner, close) = match piece {
            Piece::Text(text) => {
                output.push_str(text);
                continue;
            }
            Piece::Tag { open, inner, close } => (open, inner, close),
        };
        let path = (open == "{{").then(|| only_path(inner)).flatten();
        match path.and_then(|(path, marks)| Some((change(path)?, marks))) {
            Some((path, (start, end))) => {
                output.extend([open, start, " ", &path, " ", end, close]);
            }
            None => output.extend([open, inner, close]),
        }
    }
    output
}

/// The path that is all that a tag has, and the hyphens at its ends.
fn only_path(inner: &str) -> Option<(&str, (&str, &str))> {
    let start = if inner.starts_with('-') { "-" } else { "" };
    let end = if inner.ends_with('-') { "-" } else { "" };
    let path = inner.trim_matches('-').trim();
    let is_name = |it: &str| {
        !it.is_empty()
            && !it.starts_with(|c: char| c.is_ascii_digit())
            && it.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    path.split('.').all(is_name).then_some((path, (start, end)))
}

/// A text in which only references to known variables are tags: `{{ name }}` and no more. None if there is no
/// such reference.
pub(super) fn only_references(
    text: &str,
    is_known: impl Fn(&str) -> bool,
    literal: impl Fn(&str) -> String,
) -> Option<String> {
    let (mut output, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find("{{") {
        let start = at + found;
        at = start + 1;
        let Some(length) = text[start..].find('}') else { break };
        let end = start + length;
        let name = text[start + 2..end].trim();
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if is_word && text[end..].starts_with("}}") && is_known(name) {
            output.push_str(&literal(&text[from..start]));
            output.extend(["{{ ", name, " }}"]);
            from = end + 2;
            at = from;
        }
    }
    (from > 0).then(|| output + &literal(&text[from..]))
}

/// The first name in each `{{ … }}` of a text that need not be a template.
pub(super) fn first_names(text: &str) -> Vec<&str> {
    let first = |(at, _): (usize, &str)| {
        let inner = text[at + 2..].trim_start_matches(['-', '{']).trim_start();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = inner.find(|c| !is_part(c)).unwrap_or(inner.len());
        let is_name = end > 0 && !inner.starts_with(|c: char| c.is_ascii_digit());
        is_name.then(|| &inner[..end])
    };
    text.match_indices("{{").filter_map(first).collect()
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
    fn a_variable_gets_another_name() {
        assert_eq!(
            rename("id {{ id }} {{ x.id }} {{ ident }} {{ 'id' }}", "id", "id_"),
            "id {{ id_ }} {{ x.id }} {{ ident }} {{ 'id' }}"
        );
    }

    #[test]
    fn hostile_texts_take_no_longer_than_others() {
        let started = std::time::Instant::now();
        for part in ["{{ \\\" }}", "{{ '}}' ", "{{", "{{ a", "{% raw %}", "{#"] {
            let text = part.repeat(100_000);
            assert_eq!(map_tags(&text, str::to_owned), text, "{part}");
            nunjucks::prompt(&format!("{text}}}"));
        }
        assert!(started.elapsed().as_secs() < 20, "it takes too long");
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
