//! OpenAI's chat completions, which many servers speak.

mod stream;

use probity_core::{
    record::Usage,
    reply::{Logprobs, Reply},
    request::{
        Message as Said, Part as Uttered, Request, ResponseFormat, Tool, ToolCall, ToolChoice,
        ToolResult,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Chat, DialectSpec, Fields, KeyHeader, Undecoded, Wanted, count, image_url, not_applied, put,
    same, some_list, tokens, without_tail,
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

pub(super) const TAIL: &str = "/chat/completions";

pub(super) fn fields(wanted: &Wanted<'_>) -> Fields {
    let Wanted { model, sampling, response_format, limit, seed } = wanted;
    let mut fields = Map::new();
    put(&mut fields, "model", *model);
    put(&mut fields, "temperature", sampling.temperature);
    put(&mut fields, "top_p", sampling.top_p);
    put(&mut fields, limit, sampling.max_tokens);
    if let Some(name) = seed {
        put(&mut fields, name, sampling.seed);
    }
    put(&mut fields, "stop", some_list(&sampling.stop));
    put(&mut fields, "logprobs", sampling.logprobs);
    put(&mut fields, "presence_penalty", sampling.presence_penalty);
    put(&mut fields, "frequency_penalty", sampling.frequency_penalty);
    let format = response_format.map(|format| match format {
        ResponseFormat::Json => json!({ "type": "json_object" }),
        ResponseFormat::Schema(format) => match format.get("type") {
            Some(Value::String(kind)) if kind.starts_with("json_") => (**format).clone(),
            Some(_) | None => json!({
                "type": "json_schema",
                "json_schema": { "name": "reply", "schema": format },
            }),
        },
    });
    put(&mut fields, "response_format", format);
    (fields, not_applied(&[("seed", seed.is_none() && sampling.seed.is_some())]))
}

pub(super) const CHAT: Chat = Chat {
    message: |said| json!({ "role": said.role.as_str(), "content": content(said) }),
    call: |call| {
        let arguments = call.arguments.to_string();
        let function = json!({ "name": call.name, "arguments": arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    },
    result: |ToolResult { id, name: _, content }| json!({ "role": "tool", "tool_call_id": id, "content": &**content }),
};

pub(super) fn encode(fields: &Map<String, Value>, request: &Request) -> Value {
    let mut body = CHAT.body(fields, request);
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(&request.tools));
        put(&mut body, "tool_choice", request.tool_choice.as_ref().map(tool_choice));
    }
    Value::Object(body)
}

/// The tools that may be called, as Ollama has them, too.
pub(super) fn tools(tools: &[Tool]) -> Value {
    let tool = |Tool { name, description, parameters }: &Tool| {
        let mut function = json!({ "name": name, "parameters": parameters });
        if let Some(description) = description {
            function["description"] = Value::from(description.as_str());
        }
        json!({ "type": "function", "function": function })
    };
    Value::Array(tools.iter().map(tool).collect())
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
    }
}

fn content(said: &Said) -> Value {
    if said.images().next().is_none() {
        return Value::from(said.joined());
    }
    let part = |part: &Uttered| match part {
        Uttered::Text(text) => Some(json!({ "type": "text", "text": &**text })),
        Uttered::Image(image) => {
            Some(json!({ "type": "image_url", "image_url": { "url": image_url(image) } }))
        }
        Uttered::ToolCall(_) | Uttered::ToolResult(_) => None,
    };
    Value::Array(said.content.iter().filter_map(part).collect())
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
    logprobs: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
    /// The older way to call one tool.
    function_call: Option<Function>,
    /// What `DeepSeek`, vLLM and xAI call it.
    reasoning_content: Option<String>,
    /// What `OpenRouter` and Groq call it.
    reasoning: Option<Value>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    #[serde(default)]
    function: Function,
}

#[derive(Deserialize, Default)]
struct Function {
    #[serde(default)]
    name: String,
    arguments: Option<Value>,
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
    /// Mistral's reasoning: parts of its own, or text.
    thinking: Option<Thinking>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Thinking {
    Text(String),
    Parts(Vec<Thought>),
}

#[derive(Deserialize)]
struct Thought {
    text: Option<String>,
}

#[derive(Deserialize)]
struct TokenUsage {
    prompt_tokens: Option<Value>,
    completion_tokens: Option<Value>,
    prompt_tokens_details: Option<PromptTokens>,
    /// Dollars, where a service says so.
    cost: Option<Value>,
}

#[derive(Deserialize)]
struct PromptTokens {
    cached_tokens: Option<Value>,
}

pub(super) fn decode(body: &[u8]) -> Result<Reply, Undecoded> {
    let answer = serde_json::from_slice(body);
    reply(answer.map_err(|_| Undecoded::Shape("it is not a chat completion"))?)
}

fn reply(answer: Answer) -> Result<Reply, Undecoded> {
    let Answer { choices, model, usage, error } = answer;
    if choices.is_empty() && error.is_some_and(|error| !error.is_null()) {
        return Err(Undecoded::Error);
    }
    let choice = choices.into_iter().next().ok_or(Undecoded::Shape("it has no `choices`"))?;
    let logprobs = choice.logprobs.as_ref().and_then(|it| it.get("content"));
    let logprobs = Logprobs::of(logprobs.map(tokens).unwrap_or_default());
    let message = choice.message.ok_or(Undecoded::Shape("its choice has no `message`"))?;
    let Message { content, refusal, tool_calls, function_call, reasoning_content, reasoning } =
        message;
    let (text, thoughts) = split(content);
    let reasoning = [reasoning_content, reasoning.and_then(text_of), thoughts];
    let reasoning = reasoning.into_iter().flatten().find(|it| !it.trim().is_empty());
    let older = function_call.map(|function| Call { id: None, function });
    let tool_calls: Vec<ToolCall> =
        tool_calls.into_iter().flatten().chain(older).map(tool_call).collect();
    let refusal = refusal.filter(|refusal| !refusal.is_empty());
    let (text, stop_reason) = match refusal {
        Some(refusal) if text.is_empty() => (refusal, Some("refusal".to_owned())),
        // Some servers say "stop" then.
        None if text.is_empty() && !tool_calls.is_empty() => (text, Some("tool_calls".to_owned())),
        Some(_) | None => (text, choice.finish_reason),
    };
    let cost_usd = usage.as_ref().and_then(|usage| cost(usage.cost.as_ref()?));
    let usage = usage.map_or_else(Usage::default, |usage| Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: usage.prompt_tokens_details.and_then(|it| count(it.cached_tokens)),
        estimated: false,
    });
    Ok(Reply {
        text,
        tool_calls,
        reasoning,
        logprobs,
        stop_reason,
        model,
        usage,
        cost_usd,
        ..Reply::default()
    })
}

/// The text of a message, and reasoning that stands among its parts.
fn split(content: Option<Content>) -> (String, Option<String>) {
    let parts = match content {
        None => return (String::new(), None),
        Some(Content::Text(text)) => return (text, None),
        Some(Content::Parts(parts)) => parts,
    };
    let (mut text, mut thoughts) = (String::new(), String::new());
    for part in parts {
        text.extend(part.text);
        match part.thinking {
            Some(Thinking::Text(thought)) => thoughts.push_str(&thought),
            Some(Thinking::Parts(parts)) => {
                thoughts.extend(parts.into_iter().filter_map(|it| it.text));
            }
            None => {}
        }
    }
    (text, Some(thoughts))
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

fn tool_call(call: Call) -> ToolCall {
    let Call { id, function: Function { name, arguments } } = call;
    match arguments {
        Some(Value::String(text)) => ToolCall::with_text(id, name, &text),
        arguments => ToolCall::new(id, name, arguments.unwrap_or_default()),
    }
}

/// Dollars: `OpenRouter` sends a number, Perplexity a list of items with their sum.
fn cost(value: &Value) -> Option<f64> {
    let dollars = value.as_f64().or_else(|| value.get("total_cost")?.as_f64())?;
    (dollars.is_finite() && dollars >= 0.0).then_some(dollars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_goes_before_the_prompt() {
        let fields = Map::from_iter([("model".to_owned(), json!("m"))]);
        let body = encode(&fields, &Request::new(Some("be brief".into()), "hi"));
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
        let usage = Usage {
            input_tokens: Some(5),
            output_tokens: Some(1),
            cached_tokens: Some(2),
            estimated: false,
        };
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
    fn tool_calls_are_kept() {
        let body = br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},"finish_reason":"stop"}]}"#;
        let reply = decode(body).unwrap();
        assert_eq!(reply.answer(), r#"[{"name":"add","arguments":{"a":1}}]"#);
        assert_eq!(reply.stop_reason.as_deref(), Some("tool_calls"));
        let older = br#"{"choices":[{"message":{"content":"","function_call":{"name":"f","arguments":"x"}}}]}"#;
        assert_eq!(decode(older).unwrap().answer(), r#"[{"name":"f","arguments":"x"}]"#);
    }

    #[test]
    fn what_is_no_list_of_tokens_does_not_spoil_a_reply() {
        let read = |logprobs: &str| {
            let body = format!(
                r#"{{"choices":[{{"message":{{"content":"ab"}},"logprobs":{logprobs}}}]}}"#
            );
            decode(body.as_bytes()).unwrap().logprobs.map_or(0, |it| it.0.len())
        };
        assert_eq!(
            read(
                r#"{"content":[{"token":"a","logprob":-0.1},{"token":"b","logprob":-9999.0,"bytes":null}]}"#
            ),
            2
        );
        for other in [
            "null",
            "{}",
            r#"{"content":null}"#,
            r#"{"content":[{"token":1}, "x"]}"#,
            "3",
            r#"{"tokens":["a"]}"#,
        ] {
            assert_eq!(read(other), 0, "{other}");
        }
    }

    #[test]
    fn reasoning_stands_apart() {
        for message in [
            r#"{"content":"4","reasoning_content":"hm"}"#,
            r#"{"content":"4","reasoning":"hm"}"#,
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"4"}]}"#,
        ] {
            let body = format!(r#"{{"choices":[{{"message":{message}}}]}}"#);
            let reply = decode(body.as_bytes()).unwrap();
            assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("4", Some("hm")), "{message}");
        }
    }

    #[test]
    fn a_service_may_say_what_a_call_cost() {
        for (cost, expected) in
            [("0.002", Some(0.002)), (r#"{"total_cost":0.5}"#, Some(0.5)), ("-1", None)]
        {
            let body = format!(
                r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{{"cost":{cost}}}}}"#
            );
            assert_eq!(decode(body.as_bytes()).unwrap().cost_usd, expected);
        }
    }

    #[test]
    fn what_is_not_a_completion_is_told_apart() {
        assert_eq!(decode(br#"{"error":{"message":"no"}}"#), Err(Undecoded::Error));
        let shapes: [&[u8]; 5] = [b"", b"<html>", b"[]", b"{}", br#"{"choices":[{}]}"#];
        for shape in shapes {
            assert!(matches!(decode(shape), Err(Undecoded::Shape(_))), "{shape:?}");
        }
    }
}
