//! Anthropic's messages.

use probity_core::record::Usage;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Ask, Reply,
    http::{Undecoded, count},
};

/// The version of the interface that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";

pub(super) fn body(fields: &Map<String, Value>, ask: &Ask<'_>) -> Value {
    let mut body = fields.clone();
    if let Some(system) = ask.system {
        body.insert("system".to_owned(), Value::from(system));
    }
    body.insert("messages".to_owned(), json!([{ "role": "user", "content": ask.prompt }]));
    Value::Object(body)
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    content: Vec<Block>,
    model: Option<String>,
    stop_reason: Option<String>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct TokenUsage {
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    cache_read_input_tokens: Option<Value>,
    cache_creation_input_tokens: Option<Value>,
}

pub(super) fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| Undecoded::Shape("it is no message"))?;
    let Answer { content, model, stop_reason, usage, error } = answer;
    if error.is_some_and(|error| !error.is_null()) {
        return Err(Undecoded::Error);
    }
    if content.is_empty() && stop_reason.is_none() {
        return Err(Undecoded::Shape("it has no `content`"));
    }
    let text = content.into_iter().filter_map(|block| block.text).collect();
    let usage = usage.map_or_else(Usage::default, |usage| {
        let cached = count(usage.cache_read_input_tokens);
        let created = count(usage.cache_creation_input_tokens);
        Usage {
            // What was read from or written to the cache is not in `input_tokens`.
            input_tokens: count(usage.input_tokens)
                .map(|it| it + cached.unwrap_or(0) + created.unwrap_or(0)),
            output_tokens: count(usage.output_tokens),
            cached_tokens: cached,
        }
    });
    Ok(Reply { text, stop_reason, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_stands_beside_the_messages() {
        let body = body(&Map::new(), &Ask { prompt: "hi", system: Some("be brief"), repeat: 0 });
        let expected =
            json!({ "system": "be brief", "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_message_is_read() {
        let body = br#"{"type":"message","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":4}}"#;
        let reply = decode(body).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop_reason.as_deref()),
            ("hello", Some("end_turn"))
        );
        let usage = Usage { input_tokens: Some(7), output_tokens: Some(2), cached_tokens: Some(4) };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        let error =
            br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(decode(error), Err(Undecoded::Error));
        assert!(matches!(decode(b"{}"), Err(Undecoded::Shape(_))));
        let refused = br#"{"content":[],"stop_reason":"refusal"}"#;
        assert_eq!(decode(refused).unwrap().stop_reason.as_deref(), Some("refusal"));
    }
}
