//! Anthropic's messages.

mod stream;

use probity_core::{
    record::Usage,
    reply::Reply,
    request::{Image, Message, Need, Part, Request, Tool, ToolCall, ToolChoice, ToolResult},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DialectSpec, Fields, KeyHeader, Undecoded, Wanted, base64, count, is_model, not_applied, put,
    same, some_list, without_tail,
};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Named("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    parameter: None,
    endpoint: |base, _| format!("{}{TAIL}", stem(base)),
    models: |base| format!("{}/models", stem(base)),
    bare_model: same,
    error_header: None,
    max_tokens: Some(1024),
    fields,
    lacks: &[Need::ResponseFormat],
    encode,
    decode,
    stream: stream::STREAM,
};

const TAIL: &str = "/messages";

/// The address with its version, which people write and leave out.
fn stem(base: &str) -> String {
    let base = without_tail(base, TAIL);
    match base.ends_with("/v1") {
        true => base.to_owned(),
        false => format!("{base}/v1"),
    }
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { model, sampling, response_format, .. } = wanted;
    let mut fields = Map::new();
    put(&mut fields, "model", *model);
    put(&mut fields, "max_tokens", sampling.max_tokens.or(SPEC.max_tokens));
    put(&mut fields, "temperature", sampling.temperature);
    put(&mut fields, "top_p", sampling.top_p);
    put(&mut fields, "stop_sequences", some_list(&sampling.stop));
    let unknown = [
        ("seed", sampling.seed.is_some()),
        ("response_format", response_format.is_some()),
        ("logprobs", sampling.logprobs == Some(true)),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
    ];
    (fields, not_applied(&unknown))
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    put(&mut body, "system", request.system());
    let messages = request.conversation().iter().map(message).collect();
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        put(&mut body, "tool_choice", request.tool_choice.as_ref().map(tool_choice));
    }
    Value::Object(body)
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    let mut tool = json!({ "name": name, "input_schema": parameters });
    if let Some(description) = description {
        tool["description"] = Value::from(description.as_str());
    }
    tool
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::None => json!({ "type": "none" }),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => json!({ "type": "tool", "name": name }),
    }
}

fn message(said: &Message) -> Value {
    let role = if is_model(said.role) { "assistant" } else { "user" };
    if let [Part::Text(text)] = said.content.as_slice() {
        return json!({ "role": role, "content": &**text });
    }
    // What it thought before a call has to stand before all that it said then.
    let calls = said.tool_calls().filter_map(|it| it.opaque.as_ref()?.as_array());
    let mut blocks: Vec<Value> = calls.flatten().cloned().collect();
    let block = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "text", "text": &**text }),
        Part::ToolCall(ToolCall { id, name, arguments, opaque: _ }) => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": arguments })
        }
        Part::ToolResult(ToolResult { id, name: _, content }) => {
            json!({ "type": "tool_result", "tool_use_id": id, "content": &**content })
        }
        Part::Image(Image::Url(url)) => {
            json!({ "type": "image", "source": { "type": "url", "url": &**url } })
        }
        Part::Image(Image::File(file)) => json!({ "type": "image", "source": {
            "type": "base64", "media_type": file.kind, "data": base64(file),
        }}),
    };
    blocks.extend(said.content.iter().map(block));
    json!({ "role": role, "content": blocks })
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
    #[serde(default)]
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    /// What it wants to get back with its thoughts.
    signature: Option<Value>,
    /// Thoughts that nobody is to read.
    data: Option<Value>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Value>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct TokenUsage {
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    cache_read_input_tokens: Option<Value>,
    cache_creation_input_tokens: Option<Value>,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a message"))?)
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { content, model, stop_reason, usage, error } = answer;
    if error.is_some_and(|error| !error.is_null()) {
        return Err(Undecoded::Error);
    }
    if content.is_empty() && stop_reason.is_none() {
        return Err(Undecoded::Shape("it has no `content`"));
    }
    let (mut text, mut thoughts, mut tool_calls) = (String::new(), String::new(), Vec::new());
    let mut signed = Vec::new();
    for block in content {
        let Block { r#type, text: said, thinking, signature, data, id, name, input } = block;
        match (&thinking, signature, data) {
            (Some(thinking), Some(signature), _) => signed
                .push(json!({ "type": "thinking", "thinking": thinking, "signature": signature })),
            (None, _, Some(data)) if r#type == "redacted_thinking" => {
                signed.push(json!({ "type": "redacted_thinking", "data": data }));
            }
            (_, _, _) => {}
        }
        text.extend(said);
        thoughts.extend(thinking);
        if r#type == "tool_use" {
            let (name, arguments) = (name.unwrap_or_default(), input.unwrap_or_default());
            let before = std::mem::take(&mut signed);
            let opaque = (!before.is_empty()).then_some(Value::Array(before));
            tool_calls.push(ToolCall { id, name, arguments, opaque });
        }
    }
    let reasoning = Some(thoughts).filter(|it| !it.is_empty());
    let usage = usage.map_or_else(Usage::default, |usage| {
        let cached = count(usage.cache_read_input_tokens);
        let created = count(usage.cache_creation_input_tokens);
        Usage {
            // What was read from or written to the cache is not in `input_tokens`.
            input_tokens: count(usage.input_tokens)
                .map(|it| it + cached.unwrap_or(0) + created.unwrap_or(0)),
            output_tokens: count(usage.output_tokens),
            cached_tokens: cached,
            estimated: false,
        }
    });
    Ok(Reply { text, tool_calls, reasoning, stop_reason, model, usage, ..Reply::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_stands_beside_the_messages() {
        let body = encode(&Map::new(), &Request::new(Some("be brief".into()), "hi"));
        let expected =
            json!({ "system": "be brief", "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(body, expected);
    }

    #[test]
    fn thoughts_go_back_before_the_call_that_they_led_to() {
        let blocks = json!([
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "redacted_thinking", "data": "xx" },
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "t1", "name": "f", "input": { "a": 1 } },
        ]);
        let body = json!({ "content": blocks, "stop_reason": "tool_use" }).to_string();
        let reply = decode(body.as_bytes()).unwrap();
        let call = reply.tool_calls[0].clone();
        let content = vec![Part::Text("I look.".into()), Part::ToolCall(call)];
        let said = Message { role: probity_core::request::Role::Assistant, content };
        assert_eq!(message(&said)["content"], blocks);
        // Without a signature there is nothing to give back.
        let plain = br#"{"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t","name":"f","input":{}}]}"#;
        assert_eq!(decode(plain).unwrap().tool_calls[0].opaque, None);
    }

    #[test]
    fn a_message_is_read() {
        let body = br#"{"type":"message","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":4}}"#;
        let reply = decode(body).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop_reason.as_deref(), reply.reasoning.as_deref()),
            ("hello", Some("end_turn"), Some("hm"))
        );
        let usage = Usage {
            input_tokens: Some(7),
            output_tokens: Some(2),
            cached_tokens: Some(4),
            estimated: false,
        };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn tool_calls_are_kept() {
        let body = br#"{"content":[{"type":"tool_use","id":"t1","name":"add","input":{"a":1}}],"stop_reason":"tool_use"}"#;
        let reply = decode(body).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
        assert_eq!(reply.tool_calls[0].id.as_deref(), Some("t1"));
    }

    #[test]
    fn what_is_not_a_message_is_told_apart() {
        let error =
            br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(decode(error), Err(Undecoded::Error));
        assert!(matches!(decode(b"{}"), Err(Undecoded::Shape(_))));
        let refused = br#"{"content":[],"stop_reason":"refusal"}"#;
        assert_eq!(decode(refused).unwrap().stop_reason.as_deref(), Some("refusal"));
    }
}
