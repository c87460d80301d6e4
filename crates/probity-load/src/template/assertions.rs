//! Templates in what a case asserts.

use std::collections::BTreeMap;

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Step,
};
use serde_json::Value;

use super::{TemplateError, fill::expression, fill_json, fill_values, is_template, render};

/// A template of an assertion that cannot be filled in.
#[derive(Debug)]
pub(crate) struct BadAssertion {
    /// Where in the case it stands, unless its runner has it.
    pub(crate) path: Vec<Step<'static>>,
    pub(crate) kind: AssertionKind,
    /// The text that has the template, or an empty one.
    pub(crate) text: String,
    pub(crate) error: TemplateError,
}

/// Whether an assertion of a case is a template.
pub(crate) fn has_templates(case: &TestCase) -> bool {
    let of_turns = case.conversation.turns.iter().flat_map(|it| &it.criteria.assertions);
    case.criteria.assertions.iter().chain(of_turns).any(asserts_template)
}

fn asserts_template(assertion: &Assertion) -> bool {
    let texts = [&assertion.value, &assertion.judging.context];
    let is_filled = !assertion.kind.test.runs_code();
    (is_filled && texts.into_iter().flatten().any(holds_template))
        || assertion.members.iter().any(asserts_template)
}

fn holds_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(holds_template),
        Value::Object(map) => map.values().any(holds_template),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Fills in the templates of all assertions, those of turns included. Code sees the variables of the
/// case by itself.
pub(crate) fn fill_assertions(case: &mut TestCase) -> Result<(), BadAssertion> {
    // A wrong value of a variable is told of where it stands.
    let Ok(vars) = fill_values(&case.vars()).map(std::borrow::Cow::into_owned) else {
        return Ok(());
    };
    fill_all(&mut case.criteria.assertions, &vars, &[Step::Key("assert")])?;
    for (at, turn) in case.conversation.turns.iter_mut().enumerate() {
        let path = [Step::Key("turns"), Step::Index(at), Step::Key("assert")];
        fill_all(&mut turn.criteria.assertions, &vars, &path)?;
    }
    Ok(())
}

fn fill_all(
    assertions: &mut [Assertion],
    vars: &BTreeMap<String, Value>,
    path: &[Step<'static>],
) -> Result<(), BadAssertion> {
    for (at, assertion) in assertions.iter_mut().enumerate() {
        let path = [path, &[Step::Index(at)]].concat();
        fill_all(&mut assertion.members, vars, &[&path[..], &[Step::Key("assert")]].concat())?;
        if assertion.kind.test.runs_code() {
            continue;
        }
        let Assertion { kind, value, judging, .. } = assertion;
        for (key, value) in [("value", value), ("context", &mut judging.context)] {
            let Some(value) = value.as_mut().filter(|it| holds_template(it)) else { continue };
            *value = filled(value, vars).map_err(|error| BadAssertion {
                path: [&path[..], &[Step::Key(key)]].concat(),
                kind: *kind,
                text: value.as_str().unwrap_or("").to_owned(),
                error,
            })?;
        }
    }
    Ok(())
}

/// A text stays a text, unless it is an expression whose value is a list or an object.
fn filled(value: &Value, vars: &BTreeMap<String, Value>) -> Result<Value, TemplateError> {
    match value {
        Value::String(text) if expression(text).is_none() => render(text, vars).map(Value::String),
        Value::String(text) => {
            let whole = Some(fill_json(value, vars)?).filter(|it| it.is_array() || it.is_object());
            whole.map_or_else(|| render(text, vars).map(Value::String), Ok)
        }
        Value::Array(items) => items.iter().map(|it| filled(it, vars)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            fill_json(value, vars)
        }
    }
}

/// Fills in the keys of choices, so that they can follow their choices. What cannot be filled in
/// stays as it is.
pub(crate) fn fill_keys(case: &mut TestCase) {
    if !case.criteria.assertions.iter().any(asserts_template) {
        return;
    }
    let Ok(vars) = fill_values(&case.vars()).map(std::borrow::Cow::into_owned) else { return };
    fill_keys_of(&mut case.criteria.assertions, &vars);
}

fn fill_keys_of(assertions: &mut [Assertion], vars: &BTreeMap<String, Value>) {
    for assertion in assertions {
        fill_keys_of(&mut assertion.members, vars);
        let is_key = assertion.kind.test == AssertionTest::Choice;
        let Some(key) = assertion.value.as_mut().filter(|_| is_key) else { continue };
        if let Ok(filled) = filled(key, vars) {
            *key = literal(filled);
        }
    }
}

/// A template that comes to this value.
fn literal(value: Value) -> Value {
    match value {
        Value::String(text) if is_template(&text) => {
            Value::String(format!("{{% raw %}}{text}{{% endraw %}}"))
        }
        Value::Array(items) => items.into_iter().map(literal).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_filled_in_once() {
        let test = AssertionTest::Choice;
        let check = |value: Value, first: Value, then: Value| {
            let mut assertion = Assertion::new(AssertionKind { negated: false, test });
            assertion.value = Some(value);
            let prompt_vars = BTreeMap::from([
                ("key".to_owned(), json!("B")),
                ("keys".to_owned(), json!(["A", "\\frac{{p}}{q}"])),
            ]);
            let mut case = TestCase { prompt_vars, ..TestCase::default() };
            case.criteria.assertions = vec![assertion];
            fill_keys(&mut case);
            assert_eq!(case.criteria.assertions[0].value, Some(first));
            fill_assertions(&mut case).unwrap();
            assert_eq!(case.criteria.assertions[0].value, Some(then));
        };
        check(json!("{{ key }}"), json!("B"), json!("B"));
        let (keys, filled) =
            (json!(["A", "{% raw %}\\frac{{p}}{q}{% endraw %}"]), json!(["A", "\\frac{{p}}{q}"]));
        check(json!("{{ keys }}"), keys, filled);
        check(json!(["{{ key }}", "C"]), json!(["B", "C"]), json!(["B", "C"]));
    }
}
