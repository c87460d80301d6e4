//! Addresses of machines: IPv4, IPv6, MAC.
//!
//! Addresses that belong to no one (loopback, documentation) count too: which range
//! an address is from says nothing about whether a reply should name it.

use std::{net::Ipv6Addr, ops::Range};

use super::context;

/// Words before four numbers that are no address.
const VERSIONS: &[&str] =
    &["version", "versions", "v", "ver", "release", "section", "chapter", "build", "rev", "§"];

/// Words that go with `::`, which by itself is a piece of code.
const UNSPECIFIED: &[&str] =
    &["address", "addresses", "unspecified", "ip", "ipv6", "bind", "listen", "any"];

/// Words that the address of a device goes with.
const HARDWARE: &[&str] = &["mac", "macs", "hardware", "physical", "ethernet"];

/// Longest text of an IPv6 address, in bytes.
const LONGEST_IPV6: usize = 45;

/// Four numbers up to 255.
pub(super) fn ipv4(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before = start.checked_sub(1).map(|it| bytes[it]);
    let attached = before.is_some_and(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.'));
    if attached {
        return None;
    }
    let mut at = start;
    let mut first = 0;
    for place in 0..4 {
        if place > 0 {
            (bytes.get(at) == Some(&b'.')).then(|| at += 1)?;
        }
        let length = bytes[at..].iter().take(4).take_while(|it| it.is_ascii_digit()).count();
        let octet: u8 = text[at..at + length].parse().ok()?;
        if length > 1 && bytes[at] == b'0' {
            return None;
        }
        if place == 0 {
            first = octet;
        }
        at += length;
    }
    let more = bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    // `1.3.6.1.4` numbers a section or names an object; no section is the 192nd.
    let numbering = more && first < 10;
    let goes_on =
        bytes.get(at).is_some_and(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'));
    let version = context::says_directly(text, start, VERSIONS);
    (!numbering && !goes_on && !version).then_some(start..at)
}

/// The IPv6 address that a colon is part of.
pub(super) fn ipv6_around(text: &str, colon: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let in_address = |it: u8| it.is_ascii_hexdigit() || it == b':';
    let before =
        bytes[..colon].iter().rev().take(LONGEST_IPV6).take_while(|it| in_address(**it)).count();
    let mut start = colon - before;
    // Only the first colon of an address leads to it; the others would find the same.
    if bytes[start..colon].contains(&b':') {
        return None;
    }
    if is_name(text[..start].chars().next_back()) {
        // The end of a label, `IPv6:2001:…`, or of a path, `Self::ADD`.
        start = colon + 1;
        if bytes.get(start) == Some(&b':') {
            return None;
        }
    }
    let run = bytes[start..].iter().take(LONGEST_IPV6 + 1);
    let length = run.take_while(|it| in_address(**it) || **it == b'.').count();
    let written = text[start..start + length].trim_end_matches('.');
    let written = match written.strip_suffix(':') {
        Some(shorter) if !shorter.ends_with(':') => shorter,
        _ => written,
    };
    written.parse::<Ipv6Addr>().ok()?;
    let indexes = text[..start]
        .strip_suffix('[')
        .is_some_and(|it| it.ends_with(|it: char| is_name(Some(it)) || it == ')'));
    if indexes || is_name(text[start + length..].chars().next()) {
        return None;
    }
    let end = start + written.len();
    let telling = if written == "::" {
        context::says(text, start, UNSPECIFIED) || text[end..].starts_with('/')
    } else {
        // `add::bad` is a path of two modules.
        written.bytes().any(|it| it.is_ascii_digit())
    };
    telling.then_some(start..end)
}

fn is_name(letter: Option<char>) -> bool {
    letter.is_some_and(|it| it.is_alphanumeric() || it == '_')
}

/// A MAC address that starts with the digit at a place.
pub(super) fn mac(text: &str, start: usize) -> Option<Range<usize>> {
    mac_from(text, start)
}

/// A MAC address whose first separator is at a place.
pub(super) fn mac_around(text: &str, joint: usize) -> Option<Range<usize>> {
    let width = if text.as_bytes()[joint] == b'.' { 4 } else { 2 };
    mac_from(text, joint.checked_sub(width)?)
}

fn mac_from(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let (separator, width) = match (bytes.get(start + 2), bytes.get(start + 4)) {
        (Some(separator @ (b':' | b'-')), _) => (*separator, 2),
        (_, Some(b'.')) => (b'.', 4),
        _ => return None,
    };
    let end = start + 12 + 12 / width - 1;
    let written = bytes.get(start..end)?;
    let regular = written.iter().enumerate().all(|(place, it)| {
        if place % (width + 1) == width { *it == separator } else { it.is_ascii_hexdigit() }
    });
    if !regular {
        return None;
    }
    let joins = |it: Option<&u8>| {
        it.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_' || *it == separator)
    };
    let before = start.checked_sub(1).map(|it| &bytes[it]);
    let after = bytes
        .get(end)
        .filter(|_| separator != b'.' || bytes.get(end + 1).is_some_and(u8::is_ascii_hexdigit));
    // A label may end in the separator: `MAC:00:1A:…`.
    let label = bytes[..start.saturating_sub(1)].iter().rev().take(3);
    let labelled =
        separator == b':' && label.take_while(|it| it.is_ascii_alphanumeric()).count() > 2;
    let joined = joins(before) && !labelled
        || joins(after)
        || bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
    // To all, and to none.
    let nobody =
        |it: u8| written.iter().all(|byte| *byte == separator || byte.eq_ignore_ascii_case(&it));
    // `1234.5678.9012` may be anything.
    let told = separator != b'.'
        || written.iter().any(u8::is_ascii_alphabetic)
        || context::says(text, start, HARDWARE);
    (told && !joined && !nobody(b'f') && !nobody(b'0')).then_some(start..end)
}
