//! Telephone numbers.
//!
//! With a country code they speak for themselves, and so does the American way of
//! writing them; anything else needs a word that says what it is.

use std::ops::Range;

use super::context;

/// Words that a telephone number goes with.
const WORDS: &[&str] = &[
    "phone",
    "telephone",
    "tel",
    "mobile",
    "cell",
    "cellphone",
    "fax",
    "call",
    "number",
    "whatsapp",
    "sms",
    "text",
    "contact",
    "dial",
    "hotline",
    "ph",
];

/// Those that nothing else goes with.
const PLAIN_WORDS: &[&str] =
    &["phone", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "whatsapp"];

/// Longest writing of a number, in bytes.
const LONGEST: usize = 32;

/// What is read of a number.
#[derive(Debug, Default)]
struct Written {
    digits: Vec<u8>,
    /// How long each run of digits is.
    groups: Vec<usize>,
    /// What stands between the groups, the same or not.
    separators: Vec<u8>,
    end: usize,
}

/// The telephone number whose first digit is at a place.
pub(super) fn at(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before = |steps: usize| start.checked_sub(steps).map(|it| bytes[it]);
    let (from, plus, bracket) = match (before(1), before(2)) {
        (Some(b'+'), _) => (start - 1, true, false),
        (Some(b'('), Some(b'+')) => (start - 2, true, true),
        (Some(b'('), _) if closes(bytes, start) => (start - 1, false, true),
        _ => (start, false, false),
    };
    let left = from.checked_sub(1).map(|it| bytes[it]);
    let digit_before = from >= 2 && bytes[from - 2].is_ascii_digit();
    let attached = left.is_some_and(|it| {
        it.is_ascii_alphanumeric()
            || b"_$/\\".contains(&it)
            || (b"-.,".contains(&it) && digit_before)
    });
    if attached {
        return None;
    }
    // A single digit starts a number only as a country code or before a longer group.
    let short = !bytes.get(start + 1).is_some_and(u8::is_ascii_digit);
    let short = short && !bytes.get(start + 3).is_some_and(u8::is_ascii_digit);
    if short && !plus {
        return None;
    }
    let written = read(text, start, bracket)?;
    let known = if plus {
        is_international(&written)
    } else {
        is_american(text, from, &written, bracket) || is_national(text, from, &written)
    };
    known.then_some(from..written.end)
}

/// Whether the bracket before a group closes after it, instead of after the number.
fn closes(bytes: &[u8], start: usize) -> bool {
    let group = bytes[start..].iter().take(6).take_while(|it| it.is_ascii_digit()).count();
    bytes.get(start + group) == Some(&b')')
}

/// Reads groups of digits with blanks, dashes, dots and brackets between them.
fn read(text: &str, start: usize, mut open: bool) -> Option<Written> {
    let bytes = text.as_bytes();
    let mut written = Written::default();
    let mut at = start;
    loop {
        let length = bytes[at..].iter().take(LONGEST).take_while(|it| it.is_ascii_digit()).count();
        written.digits.extend(bytes[at..at + length].iter().map(|it| it - b'0'));
        written.groups.push(length);
        at += length;
        written.end = at;
        if at - start > LONGEST || written.digits.len() > 15 {
            return None;
        }
        if open && bytes.get(at) == Some(&b')') {
            open = false;
            at += 1;
            written.end = at;
        }
        let mut next = at;
        let mut separator = 0;
        while let Some(it @ (b' ' | b'-' | b'.' | b'/' | b'(')) =
            bytes.get(next).filter(|_| next - at < 2)
        {
            if *it == b'(' && open {
                break;
            }
            open |= *it == b'(';
            separator = if separator == 0 { *it } else { separator };
            next += 1;
        }
        if !bytes.get(next).is_some_and(u8::is_ascii_digit) {
            break;
        }
        written.separators.push(separator);
        at = next;
    }
    let goes_on =
        bytes.get(written.end).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    (!goes_on).then_some(written)
}

/// A country code and a number; E.164 allows fifteen digits.
fn is_international(written: &Written) -> bool {
    (8..=15).contains(&written.digits.len())
        && written.digits[0] != 0
        && !written.separators.contains(&b'.')
        || (written.groups.len() > 2
            && (8..=15).contains(&written.digits.len())
            && written.digits[0] != 0)
}

/// `(415) 555-0132`, `415-555-0132`, `415.555.0132`, `1-415-555-0132`; all else with a word.
fn is_american(text: &str, from: usize, written: &Written, bracket: bool) -> bool {
    // The country code may be there.
    let code = usize::from(written.groups[0] == 1 && written.digits[0] == 1);
    let (digits, groups) = (&written.digits[code..], &written.groups[code..]);
    if digits.len() != 10 {
        return false;
    }
    let service = |code: &[u8]| code[0] < 2 || code[1..] == [1, 1];
    // Whom one calls at no charge is a company or a helpline.
    let toll_free = digits[0] == 8 && digits[1] == digits[2] && digits[1] != 1;
    let toll_free = toll_free || digits[..3] == [8, 0, 0];
    if service(&digits[..3]) || service(&digits[3..6]) || toll_free {
        return false;
    }
    let marked = bracket || written.separators.iter().any(|it| matches!(it, b'-' | b'.' | b'('));
    match groups {
        [3, 3, 4] => marked || context::says(text, from, WORDS),
        [3, 7] => bracket || context::says(text, from, WORDS),
        [10] => {
            context::says(text, from, PLAIN_WORDS)
                || context::says(text, from, &["call", "my number", "your number"])
        }
        _ => false,
    }
}

/// Groups of digits beside a word; what starts with the zero of a trunk call needs less of one.
fn is_national(text: &str, from: usize, written: &Written) -> bool {
    let Written { digits, groups, .. } = written;
    let dated = matches!(groups.as_slice(), [1 | 2, 1 | 2, 4] | [4, 1 | 2, 1 | 2]);
    let trunk = digits[0] == 0 && digits[1..].iter().any(|it| *it != 0);
    let words = if trunk { WORDS } else { PLAIN_WORDS };
    let long = if trunk { 9..=14 } else { 8..=13 };
    long.contains(&digits.len())
        && !dated
        && (trunk || groups.len() > 1)
        && groups.len() <= 6
        && context::says(text, from, words)
}
