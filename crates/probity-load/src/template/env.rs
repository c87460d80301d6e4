//! Variables of the environment in templates: `{{ env.NAME }}`.

use serde_json::Value;

use super::{members_of, undefined_variables};

/// Whether all that is to be filled in are variables of the environment. It is so of a text that is no
/// template, and never of one that cannot be read.
pub fn names_only_env(text: &str) -> bool {
    undefined_variables(text, |name| name == "env").is_ok_and(|it| it.is_empty())
}

/// The names of the variables of the environment that a template uses.
pub fn env_variables(text: &str) -> impl Iterator<Item = String> {
    let named = members_of(text, "env").unwrap_or_default();
    named.into_iter().filter(|it| !it.is_empty())
}

/// All texts of a value, however deep they stand.
pub fn texts_in(value: &Value) -> Vec<&str> {
    let mut all = Vec::new();
    collect(value, &mut all);
    all
}

fn collect<'v>(value: &'v Value, all: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|it| collect(it, all)),
        Value::Object(map) => map.values().for_each(|it| collect(it, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_names_variables_of_the_environment_and_nothing_else() {
        for (text, expected) in [
            ("{{ env.A }}-{{ env['B'] }}", true),
            ("plain", true),
            ("{{ env.A }} {{ prompt }}", false),
            ("{{ env.A", false),
        ] {
            assert_eq!(names_only_env(text), expected, "{text}");
        }
        let named: Vec<String> = env_variables("{{ env.B }} {{ env.A }} {{ prompt }}").collect();
        assert_eq!(named, ["A", "B"]);
        assert_eq!(texts_in(&json!({ "a": ["x", { "b": "y" }], "c": 1 })), ["x", "y"]);
    }
}
