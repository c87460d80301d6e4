//! What programs print: answers, and what they say about errors.

use probity_core::record::Usage;
use probity_load::suite::Output;
use serde_json::Value;

use crate::backend::Reply;

/// Why something printed is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecoded {
    /// It says that it is an error.
    Error,
    /// It is not what the program was asked to print.
    Shape(&'static str),
}

/// An answer as a suite describes where it stands.
pub(super) fn output(output: &Output, stdout: &str) -> Result<Reply, Undecoded> {
    match output {
        Output::Text => Ok(plain(stdout)),
        Output::Json(pointer) => {
            let value: Value = serde_json::from_str(stdout.trim())
                .map_err(|_| Undecoded::Shape("the output is not JSON"))?;
            if is_error(&value) {
                return Err(Undecoded::Error);
            }
            match at(&value, pointer) {
                Some(text) => Ok(Reply { text, ..claims(&value) }),
                None if names_error(&value) => Err(Undecoded::Error),
                None => Err(Undecoded::Shape("the output has nothing at the pointer")),
            }
        }
        Output::Jsonl(pointer) => {
            let mut events = events(stdout).peekable();
            if events.peek().is_none() {
                return Err(Undecoded::Shape("the output has no line of JSON"));
            }
            if is_cut(stdout) {
                return Err(Undecoded::Shape("the last line of the output is cut off"));
            }
            let (mut text, mut failed) = (None, false);
            for event in events {
                let found = at(&event, pointer);
                let is_error = is_error(&event)
                    || kind(&event) == "error"
                    || (found.is_none() && names_error(&event));
                // An answer after an error says that the program got over it.
                failed = is_error || (failed && found.is_none());
                text = found.or(text);
            }
            match (text, failed) {
                (Some(text), false) => Ok(Reply { text, ..Reply::default() }),
                (_, true) => Err(Undecoded::Error),
                (None, false) => Err(Undecoded::Shape("no line has anything at the pointer")),
            }
        }
    }
}

fn plain(stdout: &str) -> Reply {
    // The end of a line that a program prints is not part of what the model says.
    Reply { text: stdout.trim_end_matches(['\n', '\r']).to_owned(), ..Reply::default() }
}

/// The one object that claude prints, or the last of a stream of events.
pub(super) fn claude(stdout: &str) -> Result<Reply, Undecoded> {
    let Some(value) = claude_result(stdout) else {
        return Err(Undecoded::Shape("the output is not the JSON that was asked for"));
    };
    // `subtype` says "success" even then.
    if is_error(&value) {
        return Err(Undecoded::Error);
    }
    let text = ["result", "completion"].iter().find_map(|key| value.get(key)?.as_str());
    let text = match (text, value.get("content")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(Value::Array(blocks))) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect()
        }
        (None, Some(Value::String(text))) => text.clone(),
        (None, _) => return Err(Undecoded::Shape("the output has no `result`")),
    };
    Ok(Reply { text, ..claims(&value) })
}

fn claude_result(stdout: &str) -> Option<Value> {
    let is_result = |value: &Value| {
        ["result", "is_error", "completion", "content"].iter().any(|key| value.get(key).is_some())
    };
    match serde_json::from_str(stdout.trim()) {
        Ok(Value::Array(events)) => events.into_iter().rfind(is_result),
        Ok(value) => is_result(&value).then_some(value),
        Err(_) => events(stdout).filter(is_result).last(),
    }
}

/// The events that codex prints.
pub(super) fn codex(stdout: &str) -> Result<Reply, Undecoded> {
    let mut reply = Reply::default();
    let (mut any, mut answered, mut failed) = (false, false, false);
    for event in events(stdout) {
        any = true;
        match kind(&event) {
            "item.completed" => {
                let item = &event["item"];
                // Words on the way to the answer come in the same kind of item before it.
                if kind(item) == "agent_message" {
                    item["text"].as_str().unwrap_or("").clone_into(&mut reply.text);
                    answered = true;
                }
            }
            "turn.failed" => failed = true,
            "turn.completed" => {
                let count = |key| event["usage"].get(key).and_then(Value::as_u64);
                reply.usage = Usage {
                    input_tokens: count("input_tokens"),
                    output_tokens: count("output_tokens"),
                    cached_tokens: count("cached_input_tokens"),
                    estimated: false,
                };
            }
            // Errors that it got over.
            _ => {}
        }
    }
    match (any, failed, answered) {
        (false, _, _) => Err(Undecoded::Shape("the output is not the events that were asked for")),
        (true, true, _) => Err(Undecoded::Error),
        (true, false, false) if codex_last_error(stdout).is_some() => Err(Undecoded::Error),
        // Without an answer the text is empty, which is told as that.
        (true, false, true | false) => Ok(reply),
    }
}

/// The events of codex that tell why it failed, without those that it got over.
pub(super) fn codex_errors(stdout: &str) -> Option<String> {
    let lines = |wanted: &str| {
        let lines = stdout.lines().filter(|line| {
            serde_json::from_str::<Value>(line).is_ok_and(|event| kind(&event) == wanted)
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    [lines("turn.failed"), lines("error")].into_iter().find(|it| !it.is_empty())
}

/// What codex last complained of.
pub(super) fn codex_last_error(stdout: &str) -> Option<String> {
    let message = |event: Value| {
        let message = match kind(&event) {
            "error" => event.get("message"),
            "turn.failed" => event.pointer("/error/message"),
            _ => None,
        };
        message.and_then(Value::as_str).map(ToOwned::to_owned)
    };
    events(stdout).filter_map(message).last()
}

/// The sentence about an error, wherever it stands.
pub(super) fn said(stdout: &str, stderr: &str) -> String {
    let structured = claude_result(stdout).filter(is_error).map(|value| {
        let result = value.get("result").and_then(Value::as_str).unwrap_or("").trim();
        let kind = value.get("api_error_type").and_then(Value::as_str);
        match (result, kind) {
            ("", None) => String::new(),
            ("", Some(kind)) => kind.to_owned(),
            (result, None) => result.to_owned(),
            (result, Some(kind)) => format!("{result} ({kind})"),
        }
    });
    let structured = structured.filter(|it| !it.is_empty());
    if let Some(said) = structured.or_else(|| codex_last_error(stdout)) {
        return said;
    }
    let marked = stderr.lines().rfind(|line| line.starts_with("ERROR: "));
    let telling: Vec<&str> =
        stderr.lines().filter(|line| !CHATTER.iter().any(|it| line.starts_with(it))).collect();
    let telling = telling.join("\n");
    match (marked, telling.trim(), stdout.trim()) {
        // Before it stands the whole prompt.
        (Some(line), _, _) => line.to_owned(),
        (None, "", stdout) => stdout.to_owned(),
        (None, telling, _) => telling.to_owned(),
    }
}

/// How lines begin that codex and copilot print whatever happens.
const CHATTER: &[&str] =
    &["WARNING:", "Reading additional input", "Reading prompt from", "Package extraction"];

/// The HTTP status that a program says its server gave.
pub(super) fn status(stdout: &str) -> Option<u16> {
    let value = claude_result(stdout)?;
    value.get("api_error_status").and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok())
}

/// What a program says that a call used, whatever it came to.
pub(super) fn used(stdout: &str) -> (Usage, Option<f64>) {
    let claims = claude_result(stdout).map(|value| claims(&value)).unwrap_or_default();
    (claims.usage, claims.cost_usd)
}

/// What an object says of tokens, money and model. They are claims about names: with a
/// server of one's own they are wrong.
fn claims(value: &Value) -> Reply {
    let count = |key| value.get("usage").and_then(|usage| usage.get(key)).and_then(Value::as_u64);
    let cached = count("cache_read_input_tokens");
    let created = count("cache_creation_input_tokens");
    let text = |key| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let by_model = value.get("modelUsage").and_then(Value::as_object);
    // Small helpers of other models may be among them.
    let model = by_model.and_then(|models| {
        let written = |usage: &Value| usage.get("outputTokens").and_then(Value::as_u64);
        models.iter().max_by_key(|(_, usage)| written(usage)).map(|(name, _)| name.clone())
    });
    Reply {
        stop_reason: text("stop_reason"),
        model: model.or_else(|| text("model")),
        usage: Usage {
            // What was read from or written to the cache is not in `input_tokens`.
            input_tokens: count("input_tokens")
                .map(|it| it + cached.unwrap_or(0) + created.unwrap_or(0)),
            output_tokens: count("output_tokens"),
            cached_tokens: cached,
            estimated: false,
        },
        cost_usd: ["total_cost_usd", "cost_usd"].iter().find_map(|key| value.get(key)?.as_f64()),
        ..Reply::default()
    }
}

fn events(stdout: &str) -> impl Iterator<Item = Value> {
    stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line.trim()).ok())
        .filter(Value::is_object)
}

/// Whether what is printed ends within an object.
fn is_cut(stdout: &str) -> bool {
    let last = stdout.trim_end().lines().next_back().unwrap_or("").trim();
    last.starts_with('{') && serde_json::from_str::<Value>(last).is_err()
}

/// Whether a text is an error of a vendor and nothing else: an answer in JSON may well
/// tell of an error, but hardly in this shape.
pub(super) fn is_error_object(stdout: &str) -> bool {
    let Ok(Value::Object(object)) = serde_json::from_str(stdout.trim()) else { return false };
    let Some(error) = object.get("error") else { return false };
    let says = |key| error.get(key).is_some_and(Value::is_string);
    let is_typed = object.get("type").and_then(Value::as_str) == Some("error");
    says("message") && (is_typed || (object.len() == 1 && (says("type") || says("code"))))
}

fn kind(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or("")
}

fn is_error(value: &Value) -> bool {
    value.get("is_error").and_then(Value::as_bool) == Some(true)
}

fn names_error(value: &Value) -> bool {
    let is_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    };
    ["error", "errors"].iter().any(|key| value.get(key).is_some_and(is_something))
}

/// The text at a place; what is not a text is shown as JSON.
fn at(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(other.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stdout: &str) -> Result<String, Undecoded> {
        output(&Output::Jsonl("/a".to_owned()), stdout).map(|reply| reply.text)
    }

    #[test]
    fn a_line_that_is_cut_off_is_no_end() {
        assert!(matches!(lines("{\"a\":\"old\"}\n{\"a\":\"hel"), Err(Undecoded::Shape(_))));
        assert_eq!(lines("{\"a\":\"x\"}\n{\"b\":1}\n\nbye\n").unwrap(), "x");
    }

    #[test]
    fn the_last_word_decides_whether_it_is_an_error() {
        let overloaded = r#"{"type":"error","error":{"message":"overloaded"}}"#;
        let answer = r#"{"a":"x","error":null}"#;
        assert_eq!(lines(&format!("{answer}\n{overloaded}\n")), Err(Undecoded::Error));
        assert_eq!(
            lines(&format!("{answer}\n{{\"error\":\"no\"}}\n{{\"b\":1}}")),
            Err(Undecoded::Error)
        );
        assert_eq!(lines(&format!("{overloaded}\n{answer}\n{{\"error\":false}}")).unwrap(), "x");
    }

    #[test]
    fn an_error_object_is_told_from_an_answer_in_json() {
        let vendor =
            r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#;
        assert!(is_error_object(vendor));
        assert!(is_error_object(r#"{"error":{"message":"slow down","type":"rate_limit"}}"#));
        for answer in [
            r#"{"error":"none"}"#,
            r#"{"error":{"message":"x","type":"y"},"fix":"z"}"#,
            r#"{"type":"error","level":3}"#,
            "an error",
        ] {
            assert!(!is_error_object(answer), "{answer}");
        }
    }
}
