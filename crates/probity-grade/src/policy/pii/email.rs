//! Email addresses.

use std::ops::Range;

/// Longest local part and longest domain, as RFC 5321 has them.
const LONGEST_LOCAL: usize = 64;
const LONGEST_DOMAIN: usize = 253;

/// Endings of file names that look like domains: `logo@2x.png`.
const FILES: &[&str] =
    &["png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "html", "json", "txt", "pdf"];

/// Domains that are nobody's, by RFC 2606 and RFC 6761.
const NOBODYS: &[&str] =
    &["example.com", "example.org", "example.net", "example", "test", "invalid", "localhost"];

/// The address around the `@` at a place.
pub(super) fn around(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before = text[..at].chars().rev().take(LONGEST_LOCAL).take_while(|it| is_local(*it));
    let local: usize = before.map(char::len_utf8).sum();
    let mut start = at - local;
    while start < at && matches!(bytes[start], b'.' | b'\'' | b'-' | b'=' | b'/' | b'*' | b'`') {
        start += 1;
    }
    let tail = text[at + 1..].char_indices().take(LONGEST_DOMAIN);
    let length = tail.take_while(|(_, it)| it.is_alphanumeric() || matches!(it, '.' | '-')).last();
    let end = at + 1 + length.map_or(0, |(place, it)| place + it.len_utf8());
    let domain = text[at + 1..end].trim_end_matches(['.', '-']);
    let own = !text[at + 1 + domain.len()..].starts_with('@');
    let known = start < at && bytes[at - 1] != b'.' && !text[start..at].contains("..");
    (own && known && is_domain(domain)).then_some(start..at + 1 + domain.len())
}

fn is_local(letter: char) -> bool {
    letter.is_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(letter)
}

fn is_domain(domain: &str) -> bool {
    let Some((names, top)) = domain.rsplit_once('.') else { return false };
    let lower = domain.to_lowercase();
    let label =
        |it: &str| !it.is_empty() && it.len() <= 63 && !it.starts_with('-') && !it.ends_with('-');
    let top_level = top.starts_with("xn--")
        || (top.chars().count() >= 2 && top.chars().all(char::is_alphabetic));
    let nobodys = NOBODYS
        .iter()
        .any(|it| lower.strip_suffix(it).is_some_and(|it| it.is_empty() || it.ends_with('.')));
    names.split('.').all(label) && top.len() <= 63 && top_level && !FILES.contains(&top) && !nobodys
}
