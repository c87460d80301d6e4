//! Every kind of answer is really seen on the wire.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read},
    time::{Duration, Instant},
};

use probity_testkit::{Answer, FakeServer, Finish, Latency, Reply, Rule, Script, Text, When};
use serde_json::{Value, json};

use crate::client::{
    ANTHROPIC, OLLAMA, OPENAI, PATIENCE, abandon, ask, open, question, read, send,
};

fn serve(answer: Answer) -> FakeServer {
    FakeServer::start(Script::always(answer))
}

fn reply(reply: Reply) -> FakeServer {
    serve(Answer::Reply(reply))
}

fn said(text: Text, prompt: &str) -> Value {
    let server = reply(Reply { text, ..Reply::default() });
    ask(&server, prompt).json()["choices"][0]["message"]["content"].clone()
}

#[test]
fn each_dialect_gets_its_own_answer() {
    let server = FakeServer::start(Script::default());
    let openai = ask(&server, "Say the word blue");
    assert_eq!(openai.status, 200);
    assert_eq!(openai.header("content-type"), Some("application/json"));
    assert_eq!(openai.header("x-request-id"), Some("req_000000000001"));
    let expected = json!({
        "id": "chatcmpl-000000000001",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": "m",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "blue", "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6 },
    });
    assert_eq!(openai.json(), expected);
    assert_eq!(send(&server, &question("/chat/completions", "x")).status, 200);

    let anthropic = send(&server, &question(ANTHROPIC, "Say the word blue")).json();
    assert_eq!(anthropic["content"], json!([{ "type": "text", "text": "blue" }]));
    assert_eq!(anthropic["stop_reason"], "end_turn");
    assert_eq!(anthropic["usage"]["output_tokens"], 1);

    let ollama = send(&server, &question(OLLAMA, "Say the word blue")).json();
    assert_eq!(ollama["message"], json!({ "role": "assistant", "content": "blue" }));
    assert_eq!(ollama["done"], true);
    assert_eq!(ollama["done_reason"], "stop");
    assert_eq!(ollama["prompt_eval_count"], 5);
    assert_eq!(ollama["eval_count"], 1);
    for field in ["model", "created_at", "total_duration"] {
        assert!(!ollama[field].is_null(), "{field}");
    }
}

#[test]
fn ollama_sends_lines_unless_told_not_to() {
    let server = FakeServer::start(Script::default());
    let asked = question(OLLAMA, "one two").replace("\"stream\":false", "\"stream\":true ");
    let answered = send(&server, &asked);
    assert_eq!(answered.header("content-type"), Some("application/x-ndjson"));
    let text = answered.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["message"]["content"], "two");
    assert_eq!(lines[0]["done"], false);
    assert_eq!(lines[1]["done_reason"], "stop");
}

#[test]
fn the_text_is_as_scripted() {
    assert_eq!(said(Text::LastWord, "one two\n"), "two");
    assert_eq!(said(Text::Fixed("it \"is\"".to_owned()), "one"), "it \"is\"");
    assert_eq!(said(Text::Prompt, "one two"), "one two");
    let map = BTreeMap::from([("one two".to_owned(), "three".to_owned())]);
    assert_eq!(said(Text::Map(map.clone()), "one two"), "three");
    assert_eq!(said(Text::Map(map), "two one"), "one");
    assert_eq!(said(Text::Json(json!({ "a": 1 })), ""), r#"{"a":1}"#);
}

#[test]
fn the_reason_to_stop_is_in_the_words_of_the_dialect() {
    let check = |finish: Finish, openai: &str, anthropic: &str, ollama: &str| {
        let server = reply(Reply { finish, ..Reply::default() });
        let answers = [OPENAI, ANTHROPIC, OLLAMA].map(|path| send(&server, &question(path, "a")));
        let [first, second, third] = answers.map(|answer| answer.json());
        assert_eq!(first["choices"][0]["finish_reason"], openai);
        assert_eq!(second["stop_reason"], anthropic);
        assert_eq!(third["done_reason"], ollama);
        first["choices"][0]["message"].clone()
    };
    check(Finish::Stop, "stop", "end_turn", "stop");
    check(Finish::Length, "length", "max_tokens", "length");
    check(Finish::ContentFilter, "content_filter", "refusal", "stop");
    check(Finish::Other("odd".to_owned()), "odd", "odd", "odd");
    let tool = check(Finish::ToolUse, "tool_calls", "tool_use", "stop");
    assert_eq!(tool["tool_calls"][0]["function"]["name"], "lookup");
    let refusal = check(Finish::Refusal, "stop", "refusal", "stop");
    assert_eq!(refusal["refusal"], "a");
    assert_eq!(refusal["content"], Value::Null);
}

#[test]
fn another_model_may_claim_to_have_answered() {
    let server = reply(Reply {
        model: Some("impostor".to_owned()),
        fingerprint: Some("fp_1".to_owned()),
        ..Reply::default()
    });
    let answer = ask(&server, "x").json();
    assert_eq!(answer["model"], "impostor");
    assert_eq!(answer["system_fingerprint"], "fp_1");
}

#[test]
fn a_raw_answer_is_exactly_that() {
    let server = serve(Answer::Raw {
        status: 418,
        headers: vec![("x-tea".to_owned(), "yes".to_owned())],
        body: "short and stout".to_owned(),
    });
    let answer = ask(&server, "x");
    assert_eq!(answer.status, 418);
    assert_eq!(answer.header("x-tea"), Some("yes"));
    assert_eq!(answer.header("content-length"), Some("15"));
    assert_eq!(answer.text(), "short and stout");
}

#[test]
fn a_redirection_says_where_to() {
    let location = "http://127.0.0.1:9/elsewhere".to_owned();
    let server = serve(Answer::Redirect { status: 307, location });
    let answer = ask(&server, "x");
    assert_eq!(answer.status, 307);
    assert_eq!(answer.header("location"), Some("http://127.0.0.1:9/elsewhere"));
    assert_eq!(server.seen().aborted, 0);
}

#[test]
fn a_hanging_request_waits_until_the_client_goes() {
    let server = serve(Answer::Hang);
    let stream = open(server.address(), &question(OPENAI, "x"));
    assert!(server.wait_until(|seen| seen.outcome("hang") == 1, PATIENCE));
    assert_eq!(server.seen().in_flight, 1);
    stream.set_nonblocking(true).unwrap();
    assert_eq!((&stream).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    abandon(&server, &stream);
}

#[test]
fn it_may_hang_after_the_headers() {
    let server = serve(Answer::HangAfterHeaders);
    let mut stream = open(server.address(), &question(OPENAI, "x"));
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(!head.contains("content-length: 0"), "{head}");
    stream.set_nonblocking(true).unwrap();
    assert_eq!((&stream).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    abandon(&server, &stream);
}

#[test]
fn a_slow_body_comes_in_pieces() {
    let every = Duration::from_millis(2);
    let server = serve(Answer::SlowBody { chunk: 100, every });
    let start = Instant::now();
    let answer = ask(&server, "slow");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "slow");
    let pieces = u32::try_from(answer.body.len().div_ceil(100)).unwrap();
    assert!(pieces > 2);
    assert!(start.elapsed() >= every * pieces);
    assert_eq!(server.seen().aborted, 0);
}

#[test]
fn a_truncated_body_is_shorter_than_announced() {
    let server = serve(Answer::Truncated);
    let answer = ask(&server, "x");
    let announced: usize = answer.header("content-length").unwrap().parse().unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.len(), announced / 2);
    assert_eq!(server.seen().aborted, 0);
}

#[test]
fn broken_and_empty_answers_have_status_200() {
    let garbage = ask(&serve(Answer::Garbage), "x");
    assert_eq!(garbage.status, 200);
    assert!(serde_json::from_slice::<Value>(&garbage.body).is_err());
    let empty_server = serve(Answer::EmptyBody);
    let empty = ask(&empty_server, "x");
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    assert_eq!(empty_server.seen().aborted, 0);
    let server = serve(Answer::EmptyText);
    assert_eq!(ask(&server, "x").json()["choices"][0]["message"]["content"], "");
    assert_eq!(send(&server, &question(ANTHROPIC, "x")).json()["content"], json!([]));
    assert_eq!(send(&server, &question(OLLAMA, "x")).json()["message"]["content"], "");
}

#[test]
fn a_reset_is_not_a_close() {
    let reset = serve(Answer::Reset);
    let error = read(open(reset.address(), &question(OPENAI, "x"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let close = serve(Answer::Close);
    assert_eq!(read(open(close.address(), &question(OPENAI, "x"))).unwrap(), b"");
    for server in [reset, close] {
        let seen = server.seen();
        assert_eq!((seen.in_flight, seen.aborted), (0, 0));
    }
}

#[test]
fn a_huge_body_is_valid_json() {
    let server = serve(Answer::HugeBody { bytes: 1_000_000 });
    let answer = ask(&server, "big");
    assert_eq!(answer.header("content-length"), None);
    assert!(answer.body.len() > 1_000_000);
    assert!(answer.text().contains("\"content\":\"big\""));
    assert_eq!(server.seen().aborted, 0);
}

#[test]
fn a_client_may_leave_a_huge_body_unread() {
    let server = serve(Answer::HugeBody { bytes: 1 << 40 });
    let mut stream = open(server.address(), &question(OPENAI, "big"));
    stream.read_exact(&mut [0; 100]).unwrap();
    abandon(&server, &stream);
}

#[test]
fn an_answer_takes_as_long_as_its_rule_says() {
    let slow = Latency { fixed: Duration::from_millis(20), jitter: Duration::from_millis(5) };
    let rule = Rule::new(When::prompt_contains("slow"), Answer::text("late")).after(slow);
    let server = FakeServer::start(Script::default().rule(rule));
    let start = Instant::now();
    ask(&server, "slow");
    assert!(start.elapsed() >= slow.fixed);
}
