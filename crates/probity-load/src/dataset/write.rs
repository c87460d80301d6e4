//! Writes cases in any format, one at a time.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use serde_json::{Map, Value};

use super::{DEFAULT_VERSION, Format};
use crate::case::CASE_FIELDS;
use probity_core::case::TestCase;

/// Why cases could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file would not take them.
    #[error("failed to write the dataset")]
    Io(#[source] io::Error),
    /// The format cannot say it.
    #[error("case `{id}` cannot be written in this format: {reason}")]
    Unsayable {
        /// The case.
        id: String,
        /// What the format lacks.
        reason: String,
    },
}

/// Writes cases in a format.
pub struct Writer<W: Write> {
    format: Format,
    output: W,
    written: usize,
}

impl<W: Write> Writer<W> {
    /// Writes what comes before the first case.
    pub fn new(format: Format, version: Option<&str>, mut output: W) -> Result<Self, WriteError> {
        let version = version.unwrap_or(DEFAULT_VERSION);
        let head = match format {
            Format::Toml => format!("version = \"{version}\"\n"),
            Format::Json => format!("{{\n  \"version\": \"{version}\",\n  \"test_cases\": ["),
            Format::Yaml => format!("version: \"{version}\"\ntest_cases:\n"),
            Format::Jsonl if version == DEFAULT_VERSION => String::new(),
            Format::Jsonl => format!("{{\"version\":\"{version}\"}}\n"),
            Format::Csv => format!("{}\n", CASE_FIELDS.join(",")),
        };
        output.write_all(head.as_bytes()).map_err(WriteError::Io)?;
        Ok(Self { format, output, written: 0 })
    }

    /// Writes one case.
    pub fn case(&mut self, case: &TestCase) -> Result<(), WriteError> {
        let unsayable = |reason: String| WriteError::Unsayable { id: case.id.clone(), reason };
        let value = serde_json::to_value(case).map_err(|error| unsayable(error.to_string()))?;
        let fields = value.as_object().ok_or_else(|| unsayable("it is not a table".to_owned()))?;
        let text = match self.format {
            Format::Jsonl => format!("{value}\n"),
            Format::Json => {
                let comma = if self.written == 0 { "" } else { "," };
                format!("{comma}\n    {value}")
            }
            Format::Yaml => yaml_case(fields).map_err(unsayable)?,
            Format::Toml => toml_case(fields).map_err(unsayable)?,
            Format::Csv => csv_case(fields).map_err(unsayable)?,
        };
        self.written += 1;
        self.output.write_all(text.as_bytes()).map_err(WriteError::Io)
    }

    /// Writes what comes after the last case, and hands the output back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let tail = match self.format {
            Format::Json => "\n  ]\n}\n",
            Format::Yaml if self.written == 0 => "  []\n",
            Format::Toml | Format::Jsonl | Format::Yaml | Format::Csv => "",
        };
        self.output.write_all(tail.as_bytes()).map_err(WriteError::Io)?;
        self.output.flush().map_err(WriteError::Io)?;
        Ok(self.output)
    }
}

/// Characters of the longest key that stands before a colon in YAML.
const LONGEST_YAML_KEY: usize = 1024;

/// A case in block style. JSON is YAML but for long keys, so every value is written as JSON.
fn yaml_case(fields: &Map<String, Value>) -> Result<String, String> {
    let mut text = String::new();
    for (at, (key, value)) in fields.iter().enumerate() {
        if has_long_key(value) {
            return Err(format!("YAML has no keys of more than {LONGEST_YAML_KEY} characters"));
        }
        let lead = if at == 0 { "  - " } else { "    " };
        text.extend([lead, key, ": ", &printable(&value.to_string()), "\n"]);
    }
    Ok(text)
}

/// Whether a key is too long for YAML, as it is written: quoted, and with escapes.
fn has_long_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            // Most keys are short whatever is in them.
            let is_long = key.len() * 6 + 2 > LONGEST_YAML_KEY
                && printable(&Value::from(key.as_str()).to_string()).chars().count()
                    > LONGEST_YAML_KEY;
            is_long || has_long_key(value)
        }),
        Value::Array(items) => items.iter().any(has_long_key),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// JSON with the characters escaped that may stand in JSON but not in YAML.
fn printable(json: &str) -> String {
    let mut output = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}'
            | '\u{2028}'
            | '\u{2029}' => {
                let _ = write!(output, "\\u{:04x}", u32::from(c));
            }
            c => output.push(c),
        }
    }
    output
}

/// A case as `[[test_cases]]`. Nested values are written inline, so that each case is one block.
fn toml_case(fields: &Map<String, Value>) -> Result<String, String> {
    let mut text = "\n[[test_cases]]\n".to_owned();
    for (key, value) in fields {
        text.extend([key, " = ", &toml_value(value)?, "\n"]);
    }
    Ok(text)
}

/// A value as TOML writes it in one line, or why it cannot.
pub fn toml_value(value: &Value) -> Result<String, String> {
    match value {
        Value::Null => Err("TOML has no null".to_owned()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => {
            let fits = number.as_i64().is_some() || number.to_string().contains(['.', 'e', 'E']);
            fits.then(|| number.to_string())
                .ok_or_else(|| format!("TOML has no number as large as {number}"))
        }
        Value::String(text) => Ok(::toml::Value::String(text.clone()).to_string()),
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.iter().map(toml_value).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Object(fields) => {
            let mut parts = Vec::with_capacity(fields.len());
            for (key, value) in fields {
                let key = ::toml::Value::String(key.clone());
                parts.push(format!("{key} = {}", toml_value(value)?));
            }
            Ok(format!("{{ {} }}", parts.join(", ")))
        }
    }
}

fn csv_case(fields: &Map<String, Value>) -> Result<String, String> {
    let mut cells = Vec::with_capacity(CASE_FIELDS.len());
    for name in CASE_FIELDS {
        cells.push(match (*name, fields.get(*name)) {
            (_, None | Some(Value::Null)) => String::new(),
            ("expected_response", Some(value)) => quoted(&csv_expected(value)?),
            (_, Some(Value::String(text))) => quoted(text),
            (_, Some(other)) => quoted(&other.to_string()),
        });
    }
    Ok(format!("{}\n", cells.join(",")))
}

/// An expected response is text, unless it begins as a JSON table, list or string does.
fn csv_expected(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.trim().is_empty() || text.starts_with(['{', '[', '"']) => {
            Ok(value.to_string())
        }
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) | Value::Object(_) => Ok(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Err(format!("a CSV cell cannot tell the expected response {value} from a text"))
        }
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
