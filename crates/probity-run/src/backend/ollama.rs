//! Ollama's chat.

use probity_core::record::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Reply,
    http::{Undecoded, count},
};

#[derive(Deserialize)]
struct Answer {
    message: Option<Message>,
    model: Option<String>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<Value>,
    eval_count: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: String,
    #[serde(default)]
    tool_calls: Vec<Value>,
}

pub(super) fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| Undecoded::Shape("it is no chat answer"))?;
    let Answer { message, model, done, done_reason, prompt_eval_count, eval_count, error } = answer;
    let is_error = |error: &Value| !error.is_null() && error.as_str() != Some("");
    if error.as_ref().is_some_and(is_error) {
        return Err(Undecoded::Error);
    }
    if done == Some(false) {
        return Err(Undecoded::Shape("it is cut off: `done` is false"));
    }
    let message = message.ok_or(Undecoded::Shape("it has no `message`"))?;
    let usage = Usage {
        input_tokens: count(prompt_eval_count),
        output_tokens: count(eval_count),
        cached_tokens: None,
    };
    // It says "stop" then.
    let stop_reason = match message.content.is_empty() && !message.tool_calls.is_empty() {
        true => Some("tool_calls".to_owned()),
        false => done_reason,
    };
    Ok(Reply { text: message.content, stop_reason, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let body = br#"{"model":"m","message":{"role":"assistant","content":"hello"},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}"#;
        let reply = decode(body).unwrap();
        assert_eq!((reply.text.as_str(), reply.usage.total()), ("hello", 12));
    }

    #[test]
    fn what_is_no_answer_is_told_apart() {
        assert_eq!(decode(br#"{"error":"model not found"}"#), Err(Undecoded::Error));
        assert!(matches!(decode(b"{}"), Err(Undecoded::Shape(_))));
        let cut = br#"{"message":{"content":"hel"},"done":false}"#;
        assert!(matches!(decode(cut), Err(Undecoded::Shape(_))));
        let no_error = br#"{"message":{"content":"hello"},"done":true,"error":""}"#;
        assert_eq!(decode(no_error).unwrap().text, "hello");
    }
}
