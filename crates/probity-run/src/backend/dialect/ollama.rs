//! Ollama's chat.

mod stream;

use probity_core::{
    record::Usage,
    reply::Reply,
    request::{Image, Message as Said, Need, Request, ToolCall, ToolResult},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Chat, DialectSpec, Fields, KeyHeader, Undecoded, Wanted, base64, count, may_call, not_applied,
    openai, put, some_list, without_tail,
};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Bearer,
    headers: &[],
    parameter: None,
    endpoint: |base, _| format!("{}{TAIL}", without_tail(base, TAIL)),
    models: |base| format!("{}/api/tags", without_tail(base, TAIL)),
    // The tag that it takes if none is given.
    bare_model: |name| name.strip_suffix(":latest").unwrap_or(name),
    error_header: None,
    max_tokens: None,
    fields,
    lacks: &[Need::ForcedCall, Need::ImageUrl],
    encode,
    decode,
    stream: stream::STREAM,
};

pub(super) const TAIL: &str = "/api/chat";

/// The address that a value of `OLLAMA_HOST` stands for, as Ollama itself reads it.
pub(super) fn address(value: &str) -> String {
    let value = value.trim().trim_matches(['"', '\'']);
    let (scheme, rest, usual_port) = match value.split_once("://") {
        None => ("http", value, "11434"),
        Some(("http", rest)) => ("http", rest, "80"),
        Some(("https", rest)) => ("https", rest, "443"),
        // It is told that this is no address.
        Some((_, _)) => return value.to_owned(),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    // An IPv6 address has colons of its own, and brackets where a port comes after it.
    let (name, port) = match (host.strip_prefix('['), host.matches(':').count()) {
        (Some(inner), _) => match inner.split_once(']') {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or("")),
            None => (inner, ""),
        },
        (None, 1) => host.split_once(':').unwrap_or((host, "")),
        (None, _) => (host, ""),
    };
    // A server listens there; nobody can ask there.
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        name if name.contains(':') => format!("[{name}]"),
        name => name.to_owned(),
    };
    let port = if port.is_empty() { usual_port } else { port };
    format!("{scheme}://{user}{name}:{port}{path}")
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { model, sampling, response_format, .. } = wanted;
    let mut options = Map::new();
    put(&mut options, "temperature", sampling.temperature);
    put(&mut options, "top_p", sampling.top_p);
    put(&mut options, "num_predict", sampling.max_tokens);
    put(&mut options, "seed", sampling.seed);
    put(&mut options, "stop", some_list(&sampling.stop));
    put(&mut options, "presence_penalty", sampling.presence_penalty);
    put(&mut options, "frequency_penalty", sampling.frequency_penalty);
    let mut fields = Map::new();
    put(&mut fields, "model", *model);
    put(&mut fields, "stream", Some(false));
    put(&mut fields, "format", response_format.map(|it| json!(it)));
    put(&mut fields, "options", (!options.is_empty()).then_some(options));
    (fields, not_applied(&[("logprobs", sampling.logprobs == Some(true))]))
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let chat = Chat {
        message,
        call: |ToolCall { name, arguments, .. }| json!({ "function": { "name": name, "arguments": arguments } }),
        result: |ToolResult { id: _, name, content }| json!({ "role": "tool", "tool_name": name, "content": &**content }),
    };
    let mut body = chat.body(fields, request);
    if may_call(request) {
        body.insert("tools".to_owned(), openai::tools(&request.tools));
    }
    Value::Object(body)
}

fn message(said: &Said) -> Value {
    let mut message = json!({ "role": said.role.as_str(), "content": said.joined() });
    let images = said.images().filter_map(|it| match it {
        Image::File(file) => Some(base64(file)),
        Image::Url(_) => None,
    });
    let images: Vec<String> = images.collect();
    if !images.is_empty() {
        message["images"] = Value::from(images);
    }
    message
}

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

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: String,
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    function: Function,
}

#[derive(Deserialize, Default)]
struct Function {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: Value,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a chat answer"))?)
}

fn is_error(error: &Value) -> bool {
    !error.is_null() && error.as_str() != Some("")
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { message, model, done, done_reason, prompt_eval_count, eval_count, error } = answer;
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
        estimated: false,
    };
    let Message { content: text, thinking, tool_calls } = message;
    let call =
        |Call { function: Function { name, arguments } }| ToolCall::new(None, name, arguments);
    let tool_calls: Vec<ToolCall> = tool_calls.into_iter().map(call).collect();
    let reasoning = thinking.filter(|it| !it.trim().is_empty());
    // It says "stop" then.
    let stop_reason = match text.is_empty() && !tool_calls.is_empty() {
        true => Some("tool_calls".to_owned()),
        false => done_reason,
    };
    Ok(Reply { text, tool_calls, reasoning, stop_reason, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_as_ollama_reads_it() {
        for (value, expected) in [
            ("localhost", "http://localhost:11434"),
            ("h:1234", "http://h:1234"),
            (":18774", "http://127.0.0.1:18774"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            ("[::1]", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("[::]:5", "http://[::1]:5"),
            ("http://h", "http://h:80"),
            ("https://h", "https://h:443"),
            ("https://h/ollama/", "https://h:443/ollama/"),
            ("http://u:p@h:7/x", "http://u:p@h:7/x"),
            ("ftp://h", "ftp://h"),
            (" \"h\" ", "http://h:11434"),
        ] {
            assert_eq!(address(value), expected, "{value}");
        }
    }

    #[test]
    fn an_answer_is_read() {
        let body = br#"{"model":"m","message":{"role":"assistant","content":"hello"},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}"#;
        let reply = decode(body).unwrap();
        assert_eq!((reply.text.as_str(), reply.usage.total()), ("hello", 12));
    }

    #[test]
    fn tool_calls_and_thoughts_are_kept() {
        let body = br#"{"message":{"content":"","thinking":"hm","tool_calls":[{"function":{"name":"add","arguments":{"a":1}}}]},"done":true,"done_reason":"stop"}"#;
        let reply = decode(body).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
        assert_eq!(reply.reasoning.as_deref(), Some("hm"));
    }

    #[test]
    fn what_is_not_an_answer_is_told_apart() {
        assert_eq!(decode(br#"{"error":"model not found"}"#), Err(Undecoded::Error));
        assert!(matches!(decode(b"{}"), Err(Undecoded::Shape(_))));
        let cut = br#"{"message":{"content":"hel"},"done":false}"#;
        assert!(matches!(decode(cut), Err(Undecoded::Shape(_))));
        let no_error = br#"{"message":{"content":"hello"},"done":true,"error":""}"#;
        assert_eq!(decode(no_error).unwrap().text, "hello");
    }
}
