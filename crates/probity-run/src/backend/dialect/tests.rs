use probity_core::request::{Message, Part, Tool, ToolCall, ToolResult};
use probity_load::suite::Way;
use serde_json::json;

use super::*;
use crate::backend::silence::is_silent;

fn service(kind: BackendKind) -> &'static Service {
    Service::of(kind)
}

fn spec(kind: BackendKind) -> &'static DialectSpec {
    service(kind).dialect
}

#[test]
fn every_kind_of_server_has_one_row() {
    for kind in BackendKind::ALL {
        let rows = SERVICES.iter().filter(|it| it.kind == kind).count();
        assert_eq!(rows, usize::from(kind.way() == Way::Server), "{}", kind.as_str());
    }
}

#[test]
fn a_service_with_a_host_of_its_own_is_there_and_wants_a_key() {
    for service in SERVICES.iter().filter(|it| !it.hosts.is_empty() && !it.base_url.is_empty()) {
        let url = crate::backend::address::parse(service.base_url).expect(service.base_url);
        assert!(crate::backend::address::is_official(&url, service.hosts), "{}", service.base_url);
        assert!(!service.key_variables.is_empty(), "{}", service.base_url);
    }
}

fn check_addresses(kind: BackendKind, base: &str, endpoint: &str, models: &str) {
    let expected = (endpoint.to_owned(), models.to_owned());
    assert_eq!(addresses(spec(kind), base, "m"), expected, "{base}");
}

#[test]
fn each_dialect_has_its_addresses() {
    for base in ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions"] {
        let (endpoint, models) = ("http://h/v1/chat/completions", "http://h/v1/models");
        check_addresses(BackendKind::Openai, base, endpoint, models);
    }
    for base in ["http://h", "http://h/v1", "http://h/v1/messages"] {
        let (endpoint, models) = ("http://h/v1/messages", "http://h/v1/models");
        check_addresses(BackendKind::Anthropic, base, endpoint, models);
    }
    for base in ["http://h/", "http://h/api/chat"] {
        check_addresses(BackendKind::Ollama, base, "http://h/api/chat", "http://h/api/tags");
    }
}

#[test]
fn a_query_stays_at_the_end() {
    check_addresses(
        BackendKind::Anthropic,
        "http://h/p?key=a/b",
        "http://h/p/v1/messages?key=a/b",
        "http://h/p/v1/models?key=a/b",
    );
    check_addresses(
        BackendKind::Ollama,
        "http://h?k=v",
        "http://h/api/chat?k=v",
        "http://h/api/tags?k=v",
    );
}

proptest::proptest! {
    #[test]
    fn any_body_is_read_or_refused(body in proptest::collection::vec(0_u8.., 0..200)) {
        for service in SERVICES {
            let _ = (service.dialect.decode)(&body);
        }
    }
}

#[test]
fn a_reply_without_text_is_a_reply_where_the_stop_reason_explains_it() {
    let silent = |kind: BackendKind, body: &str| {
        is_silent(&(spec(kind).decode)(body.as_bytes()).expect("an answer"))
    };
    let anthropic = |body| silent(BackendKind::Anthropic, body);
    assert!(!anthropic(r#"{"content":[],"stop_reason":"max_tokens"}"#));
    assert!(!anthropic(
        r#"{"content":[{"type":"thinking","thinking":"hm"}],"stop_reason":"max_tokens"}"#
    ));
    assert!(!anthropic(r#"{"content":[{"type":"tool_use"}],"stop_reason":"tool_use"}"#));
    assert!(anthropic(r#"{"content":[{"text":" "}],"stop_reason":"end_turn"}"#));
    let openai = |body| silent(BackendKind::Openai, body);
    assert!(!openai(r#"{"choices":[{"message":{"content":""},"finish_reason":"length"}]}"#));
    assert!(!openai(
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{}]},"finish_reason":"stop"}]}"#
    ));
    assert!(openai(r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#));
    // Zero-width characters are nothing to see.
    assert!(openai(
        "{\"choices\":[{\"message\":{\"content\":\"\u{200b}\u{feff}\"},\"finish_reason\":\"stop\"}]}"
    ));
    let ollama = |body| silent(BackendKind::Ollama, body);
    assert!(!ollama(r#"{"message":{"content":""},"done":true,"done_reason":"length"}"#));
    assert!(!ollama(
        r#"{"message":{"content":"","tool_calls":[{}]},"done":true,"done_reason":"stop"}"#
    ));
}

fn fields(kind: BackendKind, sampling: &Sampling, format: Option<&ResponseFormat>) -> Fields {
    let service = service(kind);
    (service.dialect.fields)(&Wanted {
        model: Some("gpt-4o-mini"),
        sampling: Cow::Borrowed(sampling),
        response_format: format,
        limit: "max_tokens",
        seed: service.seed,
    })
}

#[test]
fn more_fields_are_added_and_none_is_lost() {
    let sampling = Sampling { max_tokens: Some(9), temperature: Some(0.0), ..Sampling::default() };
    let (mut fields, _) = fields(BackendKind::Ollama, &sampling, None);
    let Value::Object(more) = json!({ "options": { "num_ctx": 8192 }, "think": false }) else {
        unreachable!("it is one")
    };
    merge(&mut fields, &more);
    assert_eq!(
        Value::from(fields),
        json!({
            "model": "gpt-4o-mini", "stream": false, "think": false,
            "options": { "num_predict": 9, "temperature": 0.0, "num_ctx": 8192 },
        })
    );
}

#[test]
fn each_dialect_gets_its_own_names() {
    let sampling = Sampling {
        max_tokens: Some(9),
        seed: Some(1),
        stop: vec!["x".to_owned()],
        ..Sampling::default()
    };
    let of = |kind| {
        let (fields, not_applied) = fields(kind, &sampling, Some(&ResponseFormat::Json));
        (Value::from(fields), not_applied)
    };
    let openai = json!({
        "model": "gpt-4o-mini", "max_tokens": 9, "seed": 1, "stop": ["x"],
        "response_format": { "type": "json_object" },
    });
    assert_eq!(of(BackendKind::Openai), (openai, vec![]));
    // It refuses fields that it does not know.
    assert_eq!(of(BackendKind::Mistral).0["random_seed"], 1);
    let anthropic = json!({ "model": "gpt-4o-mini", "max_tokens": 9, "stop_sequences": ["x"] });
    assert_eq!(of(BackendKind::Anthropic), (anthropic, vec!["seed", "response_format"]));
    let ollama = json!({
        "model": "gpt-4o-mini", "stream": false, "format": "json",
        "options": { "num_predict": 9, "seed": 1, "stop": ["x"] },
    });
    assert_eq!(of(BackendKind::Ollama), (ollama, vec![]));
    let (bedrock, not_applied) = of(BackendKind::Bedrock);
    assert_eq!(bedrock["inferenceConfig"], json!({ "maxTokens": 9, "stopSequences": ["x"] }));
    assert_eq!((bedrock.get("model"), not_applied), (None, vec!["seed"]));
}

/// A conversation with everything in it: an image, a call and what the tool came to.
fn conversation() -> Request {
    let image = Image::from_bytes("a.gif", b"GIF89a.".to_vec()).unwrap();
    let call = ToolCall::with_text(Some("c1".to_owned()), "add".to_owned(), r#"{"a":1}"#);
    let result =
        ToolResult { id: Some("c1".to_owned()), name: "add".to_owned(), content: "2".into() };
    let message = |role, content| Message { role, content };
    Request {
        tools: [Tool {
            name: "add".to_owned(),
            description: Some("adds".to_owned()),
            parameters: json!({ "type": "object" }),
        }]
        .into(),
        tool_choice: Some(ToolChoice::Tool("add".to_owned())),
        ..Request::of(vec![
            Message::text(Role::System, "be brief"),
            message(Role::User, vec![Part::Text("see".into()), Part::Image(image)]),
            message(Role::Assistant, vec![Part::ToolCall(call)]),
            message(Role::Tool, vec![Part::ToolResult(result)]),
            Message::text(Role::User, "so?"),
        ])
    }
}

fn body(kind: BackendKind) -> Value {
    (service(kind).dialect.encode)(&Map::new(), &conversation())
}

/// `GIF89a.` in Base64.
const GIF: &str = "R0lGODlhLg==";

#[test]
fn openai_gets_tools_images_and_results() {
    let function =
        json!({ "name": "add", "description": "adds", "parameters": { "type": "object" } });
    let expected = json!({
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": [
                { "type": "text", "text": "see" },
                { "type": "image_url", "image_url": { "url": format!("data:image/gif;base64,{GIF}") } },
            ]},
            { "role": "assistant", "content": "", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } },
            ]},
            { "role": "tool", "tool_call_id": "c1", "content": "2" },
            { "role": "user", "content": "so?" },
        ],
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": { "type": "function", "function": { "name": "add" } },
    });
    assert_eq!(body(BackendKind::Openai), expected);
}

#[test]
fn anthropic_gets_tools_images_and_results() {
    let expected = json!({
        "system": "be brief",
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "see" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/gif", "data": GIF } },
            ]},
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "c1", "name": "add", "input": { "a": 1 } },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "2" },
            ]},
            { "role": "user", "content": "so?" },
        ],
        "tools": [{ "name": "add", "description": "adds", "input_schema": { "type": "object" } }],
        "tool_choice": { "type": "tool", "name": "add" },
    });
    assert_eq!(body(BackendKind::Anthropic), expected);
}

#[test]
fn gemini_gets_tools_images_and_results() {
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "contents": [
            { "role": "user", "parts": [
                { "text": "see" },
                { "inlineData": { "mimeType": "image/gif", "data": GIF } },
            ]},
            { "role": "model", "parts": [{ "functionCall": { "name": "add", "args": { "a": 1 } } }] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "add", "response": { "result": "2" } } },
            ]},
            { "role": "user", "parts": [{ "text": "so?" }] },
        ],
        "tools": [{ "functionDeclarations": [
            { "name": "add", "description": "adds", "parametersJsonSchema": { "type": "object" } },
        ]}],
        "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["add"] } },
    });
    assert_eq!(body(BackendKind::Gemini), expected);
}

#[test]
fn bedrock_gets_tools_images_and_results() {
    let expected = json!({
        "system": [{ "text": "be brief" }],
        "messages": [
            { "role": "user", "content": [
                { "text": "see" },
                { "image": { "format": "gif", "source": { "bytes": GIF } } },
            ]},
            { "role": "assistant", "content": [
                { "toolUse": { "toolUseId": "c1", "name": "add", "input": { "a": 1 } } },
            ]},
            { "role": "user", "content": [
                { "toolResult": { "toolUseId": "c1", "content": [{ "text": "2" }] } },
                { "text": "so?" },
            ]},
        ],
        "toolConfig": {
            "tools": [{ "toolSpec": {
                "name": "add", "inputSchema": { "json": { "type": "object" } },
                "description": "adds",
            }}],
            "toolChoice": { "tool": { "name": "add" } },
        },
    });
    assert_eq!(body(BackendKind::Bedrock), expected);
}

#[test]
fn ollama_gets_tools_images_and_results() {
    let function =
        json!({ "name": "add", "description": "adds", "parameters": { "type": "object" } });
    let expected = json!({
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "see", "images": [GIF] },
            { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "add", "arguments": { "a": 1 } } },
            ]},
            { "role": "tool", "tool_name": "add", "content": "2" },
            { "role": "user", "content": "so?" },
        ],
        "tools": [{ "type": "function", "function": function }],
    });
    assert_eq!(body(BackendKind::Ollama), expected);
    let needs: Vec<Need> = conversation().needs().collect();
    let expected = [Need::Conversation, Need::Tools, Need::ForcedCall, Need::ImageFile];
    assert_eq!(needs, expected);
}

#[test]
fn responses_get_tools_images_and_results() {
    let expected = json!({
        "instructions": "be brief",
        "input": [
            { "role": "user", "content": [
                { "type": "input_text", "text": "see" },
                { "type": "input_image", "image_url": format!("data:image/gif;base64,{GIF}") },
            ]},
            { "type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}" },
            { "type": "function_call_output", "call_id": "c1", "output": "2" },
            { "role": "user", "content": "so?" },
        ],
        "tools": [{
            "type": "function", "name": "add", "description": "adds",
            "parameters": { "type": "object" }, "strict": false,
        }],
        "tool_choice": { "type": "function", "name": "add" },
    });
    assert_eq!(body(BackendKind::OpenaiResponses), expected);
}
