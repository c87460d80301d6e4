//! Names of tools in calls that stand in the text of a reply, in the forms that vendors write.

use std::collections::BTreeSet;

use probity_core::json::{Limits, parse};
use serde_json::Value;

/// The names of tools that a text calls: the text as a whole is JSON, or lines of it are.
pub(super) fn names_in(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let read = |text: &str| parse(text.trim(), &Limits::default()).ok().map(|it| it.value);
    match read(text) {
        Some(Value::String(inner)) => match read(&inner) {
            Some(value) => add(&value, &mut names),
            None => of_lines(&inner, &mut names),
        },
        Some(value) => add(&value, &mut names),
        None => of_lines(text, &mut names),
    }
    names
}

fn of_lines(text: &str, names: &mut BTreeSet<String>) {
    let lines = text.lines().map(str::trim).filter(|it| it.starts_with(['{', '[']));
    for line in lines {
        if let Ok(read) = parse(line, &Limits::default()) {
            add(&read.value, names);
        }
    }
}

/// Adds the names of the calls that a value is.
fn add(value: &Value, names: &mut BTreeSet<String>) {
    let name = |of: &Value| of.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
    if let Some(calls) = value.get("tool_calls").and_then(Value::as_array) {
        names.extend(calls.iter().filter_map(|it| it.get("function").and_then(name)));
        names.extend(calls.iter().filter_map(name));
    } else if value.get("type").and_then(Value::as_str) == Some("tool_use") {
        names.extend(name(value));
    } else if let Some(call) = value.get("functionCall").filter(|it| it.is_object()) {
        names.extend(name(call));
    } else if let Some(call) = value.get("toolCall").filter(|it| it.is_object()) {
        let calls = call.get("functionCalls").and_then(Value::as_array);
        names.extend(calls.into_iter().flatten().filter_map(name));
    } else if let Some(items) = value.as_array() {
        let one = |item: &Value| {
            let inner = ["functionCall", "function"].iter().find_map(|key| item.get(*key));
            inner.filter(|it| it.is_object()).map_or_else(|| name(item), name)
        };
        names.extend(items.iter().filter_map(one));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_in_every_form() {
        for text in [
            r#"{"tool_calls":[{"function":{"name":"a"}},{"name":"b"}]}"#,
            r#"[{"function":{"name":"a"}},{"name":"b"}]"#,
            r#"[{"type":"tool_use","name":"a"},{"functionCall":{"name":"b"}}]"#,
            r#"{"toolCall":{"functionCalls":[{"name":"a"},{"name":"b"}]}}"#,
            "Let me look.\n\n{\"type\":\"tool_use\",\"name\":\"a\"}\n [{\"name\":\"b\"}]\n{no",
        ] {
            let names: Vec<String> = names_in(text).into_iter().collect();
            assert_eq!(names, ["a", "b"], "{text}");
        }
        for text in ["", "a", "7", "{}", r#"{"name":"a"}"#, r#"{"function":{"name":"a"}}"#] {
            assert!(names_in(text).is_empty(), "{text}");
        }
    }
}
