//! Where a reply parts from what was expected.

use std::fmt::Write as _;

use probity_core::difference::{Difference, JsonDifference, NoneOf, OneOrMany, TextDifference};
use serde_json::{Map, Value};

use crate::excerpt::excerpt;

/// Where a text parts from the one that was expected, or from all of several.
pub(crate) fn text_difference<T: AsRef<str>>(expected: &[T], reply: &str) -> Difference {
    let [only] = expected else {
        return Difference::NoneOf(NoneOf {
            expected_any_of: shown(expected),
            actual: excerpt(reply, 0),
        });
    };
    let expected = only.as_ref();
    let same = expected.bytes().zip(reply.bytes()).take_while(|(a, b)| a == b).count();
    let at = expected.floor_char_boundary(same).min(reply.floor_char_boundary(same));
    Difference::Text(TextDifference {
        at,
        expected: excerpt(expected, at),
        actual: excerpt(reply, at),
    })
}

/// Excerpts of some texts.
pub(crate) fn shown<T: AsRef<str>>(texts: &[T]) -> OneOrMany {
    texts.iter().map(|it| excerpt(it.as_ref(), 0)).collect()
}

/// What names that only the reply has mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extra {
    Differs,
    Allowed,
}

/// The first difference between two JSON values.
pub(crate) fn json_difference(
    expected: &Value,
    actual: &Value,
    extra: Extra,
) -> Option<JsonDifference> {
    let mut path = String::new();
    differ(expected, actual, extra, &mut path).then(|| {
        let at = |value: &Value| value.pointer(&path).map(|value| excerpt(&value.to_string(), 0));
        let (expected, actual) = (at(expected), at(actual));
        JsonDifference { path, expected, actual }
    })
}

/// Whether a JSON value has all that another one has.
pub fn holds_all(expected: &Value, actual: &Value) -> bool {
    !differ(expected, actual, Extra::Allowed, &mut String::new())
}

/// Whether the values differ; `path` is then left at the first difference.
fn differ(expected: &Value, actual: &Value, extra: Extra, path: &mut String) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            objects_differ(expected, actual, extra, path)
        }
        (Value::Array(expected), Value::Array(actual)) => {
            let length = path.len();
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                let _ = write!(path, "/{index}");
                if differ(expected, actual, extra, path) {
                    return true;
                }
                path.truncate(length);
            }
            expected.len() != actual.len()
        }
        (Value::Number(expected), Value::Number(actual)) => !same_number(expected, actual),
        (expected, actual) => expected != actual,
    }
}

fn objects_differ(
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
    extra: Extra,
    path: &mut String,
) -> bool {
    let length = path.len();
    for (key, value) in expected {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        match actual.get(key) {
            Some(found) if !differ(value, found, extra, path) => {}
            Some(_) | None => return true,
        }
        path.truncate(length);
    }
    let unexpected = match extra {
        Extra::Allowed => None,
        Extra::Differs => actual.keys().find(|key| !expected.contains_key(*key)),
    };
    if let Some(key) = unexpected {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    unexpected.is_some()
}

/// Numbers are equal by value, not by spelling: `1`, `1.0` and `1e0` are the same.
fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    Decimal::of(a.as_str()) == Decimal::of(b.as_str())
}

/// A decimal number without superfluous zeros, so that equal values are equal texts.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let dropped = digits.len() - significant.len();
        let shift = i64::try_from(dropped).unwrap_or(i64::MAX)
            - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let exponent: i64 = exponent.parse().unwrap_or(i64::MAX);
        let digits = significant.trim_start_matches('0').to_owned();
        match digits.is_empty() {
            true => Self { negative: false, digits, exponent: 0 },
            false => Self { negative, digits, exponent: exponent.saturating_add(shift) },
        }
    }
}

/// Whether two JSON values are equal, numbers by value.
pub(crate) fn json_equal(a: &Value, b: &Value) -> bool {
    !differ(a, b, Extra::Differs, &mut String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn difference(expected: &str, reply: &str, extra: Extra) -> Option<(String, String)> {
        let found = json_difference(&value(expected), &value(reply), extra)?;
        Some((found.path.clone(), Difference::Json(found).to_string()))
    }

    #[test]
    fn the_first_difference_is_at_a_character() {
        let Difference::Text(found) = text_difference(&["größe"], "grüße") else { panic!() };
        assert_eq!(found.at, 2);
    }

    #[test]
    fn equal_json_may_be_spelled_and_ordered_differently() {
        let equal = r#"{"a":[1,2.50],"b":{"c":100}}"#;
        let check = |reply: &str| difference(equal, reply, Extra::Differs).map(|it| it.1);
        assert_eq!(check(r#"{"b":{"c":1e2},"a":[1.0,2.5]}"#), None);
        let found = check(r#"{"a":[1,3],"b":{"c":100}}"#);
        assert_eq!(found.as_deref(), Some("/a/1: expected 2.50, got 3"));
        let found = check(r#"{"a":[1,2.5],"b":{"c":100},"d":0}"#);
        assert_eq!(found.as_deref(), Some("/d: expected nothing, got 0"));
    }

    #[test]
    fn large_numbers_are_not_rounded_into_equality() {
        assert!(!json_equal(&value("9007199254740993"), &value("9007199254740992")));
        assert!(json_equal(&value("9007199254740993"), &value("9007199254740993.0")));
        assert!(json_equal(&value("-0"), &value("0e5")));
    }

    #[test]
    fn a_subset_may_have_more_names_but_not_more_items() {
        let subset = r#"{"a":{"b":1}}"#;
        assert_eq!(difference(subset, r#"{"a":{"b":1,"c":2},"d":3}"#, Extra::Allowed), None);
        assert!(difference("[1]", "[1,2]", Extra::Allowed).is_some());
    }
}
