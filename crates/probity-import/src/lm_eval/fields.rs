//! What a task makes of a document: a question, choices, an answer.

use std::collections::BTreeMap;

use probity_load::template;
use serde_json::Value;

use crate::choices;

use super::{
    config::{Field, Says},
    literal,
};

pub(super) type Document = BTreeMap<String, Value>;

/// What is right.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// One of these texts.
    Texts(Vec<String>),
    /// One of these choices, by their places.
    Choices(Vec<usize>),
}

/// What a field makes of a document.
enum Made {
    /// A value that stands somewhere.
    Found(Value),
    /// What a template became.
    Rendered(String),
}

fn make(field: &Field, document: &Document) -> Result<Made, String> {
    match &field.says {
        Says::Value(value) => Ok(Made::Found(value.clone())),
        Says::Function { name, field } => match document.get(*field) {
            Some(value) => Ok(Made::Found(value.clone())),
            None => Err(format!(
                "`{field}` is the function `{name}`, and the document has no field `{field}`"
            )),
        },
        Says::Template(text) => match document.get(text) {
            Some(value) => Ok(Made::Found(value.clone())),
            None => template::render_python(text, document)
                .map(Made::Rendered)
                .map_err(|error| error.to_string()),
        },
    }
}

/// The question.
pub(super) fn text(field: &Field, document: &Document) -> Result<String, String> {
    match make(field, document)? {
        Made::Rendered(text) | Made::Found(Value::String(text)) => Ok(text),
        Made::Found(other @ (Value::Bool(_) | Value::Number(_))) => Ok(other.to_string()),
        Made::Found(Value::Null | Value::Array(_) | Value::Object(_)) => {
            Err("the question is no text".to_owned())
        }
    }
}

/// The choices.
pub(super) fn choices(field: &Field, document: &Document) -> Result<Vec<String>, String> {
    let value = match make(field, document)? {
        Made::Rendered(text) => literal::parse(&text).unwrap_or(Value::String(text)),
        Made::Found(value) => value,
    };
    let items: Vec<Value> = match value {
        Value::Array(items) => items,
        // Letters say their own order.
        Value::Object(map) if choices::are_letters(&map.keys().cloned().collect::<Vec<_>>()) => {
            map.into_iter().map(|it| it.1).collect()
        }
        Value::Object(_) => {
            return Err("`doc_to_choice` makes a table, whose order is not known".to_owned());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err("`doc_to_choice` makes no list".to_owned());
        }
    };
    Ok(items.iter().map(plain).collect())
}

/// What is right.
pub(super) fn target(
    field: &Field,
    document: &Document,
    choices: Option<&[String]>,
) -> Result<Target, String> {
    let value = match make(field, document)? {
        Made::Rendered(text) => read(text, choices.is_some()),
        Made::Found(value) => value,
    };
    let Some(choices) = choices else {
        return match &value {
            Value::Array(items) if items.is_empty() => Err("there is no answer".to_owned()),
            Value::Array(items) => Ok(Target::Texts(items.iter().map(plain).collect())),
            Value::Null | Value::Object(_) => Err("the answer is no text".to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Ok(Target::Texts(vec![plain(&value)]))
            }
        };
    };
    let place = |value: &Value| -> Result<usize, String> {
        let at = match value {
            Value::Number(number) => number.as_u64().and_then(|it| usize::try_from(it).ok()),
            Value::Bool(value) => Some(usize::from(*value)),
            Value::String(text) => choices.iter().position(|it| it == text),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        at.filter(|it| *it < choices.len())
            .ok_or_else(|| format!("the answer {value} is none of the choices"))
    };
    let places = match &value {
        Value::Array(items) => items.iter().map(place).collect::<Result<Vec<_>, _>>()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![place(&value)?]
        }
    };
    match places.is_empty() {
        true => Err("there is no answer".to_owned()),
        false => Ok(Target::Choices(places)),
    }
}

/// What a template became is a number or a list if it looks like one.
fn read(text: String, has_choices: bool) -> Value {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if has_choices && is_number {
        return text.parse::<u64>().map_or(Value::String(text), Value::from);
    }
    match text.starts_with('[') && text.ends_with(']') {
        true => literal::parse(&text).unwrap_or(Value::String(text)),
        false => Value::String(text),
    }
}

/// A value as a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
