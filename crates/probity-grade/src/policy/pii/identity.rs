//! Numbers that states give to people.

use std::ops::Range;

use super::{
    context,
    number::{Groups, value},
};

const SSN: &[&str] = &["ssn", "ssns", "social security", "ss#", "ssid"];
const ITIN: &[&str] = &["itin", "tax id", "tax", "taxpayer", "tin", "individual"];
const NHS: &[&str] =
    &["nhs", "national health service", "health services authority", "health authority"];
const PASSPORT: &[&str] = &["passport", "travel document", "passport number", "passport#"];

/// Social security numbers that advertisements and manuals have made famous.
const FAMOUS: &[u64] =
    &[78_051_120, 219_099_999, 123_456_789, 457_555_462, 111_111_111, 222_222_222, 333_333_333];

/// A US social security number.
pub(super) fn us_ssn(text: &str, start: usize) -> Option<Range<usize>> {
    let groups = nine_digits(text, start, SSN)?;
    let number = value(&groups.digits);
    let (area, group, serial) = (number / 1_000_000, number / 10_000 % 100, number % 10_000);
    let issued = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    (issued && !FAMOUS.contains(&number)).then_some(groups.span)
}

/// A US individual taxpayer identification number.
pub(super) fn us_itin(text: &str, start: usize) -> Option<Range<usize>> {
    let groups = nine_digits(text, start, ITIN)?;
    let number = value(&groups.digits);
    let group = number / 10_000 % 100;
    let issued = number >= 900_000_000 && matches!(group, 50..=65 | 70..=88 | 90..=92 | 94..=99);
    issued.then_some(groups.span)
}

/// Nine digits as 3-2-4, or otherwise where a word says what they are.
///
/// A number that starts with a zero, or with a nine and stands alone, is no quantity.
fn nine_digits(text: &str, start: usize, words: &[&str]) -> Option<Groups> {
    let groups = Groups::at(text, start, &[3, 5, 9])?;
    if let Some(usual) = groups.first(3).filter(|it| it.lengths == [3, 2, 4]) {
        return Some(usual);
    }
    let whole = groups.first(1).filter(|it| it.lengths == [9]);
    let halves = groups.first(2).filter(|it| matches!(it.lengths.as_slice(), [3, 6] | [5, 4]));
    let loose = whole.or(halves).filter(|it| it.separator != Some(b'.'))?;
    let alone = context::is_absent(text) && matches!(loose.digits[0], 0 | 9);
    (alone || context::says(text, start, words)).then_some(loose)
}

/// A UK National Health Service number, by its check digit.
pub(super) fn uk_nhs(text: &str, start: usize) -> Option<Range<usize>> {
    let groups = Groups::at(text, start, &[3, 10])?;
    let usual = groups.first(3).filter(|it| it.lengths == [3, 3, 4] && it.separator != Some(b'.'));
    let whole = groups.first(1).filter(|it| {
        it.lengths == [10]
            && (context::says(text, start, NHS) || it.digits[0] == 0 || context::is_absent(text))
    });
    let groups = usual.or(whole)?;
    let weighted =
        groups.digits.iter().zip((2..=10).rev()).map(|(digit, weight)| u32::from(*digit) * weight);
    let check = (11 - weighted.sum::<u32>() % 11) % 11;
    let all_same = groups.digits.iter().all(|it| *it == groups.digits[0]);
    (check == u32::from(groups.digits[9]) && !all_same).then_some(groups.span)
}

/// A UK national insurance number: two letters, six digits, one letter.
pub(super) fn uk_nino(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let spaced = start > 0 && bytes[start - 1] == b' ';
    let letters = start.checked_sub(2 + usize::from(spaced))?;
    let prefix = bytes[letters..letters + 2].to_ascii_uppercase();
    let same_case = bytes[letters].is_ascii_uppercase() == bytes[letters + 1].is_ascii_uppercase();
    let own =
        letters == 0 || !(bytes[letters - 1].is_ascii_alphanumeric() || bytes[letters - 1] == b'_');
    let issued = prefix.iter().all(|it| it.is_ascii_uppercase() && !b"DFIQUV".contains(it))
        && prefix[1] != b'O'
        && ![b"BG", b"GB", b"NK", b"KN", b"NT", b"TN", b"ZZ"]
            .iter()
            .any(|it| it.as_slice() == prefix);
    if !(own && issued && same_case) {
        return None;
    }
    let mut at = start;
    for pair in 0..3 {
        if pair > 0 && bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        bytes.get(at..at + 2)?.iter().all(u8::is_ascii_digit).then(|| at += 2)?;
    }
    if bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    let last = bytes.get(at).filter(|it| matches!(it.to_ascii_uppercase(), b'A'..=b'D'))?;
    let goes_on = bytes.get(at + 1).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    (!goes_on && last.is_ascii_uppercase() == bytes[letters].is_ascii_uppercase())
        .then_some(letters..at + 1)
}

/// A number of the US Drug Enforcement Administration: two letters, seven digits, the last a check.
pub(super) fn us_dea(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let nine = start > 0 && bytes[start - 1].is_ascii_alphabetic();
    let letters = start.checked_sub(2).filter(|_| nine)?;
    let own =
        letters == 0 || !(bytes[letters - 1].is_ascii_alphanumeric() || bytes[letters - 1] == b'_');
    let registrant = b"ABCDEFGHJKLMPRSTUXabcdefghjklmprstux".contains(&bytes[letters]);
    let digits = bytes.get(start..start + 7).filter(|it| it.iter().all(u8::is_ascii_digit))?;
    let goes_on = bytes.get(start + 7).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    let digit = |place: usize| u32::from(digits[place] - b'0');
    let sum = digit(0) + digit(2) + digit(4) + 2 * (digit(1) + digit(3) + digit(5));
    (own && registrant && !goes_on && sum % 10 == digit(6)).then_some(letters..start + 7)
}

/// A US passport: nine digits, or a letter and eight, beside a word that says so.
pub(super) fn us_passport(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let letter = start > 0 && bytes[start - 1].is_ascii_uppercase();
    let from = start - usize::from(letter);
    let own = from == 0 || !(bytes[from - 1].is_ascii_alphanumeric() || bytes[from - 1] == b'_');
    let length = bytes[start..].iter().take(10).take_while(|it| it.is_ascii_digit()).count();
    let goes_on =
        bytes.get(start + length).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    let fits = own && !goes_on && length + usize::from(letter) == 9;
    (fits && context::says(text, from, PASSPORT)).then_some(from..start + length)
}
