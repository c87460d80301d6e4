//! What the server says that it saw.

use probity_testkit::{Answer, FakeServer, Record, Rule, Script, Trouble, When};
use serde_json::Value;

use crate::client::{ANTHROPIC, OPENAI, PATIENCE, abandon, ask, open, question, request, send};

#[test]
fn requests_are_counted_by_everything_that_tells_them_apart() {
    let server = FakeServer::start(Script::default());
    ask(&server, "one");
    ask(&server, "two");
    ask(&server, "two");
    send(&server, &question(ANTHROPIC, "three"));
    send(&server, &request("GET", "/v1/models", "", ""));
    let other = question(OPENAI, "one").replace("Bearer sk-test", "Bearer sk-other");
    send(&server, &other.replace("\"model\":\"m\"", "\"model\":\"n\""));

    let seen = server.seen();
    assert_eq!((seen.requests, seen.asked, seen.connections), (6, 5, 6));
    assert_eq!((seen.in_flight, seen.peak_in_flight, seen.aborted), (0, 1, 0));
    assert_eq!(seen.paths[OPENAI], 4);
    assert_eq!(seen.paths[ANTHROPIC], 1);
    assert_eq!((seen.models["m"], seen.models["n"]), (4, 1));
    assert_eq!(seen.keys["sk-test-0123456789abcdef"], 5);
    assert_eq!(seen.keys["sk-other-0123456789abcdef"], 1);
    assert_eq!([seen.prompt("one"), seen.prompt("two"), seen.prompt("three")], [2, 2, 1]);
    assert_eq!([seen.outcome("reply"), seen.outcome("listed"), seen.outcome("hang")], [5, 1, 0]);
}

#[test]
fn the_last_requests_are_kept_whole() {
    let record = Record { requests: 2, prompts: false };
    let server = FakeServer::start(Script { record, ..Script::default() });
    for prompt in ["one", "two", "three"] {
        ask(&server, prompt);
    }
    let seen = server.seen();
    assert!(seen.prompts.is_empty());
    let prompts: Vec<Value> =
        seen.last.iter().map(|it| it.json()["messages"][0]["content"].clone()).collect();
    assert_eq!(prompts, ["two", "three"]);
    assert_eq!(seen.last[0].method, "POST");
    assert_eq!(seen.last[0].path, OPENAI);
    assert_eq!(seen.last[0].header("Authorization"), Some("Bearer sk-test-0123456789abcdef"));
}

#[test]
fn rules_match_in_order_and_are_used_up() {
    let fault = Answer::fault(Trouble::Internal);
    let script = Script::default()
        .rule(Rule::new(When::prompt_contains("once"), fault.clone()).times(1))
        .rule(Rule::new(When::KeyIs("nobody".to_owned()), fault.clone()))
        .rule(Rule::new(When::ModelIs("other".to_owned()), fault.clone()))
        .rule(Rule::new(When::Requests(3..4), fault.clone()))
        .rule(Rule::new(
            When::All(vec![When::Every(5), When::Not(Box::new(When::prompt_contains("safe")))]),
            fault,
        ));
    let server = FakeServer::start(script);
    let statuses = ["once", "once", "3", "4", "5", "6", "7", "8", "9", "safe", "11"]
        .map(|prompt| ask(&server, prompt).status);
    assert_eq!(statuses, [500, 200, 500, 200, 500, 200, 200, 200, 200, 200, 200]);
}

#[test]
fn what_was_seen_can_be_read_and_reset_from_another_process() {
    let server = FakeServer::start(
        Script::default().rule(Rule::new(When::Requests(1..2), Answer::text("first"))),
    );
    let first = |prompt| ask(&server, prompt).text().contains("first");
    assert!(first("a"));
    assert!(!first("b"));
    let seen = send(&server, &request("GET", "/__seen", "", "")).json();
    assert_eq!(seen["requests"], 2);
    assert_eq!(seen["prompts"]["a"], 1);
    assert_eq!(seen["last"][1]["body"]["messages"][0]["content"], "b");
    assert_eq!(seen["last"][1]["headers"]["host"], "fake");
    send(&server, &request("POST", "/__reset", "", ""));
    assert_eq!(server.seen().requests, 0);
    assert!(server.seen().outcomes.is_empty());
    assert!(first("c"));
}

#[test]
fn a_request_in_flight_survives_a_reset() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let stream = open(server.address(), &question(OPENAI, "x"));
    assert!(server.wait_until(|seen| seen.outcome("hang") == 1, PATIENCE));
    server.reset();
    assert_eq!((server.seen().in_flight, server.seen().requests), (1, 0));
    abandon(&server, &stream);
}
