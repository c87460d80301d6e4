//! Variables that templates name and no test has: promptfoo leaves their places empty.

use std::collections::BTreeMap;

use probity_core::case::TestCase;
use probity_load::template;
use serde_json::{Map, Value};

use super::{assertions, prompts, tests::Vars};
use crate::draft::{BackendDraft, CaseDraft, REQUEST_NAMES, RunnerDraft};

/// Gives a runner and its cases an empty value for whatever its templates name and a case does not have. It
/// stands in the suite, where it can be seen.
pub(super) fn fill(runner: &mut RunnerDraft, cases: &[CaseDraft], backends: &[BackendDraft]) {
    let asked = runner.prompts.iter().flat_map(|it| prompts::texts_of(&it.asks));
    let of_cases = cases.iter().flat_map(|it| &it.case.criteria.assertions);
    let expected = of_cases.chain(&runner.setup.assertions).flat_map(assertions::templates);
    let mut named = empty_values(asked.chain(expected), &[]);
    let asked = backends.iter().filter(|it| runner.backends.contains(&it.name));
    let sent = asked.flat_map(BackendDraft::templates).map(ToOwned::to_owned);
    merge(&mut named, empty_values(sent, REQUEST_NAMES));
    merge(&mut named, within_values(runner, cases));
    let lacks = |name: &str| {
        cases.is_empty() || cases.iter().any(|it| !it.case.prompt_vars.contains_key(name))
    };
    named.retain(|name, _| lacks(name));
    for (name, value) in named {
        runner.setup.prompt_vars.entry(name).or_insert(value);
    }
}

/// What values of variables name that name at least one variable that there is. Values that name none are
/// data that happens to have braces.
fn within_values(runner: &RunnerDraft, cases: &[CaseDraft]) -> Vars {
    let shared = &runner.setup.prompt_vars;
    let mut texts = Vec::new();
    let tables = cases.iter().map(|it| &it.case.prompt_vars).chain([shared]);
    for vars in tables {
        let is_known = |name: &str| vars.contains_key(name) || shared.contains_key(name);
        for text in vars.values().filter_map(Value::as_str).filter(|it| template::is_template(it)) {
            let all = template::undefined_variables(text, |_| false).unwrap_or_default();
            if all.iter().any(|it| is_known(it)) && !all.iter().all(|it| is_known(it)) {
                texts.push(text.to_owned());
            }
        }
    }
    empty_values(texts, &[])
}

/// An empty value for each variable that templates name: a text, or a table where they name members of it.
fn empty_values(texts: impl IntoIterator<Item = String>, known: &[&str]) -> Vars {
    let mut values = Vars::new();
    for text in texts {
        for path in template::paths(&text).unwrap_or_default() {
            let Some((root, members)) = path.split_first() else { continue };
            if !known.contains(&root.as_str()) {
                add(values.entry(root.clone()).or_insert(Value::Null), members);
            }
        }
    }
    // What is used as a whole is empty as a whole, so that conditions on it do not hold.
    values.into_iter().map(|(name, it)| (name, if it.is_null() { "".into() } else { it })).collect()
}

/// Adds values to others; tables of the same name become one.
fn merge(values: &mut Vars, others: Vars) {
    for (name, other) in others {
        match values.get_mut(&name) {
            Some(known) => complete_value(known, &other),
            None => drop(values.insert(name, other)),
        }
    }
}

/// Puts an empty text where a path leads within a value.
fn add(value: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        *value = Value::from("");
        return;
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(map) = value {
        add(map.entry(first.as_str()).or_insert(Value::Null), rest);
    }
}

/// Completes tables of a case: a member that templates name and that is not there is empty.
pub(super) fn complete(cases: &mut [CaseDraft], texts: impl IntoIterator<Item = String>) {
    let named: BTreeMap<String, Value> =
        empty_values(texts, &[]).into_iter().filter(|(_, it)| it.is_object()).collect();
    for CaseDraft { case: TestCase { prompt_vars, .. }, .. } in cases {
        for (name, members) in &named {
            if let Some(value) = prompt_vars.get_mut(name) {
                complete_value(value, members);
            }
        }
    }
}

fn complete_value(value: &mut Value, named: &Value) {
    match (value, named) {
        (Value::Object(map), Value::Object(members)) => {
            for (name, inner) in members {
                match map.get_mut(name) {
                    Some(known) => complete_value(known, inner),
                    None => drop(map.insert(name.clone(), inner.clone())),
                }
            }
        }
        (value @ Value::Null, named) => *value = named.clone(),
        (_, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_named_is_empty() {
        let texts = ["{{ a }} {{ b.c }} {{ b.d.e }}", "{% if f %}{{ f.g }}{% endif %}"];
        let made = empty_values(texts.map(ToOwned::to_owned), &["a"]);
        assert_eq!(json!(made), json!({ "b": { "c": "", "d": { "e": "" } }, "f": "" }));
    }

    #[test]
    fn members_are_completed_and_kept() {
        let mut value = json!({ "name": "Ann", "age": null });
        complete_value(&mut value, &json!({ "name": "", "age": "", "town": { "zip": "" } }));
        assert_eq!(value, json!({ "name": "Ann", "age": "", "town": { "zip": "" } }));
    }
}
