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

fn config(kind: BackendKind) -> BackendConfig {
    BackendConfig { model: Some("gpt-4o-mini".to_owned()), ..BackendConfig::new("b", kind) }
}

fn fields(config: &BackendConfig) -> Fields {
    let service = service(config.kind);
    (service.dialect.fields)(&Wanted { config, limit: "max_tokens", seed: service.seed })
}

#[test]
fn more_fields_are_added_and_none_is_lost() {
    let config = BackendConfig {
        max_tokens: Some(9),
        temperature: Some(0.0),
        ..config(BackendKind::Ollama)
    };
    let (mut fields, _) = fields(&config);
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
    let of = |kind| {
        let (fields, not_applied) = fields(&BackendConfig {
            max_tokens: Some(9),
            seed: Some(1),
            stop: vec!["x".to_owned()],
            response_format: Some(json!("json")),
            ..config(kind)
        });
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
}
