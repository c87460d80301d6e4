//! The comparison with the expected response.

use probity_core::{
    criteria::{Criteria, CriteriaProblem, ExpectedFormat, Matcher},
    json::Limits,
    reading::Reading,
};
use serde_json::Value;

use super::{CompiledMatch, Compiler, any_text, choices, numbers, problem};
use crate::{
    check::{Check, Ends, Letters, Need, Needles, Test},
    command::Accepted,
    difference::Extra,
    reading::Reader,
};

impl Compiler<'_> {
    pub(super) fn comparison(
        &mut self,
        expected: Option<&Value>,
        criteria: &Criteria,
    ) -> Result<Option<CompiledMatch>, CriteriaProblem> {
        let Criteria { matcher, reading, expected_format: format, .. } = criteria;
        let Some(expected) = expected else {
            return match (matcher, unread(reading)) {
                (None, None) => Ok(None),
                (Some(matcher), _) => {
                    let message = format!("`{}` needs an `expected_response`", matcher.as_str());
                    Err(problem("match", "missing-field", message))
                }
                (None, Some(field)) => {
                    let message = format!(
                        "`{field}` of a case is for its `expected_response`, and there is none; an \
                         assertion has its own"
                    );
                    Err(problem(field, "missing-field", message))
                }
            };
        };
        let matcher = matcher.unwrap_or_else(|| default_matcher(expected, *format, reading));
        if reading.tolerance.is_some() && matcher != Matcher::Number {
            let message = format!("`tolerance` goes with `number`, not with `{matcher}`");
            return Err(problem("tolerance", "bad-criterion", message));
        }
        let texts = || texts(expected, matcher);
        let (alternatives, test) = match matcher {
            Matcher::Exact | Matcher::Trimmed | Matcher::AnyOf => {
                if matcher == Matcher::AnyOf && !expected.is_array() {
                    let message = "`any_of` needs a list".to_owned();
                    return Err(problem("expected_response", "bad-criterion", message));
                }
                let any = texts()?;
                let ends = if matcher == Matcher::Exact { Ends::Kept } else { Ends::Trimmed };
                (any.len(), Test::Equals { any, ends })
            }
            Matcher::Contains => {
                let texts = texts()?;
                let count = texts.len();
                let needles = Needles::new(texts, Letters::AsTheyAre);
                (count, Test::Contains { needles, need: Need::Any })
            }
            Matcher::Icontains => {
                let texts = texts()?;
                let count = texts.len();
                let needles = Needles::new(texts, Letters::Folded);
                (count, Test::Contains { needles, need: Need::Any })
            }
            Matcher::StartsWith => {
                let starts = texts()?;
                (starts.len(), Test::StartsWith(starts))
            }
            Matcher::Regex => {
                let compiled: Result<Vec<_>, _> =
                    texts()?.iter().map(|pattern| self.regex(pattern)).collect();
                let all = compiled.map_err(|why| problem("expected_response", "bad-regex", why))?;
                (all.len(), Test::Regex(all))
            }
            Matcher::JsonEqual => {
                (1, Test::Json { expected: json_of(expected)?, extra: Extra::Differs })
            }
            Matcher::JsonSubset => {
                (1, Test::Json { expected: json_of(expected)?, extra: Extra::Allowed })
            }
            Matcher::Command => {
                let read = |text: &String| {
                    Accepted::new(text).map_err(|why| {
                        let message = format!("`{text}` is not a shell command: {why}");
                        problem("expected_response", "bad-criterion", message)
                    })
                };
                let accepted: Vec<Accepted> =
                    texts()?.iter().map(read).collect::<Result<_, _>>()?;
                (accepted.len(), Test::Command(accepted))
            }
            Matcher::Number => {
                let numbers = numbers(&texts()?, reading.tolerance);
                let bad = |why| problem("expected_response", "bad-criterion", why);
                let numbers = numbers.map_err(bad)?;
                (numbers.expected.len(), Test::Numbers(numbers))
            }
            Matcher::Choice => {
                let choices = choices(&texts()?, reading.choices.clone());
                let bad = |why| problem("expected_response", "bad-criterion", why);
                let choices = choices.map_err(bad)?;
                (choices.expected.len(), Test::Choices(choices))
            }
        };
        let check = Reader::new(reading, self).and_then(|reader| Check::new(test, reader));
        let check = check.map_err(|bad| problem(bad.field, bad.code, bad.message))?;
        Ok(Some(CompiledMatch { matcher, check, alternatives }))
    }
}

/// What is meant by an expected response without a matcher.
pub fn default_matcher(
    expected: &Value,
    format: Option<ExpectedFormat>,
    reading: &Reading,
) -> Matcher {
    if !reading.choices.is_empty() {
        return Matcher::Choice;
    }
    if reading.tolerance.is_some() {
        return Matcher::Number;
    }
    let json = !matches!(format, None | Some(ExpectedFormat::Text));
    match expected {
        Value::String(_) if !json => Matcher::Trimmed,
        Value::Array(items) if !json && items.iter().all(Value::is_string) => Matcher::AnyOf,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Matcher::JsonEqual,
    }
}

/// The first field about what is compared, of a case that compares nothing.
fn unread(reading: &Reading) -> Option<&'static str> {
    let Reading { extract, normalize, ignore, choices: _, tolerance } = reading;
    let stated = [
        ("extract", !extract.is_empty()),
        ("normalize", !normalize.is_empty()),
        ("ignore", !ignore.is_empty()),
        ("tolerance", tolerance.is_some()),
    ];
    stated.iter().find(|it| it.1).map(|it| it.0)
}

/// The expected texts: one, or a list of which any will do.
fn texts(expected: &Value, matcher: Matcher) -> Result<Vec<String>, CriteriaProblem> {
    any_text(expected).ok_or_else(|| {
        let message = format!("`{}` needs a string or a list of strings", matcher.as_str());
        problem("expected_response", "bad-criterion", message)
    })
}

/// Expected JSON, written as data or as a string that holds JSON.
fn json_of(expected: &Value) -> Result<Value, CriteriaProblem> {
    let Value::String(text) = expected else { return Ok(expected.clone()) };
    match probity_core::json::parse(text, &Limits::default()) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => {
            let message = format!("the expected response is not JSON: {error}");
            Err(problem("expected_response", "bad-criterion", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_meant_by_an_expectation_follows_from_what_it_is() {
        let meant =
            |expected: Value, format| default_matcher(&expected, format, &Reading::default());
        let json_wanted = Some(ExpectedFormat::Json);
        assert_eq!(meant(json!("a"), None), Matcher::Trimmed);
        assert_eq!(meant(json!(["a", "b"]), None), Matcher::AnyOf);
        assert_eq!(meant(json!(["a", 1]), None), Matcher::JsonEqual);
        assert_eq!(meant(json!(["a", "b"]), json_wanted), Matcher::JsonEqual);
        assert_eq!(meant(json!("a"), json_wanted), Matcher::JsonEqual);
    }
}
