//! JSON Schema, draft 2020-12 unless the schema names another.

mod work;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::excerpt::excerpt;

/// Steps that it may take to hold an answer against a schema: some seconds.
const MOST_STEPS: u64 = 4_000_000;

/// A schema that answers can be held against.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    source: Value,
}

/// What a value is by a schema.
pub(crate) enum Held {
    Valid,
    /// Everything that the schema does not allow, each with its place.
    Invalid(String),
    /// That cannot be found out in reasonable time, and why.
    Unknown(String),
}

impl Schema {
    /// Compiles a schema, or says why it is none. References to other files or hosts are
    /// not followed.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("a JSON Schema is a table, or true or false".to_owned());
        }
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(schema).map_err(|error| {
            let path = error.instance_path().to_string();
            let what = excerpt(&error.to_string(), 0);
            if path.is_empty() { what } else { format!("at `{path}`: {what}") }
        })?;
        Ok(Self { validator, source: schema.clone() })
    }

    /// Holds a value against the schema.
    pub(crate) fn hold(&self, value: &Value) -> Held {
        if !work::is_within(MOST_STEPS, &self.source, value) {
            return Held::Unknown(format!(
                "the schema takes more than {MOST_STEPS} steps for this answer"
            ));
        }
        match violations(&self.validator, value) {
            None => Held::Valid,
            Some(violations) => Held::Invalid(violations),
        }
    }
}

/// Violations that are named.
const NAMED: usize = 5;

/// Everything about a value that a schema does not allow, each with its place.
fn violations(schema: &Validator, value: &Value) -> Option<String> {
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
