//! The vendors' errors.

use std::time::Duration;

use probity_testkit::{Answer, FakeServer, Fault, RetryAfter, Script, Trouble};
use serde_json::Value;

use crate::client::{ANTHROPIC, Answered, OLLAMA, OPENAI, question, request, send};

fn get(fault: Fault, path: &str) -> Answered {
    let server = FakeServer::start(Script::always(Answer::Fault(fault)));
    send(&server, &question(path, "x"))
}

#[test]
fn each_trouble_has_its_status_and_its_body() {
    let check = |trouble, status: [u16; 3], words: [&str; 3]| {
        for (n, path) in [OPENAI, ANTHROPIC, OLLAMA].into_iter().enumerate() {
            let answer = get(Fault::new(trouble), path);
            assert_eq!(answer.status, status[n], "{trouble:?} {path}");
            assert!(answer.text().contains(words[n]), "{trouble:?} {path}: {}", answer.text());
        }
    };
    let all = |status| [status; 3];
    let azure = "ResponsibleAIPolicyViolation";
    check(Trouble::BadRequest, all(400), ["temperature", "temperature", "unmarshal"]);
    check(Trouble::ContextLength, all(400), ["context_length_exceeded", "too long", "exceeds"]);
    check(Trouble::ContentPolicy, all(400), ["invalid_prompt", "Output blocked", "flagged"]);
    check(Trouble::AzureContentFilter, all(400), [azure; 3]);
    check(Trouble::BadKey, all(401), ["invalid_api_key", "authentication_error", "unauthorized"]);
    check(Trouble::Forbidden, all(403), ["request_forbidden", "permission_error", "forbidden"]);
    check(Trouble::NoSuchModel, all(404), ["`m` does not", "model: m", "model 'm' not found"]);
    check(Trouble::RequestTimeout, all(408), ["timed out", "timeout_error", "timeout"]);
    check(Trouble::TooLarge, all(413), ["too large", "request_too_large", "too large"]);
    check(Trouble::RateLimit, all(429), ["rate_limit_exceeded", "rate_limit_error", "too many"]);
    check(Trouble::Quota, [429, 400, 429], ["insufficient_quota", "credit balance", "usage limit"]);
    check(Trouble::Internal, all(500), ["server_error", "api_error", "terminated"]);
    check(Trouble::BadGateway, all(502), ["<h1>502 Bad Gateway"; 3]);
    check(Trouble::Unavailable, all(503), ["overloaded", "upstream connect", "server busy"]);
    check(Trouble::Loading, all(503), ["Loading model"; 3]);
    check(Trouble::GatewayTimeout, all(504), ["<h1>504", "timeout_error", "<h1>504"]);
    check(Trouble::Overloaded, all(529), ["Overloaded", "overloaded_error", "overloaded"]);
}

#[test]
fn the_time_to_retry_comes_in_every_form() {
    let limited = |retry, path| get(Fault::new(Trouble::RateLimit).retry(retry), path);
    let answer = limited(RetryAfter::Seconds(3), OPENAI);
    assert_eq!(answer.header("retry-after"), Some("3"));
    let answer = limited(RetryAfter::Millis(30), OPENAI);
    assert_eq!(answer.header("retry-after-ms"), Some("30"));
    assert!(answer.text().contains("Please try again in 30ms."));
    assert_eq!(answer.header("retry-after"), None);
    let answer = limited(RetryAfter::Date(3), OPENAI);
    assert!(answer.header("retry-after").unwrap().ends_with(" GMT"));

    let reset = RetryAfter::Reset(Duration::from_millis(1_500));
    let answer = limited(reset, OPENAI);
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), Some("0"));
    assert_eq!(answer.header("x-ratelimit-reset-requests"), Some("1.5s"));
    let answer = limited(reset, ANTHROPIC);
    assert_eq!(answer.header("anthropic-ratelimit-requests-remaining"), Some("0"));
    assert!(answer.header("anthropic-ratelimit-requests-reset").unwrap().ends_with('Z'));
    let answer = limited(reset, OLLAMA);
    assert_eq!(answer.header("ratelimit-reset"), Some("2"));

    let both =
        Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(1)).retry(RetryAfter::Millis(40));
    let answer = get(both, ANTHROPIC);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.header("retry-after-ms"), Some("40"));
}

#[test]
fn anthropic_says_that_a_retry_is_worth_it() {
    let answer = get(Fault::new(Trouble::Overloaded), ANTHROPIC);
    assert_eq!(answer.header("x-should-retry"), Some("true"));
    assert_eq!(answer.header("request-id"), Some("req_011CTestRequestId000000"));
}

#[test]
fn the_key_is_masked_unless_it_is_to_be_echoed() {
    let answer = get(Fault::new(Trouble::BadKey), OPENAI).text();
    assert!(answer.contains("provided: sk-test-**********cdef."), "{answer}");
    let answer = get(Fault::new(Trouble::BadKey).echo_key(), OPENAI).text();
    assert!(answer.contains("provided: sk-test-0123456789abcdef."), "{answer}");
}

#[test]
fn a_wrong_request_gets_the_vendors_complaint() {
    let server = FakeServer::start(Script::default());
    let post = |path, body| send(&server, &request("POST", path, "", body));
    let openai = post(OPENAI, r#"{"model":"m"}"#);
    assert_eq!(openai.status, 400);
    assert_eq!(openai.json()["error"]["code"], "missing_required_parameter");
    let anthropic = post(ANTHROPIC, r#"{"model":"m"}"#);
    assert_eq!(anthropic.status, 400);
    assert_eq!(anthropic.json()["error"]["message"], "anthropic-version: header is required");
    let ollama = post(OLLAMA, "{}");
    assert_eq!(ollama.status, 400);
    assert_eq!(ollama.json()["error"], "model is required");
    assert_eq!(server.seen().outcome("invalid"), 3);
    assert_eq!(server.seen().asked, 3);
}

#[test]
fn an_unknown_path_is_not_found_in_the_vendors_words() {
    let server = FakeServer::start(Script::default());
    let get = |path, headers| send(&server, &request("GET", path, headers, ""));
    let openai = get("/v2/chat", "");
    assert_eq!(openai.status, 404);
    assert_eq!(openai.json()["error"]["message"], "Invalid URL (GET /v2/chat)");
    let anthropic = get("/v2/messages", "anthropic-version: 2023-06-01\r\n");
    assert_eq!(anthropic.status, 404);
    assert_eq!(anthropic.json()["error"]["type"], "not_found_error");
    assert_eq!(get("/api/chats", "").text(), "404 page not found");
    assert_eq!(server.seen().outcome("unknown_path"), 3);
    assert_eq!(get(OPENAI, "").status, 405);
}

#[test]
fn models_are_listed_in_each_dialect() {
    let script = Script { models: vec!["a".to_owned(), "b".to_owned()], ..Script::default() };
    let server = FakeServer::start(script);
    let get = |path, headers| send(&server, &request("GET", path, headers, "")).json();
    assert_eq!(get("/v1/models", "")["data"][1]["id"], "b");
    let anthropic = get("/v1/models", "anthropic-version: 2023-06-01\r\n");
    assert_eq!(anthropic["data"][0]["type"], "model");
    assert_eq!(anthropic["last_id"], "b");
    assert_eq!(get("/api/tags", "")["models"][0]["name"], "a");
    assert!(matches!(get("/api/version", "")["version"], Value::String(_)));
}
