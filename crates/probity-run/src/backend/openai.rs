//! OpenAI's chat completions, which many servers speak.

use probity_core::record::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Ask, Reply,
    http::{Undecoded, count},
};

/// The body of a request; Ollama's has the same shape.
pub(super) fn body(fields: &Map<String, Value>, ask: &Ask<'_>) -> Value {
    let mut messages = Vec::with_capacity(2);
    if let Some(system) = ask.system {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.push(json!({ "role": "user", "content": ask.prompt }));
    let mut body = fields.clone();
    body.insert("messages".to_owned(), Value::Array(messages));
    Value::Object(body)
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    choices: Vec<Choice>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    message: Option<Message>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
}

/// Text, or a list of parts of which some are text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Deserialize)]
struct TokenUsage {
    prompt_tokens: Option<Value>,
    completion_tokens: Option<Value>,
    prompt_tokens_details: Option<PromptTokens>,
}

#[derive(Deserialize)]
struct PromptTokens {
    cached_tokens: Option<Value>,
}

pub(super) fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| Undecoded::Shape("it is no chat completion"))?;
    let Answer { choices, model, usage, error } = answer;
    if choices.is_empty() && error.is_some_and(|error| !error.is_null()) {
        return Err(Undecoded::Error);
    }
    let choice = choices.into_iter().next().ok_or(Undecoded::Shape("it has no `choices`"))?;
    let message = choice.message.ok_or(Undecoded::Shape("its choice has no `message`"))?;
    let text = match message.content {
        None => String::new(),
        Some(Content::Text(text)) => text,
        Some(Content::Parts(parts)) => parts.into_iter().filter_map(|part| part.text).collect(),
    };
    let refusal = message.refusal.filter(|refusal| !refusal.is_empty());
    let called = message.tool_calls.is_some_and(|calls| !calls.is_empty());
    let (text, stop_reason) = match refusal {
        Some(refusal) if text.is_empty() => (refusal, Some("refusal".to_owned())),
        // Some servers say "stop" then.
        None if text.is_empty() && called => (text, Some("tool_calls".to_owned())),
        Some(_) | None => (text, choice.finish_reason),
    };
    let usage = usage.map_or_else(Usage::default, |usage| Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: usage.prompt_tokens_details.and_then(|it| count(it.cached_tokens)),
    });
    Ok(Reply { text, stop_reason, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_goes_before_the_prompt() {
        let fields = Map::from_iter([("model".to_owned(), json!("m"))]);
        let body = body(&fields, &Ask { prompt: "hi", system: Some("be brief"), repeat: 0 });
        let expected = json!({ "model": "m", "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "hi" },
        ]});
        assert_eq!(body, expected);
    }

    #[test]
    fn a_completion_is_read() {
        let body = br#"{"id":"x","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}}"#;
        let reply = decode(body).unwrap();
        assert_eq!((reply.text.as_str(), reply.stop_reason.as_deref()), ("hello", Some("stop")));
        assert_eq!(reply.model.as_deref(), Some("m-1"));
        let usage = Usage { input_tokens: Some(5), output_tokens: Some(1), cached_tokens: Some(2) };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn parts_and_refusals_are_read() {
        let parts = br#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}]}"#;
        assert_eq!(decode(parts).unwrap().text, "ab");
        let refusal = br#"{"choices":[{"message":{"content":null,"refusal":"I can't"},"finish_reason":"stop"}]}"#;
        let reply = decode(refusal).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop_reason.as_deref()),
            ("I can't", Some("refusal"))
        );
    }

    #[test]
    fn what_is_no_completion_is_told_apart() {
        assert_eq!(decode(br#"{"error":{"message":"no"}}"#), Err(Undecoded::Error));
        let shapes: [&[u8]; 5] = [b"", b"<html>", b"[]", b"{}", br#"{"choices":[{}]}"#];
        for shape in shapes {
            assert!(matches!(decode(shape), Err(Undecoded::Shape(_))), "{shape:?}");
        }
    }
}
