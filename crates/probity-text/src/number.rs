//! Numbers as people write them.

use std::ops::Range;

/// A number in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its bytes: sign, digits, fraction, exponent. No currency before it and no unit after it.
    pub span: Range<usize>,
    /// What it comes to.
    pub value: f64,
}

/// How far a number may be from the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// So much.
    Absolute(f64),
    /// Such a share of the expected number.
    Relative(f64),
}

impl Tolerance {
    /// Whether a number is near enough. Equal numbers always are.
    #[expect(clippy::float_cmp, reason = "no tolerance means the same number")]
    pub fn allows(self, expected: f64, actual: f64) -> bool {
        let most = match self {
            Self::Absolute(most) => most,
            Self::Relative(share) => share * expected.abs(),
        };
        // A difference of decimals is off in its last digits, which nobody meant.
        let slack = 1e-12 * expected.abs().max(actual.abs());
        expected == actual || (most > 0.0 && (expected - actual).abs() <= most + slack)
    }
}

/// What stands between groups of three digits.
const SEPARATORS: [char; 6] = [',', '\'', '’', '_', '\u{a0}', '\u{202f}'];
const CURRENCIES: [char; 8] = ['$', '€', '£', '¥', '₹', '₽', '₩', '₿'];
const MINUS: [char; 3] = ['-', '\u{2212}', '\u{2013}'];
/// The most digits that a number has.
const MOST_DIGITS: usize = 400;

/// The numbers of a text in order.
///
/// Digits within a word (`x2`, `B2B`) are no number; a unit or a percent sign may follow at once.
pub fn find(text: &str) -> impl Iterator<Item = Number> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(|c: char| c.is_ascii_digit())?;
            let (number, end) = read(text, start);
            at = end;
            if number.is_some() {
                return number;
            }
        }
    })
}

/// The number that a text as a whole is; a currency, a percent sign, a unit and a full stop aside.
/// None if it is no number, or if there are several that differ.
pub fn only(text: &str) -> Result<f64, Several> {
    let mut values: Vec<f64> = Vec::new();
    for number in find(text) {
        if !values.contains(&number.value) {
            values.push(number.value);
        }
        if values.len() > Several::SHOWN {
            break;
        }
    }
    match values.as_slice() {
        [only] => Ok(*only),
        _ => Err(Several(values)),
    }
}

/// The different numbers of a text that ought to have one; empty if it has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Several(pub Vec<f64>);

impl Several {
    /// How many are worth telling.
    const SHOWN: usize = 5;
}

/// The number whose first digit is at `start`, and where to go on.
fn read(text: &str, start: usize) -> (Option<Number>, usize) {
    let start = if begins_with_its_point(text, start) { start - 1 } else { start };
    let before = text[..start].chars().next_back();
    let (digits, end) = decimal(text, start);
    if before.is_some_and(char::is_alphanumeric) || digits.len() > MOST_DIGITS {
        // The whole word is passed over, so that its digits are not looked at one by one.
        let word = text[end..].find(|c: char| !c.is_alphanumeric());
        return (None, word.map_or(text.len(), |length| end + length));
    }
    let Ok(mantissa) = digits.parse::<f64>() else { return (None, end) };
    let (first, sign) = signed(text, start);
    let (value, end) = match exponent(text, end) {
        Some((power, end)) => (format!("{digits}e{power}").parse().unwrap_or(mantissa), end),
        None => match denominator(text, start, end) {
            Some((below, end)) => (mantissa / below, end),
            None => (mantissa, end),
        },
    };
    let number = Number { span: first..end, value: sign * value };
    (Some(number), end)
}

/// Where the number begins with its sign, and the sign. A hyphen after a word or a number is none.
fn signed(text: &str, start: usize) -> (usize, f64) {
    let bare = |text: &str| text.trim_end_matches([' ', '\u{a0}']).len();
    let sign_before = |end: usize| {
        let sign = text[..end].chars().next_back()?;
        let at = end - sign.len_utf8();
        let is_sign = MINUS.contains(&sign) || sign == '+';
        let before = text[..at].chars().next_back();
        let free = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, ')' | ']' | '-'));
        (is_sign && free).then(|| (at, if sign == '+' { 1.0 } else { -1.0 }))
    };
    if let Some(signed) = sign_before(start) {
        return signed;
    }
    // The sign may also stand before the currency.
    let without = &text[..bare(&text[..start])];
    let currency = without.chars().next_back().filter(|c| CURRENCIES.contains(c));
    let signed = currency.and_then(|it| sign_before(without.len() - it.len_utf8()));
    signed.unwrap_or((start, 1.0))
}

/// Digits with a fraction, without what stands between groups of them, and where they end.
fn decimal(text: &str, start: usize) -> (String, usize) {
    let run = |at: usize| text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = start + run(start);
    let mut digits = text[start..end].to_owned();
    if digits.len() <= 3 {
        while let Some(separator) = text[end..].chars().next().filter(|c| SEPARATORS.contains(c)) {
            let group = end + separator.len_utf8();
            if run(group) != 3 {
                break;
            }
            digits.push_str(&text[group..group + 3]);
            end = group + 3;
        }
    }
    // `1.2.3` is a version and not a number with a fraction.
    let before = text[..start].strip_suffix('.');
    let goes_on = before.is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()));
    let fraction = if goes_on { 0 } else { fraction(text, end) };
    digits.push_str(&text[end..end + fraction]);
    (digits, end + fraction)
}

/// Whether the digits at a byte are a fraction without a whole part, as in `.5`.
fn begins_with_its_point(text: &str, start: usize) -> bool {
    let before = text[..start].strip_suffix('.');
    let free = |it: &str| !it.ends_with(|c: char| c.is_alphanumeric() || ".)]".contains(c));
    before.is_some_and(free) && fraction(text, start - 1) > 0
}

/// The length of the fraction at a byte, with its point; 0 if there is none or another follows it.
fn fraction(text: &str, at: usize) -> usize {
    let part = |at: usize| {
        let digits = text[at..].strip_prefix('.')?.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0).then_some(1 + digits)
    };
    part(at).filter(|length| part(at + length).is_none()).unwrap_or(0)
}

/// A power of ten after the digits: `e5`, `× 10^5`, `\times 10^{5}`.
fn exponent(text: &str, end: usize) -> Option<(i32, usize)> {
    let rest = &text[end..];
    let signed = |text: &str| -> Option<(i32, usize)> {
        let sign = text.chars().next().filter(|c| *c == '+' || MINUS.contains(c));
        let skipped = sign.map_or(0, char::len_utf8);
        let length = text[skipped..].bytes().take_while(u8::is_ascii_digit).count();
        let power: i32 = text[skipped..skipped + length].parse().ok()?;
        let negative = sign.is_some_and(|it| it != '+');
        Some((if negative { -power } else { power }, skipped + length))
    };
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let (power, length) = signed(after)?;
        let ends = !after[length..].starts_with(|c: char| c.is_alphanumeric());
        return ends.then_some((power, end + 1 + length));
    }
    let times = rest.trim_start_matches(' ');
    let times = ["\\times", "\\cdot", "×", "·", "*", "x"]
        .iter()
        .find_map(|it| times.strip_prefix(it))?
        .trim_start_matches(' ');
    let power = times.strip_prefix("10^")?;
    let braced = power.strip_prefix('{');
    let (power, length) = signed(braced.unwrap_or(power))?;
    let consumed = rest.len() - braced.unwrap_or(times.strip_prefix("10^")?).len() + length;
    let closing = usize::from(braced.is_some());
    let closed = braced.is_none_or(|it| it[length..].starts_with('}'));
    closed.then_some((power, end + consumed + closing))
}

/// What a number is divided by: `3/4`, but not the parts of a date.
fn denominator(text: &str, start: usize, end: usize) -> Option<(f64, usize)> {
    let digits = text[end..].strip_prefix('/')?;
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (below, after) = decimal(text, end + 1);
    let below: f64 = below.parse().ok()?;
    let in_a_row = text[after..].starts_with('/') || text[..start].ends_with('/');
    (below != 0.0 && !in_a_row).then_some((below, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, f64)]) {
        let found: Vec<(&str, f64)> = find(text).map(|it| (&text[it.span], it.value)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        check("It costs $1,234.50.", &[("1,234.50", 1234.5)]);
        check("-$5 or $-6 or −7", &[("-$5", -5.0), ("-6", -6.0), ("−7", -7.0)]);
        check("3-4, x-1, (-2)", &[("3", 3.0), ("4", 4.0), ("1", 1.0), ("-2", -2.0)]);
        check("12% of 3/4 kg", &[("12", 12.0), ("3/4", 0.75)]);
        check(
            "1.5e3, 2E-2, 3 × 10^4, 4\\times 10^{-1}",
            &[("1.5e3", 1500.0), ("2E-2", 0.02), ("3 × 10^4", 30_000.0), ("4\\times 10^{-1}", 0.4)],
        );
        check("1,2 and 1,2345", &[("1", 1.0), ("2", 2.0), ("1", 1.0), ("2345", 2345.0)]);
        check("1'000'000 1_000", &[("1'000'000", 1e6), ("1_000", 1000.0)]);
        check("5km B2B x2 7th", &[("5", 5.0), ("7", 7.0)]);
        check("1/0", &[("1", 1.0), ("0", 0.0)]);
        check(".5, -.5 or ($.50)", &[(".5", 0.5), ("-.5", -0.5), (".50", 0.5)]);
        check("No.5 of a.6 ...7 .8e1", &[("5", 5.0), ("6", 6.0), ("7", 7.0), (".8e1", 8.0)]);
        check("v 1.2.3, 4.5.", &[("1", 1.0), ("2", 2.0), ("3", 3.0), ("4.5", 4.5)]);
        check("12/5/2020", &[("12", 12.0), ("5", 5.0), ("2020", 2020.0)]);
    }

    #[test]
    fn one_number_is_an_answer_and_two_are_none() {
        assert_eq!(only("about 42 apples, yes 42.0"), Ok(42.0));
        assert_eq!(only("1 or 2"), Err(Several(vec![1.0, 2.0])));
        assert_eq!(only("none"), Err(Several(Vec::new())));
    }

    #[test]
    fn tolerances_are_absolute_or_relative() {
        assert!(Tolerance::Absolute(0.0).allows(0.1, 0.1));
        assert!(!Tolerance::Absolute(0.0).allows(0.1, 0.1 + f64::EPSILON));
        assert!(Tolerance::Absolute(0.1).allows(0.3, 0.4));
        assert!(Tolerance::Relative(0.01).allows(-200.0, -198.0));
        assert!(!Tolerance::Relative(0.01).allows(200.0, 197.9));
        assert!(!Tolerance::Relative(0.01).allows(0.0, 0.001));
    }
}
