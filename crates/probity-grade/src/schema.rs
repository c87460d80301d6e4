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

/// The first thing about a value that a schema does not allow, with its place.
pub(crate) fn first_violation(schema: &Validator, value: &Value) -> Option<String> {
    let error = schema.iter_errors(value).next()?;
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "at the top".to_owned() } else { format!("at `{path}`") };
    Some(format!("schema: {}, {place}", excerpt(&error.to_string(), 0)))
}
