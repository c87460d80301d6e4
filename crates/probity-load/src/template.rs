//! Prompts as templates.
//!
//! A text without `{{`, `{%` or `{#` is itself, which spares most prompts the engine.

use std::collections::BTreeMap;

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig, value::Value};

/// Why a template cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct TemplateError {
    reason: String,
}

impl TemplateError {
    fn of(error: &minijinja::Error) -> Self {
        let what = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
        let reason = match error.line() {
            Some(line) if line > 1 => format!("{what}, in its line {line}"),
            Some(_) | None => what,
        };
        Self { reason }
    }
}

/// Whether a text has anything for the template engine to do.
pub fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// The variables a template uses that `known` does not know, sorted.
pub fn undefined_variables(
    text: &str,
    known: impl Fn(&str) -> bool,
) -> Result<Vec<String>, TemplateError> {
    if !is_template(text) {
        return Ok(Vec::new());
    }
    let environment = environment();
    let template =
        environment.template_from_str(text).map_err(|error| TemplateError::of(&error))?;
    let mut missing: Vec<String> = template
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !known(name) && !is_global(&environment, name))
        .collect();
    missing.sort_unstable();
    Ok(missing)
}

/// The text with its variables filled in; a variable without a value is an error.
pub fn render(
    text: &str,
    vars: &BTreeMap<String, serde_json::Value>,
) -> Result<String, TemplateError> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    let pairs = vars.iter().map(|(name, value)| (name.as_str(), to_engine(value)));
    let context = Value::from_pairs(pairs);
    environment().render_str(text, context).map_err(|error| TemplateError::of(&error))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .expect("the default delimiters are valid");
    environment.set_syntax(syntax);
    environment
}

/// JSON as the engine's own values; numbers beyond its range become text.
fn to_engine(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Value::from(number),
            (None, Some(number), _) => Value::from(number),
            (None, None, Some(float)) if float.is_finite() => Value::from(float),
            (None, None, Some(_) | None) => Value::from(number.to_string()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(to_engine).collect(),
        Json::Object(map) => {
            Value::from_pairs(map.iter().map(|(key, value)| (key.as_str(), to_engine(value))))
        }
    }
}

fn is_global(environment: &Environment<'_>, name: &str) -> bool {
    environment.globals().any(|(global, _)| global == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, serde_json::Value> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    }

    #[test]
    fn variables_are_filled_in() {
        let text = "Translate {{ text }} into {{ language | upper }}\n";
        let vars = vars(&[("text", "<b>hi</b>"), ("language", "fr")]);
        assert_eq!(render(text, &vars).unwrap(), "Translate <b>hi</b> into FR\n");
    }

    #[test]
    fn a_missing_variable_is_named() {
        let missing = undefined_variables("{{ a }} {{ b.c }} {{ range(3) }}", |name| name == "a");
        assert_eq!(missing.unwrap(), ["b"]);
        assert!(render("{{ a }}", &BTreeMap::new()).is_err());
    }

    #[test]
    fn text_without_marks_is_left_alone() {
        let text = "awk '{ print $1 }' {a} }} %}";
        assert_eq!(render(text, &BTreeMap::new()).unwrap(), text);
    }

    #[test]
    fn broken_templates_say_where() {
        let error = undefined_variables("line\n{{ a", |_| true).unwrap_err();
        insta::assert_snapshot!(error, @"unexpected end of input, expected end of variable block, in its line 2");
    }
}
