//! Numbers that Python writes into JSON and that JSON does not have.

use std::borrow::Cow;

/// The names of such numbers, the longest first.
const CONSTANTS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// A text with `null` in the place of numbers that JSON does not have. Lines stay where they are.
pub(super) fn constants_as_null(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    let (mut is_text, mut is_escaped) = (false, false);
    while let Some(c) = rest.chars().next() {
        let constant = CONSTANTS.into_iter().find(|it| !is_text && rest.starts_with(it));
        if let Some(constant) = constant {
            clean.push_str("null");
            rest = &rest[constant.len()..];
            continue;
        }
        match c {
            '"' if !is_escaped => is_text = !is_text,
            _ => {}
        }
        is_escaped = is_text && c == '\\' && !is_escaped;
        clean.push(c);
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_replaced() {
        let check = |text: &str, clean: &str| assert_eq!(constants_as_null(text), clean);
        check(r#"{"a": NaN, "b": [-Infinity, Infinity]}"#, r#"{"a": null, "b": [null, null]}"#);
        check(r#"{"a": "NaN", "b": "\"NaN"}"#, r#"{"a": "NaN", "b": "\"NaN"}"#);
        check(r#"{"a": "x\\", "b": NaN}"#, r#"{"a": "x\\", "b": null}"#);
    }
}
