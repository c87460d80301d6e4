//! Takes secrets out of text that is going to be shown or stored.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use crate::policy::Policies;

/// Longest text that is kept of an error, in bytes.
const LONGEST: usize = 4096;

/// What stands where a key is sent. Errors quote requests, and a key need not have a
/// format that anybody knows; of these the first group goes.
static SENT: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        // Whatever comes after the header's name and the scheme.
        r#"(?i)authorization\W{1,8}(?:basic|bearer|token|apikey)[\s"':]{1,3}([^\s"',;\\]+)"#,
        // The scheme alone, if what comes after it is no word.
        r"(?i)\b(?:basic|bearer)[ \t]+([a-z0-9+/_.~-]*[0-9][a-z0-9+/_.~-]{7,}=*)",
        r"\b(sk-[A-Za-z0-9_-]{20,})",
    ]
    .map(|pattern| Regex::new(pattern).expect("a fixed pattern"))
});

/// A text without its secrets, cut to a size that a report can bear.
pub fn redacted(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    let kept = &text[..end];
    let mut output = String::with_capacity(kept.len());
    let mut at = 0;
    for span in secrets(kept) {
        // Hits may overlap.
        if span.start >= at {
            output.push_str(&kept[at..span.start]);
            output.push_str("[redacted]");
        }
        at = at.max(span.end);
    }
    output.push_str(&kept[at.min(kept.len())..]);
    if end < text.len() {
        output.push('…');
    }
    output
}

/// Where secrets are, from the first on.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<_> = Policies::secrets().scan(text).into_iter().map(|it| it.span).collect();
    for pattern in &*SENT {
        spans.extend(pattern.captures_iter(text).filter_map(|it| Some(it.get(1)?.range())));
    }
    spans.sort_by_key(|span| (span.start, span.end));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_no_known_format_are_taken_out_where_they_are_sent() {
        let check = |text: &str, expected: &str| assert_eq!(redacted(text), expected);
        let token = "abcdefghijklmnopqrstuvwxyzabcdefghijklmn";
        check(
            &format!("> Authorization: Bearer {token}\n> Accept: */*"),
            "> Authorization: Bearer [redacted]\n> Accept: */*",
        );
        check("authorization: Basic Ym9iOg== ; a: b", "authorization: Basic [redacted] ; a: b");
        check(
            r#"{\"authorization\": \"bearer x1\"}"#,
            r#"{\"authorization\": \"bearer [redacted]\"}"#,
        );
        check("('Authorization', 'Basic dXNlcjpwYXNz')", "('Authorization', 'Basic [redacted]')");
        check("sent Bearer 0a1b2c3d4e5f6a7b8c9d", "sent Bearer [redacted]");
        check("key sk-abcdefghijklmnopqrstuv is bad", "key [redacted] is bad");
    }

    #[test]
    fn words_about_keys_stay() {
        for text in [
            "missing bearer or basic authentication in header",
            "Basic authentication-is-required here",
            "the task-abcdefghijklmnopqrstuvwxyz failed",
            "authorization failed: basic plan only",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
