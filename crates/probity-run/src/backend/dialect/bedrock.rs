//! Amazon Bedrock: `Converse`.

mod stream;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use probity_core::{
    record::Usage,
    reply::Reply,
    request::{
        Image, ImageType, Message, Need, Part, Request, ResponseFormat, Tool, ToolCall, ToolChoice,
        ToolResult,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    DialectSpec, Fields, KeyHeader, Undecoded, Wanted, base64, count, is_model, may_call,
    not_applied, put, some_list,
};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Bearer,
    headers: &[],
    parameter: None,
    endpoint: |base, model| {
        format!("{}/model/{}{TAIL}", stem(base), utf8_percent_encode(model, IN_LABEL))
    },
    models: |base| format!("{}/foundation-models", control_plane(stem(base))),
    // It lists foundation models; inference profiles and other resources have names of their own.
    bare_model: |_| "",
    error_header: Some("x-amzn-errortype"),
    max_tokens: None,
    fields,
    lacks: &[Need::ImageUrl],
    encode,
    decode,
    stream: stream::STREAM,
};

const TAIL: &str = "/converse";
const RUNTIME: &str = "https://bedrock-runtime";

/// What stands in a part of a path as it is.
const IN_LABEL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where models of a region answer.
pub(super) fn address(region: &str) -> String {
    format!("{RUNTIME}.{region}.amazonaws.com")
}

/// An address without a model: people copy the whole address, too.
fn stem(base: &str) -> &str {
    base.split("/model/").next().unwrap_or(base)
}

/// Where models of the same region are listed, which is another host at AWS.
fn control_plane(base: &str) -> String {
    match base.strip_prefix(RUNTIME) {
        Some(rest) => format!("https://bedrock{rest}"),
        None => base.to_owned(),
    }
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { sampling, response_format, .. } = wanted;
    let mut inference = Map::new();
    put(&mut inference, "maxTokens", sampling.max_tokens);
    put(&mut inference, "temperature", sampling.temperature);
    put(&mut inference, "topP", sampling.top_p);
    put(&mut inference, "stopSequences", some_list(&sampling.stop));
    let mut fields = Map::new();
    put(&mut fields, "inferenceConfig", (!inference.is_empty()).then_some(inference));
    put(&mut fields, "outputConfig", response_format.map(output_config));
    let unknown = [
        ("seed", sampling.seed.is_some()),
        ("logprobs", sampling.logprobs == Some(true)),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
    ];
    (fields, not_applied(&unknown))
}

/// The form of an answer. It knows schemas alone, as text.
fn output_config(format: &ResponseFormat) -> Value {
    let schema = format.schema().map_or_else(|| json!({ "type": "object" }), Value::clone);
    json!({ "textFormat": {
        "type": "json_schema",
        "structure": { "jsonSchema": { "name": "answer", "schema": schema.to_string() } },
    }})
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    put(&mut body, "system", request.system().map(|text| json!([{ "text": text }])));
    body.insert("messages".to_owned(), Value::Array(messages(request.conversation())));
    // It has no word for tools that must not be called.
    if may_call(request) {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        let mut config = json!({ "tools": tools });
        if let Some(choice) = request.tool_choice.as_ref().and_then(tool_choice) {
            config["toolChoice"] = choice;
        }
        body.insert("toolConfig".to_owned(), config);
    }
    Value::Object(body)
}

/// User and model take turns, so what one of them says in a row is one message.
fn messages(said: &[Message]) -> Vec<Value> {
    let turns = said.chunk_by(|one, next| is_model(one.role) == is_model(next.role));
    let turn = |turn: &[Message]| {
        let role = if turn.iter().any(|it| is_model(it.role)) { "assistant" } else { "user" };
        let content: Vec<Value> = turn.iter().flat_map(blocks).collect();
        json!({ "role": role, "content": content })
    };
    turns.map(turn).collect()
}

/// What the model thought before a call has to stand before all that it said then.
fn blocks(said: &Message) -> Vec<Value> {
    let thoughts = said.tool_calls().filter_map(|it| it.opaque.as_ref()?.as_array());
    let thoughts = thoughts.flatten().cloned();
    thoughts.chain(said.content.iter().map(block)).collect()
}

fn block(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": &**text }),
        Part::ToolCall(ToolCall { id, name, arguments, opaque: _ }) => {
            json!({ "toolUse": { "toolUseId": id, "name": name, "input": arguments } })
        }
        Part::ToolResult(ToolResult { id, name: _, content }) => {
            json!({ "toolResult": { "toolUseId": id, "content": [{ "text": &**content }] } })
        }
        // Requests with one are refused before.
        Part::Image(Image::Url(url)) => json!({ "text": &**url }),
        Part::Image(Image::File(file)) => {
            let source = json!({ "bytes": base64(file) });
            json!({ "image": { "format": image_format(file.kind), "source": source } })
        }
    }
}

const fn image_format(kind: ImageType) -> &'static str {
    match kind {
        ImageType::Png => "png",
        ImageType::Jpeg => "jpeg",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
    }
}

fn tool(Tool { name, description, parameters }: &Tool) -> Value {
    let mut spec = json!({ "name": name, "inputSchema": { "json": parameters } });
    if let Some(description) = description {
        spec["description"] = Value::from(description.as_str());
    }
    json!({ "toolSpec": spec })
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => Some(json!({ "auto": {} })),
        ToolChoice::Required => Some(json!({ "any": {} })),
        ToolChoice::Tool(name) => Some(json!({ "tool": { "name": name } })),
        ToolChoice::None => None,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    output: Option<Output>,
    stop_reason: Option<String>,
    usage: Option<TokenUsage>,
}

#[derive(Deserialize)]
struct Output {
    message: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Vec<Block>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    text: Option<String>,
    tool_use: Option<ToolUse>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Default, Deserialize)]
struct ToolUse {
    #[serde(rename = "toolUseId")]
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    input: Value,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<ReasoningText>,
    /// Thoughts that nobody is to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted_content: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct ReasoningText {
    text: String,
    /// What it wants to get back with its thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Reasoning {
    /// Whether it wants to get it back.
    fn is_signed(&self) -> bool {
        let signed = self.reasoning_text.as_ref().is_some_and(|it| it.signature.is_some());
        signed || self.redacted_content.is_some()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct TokenUsage {
    input_tokens: Option<Value>,
    output_tokens: Option<Value>,
    cache_read_input_tokens: Option<Value>,
    cache_write_input_tokens: Option<Value>,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a `Converse` answer"))?)
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { output, stop_reason, usage } = answer;
    let message = output.and_then(|it| it.message);
    if message.is_none() && stop_reason.is_none() {
        return Err(Undecoded::Shape("it has no `output`"));
    }
    let (mut text, mut thoughts, mut tool_calls) = (String::new(), String::new(), Vec::new());
    let mut signed = Vec::new();
    for block in message.map(|it| it.content).unwrap_or_default() {
        let Block { text: said, tool_use, reasoning_content } = block;
        text.extend(said);
        if let Some(thought) = reasoning_content.as_ref().filter(|it| it.is_signed()) {
            signed.push(json!({ "reasoningContent": thought }));
        }
        thoughts.extend(reasoning_content.and_then(|it| Some(it.reasoning_text?.text)));
        if let Some(ToolUse { id, name, input: arguments }) = tool_use {
            let before = std::mem::take(&mut signed);
            let opaque = (!before.is_empty()).then_some(Value::Array(before));
            tool_calls.push(ToolCall { id, name, arguments, opaque });
        }
    }
    let reasoning = Some(thoughts).filter(|it| !it.is_empty());
    let usage = usage.map_or_else(Usage::default, token_usage);
    Ok(Reply { text, tool_calls, reasoning, stop_reason, usage, ..Reply::default() })
}

fn token_usage(usage: TokenUsage) -> Usage {
    let cached = count(usage.cache_read_input_tokens);
    let created = count(usage.cache_write_input_tokens);
    Usage {
        // What was read from or written to the cache is not in `inputTokens`.
        input_tokens: count(usage.input_tokens)
            .map(|it| it + cached.unwrap_or(0) + created.unwrap_or(0)),
        output_tokens: count(usage.output_tokens),
        cached_tokens: cached,
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::dialect::addresses;

    #[test]
    fn the_model_is_part_of_the_address() {
        let home = address("eu-west-1");
        assert_eq!(home, "https://bedrock-runtime.eu-west-1.amazonaws.com");
        let (endpoint, models) = addresses(&SPEC, &home, "anthropic.claude-3-haiku-20240307-v1:0");
        let path = "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse";
        assert_eq!(endpoint, format!("{home}{path}"));
        assert_eq!(models, "https://bedrock.eu-west-1.amazonaws.com/foundation-models");
        let copied = format!("{home}/model/other/converse");
        let profile = "arn:aws:bedrock:eu-west-1:1:inference-profile/x";
        let path = "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx/converse";
        assert_eq!(addresses(&SPEC, &copied, profile).0, format!("{home}{path}"));
        let own = addresses(&SPEC, "http://h:1", "m");
        let expected = ("http://h:1/model/m/converse", "http://h:1/foundation-models");
        assert_eq!((own.0.as_str(), own.1.as_str()), expected);
    }

    #[test]
    fn what_one_says_in_a_row_is_one_message() {
        let mut request = Request::new(Some("be brief".into()), "one");
        request.messages.push(Message::text(probity_core::request::Role::User, "two"));
        let expected = json!({
            "system": [{ "text": "be brief" }],
            "messages": [{ "role": "user", "content": [{ "text": "one" }, { "text": "two" }] }],
        });
        assert_eq!(encode(&Map::new(), &request), expected);
    }

    #[test]
    fn an_answer_is_read() {
        let body = br#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"x"}}},{"text":"hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":9,"cacheReadInputTokens":4},"metrics":{"latencyMs":551}}"#;
        let reply = decode(body).unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("hello", Some("hm")));
        assert_eq!(reply.stop_reason.as_deref(), Some("end_turn"));
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
        let body = br#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"add","input":{"a":1}}}]}},"stopReason":"tool_use"}"#;
        let reply = decode(body).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
        assert_eq!(reply.tool_calls[0].id.as_deref(), Some("t1"));
    }

    #[test]
    fn thoughts_go_back_before_the_call_that_they_led_to() {
        let content = json!([
            { "reasoningContent": { "reasoningText": { "text": "hm", "signature": "sig" } } },
            { "reasoningContent": { "redactedContent": "eHg=" } },
            { "text": "I look." },
            { "toolUse": { "toolUseId": "t1", "name": "f", "input": { "a": 1 } } },
        ]);
        let body = json!({ "output": { "message": { "content": content } } }).to_string();
        let call = decode(body.as_bytes()).unwrap().tool_calls[0].clone();
        let parts = vec![Part::Text("I look.".into()), Part::ToolCall(call)];
        let said = Message { role: probity_core::request::Role::Assistant, content: parts };
        assert_eq!(Value::Array(blocks(&said)), content);
    }

    #[test]
    fn what_is_not_an_answer_is_told_apart() {
        for shape in [&b""[..], b"{}", b"[]", br#"{"message":"no"}"#] {
            assert!(matches!(decode(shape), Err(Undecoded::Shape(_))), "{shape:?}");
        }
        let refused = br#"{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"guardrail_intervened"}"#;
        assert_eq!(decode(refused).unwrap().stop_reason.as_deref(), Some("guardrail_intervened"));
    }

    #[test]
    fn a_schema_is_sent_as_text() {
        let config = output_config(&ResponseFormat::Json);
        let schema = config.pointer("/textFormat/structure/jsonSchema/schema");
        assert_eq!(schema, Some(&json!(r#"{"type":"object"}"#)));
    }
}
