//! Formats of secrets that a run of letters does not describe.
//!
//! Every check looks at a bounded piece of text around the literal that led to it.

use std::ops::Range;

use memchr::memmem;
use serde_json::{Map, Value};

use super::{placeholder, shape::is_word};

/// Says where the secret is that the literal at a place belongs to.
pub(super) type Check = fn(&str, Range<usize>) -> Option<Range<usize>>;

/// A check and the literal that leads to it.
pub(super) struct Led {
    pub(super) rule: &'static str,
    pub(super) literal: &'static str,
    pub(super) check: Check,
}

/// All checks.
pub(super) const CHECKS: &[Led] = &[
    Led { rule: "openai-key", literal: "T3BlbkFJ", check: openai },
    Led { rule: "jwt", literal: "eyJ", check: jwt },
    Led { rule: "private-key", literal: "-----BEGIN ", check: private_key },
    Led { rule: "private-key", literal: "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY", check: whole },
    Led { rule: "private-key", literal: "PuTTY-User-Key-File-", check: whole },
    Led { rule: "basic-auth", literal: "://", check: basic_auth },
    Led { rule: "mailchimp-key", literal: "-us", check: mailchimp },
    Led { rule: "telegram-token", literal: ":AA", check: telegram },
];

/// Longest token that is followed to its end, in bytes.
const LONGEST: usize = 4096;

/// Longest block of a key that is followed to its end, in bytes.
const LONGEST_KEY: usize = 16 << 10;

/// Longest name or password in a URL, in bytes.
const LONGEST_PASSWORD: usize = 256;

/// What encloses the marks of a key.
const MARK: &str = "-----";

/// Shortest text between the marks of a key that is more than a stand-in, in bytes.
const SHORTEST_KEY: usize = 16;

fn is_url_safe(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// How many of the bytes before `at` are `wanted`, up to `most`.
fn run_before(text: &str, at: usize, most: usize, wanted: fn(u8) -> bool) -> usize {
    text.as_bytes()[..at].iter().rev().take(most).take_while(|it| wanted(**it)).count()
}

/// How many of the bytes from `at` on are `wanted`, up to `most`.
fn run_after(text: &str, at: usize, most: usize, wanted: fn(u8) -> bool) -> usize {
    text.as_bytes()[at..].iter().take(most).take_while(|it| wanted(**it)).count()
}

/// `sk-`, perhaps a kind, and the mark in the middle with twenty characters or more on either side.
fn openai(text: &str, mark: Range<usize>) -> Option<Range<usize>> {
    let before = run_before(text, mark.start, 200, is_url_safe);
    let after = run_after(text, mark.end, 200, is_url_safe);
    let token = mark.start - before..mark.end + after;
    let start = token.start + text[token.clone()].find("sk-")?;
    let own = start == 0 || !is_word(text.as_bytes()[start - 1]);
    (own && after >= 20 && mark.start - start >= "sk-".len() + 20).then_some(start..token.end)
}

/// Two or more parts, the first of which is a JSON header.
fn jwt(text: &str, lead: Range<usize>) -> Option<Range<usize>> {
    let start = lead.start;
    if start > 0 && (is_url_safe(text.as_bytes()[start - 1]) || text.as_bytes()[start - 1] == b'.')
    {
        return None;
    }
    let mut end = start + run_after(text, start, LONGEST, is_url_safe);
    let header: Map<String, Value> = decoded_object(&text[start..end])?;
    let payload = text[end..].strip_prefix('.')?;
    let payload = &payload[..run_after(payload, 0, LONGEST, is_url_safe)];
    let encrypted = header.contains_key("enc");
    if !encrypted && decoded_object(payload).is_none() {
        return None;
    }
    end += 1 + payload.len();
    for _ in 0..3 {
        if text[end..].starts_with('.') {
            end += 1 + run_after(text, end + 1, LONGEST, is_url_safe);
        }
    }
    (header.contains_key("alg") || header.contains_key("typ")).then_some(start..end)
}

fn decoded_object(base64url: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode_base64url(base64url)?).ok()
}

fn decode_base64url(text: &str) -> Option<Vec<u8>> {
    if text.len() % 4 == 1 {
        return None;
    }
    let mut output = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut kept) = (0_u32, 0_u32);
    for byte in text.bytes() {
        let sextet = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(sextet);
        kept += 6;
        if kept >= 8 {
            kept -= 8;
            output.push((bits >> kept & 0xff) as u8);
        }
    }
    Some(output)
}

/// A block of a private key. A block with next to nothing in it shows the format.
fn private_key(text: &str, lead: Range<usize>) -> Option<Range<usize>> {
    let label = run_after(text, lead.end, 48, |it| it.is_ascii_uppercase() || it == b' ');
    let name = &text[lead.end..lead.end + label];
    let start = lead.end + label + MARK.len();
    let is_header = (name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK"))
        && text[lead.end + label..].starts_with(MARK);
    if !is_header {
        return None;
    }
    let rest = &text.as_bytes()[start..(start + LONGEST_KEY).min(text.len())];
    let Some(length) = memmem::find(rest, MARK.as_bytes()) else {
        // Cut off. Quotes say that the text speaks of the mark.
        let speaks = rest.first().is_some_and(|it| matches!(it, b'"' | b'\'' | b'`' | b')'));
        let body = run_after(text, start, LONGEST_KEY, is_key_body);
        return (!speaks).then_some(lead.start..start + body);
    };
    let inside = rest[..length].iter().filter(|it| !it.is_ascii_whitespace()).count();
    (inside >= SHORTEST_KEY).then_some(lead.start..start + length + MARK.len())
}

fn is_key_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\n' | b'\r' | b'\\')
}

/// A user and a password in a URL.
fn basic_auth(text: &str, lead: Range<usize>) -> Option<Range<usize>> {
    let plain = |it: u8| !it.is_ascii_whitespace() && !b":/?#[]@\"'`<>\\|".contains(&it);
    if run_before(text, lead.start, 1, |it| it.is_ascii_alphanumeric()) == 0 {
        return None;
    }
    let colon = lead.end + run_after(text, lead.end, LONGEST_PASSWORD, plain);
    let password = text.get(colon..)?.strip_prefix(':')?;
    let password = password.get(..run_after(password, 0, LONGEST_PASSWORD, plain))?;
    let end = colon + 1 + password.len();
    let host = text[end..].strip_prefix('@')?;
    let has_host = host.starts_with(|it: char| it.is_alphanumeric() || it == '[');
    let known = !password.is_empty()
        && !placeholder::is_reference(password)
        && !placeholder::is_filler(password);
    (has_host && known).then_some(colon + 1..end)
}

/// 32 hexadecimal digits before the data centre.
fn mailchimp(text: &str, lead: Range<usize>) -> Option<Range<usize>> {
    let is_hex = |it: u8| it.is_ascii_digit() || matches!(it, b'a'..=b'f');
    let digits = run_after(text, lead.end, 3, |it| it.is_ascii_digit());
    let start = lead.start.checked_sub(32)?;
    let own = run_before(text, lead.start, 33, is_hex) == 32
        && run_before(text, start, 1, is_word) == 0
        && run_after(text, lead.end + digits, 1, is_word) == 0;
    (own && (1..=2).contains(&digits)).then_some(start..lead.end + digits)
}

/// A bot's number, and 35 characters after the colon.
fn telegram(text: &str, lead: Range<usize>) -> Option<Range<usize>> {
    let digits = run_before(text, lead.start, 11, |it| it.is_ascii_digit());
    let start = lead.start - digits;
    let length = run_after(text, lead.start + 1, 36, is_url_safe);
    let own = length == 35 && run_before(text, start, 1, is_word) == 0;
    (own && (8..=10).contains(&digits)).then_some(start..lead.start + 1 + length)
}

/// The literal is evidence enough.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a check")]
fn whole(_: &str, lead: Range<usize>) -> Option<Range<usize>> {
    Some(lead)
}
