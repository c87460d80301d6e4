//! Tests that functions of users make in promptfoo's shape: `vars`, `assert`, `options`.

use probity_core::criteria::{AssertionKind, AssertionTest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Cases that one test may become when its variables are lists.
const MOST_COMBINATIONS: usize = 10_000;
/// Cases that all tests may become.
const MOST_CASES: usize = 1_000_000;
/// Fields that a test may have. Our own cases have `assert`, too, beside others.
const OF_TEST: &[&str] = &["description", "vars", "assert", "threshold", "metadata", "options"];

/// A test as it is returned.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    vars: Option<Map<String, Value>>,
    #[serde(default)]
    assert: Option<Vec<Value>>,
    #[serde(default)]
    threshold: Option<f64>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    options: Option<Options>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    transform: Option<String>,
    #[serde(default, rename = "disableVarExpansion")]
    keeps_lists: Option<bool>,
}

/// Cases out of what a function returned: those in our own shape as they are, tests as cases.
pub fn made_cases(returned: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut cases = Vec::with_capacity(returned.len());
    for (at, made) in returned.into_iter().enumerate() {
        if !is_test(&made) {
            cases.push(made);
            continue;
        }
        let failed = |why: String| format!("test {}: {why}", at + 1);
        let test: Test = serde_json::from_value(made).map_err(|it| failed(it.to_string()))?;
        cases.extend(of_test(test, at + 1).map_err(failed)?);
        if cases.len() > MOST_CASES {
            return Err(failed(format!("the tests make more than {MOST_CASES} cases")));
        }
    }
    Ok(cases)
}

fn is_test(made: &Value) -> bool {
    let is_plain = |it: &Map<String, Value>| it.keys().all(|key| OF_TEST.contains(&key.as_str()));
    let is_theirs = |it: &Map<String, Value>| {
        it.contains_key("vars") || (it.contains_key("assert") && is_plain(it))
    };
    made.as_object().is_some_and(is_theirs)
}

fn of_test(test: Test, number: usize) -> Result<Vec<Value>, String> {
    let Test { description, vars, assert, threshold, metadata, options } = test;
    let options = options.unwrap_or_default();
    let vars = vars.unwrap_or_default();
    let combined = combinations(&vars, options.keeps_lists.unwrap_or_default())?;
    let is_several = combined.len() > 1;
    let mut cases = Vec::new();
    for (at, mut vars) in combined.into_iter().enumerate() {
        let id = match is_several {
            true => format!("test-{number}.{}", at + 1),
            false => format!("test-{number}"),
        };
        let mut case = Map::new();
        case.insert("id".to_owned(), id.clone().into());
        let asked = vars.get("prompt").and_then(Value::as_str).filter(|it| !it.is_empty());
        case.extend(asked.map(|it| ("prompt".to_owned(), it.into())));
        if vars.is_empty() {
            vars.insert("test".to_owned(), id.into());
        }
        case.insert("prompt_vars".to_owned(), vars.into());
        let assert: Vec<Value> = assert.iter().flatten().cloned().map(renamed).collect();
        case.extend((!assert.is_empty()).then(|| ("assert".to_owned(), assert.into())));
        case.extend(threshold.map(|it| ("threshold".to_owned(), json!(it))));
        let transform = options.transform.clone();
        case.extend(transform.map(|it| ("transform".to_owned(), it.into())));
        case.extend(description.clone().map(|it| ("notes".to_owned(), it.into())));
        let tags: Vec<Value> = metadata.iter().flatten().filter_map(tag).collect();
        case.extend((!tags.is_empty()).then(|| ("tags".to_owned(), tags.into())));
        cases.push(case.into());
    }
    Ok(cases)
}

fn tag((key, value): (&String, &Value)) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(format!("{key}:{text}").into())
}

/// An assertion with its fields under our names, and what promptfoo requires where it says nothing.
fn renamed(mut assertion: Value) -> Value {
    const NAMES: &[(&str, &str)] =
        &[("contextTransform", "context_transform"), ("rubricPrompt", "rubric_prompt")];
    if let Some(fields) = assertion.as_object_mut() {
        for (theirs, ours) in NAMES {
            if let Some(value) = fields.remove(*theirs) {
                fields.insert((*ours).to_owned(), value);
            }
        }
        let kind = fields.get("type").and_then(Value::as_str).and_then(AssertionKind::named);
        let usual = kind.and_then(|it| promptfoo_threshold(it.test));
        if let Some(usual) = usual.filter(|_| !fields.contains_key("threshold")) {
            fields.insert("threshold".to_owned(), json!(usual));
        }
        if let Some(Value::Array(members)) = fields.get_mut("assert") {
            members.iter_mut().for_each(|it| *it = renamed(it.take()));
        }
    }
    assertion
}

/// The score that promptfoo requires of an assertion that names none, where ours requires another.
pub fn promptfoo_threshold(test: AssertionTest) -> Option<f64> {
    matches!(
        test,
        AssertionTest::ContextRecall
            | AssertionTest::ContextRelevance
            | AssertionTest::ContextFaithfulness
    )
    .then_some(0.0)
}

/// The values of variables. A list of texts stands for each of them.
fn combinations(
    vars: &Map<String, Value>,
    keeps_lists: bool,
) -> Result<Vec<Map<String, Value>>, String> {
    let mut all = vec![Map::new()];
    for (name, value) in vars {
        let several = value.as_array().filter(|it| it.first().is_some_and(Value::is_string));
        let values = match several.filter(|_| !keeps_lists) {
            Some(items) => items.as_slice(),
            None => std::slice::from_ref(value),
        };
        if all.len() * values.len() > MOST_COMBINATIONS {
            return Err(format!("its variables have more than {MOST_COMBINATIONS} combinations"));
        }
        let with = |vars: &Map<String, Value>| -> Vec<Map<String, Value>> {
            let one = |value: &Value| {
                let mut vars = vars.clone();
                vars.insert(name.clone(), written(value));
                vars
            };
            values.iter().map(one).collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// A value as promptfoo's templates write it: without one line end at its end, and nothing for null.
fn written(value: &Value) -> Value {
    match value {
        Value::String(text) => text.strip_suffix('\n').unwrap_or(text).into(),
        Value::Null => "".into(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_become_cases() {
        let made = json!([
            { "vars": { "city": "Paris\n", "n": null }, "assert": [{ "type": "contains", "value": "x" }],
              "description": "a city", "metadata": { "kind": "easy" }, "threshold": 0.5,
              "options": { "transform": "output" } },
            { "vars": { "a": ["x", "y"], "l": [1, 2] } },
            { "vars": { "prompt": "Hi" } },
            { "id": "own", "prompt": "p" },
        ]);
        let Value::Array(made) = made else { unreachable!() };
        let cases = made_cases(made).unwrap();
        let expected = json!([
            { "id": "test-1", "prompt_vars": { "city": "Paris", "n": "" },
              "assert": [{ "type": "contains", "value": "x" }], "threshold": 0.5,
              "transform": "output", "notes": "a city", "tags": ["kind:easy"] },
            { "id": "test-2.1", "prompt_vars": { "a": "x", "l": [1, 2] } },
            { "id": "test-2.2", "prompt_vars": { "a": "y", "l": [1, 2] } },
            { "id": "test-3", "prompt": "Hi", "prompt_vars": { "prompt": "Hi" } },
            { "id": "own", "prompt": "p" },
        ]);
        assert_eq!(Value::Array(cases), expected);
    }

    #[test]
    fn members_of_sets_are_read_as_assertions_are() {
        let recall = json!({ "type": "context-recall", "value": "x", "contextTransform": "y" });
        let set = json!({ "type": "assert-set", "assert": [recall] });
        let cases = made_cases(vec![json!({ "vars": {}, "assert": [set] })]).unwrap();
        let member = json!({
            "type": "context-recall", "value": "x", "context_transform": "y", "threshold": 0.0,
        });
        assert_eq!(cases[0]["assert"][0]["assert"], json!([member]));
    }

    #[test]
    fn cases_of_our_own_stay_as_they_are() {
        let case = json!({ "user_prompt": "hi", "assert": [{ "type": "is-json" }] });
        assert_eq!(made_cases(vec![case.clone()]).unwrap(), [case]);
    }

    #[test]
    fn many_tests_cannot_become_endless_cases() {
        let list: Vec<String> = (0..100).map(|it| it.to_string()).collect();
        let test = json!({ "vars": { "a": list, "b": list } });
        let why = made_cases(vec![test; 101]).unwrap_err();
        assert_eq!(why, "test 101: the tests make more than 1000000 cases");
    }

    #[test]
    fn what_has_no_counterpart_is_an_error() {
        let made = vec![json!({ "vars": {}, "options": { "provider": "x" } })];
        let why = made_cases(made).unwrap_err();
        assert!(why.starts_with("test 1: unknown field `provider`"), "{why}");
    }
}
