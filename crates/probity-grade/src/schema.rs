//! JSON Schema, draft 2020-12 unless the schema names another.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::excerpt::excerpt;

/// Compiles a schema, or says why it is none. References to other files or hosts are
/// not followed.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err("a JSON Schema is a table, or true or false".to_owned());
    }
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).map_err(
        |error| {
            let path = error.instance_path().to_string();
            let what = excerpt(&error.to_string(), 0);
            if path.is_empty() { what } else { format!("at `{path}`: {what}") }
        },
    )
}

/// Violations that are named.
const NAMED: usize = 5;

/// Everything about a value that a schema does not allow, each with its place.
pub(crate) fn violations(schema: &Validator, value: &Value) -> Option<String> {
    let mut errors = schema.iter_errors(value);
    let mut said: Vec<String> = Vec::new();
    for error in errors.by_ref().take(NAMED) {
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "at the top".to_owned() } else { format!("at `{path}`") };
        said.push(format!("{}, {place}", excerpt(&error.to_string(), 0)));
    }
    if said.is_empty() {
        return None;
    }
    if errors.next().is_some() {
        said.push("and more".to_owned());
    }
    Some(format!("schema: {}", said.join("; ")))
}
