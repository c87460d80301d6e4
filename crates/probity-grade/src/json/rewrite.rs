//! The two mends that leave no doubt: commas too many and escapes too few.
//!
//! Both look at a text only where double-quoted strings begin and end, and
//! return nothing if there is nothing to do.

use std::fmt::Write;

/// Blanks out every comma that is followed by a closing bracket.
///
/// A blank takes its place, so that offsets into the text stay true.
pub(super) fn without_trailing_commas(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut in_string = false;
    let mut comma = None;
    let mut changed = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => {
                in_string = !in_string;
                comma = None;
            }
            _ if in_string => {}
            b',' => comma = Some(at),
            b']' | b'}' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                    changed = true;
                }
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => comma = None,
        }
        at += 1;
    }
    if !changed {
        return None;
    }
    String::from_utf8(bytes).ok()
}

/// Escapes raw control characters in strings and backslashes that escape nothing.
///
/// A backslash that makes no escape is kept as a backslash, because regular
/// expressions and paths are where models forget to double it. Before an
/// apostrophe or a line end it is dropped: other languages write it there.
pub(super) fn with_escapes(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut changed = false;
    let mut rest = text.chars();
    while let Some(it) = rest.next() {
        match it {
            '"' => {
                in_string = !in_string;
                out.push(it);
            }
            '\\' if in_string => changed |= push_escape(&mut out, &mut rest),
            '\n' if in_string => {
                out.push_str("\\n");
                changed = true;
            }
            '\r' if in_string => {
                out.push_str("\\r");
                changed = true;
            }
            '\t' if in_string => {
                out.push_str("\\t");
                changed = true;
            }
            control if in_string && control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
                changed = true;
            }
            other => out.push(other),
        }
    }
    changed.then_some(out)
}

/// Copies what a backslash begins, and says whether it had to be mended.
fn push_escape(out: &mut String, rest: &mut std::str::Chars<'_>) -> bool {
    let after = rest.as_str();
    let unicode = after
        .strip_prefix('u')
        .and_then(|it| it.get(..4))
        .is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match after.chars().next() {
        Some(letter @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
            out.push('\\');
            out.push(letter);
            rest.next();
            false
        }
        Some('u') if unicode => {
            out.push('\\');
            false
        }
        Some('\'' | '\n') => true,
        Some(_) | None => {
            out.push_str("\\\\");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_before_closing_brackets_become_blanks() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(without_trailing_commas(text).as_deref(), expected, "{text}");
        };
        check("[1, ]", Some("[1  ]"));
        check("{\"a\": [1,],\n}", Some("{\"a\": [1 ] \n}"));
        check("[1, 2]", None);
        check("[\",]\", \"\\\",]\"]", None);
    }

    #[test]
    fn strings_get_the_escapes_they_need() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(with_escapes(text).as_deref(), expected, "{text}");
        };
        check("\"a\nb\tc\u{1}\"", Some(r#""a\nb\tc\u0001""#));
        check(r#""\d+ C:\x \' \u12""#, Some(r#""\\d+ C:\\x ' \\u12""#));
        check("\"a\\\nb\"", Some(r#""a\nb""#));
        check("[\n\"\\n\\u00e9\\\\\"\n]", None);
    }
}
