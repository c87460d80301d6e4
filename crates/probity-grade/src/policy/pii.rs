//! The built-in policy against personal data.
//!
//! One walk over the bytes finds where something could start: a number, an `@`, a
//! colon, a dash, a dot. Each recognizer reads a bounded piece of text from there.
//! Numbers that have a checksum are believed when it holds; numbers that could be
//! anything need a word beside them that says what they are.

mod context;
mod email;
mod iban;
mod identity;
mod network;
mod number;
mod payment;
mod phone;
#[cfg(test)]
mod tests;
mod wallet;

use std::ops::Range;

use super::{Found, MOST_HITS};

/// A recognizer: what it is called, and what it finds at a place.
type Recognizer = (&'static str, fn(&str, usize) -> Option<Range<usize>>);

/// Tried where a run of digits starts; the first that knows it names it.
const AT_DIGIT: &[Recognizer] = &[
    ("ip-address", network::ipv4),
    ("mac-address", network::mac),
    ("iban", iban::at),
    ("crypto-wallet", wallet::bitcoin),
    ("credit-card", payment::card),
    ("us-ssn", identity::us_ssn),
    ("us-itin", identity::us_itin),
    ("phone", phone::at),
    ("uk-nhs", identity::uk_nhs),
    ("uk-nino", identity::uk_nino),
    ("us-dea", identity::us_dea),
    ("us-passport", identity::us_passport),
    ("us-bank-account", payment::us_bank),
];

/// Tried at a colon that no earlier address covers.
const AT_COLON: &[Recognizer] =
    &[("mac-address", network::mac_around), ("ip-address", network::ipv6_around)];

/// Tried at a dash or a dot between letters, where a digit did not lead to it.
const AT_JOINT: &[Recognizer] = &[("mac-address", network::mac_around)];

/// The places that hold personal data, in text order.
pub(super) fn scan(text: &str) -> Vec<Found<&'static str>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Found<&'static str>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() && found.len() < MOST_HITS {
        let recognizers: &[Recognizer] = match bytes[at] {
            b'0'..=b'9' if at == 0 || !bytes[at - 1].is_ascii_digit() => AT_DIGIT,
            b'@' => &[("email", email::around)],
            b':' => AT_COLON,
            b'-' | b'.' if at > 0 && bytes[at - 1].is_ascii_hexdigit() => AT_JOINT,
            _ => &[],
        };
        let hit = recognizers.iter().find_map(|(rule, recognize)| {
            recognize(text, at).map(|span| Found { rule: *rule, span })
        });
        match hit {
            Some(hit) => {
                at = hit.span.end.max(at + 1);
                // An address may reach back over what was taken for something shorter.
                while found.last().is_some_and(|it| it.span.start >= hit.span.start) {
                    found.pop();
                }
                found.push(hit);
            }
            None => at += 1,
        }
    }
    found
}
