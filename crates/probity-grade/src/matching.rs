//! Compares a reply with what was expected.

use std::fmt::Write as _;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::{
    command::{Accepted, nearest},
    excerpt::excerpt,
};
use probity_shell::{Script, equivalence::Verdict, extract::extract};

/// How a reply is compared, compiled.
#[derive(Clone, Debug)]
pub(crate) enum Comparison {
    Exact(Vec<String>),
    Trimmed(Vec<String>),
    Contains(Vec<String>),
    /// In lower case.
    Icontains(Vec<String>),
    StartsWith(Vec<String>),
    Regex(Vec<Regex>),
    JsonEqual(Value),
    JsonSubset(Value),
    Command(Vec<Accepted>),
}

/// What a comparison came to.
pub(crate) enum Outcome {
    /// It holds, by the expected answer at this position.
    Match(usize),
    /// It does not; the difference is for people.
    Mismatch(Value),
}

impl Comparison {
    /// Whether the reply has to be JSON.
    pub(crate) fn needs_json(&self) -> bool {
        matches!(self, Self::JsonEqual(_) | Self::JsonSubset(_))
    }

    /// How many expected answers there are.
    pub(crate) fn alternatives(&self) -> usize {
        match self {
            Self::Exact(all)
            | Self::Trimmed(all)
            | Self::Contains(all)
            | Self::Icontains(all)
            | Self::StartsWith(all) => all.len(),
            Self::Regex(all) => all.len(),
            Self::Command(all) => all.len(),
            Self::JsonEqual(_) | Self::JsonSubset(_) => 1,
        }
    }

    /// Compares text. JSON comparisons hold for no text.
    pub(crate) fn text(&self, reply: &str) -> Outcome {
        let position = match self {
            Self::Exact(all) => all.iter().position(|it| it == reply),
            Self::Trimmed(all) => all.iter().position(|it| it.trim() == reply.trim()),
            Self::Contains(all) => all.iter().position(|it| reply.contains(it.as_str())),
            Self::Icontains(all) => {
                let reply = reply.to_lowercase();
                all.iter().position(|it| reply.contains(it.as_str()))
            }
            Self::StartsWith(all) => {
                all.iter().position(|it| reply.trim_start().starts_with(it.trim_start()))
            }
            Self::Regex(all) => all.iter().position(|it| it.is_match(reply)),
            Self::JsonEqual(_) | Self::JsonSubset(_) => None,
            Self::Command(all) => return command_outcome(all, reply),
        };
        match position {
            Some(index) => Outcome::Match(index),
            None => Outcome::Mismatch(self.difference(reply)),
        }
    }

    /// Compares JSON. Text comparisons hold for no JSON.
    pub(crate) fn json(&self, reply: &Value) -> Outcome {
        let difference = match self {
            Self::JsonEqual(expected) => json_difference(expected, reply, Extra::Differs),
            Self::JsonSubset(expected) => json_difference(expected, reply, Extra::Allowed),
            Self::Exact(_)
            | Self::Trimmed(_)
            | Self::Contains(_)
            | Self::Icontains(_)
            | Self::StartsWith(_)
            | Self::Regex(_)
            | Self::Command(_) => Some(json!({})),
        };
        difference.map_or(Outcome::Match(0), Outcome::Mismatch)
    }

    fn difference(&self, reply: &str) -> Value {
        match self {
            Self::Exact(all) => text_difference(all, reply),
            Self::Trimmed(all) => {
                let trimmed: Vec<&str> = all.iter().map(|it| it.trim()).collect();
                text_difference(&trimmed, reply.trim())
            }
            Self::Contains(all) | Self::Icontains(all) => json!({ "missing": shown(all) }),
            Self::StartsWith(all) => {
                json!({ "expected_start": shown(all), "actual": excerpt(reply.trim_start(), 0) })
            }
            Self::Regex(all) => {
                let patterns: Vec<&str> = all.iter().map(Regex::as_str).collect();
                json!({ "pattern": shown(&patterns) })
            }
            Self::JsonEqual(_) | Self::JsonSubset(_) | Self::Command(_) => json!({}),
        }
    }
}

/// Whether the command in the reply does what one of the accepted ones does.
fn command_outcome(accepted: &[Accepted], reply: &str) -> Outcome {
    let Some(found) = extract(reply) else {
        return Outcome::Mismatch(json!({ "command": null }));
    };
    let command = excerpt(&found.command, 0);
    let script = match Script::parse(&found.command) {
        Ok(script) => script,
        Err(error) => {
            return Outcome::Mismatch(
                json!({ "command": command, "parse_error": error.to_string() }),
            );
        }
    };
    match nearest(accepted, &script) {
        Some((index, found)) if found.verdict == Verdict::Equal => Outcome::Match(index),
        Some((_, found)) => Outcome::Mismatch(json!({
            "command": command,
            "equivalence": found.verdict.as_str(),
            "reason": found.reason,
            "difference": found.difference.map(|it| it.to_string()),
            "canonical": found.canonical.iter().rev().map(|it| excerpt(it, 0)).collect::<Vec<_>>(),
        })),
        None => Outcome::Mismatch(json!({ "command": command })),
    }
}

fn text_difference<T: AsRef<str>>(expected: &[T], reply: &str) -> Value {
    let [only] = expected else {
        return json!({ "expected_any_of": shown(expected), "actual": excerpt(reply, 0) });
    };
    let expected = only.as_ref();
    let same = expected.bytes().zip(reply.bytes()).take_while(|(a, b)| a == b).count();
    let at = expected.floor_char_boundary(same).min(reply.floor_char_boundary(same));
    json!({ "at": at, "expected": excerpt(expected, at), "actual": excerpt(reply, at) })
}

/// One text alone, or a list.
fn shown<T: AsRef<str>>(texts: &[T]) -> Value {
    match texts {
        [only] => excerpt(only.as_ref(), 0).into(),
        many => many.iter().map(|it| excerpt(it.as_ref(), 0)).collect(),
    }
}

/// What names that only the reply has mean.
#[derive(Clone, Copy)]
enum Extra {
    Differs,
    Allowed,
}

/// The first difference between two JSON values, as a pointer and what stands there.
fn json_difference(expected: &Value, actual: &Value, extra: Extra) -> Option<Value> {
    let mut path = String::new();
    differ(expected, actual, extra, &mut path).then(|| {
        let at = |value: &Value| {
            value.pointer(&path).map_or(Value::Null, |value| excerpt(&value.to_string(), 0).into())
        };
        json!({ "path": path, "expected": at(expected), "actual": at(actual) })
    })
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

    fn difference(comparison: &Comparison, reply: &str) -> Option<Value> {
        let outcome = match comparison.needs_json() {
            true => comparison.json(&value(reply)),
            false => comparison.text(reply),
        };
        match outcome {
            Outcome::Match(_) => None,
            Outcome::Mismatch(difference) => Some(difference),
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn exact_means_to_the_byte() {
        let exact = Comparison::Exact(texts(&["ls -l"]));
        assert_eq!(difference(&exact, "ls -l"), None);
        assert_eq!(
            difference(&exact, "ls -l\n"),
            Some(json!({ "at": 5, "expected": "ls -l", "actual": "ls -l\\n" }))
        );
    }

    #[test]
    fn the_first_difference_is_at_a_character() {
        let exact = Comparison::Exact(texts(&["größe"]));
        assert_eq!(difference(&exact, "grüße").unwrap()["at"], 2);
    }

    #[test]
    fn contains_ignores_case_only_when_asked() {
        assert!(difference(&Comparison::Contains(texts(&["Paris"])), "paris").is_some());
        assert!(difference(&Comparison::Icontains(texts(&["straße"])), "STRAßE").is_none());
    }

    #[test]
    fn equal_json_may_be_spelled_and_ordered_differently() {
        let equal = Comparison::JsonEqual(value(r#"{"a":[1,2.50],"b":{"c":100}}"#));
        assert_eq!(difference(&equal, r#"{"b":{"c":1e2},"a":[1.0,2.5]}"#), None);
        assert_eq!(
            difference(&equal, r#"{"a":[1,3],"b":{"c":100}}"#),
            Some(json!({ "path": "/a/1", "expected": "2.50", "actual": "3" }))
        );
        assert_eq!(
            difference(&equal, r#"{"a":[1,2.5],"b":{"c":100},"d":0}"#),
            Some(json!({ "path": "/d", "expected": null, "actual": "0" }))
        );
    }

    #[test]
    fn large_numbers_are_not_rounded_into_equality() {
        let equal = Comparison::JsonEqual(value("9007199254740993"));
        assert!(difference(&equal, "9007199254740992").is_some());
        assert!(difference(&equal, "9007199254740993.0").is_none());
        assert!(json_equal(&value("-0"), &value("0e5")));
    }

    #[test]
    fn a_subset_may_have_more_names_but_not_more_items() {
        let subset = Comparison::JsonSubset(value(r#"{"a":{"b":1}}"#));
        assert_eq!(difference(&subset, r#"{"a":{"b":1,"c":2},"d":3}"#), None);
        let list = Comparison::JsonSubset(value("[1]"));
        assert!(difference(&list, "[1,2]").is_some());
    }
}
