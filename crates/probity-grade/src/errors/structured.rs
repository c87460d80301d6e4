//! Finds the error objects that services and programs write, wherever they write them.
//!
//! Programs print errors as JSON on standard output, sometimes with exit code 0, and
//! print answers there as well. What is an answer must not be read as an error.

use serde_json::Value;

use super::{ErrorInput, Text, rules::Habits};

/// What a failed call said.
#[derive(Default)]
pub(super) struct Said<'a> {
    /// What it said about the error, as one text.
    pub(super) text: Text<'a>,
    /// Standard output that is no object: an error or a part of an answer, so it is
    /// asked only when nothing else tells.
    pub(super) aside: &'a str,
    /// The status that an error object named in a field of its own.
    pub(super) status: Option<u16>,
    /// Whether `text` is the words of error objects alone.
    pub(super) structured: bool,
}

/// How deep an error object is searched.
const DEEPEST: usize = 8;
/// Most lines of a stream that are read as events.
const MOST_EVENTS: usize = 10_000;

/// Gathers what was said by a program with these habits.
pub(super) fn gather<'a>(input: &ErrorInput<'a>, habits: Option<&Habits>) -> Said<'a> {
    let mut said = Said { structured: true, ..Said::default() };
    let mut pieces: Vec<Text<'a>> = Vec::new();
    for (text, is_stdout) in [(input.text, false), (input.stderr, false), (input.stdout, true)] {
        if text.trim().is_empty() {
            continue;
        }
        let ended_well = is_stdout && input.exit_code == Some(0);
        let telling = telling_lines(text, habits);
        if telling.trim().is_empty() {
            continue;
        }
        match read_objects(&telling, ended_well) {
            Objects::Errors(status, words) => {
                said.status = said.status.or(status);
                pieces.push(words.into());
            }
            // An answer on standard output says nothing about the error.
            Objects::Answer if is_stdout => {}
            Objects::None if ended_well && !is_false_answer(text, habits) => {}
            Objects::None if is_stdout => said.aside = text,
            Objects::Answer | Objects::None => {
                said.structured = false;
                pieces.push(telling);
            }
        }
    }
    said.structured &= !pieces.is_empty();
    said.text = match pieces.len() {
        1 => pieces.remove(0),
        _ => pieces.join("\n").into(),
    };
    said
}

/// The lines that say what went wrong; all of them, if nothing is known about the program.
fn telling_lines<'a>(text: &'a str, habits: Option<&Habits>) -> Text<'a> {
    let Some(Habits { error_lines, other_lines, banner, false_answers: _ }) = habits else {
        return text.into();
    };
    let begins = |line: &str, marks: &[String]| {
        marks.iter().any(|mark| line.trim_start().starts_with(mark.as_str()))
    };
    let marked: Vec<&str> = text.lines().filter(|line| begins(line, error_lines)).collect();
    if !marked.is_empty() {
        return marked.join("\n").into();
    }
    let is_banner =
        |line: &str| banner.as_ref().is_some_and(|banner| line.starts_with(banner.as_str()));
    if !text.lines().any(|line| is_banner(line) || begins(line, other_lines)) {
        return text.into();
    }
    let before_banner = text.lines().take_while(|line| !is_banner(line));
    let lines: Vec<&str> = before_banner.filter(|line| !begins(line, other_lines)).collect();
    lines.join("\n").into()
}

/// Whether a program that ended well printed an error where its answer should be.
fn is_false_answer(stdout: &str, habits: Option<&Habits>) -> bool {
    let words = stdout.trim_start_matches(|c: char| !c.is_alphanumeric());
    habits.is_some_and(|it| {
        it.false_answers.iter().any(|beginning| words.starts_with(beginning.as_str()))
    })
}

enum Objects {
    /// Error objects: a status they name, and their words.
    Errors(Option<u16>, String),
    /// JSON without an error in it.
    Answer,
    /// No JSON.
    None,
}

/// Reads a text that is one JSON value, or a stream of them a line.
///
/// A program that `ended_well` got over the errors in its stream, except for the last.
fn read_objects(text: &str, ended_well: bool) -> Objects {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) {
        return Objects::None;
    }
    let values: Vec<Value> = match serde_json::from_str(trimmed) {
        Ok(value) => vec![value],
        Err(_) => trimmed
            .lines()
            .take(MOST_EVENTS)
            .filter_map(|line| serde_json::from_str(line.trim()).ok())
            .collect(),
    };
    let Some(last) = values.last() else {
        return Objects::None;
    };
    if ended_well && !is_error(last) {
        return Objects::Answer;
    }
    let is_error = if ended_well { is_error } else { may_be_error };
    let mut status = None;
    let mut words = String::new();
    let mut errors = values.iter().filter(|value| is_error(value)).peekable();
    if errors.peek().is_none() {
        return Objects::Answer;
    }
    errors.for_each(|value| collect(value, 0, &mut status, &mut words));
    if words.trim().is_empty() {
        trimmed.clone_into(&mut words);
    }
    Objects::Errors(status, words)
}

/// Whether an object says that it is an error.
fn is_error(value: &Value) -> bool {
    if let Value::Array(items) = value {
        return items.iter().any(is_error);
    }
    if let Some(flag) = value.get("is_error").and_then(Value::as_bool) {
        return flag;
    }
    let kind = text(value, "type");
    there(value, "error")
        || there(value, "errors")
        || text(value, "object") == "error"
        || kind.contains("error")
        || kind.ends_with("failed")
}

/// Whether an object is an error where no answer is expected. An answer may look the same.
fn may_be_error(value: &Value) -> bool {
    if let Value::Array(items) = value {
        return items.iter().any(may_be_error);
    }
    if value.get("is_error").is_some() {
        return is_error(value);
    }
    let worded = ["message", "Message", "msg"].into_iter().any(|key| !text(value, key).is_empty());
    let named = ["code", "status", "type", "statusCode"].into_iter().any(|key| there(value, key));
    let alone = value.as_object().is_some_and(|fields| fields.len() == 1);
    is_error(value)
        || there(value, "detail")
        || there(value, "__type")
        || (worded && (named || alone))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn there(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|it| !it.is_null() && it != &Value::Bool(false))
}

/// Fields whose number is a status.
const STATUS_KEYS: &[&str] = &[
    "status",
    "code",
    "statuscode",
    "status_code",
    "httpstatuscode",
    "api_error_status",
    "error_code",
    "errorcode",
    "raw_status_code",
];
/// Fields whose words say what went wrong. Others repeat the request, or are ids and counts.
const WORD_KEYS: &[&str] = &[
    "type",
    "code",
    "status",
    "message",
    "error",
    "errors",
    "detail",
    "details",
    "result",
    "reason",
    "name",
    "api_error_type",
    "api_error",
    "error_type",
    "terminal_reason",
    "__type",
    "raw",
    "metadata",
    "data",
    "msg",
    "title",
    "error_description",
    "description",
    "innererror",
    "cause",
    "item",
    "retrydelay",
    "errorcode",
    "errortype",
    "statustext",
    "error_message",
    "errormessage",
    "error_msg",
    "errmsg",
    "err",
    "body",
    "responsebody",
    "response",
    "exception",
    "failure",
    "fault",
    "faultstring",
    "violations",
    "quotaid",
    "issues",
];
/// Fields whose number is a time to wait, in seconds.
const WAIT_KEYS: &[&str] =
    &["resets_in_seconds", "retry_after", "retry_after_seconds", "retryafter"];

/// Collects the words of an error object and the status it names.
fn collect(value: &Value, depth: usize, status: &mut Option<u16>, words: &mut String) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.to_ascii_lowercase();
                if STATUS_KEYS.contains(&key.as_str()) && status.is_none() {
                    *status = number(field).filter(|code| (400..600).contains(code));
                }
                if WORD_KEYS.contains(&key.as_str()) {
                    collect(field, depth + 1, status, words);
                }
                if let (true, Some(seconds)) = (WAIT_KEYS.contains(&key.as_str()), field.as_f64()) {
                    words.extend(["retry after ", &seconds.to_string(), " seconds\n"]);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(item, depth + 1, status, words);
            }
        }
        Value::String(text) => {
            // Proxies wrap the body they got as a string.
            let nested = text.trim_start().starts_with('{').then(|| serde_json::from_str(text));
            if let Some(Ok(inner)) = nested {
                return collect(&inner, depth + 1, status, words);
            }
            words.extend([text, "\n"]);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|it| u16::try_from(it).ok()),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_way_to_say_error_is_enough() {
        for error in [
            json!({ "error": "x" }),
            json!({ "errors": ["x"] }),
            json!({ "object": "error" }),
            json!({ "type": "api_error" }),
            json!({ "type": "response.failed" }),
            json!({ "is_error": true }),
            json!([{ "text": "x" }, { "error": "x" }]),
        ] {
            assert!(is_error(&error), "{error}");
        }
        for answer in [
            json!({ "error": null, "errors": false }),
            json!({ "object": "chat", "type": "message" }),
            json!({ "is_error": false, "error": "x" }),
            json!([{ "text": "x" }]),
        ] {
            assert!(!is_error(&answer), "{answer}");
        }
    }
}
