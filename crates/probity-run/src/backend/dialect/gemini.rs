//! Google's Gemini: `generateContent`.

mod stream;

use probity_core::{
    record::Usage,
    reply::Reply,
    request::{Image, Message, Part, Request, Tool, ToolCall, ToolChoice, ToolResult},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DialectSpec, Fields, KeyHeader, Undecoded, Wanted, base64, count, is_model, not_applied, put,
    some_list,
};

pub(super) const SPEC: DialectSpec = DialectSpec {
    key_header: KeyHeader::Named("x-goog-api-key"),
    headers: &[],
    parameter: None,
    endpoint: |base, model| format!("{}/{}:generateContent", stem(base), resource(model)),
    // It lists fifty unless told otherwise.
    models: |base| format!("{}/models?pageSize=1000", stem(base)),
    bare_model: |name| name.strip_prefix("models/").unwrap_or(name),
    error_header: None,
    max_tokens: None,
    fields,
    lacks: &[],
    encode,
    decode,
    stream: stream::STREAM,
};

/// The address with its version, which people write and leave out, and without a model.
fn stem(base: &str) -> String {
    let base = base.split("/models/").next().unwrap_or(base);
    match base.rsplit('/').next().is_some_and(|last| last.starts_with("v1")) {
        true => base.to_owned(),
        false => format!("{base}/v1beta"),
    }
}

/// A model's name as the address wants it; tuned models have a path of their own.
fn resource(model: &str) -> String {
    match model.contains('/') {
        true => model.to_owned(),
        false => format!("models/{model}"),
    }
}

fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { sampling, response_format, .. } = wanted;
    let mut generation = Map::new();
    put(&mut generation, "temperature", sampling.temperature);
    put(&mut generation, "topP", sampling.top_p);
    put(&mut generation, "maxOutputTokens", sampling.max_tokens);
    put(&mut generation, "seed", sampling.seed);
    put(&mut generation, "stopSequences", some_list(&sampling.stop));
    put(&mut generation, "presencePenalty", sampling.presence_penalty);
    put(&mut generation, "frequencyPenalty", sampling.frequency_penalty);
    if let Some(format) = response_format {
        put(&mut generation, "responseMimeType", Some("application/json"));
        put(&mut generation, "responseJsonSchema", format.schema().cloned());
    }
    let mut fields = Map::new();
    put(&mut fields, "generationConfig", (!generation.is_empty()).then_some(generation));
    (fields, not_applied(&[("logprobs", sampling.logprobs == Some(true))]))
}

fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = fields.clone();
    let system = request.system().map(|text| json!({ "parts": [{ "text": text }] }));
    put(&mut body, "systemInstruction", system);
    let contents = request.conversation().iter().map(content).collect();
    body.insert("contents".to_owned(), Value::Array(contents));
    if !request.tools.is_empty() {
        let declared: Vec<Value> = request.tools.iter().map(declaration).collect();
        put(&mut body, "tools", Some(json!([{ "functionDeclarations": declared }])));
        put(&mut body, "toolConfig", request.tool_choice.as_ref().map(tool_config));
    }
    Value::Object(body)
}

fn declaration(Tool { name, description, parameters }: &Tool) -> Value {
    let mut tool = json!({ "name": name, "parametersJsonSchema": parameters });
    if let Some(description) = description {
        tool["description"] = Value::from(description.as_str());
    }
    tool
}

fn tool_config(choice: &ToolChoice) -> Value {
    let calling = match choice {
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    json!({ "functionCallingConfig": calling })
}

fn content(said: &Message) -> Value {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "text": &**text }),
        Part::ToolCall(ToolCall { id: _, name, arguments, opaque }) => {
            let mut part = json!({ "functionCall": { "name": name, "args": arguments } });
            if let Some(signature) = opaque {
                part["thoughtSignature"] = signature.clone();
            }
            part
        }
        Part::ToolResult(ToolResult { id: _, name, content }) => json!({
            "functionResponse": { "name": name, "response": { "result": &**content } },
        }),
        Part::Image(Image::Url(url)) => json!({ "fileData": { "fileUri": &**url } }),
        Part::Image(Image::File(file)) => {
            json!({ "inlineData": { "mimeType": file.kind, "data": base64(file) } })
        }
    };
    let role = if is_model(said.role) { "model" } else { "user" };
    json!({ "role": role, "parts": said.content.iter().map(part).collect::<Vec<_>>() })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<TokenUsage>,
    model_version: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    text: Option<String>,
    /// Whether the text is a thought.
    #[serde(default)]
    thought: bool,
    function_call: Option<Call>,
    /// What it wants to get back with the call.
    thought_signature: Option<Value>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the vendor's names")]
struct TokenUsage {
    prompt_token_count: Option<Value>,
    candidates_token_count: Option<Value>,
    thoughts_token_count: Option<Value>,
    cached_content_token_count: Option<Value>,
}

fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a `generateContent` answer"))?)
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { candidates, prompt_feedback, usage_metadata, model_version: model, error } =
        answer;
    if error.is_some_and(|error| !error.is_null()) {
        return Err(Undecoded::Error);
    }
    let usage = usage_metadata.map_or_else(Usage::default, usage);
    let blocked = prompt_feedback.and_then(|it| it.block_reason);
    let Some(Candidate { content, finish_reason }) = candidates.into_iter().next() else {
        // A prompt that it will not answer has no candidates, and a reason.
        let reason = blocked.ok_or(Undecoded::Shape("it has no `candidates`"))?;
        let stop_reason = Some(block(reason));
        return Ok(Reply { stop_reason, model, usage, ..Reply::default() });
    };
    let (mut text, mut thoughts, mut tool_calls) = (String::new(), String::new(), Vec::new());
    for part in content.map(|it| it.parts).unwrap_or_default() {
        match part.thought {
            true => thoughts.extend(part.text),
            false => text.extend(part.text),
        }
        let opaque = part.thought_signature;
        let call = |Call { id, name, args }| ToolCall { id, name, arguments: args, opaque };
        tool_calls.extend(part.function_call.map(call));
    }
    // It says "STOP" then.
    let stop_reason = match text.is_empty() && !tool_calls.is_empty() {
        true => Some("tool_calls".to_owned()),
        false => finish_reason,
    };
    let reasoning = Some(thoughts).filter(|it| !it.is_empty());
    Ok(Reply { text, tool_calls, reasoning, stop_reason, model, usage, ..Reply::default() })
}

/// Why a prompt was blocked. Reasons without a name of their own are a filter's all the same.
fn block(reason: String) -> String {
    match reason.as_str() {
        "OTHER" | "BLOCK_REASON_UNSPECIFIED" | "IMAGE_SAFETY" => "content_filter".to_owned(),
        _ => reason,
    }
}

fn usage(usage: TokenUsage) -> Usage {
    let thoughts = count(usage.thoughts_token_count);
    let answer = count(usage.candidates_token_count);
    Usage {
        input_tokens: count(usage.prompt_token_count),
        // Thoughts are paid for as output, and counted apart.
        output_tokens: match (answer, thoughts) {
            (None, None) => None,
            (answer, thoughts) => Some(answer.unwrap_or(0) + thoughts.unwrap_or(0)),
        },
        cached_tokens: count(usage.cached_content_token_count),
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use probity_core::request::Role;

    use super::*;

    #[test]
    fn a_signature_goes_back_with_its_call() {
        let part = r#"{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}"#;
        let body = format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#);
        let call = decode(body.as_bytes()).unwrap().tool_calls.remove(0);
        let said = Message { role: Role::Assistant, content: vec![Part::ToolCall(call)] };
        let expected: Value = serde_json::from_str(part).unwrap();
        assert_eq!(content(&said)["parts"][0], expected);
    }

    #[test]
    fn system_stands_beside_the_contents() {
        let body = encode(&Map::new(), &Request::new(Some("be brief".into()), "hi"));
        let expected = json!({
            "systemInstruction": { "parts": [{ "text": "be brief" }] },
            "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn the_model_is_part_of_the_address() {
        let google = "https://generativelanguage.googleapis.com";
        let expected = format!("{google}/v1beta/models/gemini-2.5-flash:generateContent");
        for base in [
            google.to_owned(),
            format!("{google}/v1beta"),
            format!("{google}/v1beta/models/gemini-2.5-flash:generateContent"),
        ] {
            assert_eq!((SPEC.endpoint)(&base, "gemini-2.5-flash"), expected);
        }
        assert_eq!(
            (SPEC.endpoint)("http://h/v1", "tunedModels/x"),
            "http://h/v1/tunedModels/x:generateContent"
        );
        assert_eq!((SPEC.bare_model)("models/gemini-2.5-flash"), "gemini-2.5-flash");
    }

    #[test]
    fn an_answer_is_read() {
        let body = br#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"hel"},{"text":"lo"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":30,"cachedContentTokenCount":1,"totalTokenCount":36},"modelVersion":"gemini-2.5-flash","responseId":"x"}"#;
        let reply = decode(body).unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("hello", Some("hm")));
        assert_eq!(reply.model.as_deref(), Some("gemini-2.5-flash"));
        let usage = Usage {
            input_tokens: Some(4),
            output_tokens: Some(32),
            cached_tokens: Some(1),
            estimated: false,
        };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn a_block_is_told_by_its_reason() {
        let reason = |body: &str| decode(body.as_bytes()).unwrap().stop_reason.unwrap();
        assert_eq!(reason(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#), "SAFETY");
        assert_eq!(reason(r#"{"promptFeedback":{"blockReason":"OTHER"}}"#), "content_filter");
        assert_eq!(
            reason(r#"{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}"#),
            "PROHIBITED_CONTENT"
        );
    }

    #[test]
    fn tool_calls_are_kept() {
        let body = br#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"add","args":{"a":1}}}]},"finishReason":"STOP"}]}"#;
        let reply = decode(body).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
    }

    #[test]
    fn what_is_not_an_answer_is_told_apart() {
        let error = br#"{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}"#;
        assert_eq!(decode(error), Err(Undecoded::Error));
        for shape in [&b""[..], b"{}", b"[]"] {
            assert!(matches!(decode(shape), Err(Undecoded::Shape(_))), "{shape:?}");
        }
    }
}
