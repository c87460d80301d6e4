//! OpenAI's responses, the successor of its chat completions.

mod stream;

use probity_core::{
    record::Usage,
    reply::{Logprobs, Reply},
    request::{Message, Part, Request, ResponseFormat, Tool, ToolCall, ToolChoice, ToolResult},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DialectSpec, Fields, KeyHeader, Undecoded, Wanted, count, image_url, is_model, not_applied,
    put, same, tokens, without_tail,
};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Bearer,
    headers: &[],
    parameter: None,
    endpoint: |base, _| format!("{}{TAIL}", without_tail(base, TAIL)),
    models: |base| format!("{}/models", without_tail(base, TAIL)),
    bare_model: same,
    error_header: None,
    max_tokens: None,
    fields,
    lacks: &[],
    encode,
    decode,
    stream: stream::STREAM,
};

const TAIL: &str = "/responses";

fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { model, sampling, response_format, .. } = wanted;
    let mut fields = Map::new();
    put(&mut fields, "model", *model);
    put(&mut fields, "temperature", sampling.temperature);
    put(&mut fields, "top_p", sampling.top_p);
    put(&mut fields, "max_output_tokens", sampling.max_tokens);
    let format = response_format.map(|format| match format {
        ResponseFormat::Json => json!({ "format": { "type": "json_object" } }),
        ResponseFormat::Schema(schema) => json!({
            "format": { "type": "json_schema", "name": "reply", "schema": schema },
        }),
    });
    put(&mut fields, "text", format);
    if sampling.logprobs == Some(true) {
        put(&mut fields, "include", Some(json!(["message.output_text.logprobs"])));
    }
    // Every case stands alone, and nobody looks at it again.
    put(&mut fields, "store", Some(false));
    let unknown = [
        ("seed", sampling.seed.is_some()),
        ("stop", !sampling.stop.is_empty()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
    ];
    (fields, not_applied(&unknown))
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    put(&mut body, "instructions", request.system());
    let input = request.conversation().iter().flat_map(items).collect();
    body.insert("input".to_owned(), Value::Array(input));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        put(&mut body, "tool_choice", request.tool_choice.as_ref().map(tool_choice));
    }
    Value::Object(body)
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    // Without a word about it, it makes every parameter a required one.
    let mut tool =
        json!({ "type": "function", "name": name, "parameters": parameters, "strict": false });
    if let Some(description) = description {
        tool["description"] = Value::from(description.as_str());
    }
    tool
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({ "type": "function", "name": name }),
    }
}

/// A message, and the calls in it as items of their own.
fn items(said: &Message) -> Vec<Value> {
    let role = said.role.as_str();
    if said.images().next().is_some() {
        let block = |part: &Part| match part {
            Part::Text(text) => Some(json!({ "type": "input_text", "text": &**text })),
            Part::Image(image) => {
                Some(json!({ "type": "input_image", "image_url": image_url(image) }))
            }
            Part::ToolCall(_) | Part::ToolResult(_) => None,
        };
        let content: Vec<Value> = said.content.iter().filter_map(block).collect();
        return vec![json!({ "role": role, "content": content })];
    }
    let item = |part: &Part| match part {
        // Some servers take what the model said only with its type.
        Part::Text(text) if is_model(said.role) => {
            json!({ "type": "message", "role": role, "content": &**text })
        }
        Part::Text(text) => json!({ "role": role, "content": &**text }),
        Part::Image(image) => json!({ "role": role, "content": image_url(image) }),
        Part::ToolResult(ToolResult { id, name: _, content }) => {
            json!({ "type": "function_call_output", "call_id": id, "output": &**content })
        }
        Part::ToolCall(ToolCall { id, name, arguments, .. }) => json!({
            "type": "function_call", "call_id": id, "name": name,
            "arguments": arguments.to_string(),
        }),
    };
    said.content.iter().map(item).collect()
}

#[derive(Deserialize)]
struct Answer {
    status: Option<String>,
    #[serde(default)]
    output: Vec<Item>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    content: Option<Vec<Block>>,
    #[serde(default)]
    summary: Vec<Block>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    refusal: Option<String>,
    logprobs: Option<Value>,
}

#[derive(Deserialize)]
struct TokenUsage {
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    input_tokens_details: Option<InputTokens>,
}

#[derive(Deserialize)]
struct InputTokens {
    cached_tokens: Option<Value>,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a response"))?)
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { status, output, model, usage, error, incomplete_details } = answer;
    if error.is_some_and(|error| !error.is_null()) || status.as_deref() == Some("failed") {
        return Err(Undecoded::Error);
    }
    let Some(status) = status else { return Err(Undecoded::Shape("it has no `status`")) };
    if status == "in_progress" || status == "queued" {
        return Err(Undecoded::Shape("it is not at its end"));
    }
    let (mut text, mut refusal, mut thoughts) = (String::new(), String::new(), String::new());
    let (mut tool_calls, mut said) = (Vec::new(), Vec::new());
    for item in output {
        let Item { r#type, content, summary, call_id, name, arguments } = item;
        let blocks = content.unwrap_or_default();
        match r#type.as_str() {
            "message" => {
                for block in blocks {
                    text.extend(block.text);
                    refusal.extend(block.refusal);
                    said.extend(block.logprobs.iter().flat_map(tokens));
                }
            }
            // What it thought, or a summary of that.
            "reasoning" => {
                thoughts.extend(summary.into_iter().chain(blocks).filter_map(|it| it.text));
            }
            "function_call" => {
                let (name, arguments) = (name.unwrap_or_default(), arguments.unwrap_or_default());
                tool_calls.push(ToolCall::with_text(call_id, name, &arguments));
            }
            // What the vendor's own tools did on the way.
            _ => {}
        }
    }
    let reason = incomplete_details.and_then(|it| it.reason);
    let (text, stop_reason) = match (refusal.is_empty(), reason) {
        (false, _) if text.is_empty() => (refusal, "refusal".to_owned()),
        (_, Some(reason)) => (text, reason),
        (_, None) if text.is_empty() && !tool_calls.is_empty() => (text, "tool_calls".to_owned()),
        (_, None) => (text, status),
    };
    let usage = usage.map_or_else(Usage::default, |usage| Usage {
        input_tokens: count(usage.input_tokens),
        output_tokens: count(usage.output_tokens),
        cached_tokens: usage.input_tokens_details.and_then(|it| count(it.cached_tokens)),
        estimated: false,
    });
    let reasoning = Some(thoughts).filter(|it| !it.is_empty());
    let stop_reason = Some(stop_reason);
    let logprobs = Logprobs::of(said);
    Ok(Reply {
        text,
        tool_calls,
        reasoning,
        logprobs,
        stop_reason,
        model,
        usage,
        ..Reply::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_stand_beside_the_input() {
        let body = encode(&Map::new(), &Request::new(Some("be brief".into()), "hi"));
        let expected =
            json!({ "instructions": "be brief", "input": [{ "role": "user", "content": "hi" }] });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_response_is_read() {
        let body = br#"{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"m-1","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":5},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":80},"total_tokens":123}}"#;
        let reply = decode(body).unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("hello", Some("hm")));
        assert_eq!((reply.stop_reason.as_deref(), reply.usage.total()), (Some("completed"), 123));
        assert_eq!(reply.usage.cached_tokens, Some(5));
    }

    #[test]
    fn calls_refusals_and_limits_are_told() {
        let call = br#"{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\":1}"}]}"#;
        let reply = decode(call).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
        assert_eq!(reply.stop_reason.as_deref(), Some("tool_calls"));
        let refused = br#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I can't"}]}]}"#;
        let reply = decode(refused).unwrap();
        assert_eq!((&*reply.text, reply.stop_reason.as_deref()), ("I can't", Some("refusal")));
        let cut = br#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}"#;
        assert_eq!(decode(cut).unwrap().stop_reason.as_deref(), Some("max_output_tokens"));
    }

    #[test]
    fn what_is_not_a_response_is_told_apart() {
        assert_eq!(decode(br#"{"error":{"message":"no"}}"#), Err(Undecoded::Error));
        assert_eq!(
            decode(br#"{"status":"failed","error":{"code":"server_error"}}"#),
            Err(Undecoded::Error)
        );
        for shape in [&b""[..], b"{}", br#"{"status":"in_progress"}"#] {
            assert!(matches!(decode(shape), Err(Undecoded::Shape(_))), "{shape:?}");
        }
    }
}
