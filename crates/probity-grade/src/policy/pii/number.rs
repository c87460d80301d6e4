//! Groups of digits and what separates them.

use std::ops::Range;

/// Most groups that are read.
const MOST_GROUPS: usize = 6;

/// Most digits in a group; longer ones are cut, and too long for any recognizer.
const MOST_DIGITS: usize = 40;

/// Groups of digits with one separator between each two, the same throughout.
#[derive(Debug)]
pub(super) struct Groups {
    /// The digits, without separators.
    pub(super) digits: Vec<u8>,
    /// How long each group is.
    pub(super) lengths: Vec<usize>,
    /// What separates them, if there are two or more.
    pub(super) separator: Option<u8>,
    /// Where they stand.
    pub(super) span: Range<usize>,
    /// Whether the number goes on: with another separator and more digits, or with a letter.
    goes_on: bool,
}

impl Groups {
    /// The groups that start at `start`, unless they are part of something that starts earlier.
    ///
    /// `first` says how long the first group may be: a glance at it spares most numbers the rest.
    pub(super) fn at(text: &str, start: usize, first: &[usize]) -> Option<Self> {
        let bytes = text.as_bytes();
        let glance = bytes[start..].iter().take(MOST_DIGITS).take_while(|it| it.is_ascii_digit());
        if !first.contains(&glance.count()) || is_attached_before(bytes, start) {
            return None;
        }
        let mut groups = Self {
            digits: Vec::new(),
            lengths: Vec::new(),
            separator: None,
            span: start..start,
            goes_on: false,
        };
        let mut at = start;
        loop {
            let length =
                bytes[at..].iter().take(MOST_DIGITS).take_while(|it| it.is_ascii_digit()).count();
            groups.digits.extend(bytes[at..at + length].iter().map(|it| it - b'0'));
            groups.lengths.push(length);
            at += length;
            groups.span.end = at;
            let next = (bytes.get(at).copied(), bytes.get(at + 1).is_some_and(u8::is_ascii_digit));
            match next {
                (Some(separator @ (b' ' | b'-' | b'.')), true) => {
                    let same = groups.separator.is_none_or(|it| it == separator);
                    if !same || groups.lengths.len() == MOST_GROUPS {
                        // After a blank something else may start.
                        groups.goes_on = separator != b' ';
                        break;
                    }
                    groups.separator = Some(separator);
                    at += 1;
                }
                (Some(next), _) => {
                    groups.goes_on = next.is_ascii_alphanumeric()
                        || next == b'_'
                        || next >= 0x80 && {
                            text[at..].chars().next().is_some_and(char::is_alphanumeric)
                        };
                    break;
                }
                (None, _) => break,
            }
        }
        Some(groups)
    }

    /// Whether these are groups of exactly these lengths, and nothing is left over.
    pub(super) fn are(&self, lengths: &[usize]) -> bool {
        !self.goes_on && self.lengths == lengths
    }

    /// The leading groups, if blanks separate them from the rest.
    pub(super) fn first(&self, groups: usize) -> Option<Self> {
        if self.lengths.len() == groups {
            return (!self.goes_on).then(|| self.cut(groups));
        }
        (self.lengths.len() > groups && self.separator == Some(b' ')).then(|| self.cut(groups))
    }

    fn cut(&self, groups: usize) -> Self {
        let lengths = self.lengths[..groups].to_vec();
        let digits: usize = lengths.iter().sum();
        Self {
            digits: self.digits[..digits].to_vec(),
            span: self.span.start..self.span.start + digits + groups - 1,
            separator: if groups > 1 { self.separator } else { None },
            goes_on: false,
            lengths,
        }
    }
}

/// Whether what is before a number makes it part of something else.
fn is_attached_before(bytes: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).map(|it| bytes[it]) else { return false };
    let digit_before = start >= 2 && bytes[start - 2].is_ascii_digit();
    before.is_ascii_alphanumeric()
        || before == b'_'
        || (matches!(before, b'-' | b'.' | b',') && digit_before)
}

/// Whether the last digit is the check digit that Luhn's sum asks for.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .zip([1, 2].into_iter().cycle())
        .map(|(digit, weight)| {
            let value = u32::from(*digit) * weight;
            value / 10 + value % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The number that the digits make up.
pub(super) fn value(digits: &[u8]) -> u64 {
    digits.iter().take(18).fold(0, |value, digit| value * 10 + u64::from(*digit))
}
