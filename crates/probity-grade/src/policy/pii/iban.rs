//! International bank account numbers.

use std::ops::Range;

/// Countries and how long their numbers are, from the registry of ISO 13616.
const LENGTHS: &[(&[u8; 2], usize)] = &[
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BI", 27),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"RU", 33),
    (b"SA", 24),
    (b"SC", 31),
    (b"SD", 18),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"SO", 23),
    (b"ST", 25),
    (b"SV", 28),
    (b"TL", 23),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"VG", 24),
    (b"XK", 20),
    (b"YE", 30),
];

/// The number whose check digits are at `digits`: the country goes before them.
pub(super) fn at(text: &str, digits: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let start = digits.checked_sub(2)?;
    let country = &bytes[start..digits];
    let (_, length) = LENGTHS.iter().find(|(it, _)| it.as_slice() == country)?;
    if start > 0 && bytes[start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let mut number = Vec::with_capacity(*length);
    let mut at = start;
    while number.len() < *length {
        let next = *bytes.get(at)?;
        let separates = matches!(next, b' ' | b'-') && bytes[at - 1].is_ascii_alphanumeric();
        if next.is_ascii_digit() || next.is_ascii_uppercase() {
            number.push(next);
        } else if !separates {
            return None;
        }
        at += 1;
    }
    let goes_on = bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (!goes_on && number[3].is_ascii_digit() && checks(&number)).then_some(start..at)
}

/// Whether the remainder by 97 is 1, letters counting from 10.
fn checks(number: &[u8]) -> bool {
    let (head, tail) = number.split_at(4);
    let remainder = tail.iter().chain(head).fold(0_u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    remainder == 1
}
