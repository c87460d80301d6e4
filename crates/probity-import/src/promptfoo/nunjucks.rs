//! Templates: what nunjucks spells otherwise than we do.

use super::templates;
use crate::cases::literal;

/// Methods of JavaScript, and the filters that do the same.
const METHODS: &[(&str, &str)] = &[
    ("join", "join"),
    ("split", "split"),
    ("toLowerCase", "lower"),
    ("toString", "string"),
    ("toUpperCase", "upper"),
    ("trim", "trim"),
];

/// A prompt in our spelling. One with a tag that does not end in its line is no template.
pub(super) fn prompt(text: &str) -> String {
    match is_partial(text) {
        true => literal(text),
        false => template(text),
    }
}

/// The value of a variable in our spelling. What is no template stays as it is: `values` says what becomes of
/// it, by the variables that there are.
pub(super) fn value(text: &str) -> String {
    match is_partial(text) {
        true => text.to_owned(),
        false => template(text),
    }
}

/// Whether a text is not taken for a template: a tag of it does not end in its line.
pub(super) fn is_partial(text: &str) -> bool {
    let is_raw = text.contains("raw %}") && text.contains("endraw");
    has_open_tag(text) && !is_raw
}

/// A template in our spelling.
pub(super) fn template(text: &str) -> String {
    templates::map_tags(text, |inner| expression(&statement(inner)))
}

/// Whether a tag is open at the end of its line.
fn has_open_tag(text: &str) -> bool {
    [("{{", '}'), ("{%", '%'), ("{#", '#')].iter().any(|(mark, end)| {
        // Where the next of each is, as far as they were looked for: no part of the text is read twice.
        let (mut end_at, mut line_end) = (0, 0);
        text.match_indices(mark).any(|(at, _)| {
            let from = at + mark.len();
            let next = |of: char| text[from..].find(of).map_or(text.len(), |it| from + it);
            if end_at < from {
                end_at = next(*end);
            }
            if line_end < from {
                line_end = next('\n');
            }
            end_at == text.len() || line_end < end_at
        })
    })
}

/// The words of a tag: `elseif` is `elif`, and a loop over names and values needs `items`.
fn statement(inner: &str) -> String {
    let trimmed = inner.trim_start_matches(['-', ' ']);
    if let Some(rest) = trimmed.strip_prefix("elseif ") {
        return inner.replacen(&format!("elseif {rest}"), &format!("elif {rest}"), 1);
    }
    let looped = trimmed.strip_prefix("for ").and_then(|it| it.split_once(" in "));
    match looped {
        Some((names, of)) if names.contains(',') && !of.contains('|') => {
            let end = of.trim_end_matches(['-', ' ']);
            format!("{} | items{}", inner.trim_end_matches(['-', ' ']), &of[end.len()..])
        }
        Some(_) | None => inner.to_owned(),
    }
}

/// An expression: `===` is `==`, and members of JavaScript's values are filters.
fn expression(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(open) = quote {
            if c == '\\' {
                let taken = rest.chars().take(2).map(char::len_utf8).sum();
                made.push_str(&rest[..taken]);
                rest = &rest[taken..];
                continue;
            }
            if c == open {
                quote = None;
            }
        } else if c == '"' || c == '\'' {
            quote = Some(c);
        } else if let Some(after) = rest.strip_prefix("===") {
            made.push_str("==");
            rest = after;
            continue;
        } else if let Some(after) = rest.strip_prefix("!==") {
            made.push_str("!=");
            rest = after;
            continue;
        } else if c == '.'
            && let Some((filter, after)) = member(&made, &rest[1..])
        {
            made.push_str(&filter);
            rest = after;
            continue;
        }
        made.push(c);
        rest = &rest[c.len_utf8()..];
    }
    made
}

/// A member of a value of JavaScript's as a filter, and what follows it.
fn member<'t>(before: &str, text: &'t str) -> Option<(String, &'t str)> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    // What a filter has made may be an object with a field of that name.
    let is_length = name == "length" && !after.starts_with('(') && !before.ends_with(')');
    if is_length {
        return Some((" | length".to_owned(), after));
    }
    let (_, filter) = METHODS.iter().find(|(method, _)| *method == name)?;
    let inner = after.strip_prefix('(')?;
    match inner.strip_prefix(')') {
        Some(after) => Some((format!(" | {filter}"), after)),
        None => Some((format!(" | {filter}("), inner)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(theirs: &str, ours: &str) {
        assert_eq!(prompt(theirs), ours);
    }

    #[test]
    fn what_is_spelled_otherwise_is_changed() {
        check("{{ a.length }} {{a.b.length - 1}}", "{{ a | length }} {{a.b | length - 1}}");
        check(
            "{% if a === 'x===y' %}z{% elseif b !== 1 %}{% endif %}",
            "{% if a == 'x===y' %}z{% elif b != 1 %}{% endif %}",
        );
        check("{{ a.toUpperCase() }}{{ l.join(', ') }}", "{{ a | upper }}{{ l | join(', ') }}");
        check(
            "{% for k, v in m %}{{ k }}{% endfor %}",
            "{% for k, v in m | items %}{{ k }}{% endfor %}",
        );
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "no template: a === b.length",
            "{{ name }} {{ a.b[0] | dump }} {# a.length #}",
            "{% raw %}{{ a.length }}{% endraw %}{{ b }}",
            "{{ (x | load).length }}",
            "{{ 'a.length }}' }}",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_tag_that_does_not_end_makes_the_text_plain() {
        check("if (a) {{ b", "{% raw %}if (a) {{ b{% endraw %}");
        check("{{ a }} {%\n x %}", "{% raw %}{{ a }} {%\n x %}{% endraw %}");
    }
}
