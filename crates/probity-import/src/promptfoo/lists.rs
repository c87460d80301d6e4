//! Lists that templates write out whole: JavaScript puts commas between their items.

use probity_core::criteria::Assertion;
use serde_json::Value;

use super::{prompts, templates, tests::Vars};
use crate::draft::{Asks, CaseDraft, RunnerDraft};

/// What a path of a template stands for in the cases that it is filled in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Never a list.
    Other,
    /// A list in every case that has it.
    List,
    /// A list in some cases, and something else in others.
    Either,
}

/// Writes lists as JavaScript does: in the values of cases, by what each case has.
pub(super) fn write_in_cases(cases: &mut [CaseDraft], shared: &mut Vars) {
    let of_cases: Vec<Vars> = cases.iter().map(|it| it.case.prompt_vars.clone()).collect();
    let has_lists = |vars: &Vars| vars.values().any(holds_list);
    if !has_lists(shared) && !of_cases.iter().any(has_lists) {
        return;
    }
    for (case, own) in cases.iter_mut().zip(&of_cases) {
        let find = |path: &str| found([at(own, path).or_else(|| at(shared, path))]);
        let case = &mut case.case;
        for value in case.prompt_vars.values_mut() {
            write_in_text(value, &find);
        }
        case.criteria.assertions.iter_mut().for_each(|it| write_in_assertion(it, &find));
    }
    let before = shared.clone();
    let find = |path: &str| found(everywhere(&of_cases, &before, path));
    shared.values_mut().for_each(|it| write_in_text(it, &find));
}

/// The same in what a runner says about all its cases.
pub(super) fn write_in_runner(runner: &mut RunnerDraft, cases: &[CaseDraft]) {
    let of_cases: Vec<Vars> = cases.iter().map(|it| it.case.prompt_vars.clone()).collect();
    let shared = runner.setup.prompt_vars.clone();
    let find = |path: &str| found(everywhere(&of_cases, &shared, path));
    for variant in &mut runner.prompts {
        let asks = prompts::mapped(&variant.asks, &|text| written(text, &find));
        if asks != variant.asks {
            variant.file = None;
            variant.asks = asks;
        }
    }
    runner.setup.assertions.iter_mut().for_each(|it| write_in_assertion(it, &find));
}

/// Whether what is asked of cases writes a list whose items have no words that we would write like
/// JavaScript: lists, tables and nothing.
pub(super) fn has_odd_items(asks: &Asks, cases: &[CaseDraft], shared: &Vars) -> Option<String> {
    let tables = || cases.iter().map(|it| &it.case.prompt_vars).chain([shared]);
    let is_odd = |path: &&str| {
        let lists = tables().filter_map(|vars| at(vars, path)?.as_array());
        lists.flatten().any(|it| it.is_array() || it.is_object() || it.is_null())
    };
    let texts = prompts::texts_of(asks);
    let mut paths = texts.iter().flat_map(|it| templates::written_paths(it));
    paths.find(is_odd).map(ToOwned::to_owned)
}

fn holds_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.values().any(holds_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What a path means in every case, and among what all have.
fn everywhere<'v>(cases: &'v [Vars], shared: &'v Vars, path: &str) -> Vec<Option<&'v Value>> {
    let root = path.split('.').next().unwrap_or(path);
    let own = cases.iter().filter(|it| it.contains_key(root)).map(|it| at(it, path));
    let is_shared = cases.is_empty() || cases.iter().any(|it| !it.contains_key(root));
    own.chain(is_shared.then(|| at(shared, path)).filter(Option::is_some)).collect()
}

fn found<'v>(values: impl IntoIterator<Item = Option<&'v Value>>) -> Found {
    let (mut lists, mut others) = (false, false);
    for value in values {
        match value {
            Some(Value::Array(_)) => lists = true,
            Some(_) | None => others = true,
        }
    }
    match (lists, others) {
        (false, _) => Found::Other,
        (true, false) => Found::List,
        (true, true) => Found::Either,
    }
}

fn at<'v>(vars: &'v Vars, path: &str) -> Option<&'v Value> {
    let mut parts = path.split('.');
    let first = vars.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

fn write_in_text(value: &mut Value, find: &dyn Fn(&str) -> Found) {
    if let Value::String(text) = value {
        *text = written(text, find);
    }
}

/// A value that is a list as a whole stays one: assertions take lists.
fn write_in_assertion(assertion: &mut Assertion, find: &dyn Fn(&str) -> Found) {
    let is_code = assertion.kind.test.runs_code();
    if let (false, Some(value)) = (is_code, &mut assertion.value) {
        let is_whole = value.as_str().is_some_and(|it| templates::only_expression(it).is_some());
        if !is_whole {
            write_in_text(value, find);
        }
        for item in value.as_array_mut().into_iter().flatten() {
            write_in_text(item, find);
        }
    }
    assertion.members.iter_mut().for_each(|it| write_in_assertion(it, find));
}

fn written(text: &str, find: &dyn Fn(&str) -> Found) -> String {
    templates::map_written_paths(text, |path| match find(path) {
        Found::Other => None,
        Found::List => Some(format!("{path} | join(\",\")")),
        Found::Either => Some(format!("{path} | join(\",\") if {path} is sequence else {path}")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_written_by_what_it_is_where() {
        let find = |path: &str| match path {
            "a" | "c.d" => Found::List,
            "b" => Found::Either,
            _ => Found::Other,
        };
        let check = |text: &str, expected: &str| assert_eq!(written(text, &find), expected);
        check("{{a}} {{- c.d -}}", "{{ a | join(\",\") }} {{- c.d | join(\",\") -}}");
        check("{{ b }}", "{{ b | join(\",\") if b is sequence else b }}");
        for text in
            ["{{ x }}", "{{ a | dump }}", "{{ a[0] }}", "{% for x in a %}{{ x }}{% endfor %}"]
        {
            check(text, text);
        }
    }

    #[test]
    fn what_is_a_list_in_some_cases_is_either() {
        let cases = [json!({ "a": [1], "b": [1] }), json!({ "a": [2], "b": "x", "c": 1 })];
        let cases = cases.map(|it| serde_json::from_value::<Vars>(it).unwrap());
        let shared: Vars = serde_json::from_value(json!({ "c": [1] })).unwrap();
        let find = |path: &str| found(everywhere(&cases, &shared, path));
        assert_eq!(
            ["a", "b", "c", "d"].map(find),
            [Found::List, Found::Either, Found::Either, Found::Other]
        );
    }
}
