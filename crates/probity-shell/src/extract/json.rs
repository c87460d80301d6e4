//! A command in a field of a JSON object.

use serde_json::Value;

use super::{Found, Step};
use crate::Span;

/// Names that people and models give to the field, the surest first.
const FIELDS: &[&str] = &[
    "command",
    "cmd",
    "generated_command",
    "shell_command",
    "bash_command",
    "bash",
    "shell",
    "script",
    "code",
    "commands",
    "answer",
    "output",
    "result",
    "response",
];

/// Longer objects are no answer to "which command".
const MAX_BYTES: usize = 256 * 1024;

pub(super) fn command(reply: &str, span: Span) -> Option<Found<'_>> {
    let text = span.of(reply);
    if !(text.starts_with('{')
        && text.ends_with('}')
        && text.len() <= MAX_BYTES
        && text.contains('"'))
    {
        return None;
    }
    // Most objects in replies are about something else, which the text tells sooner than a tree of it.
    let may_hold = FIELDS.iter().any(|it| text.contains(it)) || text.contains("\\u");
    if !may_hold {
        return None;
    }
    let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
    let value = FIELDS.iter().find_map(|name| fields.get(*name))?;
    let (text, alternatives) = match value {
        Value::String(text) => (text.clone(), 0),
        Value::Array(items) => listed(items)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let alternatives =
        alternatives + fields.get("alternatives").and_then(Value::as_array).map_or(0, Vec::len);
    let text = text.trim();
    (!text.is_empty()).then(|| Found {
        text: text.to_owned().into(),
        span,
        steps: vec![Step::JsonField],
        alternatives,
    })
}

/// A list is either several commands or one command's words: `["ls", "-l"]`.
fn listed(items: &[Value]) -> Option<(String, usize)> {
    let words: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    let first = *words.first()?;
    if first.contains(' ') || words.len() == 1 {
        return Some((first.to_owned(), words.len() - 1));
    }
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            match word.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&it))
                && !word.is_empty()
            {
                true => (*word).to_owned(),
                false => format!("'{}'", word.replace('\'', r"'\''")),
            }
        })
        .collect();
    Some((quoted.join(" "), 0))
}
