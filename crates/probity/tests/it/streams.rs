//! Replies that are read while they are written.

use std::time::Duration;

use probity_testkit::{Answer, FakeServer, Reply, Rule, Script, Text, When};
use serde_json::Value;

use crate::{
    dialects::{self, Spoken, check_common, outcome, sent},
    project::Project,
    run::{run, stored},
};

const KINDS: [&str; 5] = ["openai", "openai-responses", "anthropic", "gemini", "ollama"];

fn streamed(kind: &'static str) -> Spoken {
    Spoken { kind, more: "stream = true" }
}

#[test]
fn a_stream_is_asked_for_in_the_words_of_the_server() {
    for kind in KINDS {
        let server = FakeServer::start(Script::default());
        let project = dialects::project(streamed(kind), &server);
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
        let (received, body) = sent(&server);
        match kind {
            "gemini" => {
                let path = "/v1beta/models/m-1:streamGenerateContent?alt=sse";
                assert_eq!((received.path.as_str(), body.get("stream")), (path, None));
            }
            _ => assert_eq!(body["stream"], true, "{kind}"),
        }
        let has_options = body.get("stream_options").is_some();
        assert_eq!(has_options, kind == "openai", "{body}");
        let case = stored(&project).remove(0);
        assert_eq!((&case["raw_response"], &case["model"]), (&"0".into(), &"m-1".into()));
        assert_eq!(case["usage"]["input_tokens"], 5, "{case}");
        assert!(case["usage"]["estimated"].is_null(), "{case}");
        assert!(case["ttft_ms"].as_u64() <= case["latency_ms"].as_u64(), "{case}");
        assert!(case["ttft_ms"].is_u64(), "{case}");
    }
}

#[test]
fn gemini_in_pieces_behaves_as_a_whole() {
    check_common(streamed("gemini"));
    check_common(streamed("vertex"));
}

#[test]
fn responses_in_pieces_behave_as_a_whole() {
    check_common(streamed("openai-responses"));
}

#[test]
fn messages_in_pieces_behave_as_a_whole() {
    check_common(streamed("anthropic"));
    check_common(streamed("vertex-anthropic"));
}

#[test]
fn completions_in_pieces_behave_as_a_whole() {
    check_common(streamed("openai"));
    check_common(streamed("azure"));
}

fn raw(body: &str) -> Answer {
    of_type("text/event-stream", body)
}

/// An answer of some type, or of none.
fn of_type(content_type: &str, body: &str) -> Answer {
    let header = Some(content_type).filter(|it| !it.is_empty());
    let headers = header.map(|it| ("content-type".to_owned(), it.to_owned()));
    Answer::Raw { status: 200, headers: headers.into_iter().collect(), body: body.to_owned() }
}

const HALF: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"0\"}}]}\n\n";

#[test]
fn a_stream_that_breaks_off_is_tried_again() {
    let cut = "ended before its end";
    let halves = [(raw(HALF), cut), (raw(": wait\n\n"), cut), (Answer::Truncated, "")];
    for (answer, message) in halves {
        let rule = Rule::new(When::Requests(1..2), answer);
        let server = FakeServer::start(Script::default().rule(rule));
        let project = dialects::project(streamed("openai"), &server);
        run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
        let case = stored(&project).remove(0);
        let failed = &case["failures"][0]["error"];
        assert_eq!((&failed["kind"], &case["verdict"]), (&"network".into(), &"pass".into()));
        assert!(failed["message"].as_str().unwrap().contains(message), "{failed}");
    }
}

#[test]
fn an_error_in_a_stream_is_that_error() {
    let kind_of = |kind, text: &str| outcome(streamed(kind), raw(text)).1.unwrap();
    let error = "data: {\"error\":{\"message\":\"Rate limit reached for m\",\"code\":429}}\n\n";
    assert_eq!(kind_of("openai", &format!("{HALF}{error}")), "rate_limit");
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert_eq!(kind_of("anthropic", error), "overloaded");
    let error = "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n";
    assert_eq!(kind_of("gemini", error), "overloaded");
    assert_eq!(kind_of("openai", "data: <html>\n\n"), "server");
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"message":{"content":"0"},"finish_reason":"stop"}],"model":"m-1"}"#;
    for content_type in ["application/json; charset=utf-8", "text/plain", "text/json", ""] {
        let said = outcome(streamed("openai"), of_type(content_type, body));
        assert_eq!(said, ("pass".to_owned(), None, "0".into()), "{content_type}");
    }
    let error = |body: &str| outcome(streamed("openai"), of_type("text/html", body)).1.unwrap();
    assert_eq!(error("<html>\n<p>Log in first\n"), "server");
    assert_eq!(error(""), "empty");
}

#[test]
fn a_stream_that_does_not_say_so_is_understood() {
    let stream = format!("{HALF}data: [DONE]\n\n");
    for content_type in ["text/plain", ""] {
        let said = outcome(streamed("openai"), of_type(content_type, &stream));
        assert_eq!(said, ("pass".to_owned(), None, "0".into()), "{content_type}");
    }
}

#[test]
fn keys_are_taken_out_of_what_was_streamed() {
    let text = format!("my key is {} as you know", dialects::KEY);
    let reply = Reply { text: Text::Fixed(text), ..Reply::default() };
    let (_, _, said) = outcome(streamed("openai"), Answer::Reply(reply));
    assert_eq!(said, "my key is [redacted] as you know");
}

/// A server that takes its time with every piece of an answer.
fn slow() -> FakeServer {
    let every = Duration::from_millis(15);
    FakeServer::start(Script::always(Answer::SlowBody { chunk: 120, every }))
}

fn timed(server: &FakeServer, backend: &str, gates: &str) -> Project {
    let word = "abcdefgh".repeat(6);
    let case = format!(
        r#"{{"id":"a","prompt":"Return {word}","assert":[{{"type":"time-to-first-token","threshold":60000}}]}}"#
    );
    let suite = format!(
        "[backends.b]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n{backend}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\ngates = {{ {gates} }}\n",
        server.url()
    );
    Project::new().file("cases.jsonl", case).file("probity.toml", suite)
}

#[test]
fn the_time_to_the_first_token_is_recorded_shown_and_gated() {
    let server = slow();
    let project = timed(&server, "stream = true", "ttft_p95 = \"60s\"");
    let ran = project.run(&["run", "-o", "result.json", "-o", "page.html", "-o", "cases.csv"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(text.contains("  first token: ") && text.contains(" tokens/s"), "{text}");
    let case = stored(&project).remove(0);
    let number = |key: &str| case[key].as_f64().unwrap_or_else(|| panic!("{key}: {case}"));
    assert!(number("ttft_ms") >= 15.0 && number("ttft_ms") < number("latency_ms"), "{case}");
    let spent = (number("latency_ms") - number("ttft_ms")) / 1000.0;
    let tokens = case["usage"]["output_tokens"].as_f64().unwrap() - 1.0;
    assert!((number("tokens_per_second") * spent - tokens).abs() < tokens * 0.2, "{case}");
    let result: Value = serde_json::from_str(&project.read("result.json")).unwrap();
    assert_eq!(result["ttft_ms"]["p50"].as_f64(), case["ttft_ms"].as_f64(), "{result}");
    assert!(result["tokens_per_second"].is_f64(), "{result}");
    assert!(project.read("page.html").contains("Time to first token"));
    assert!(project.read("cases.csv").contains(",ttft_ms,tokens_per_second,variant\r\n"));
    let shown = project.shown(&["show", "latest", "a"]);
    assert!(shown.contains("first token after "), "{shown}");
    // What was recorded is judged again in the same way.
    assert_eq!(project.run(&["rescore", "latest"]).status.code(), Some(0));
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    let strict = timed(&server, "stream = true", "ttft_max = \"1ms\"");
    run(&strict, &["--record", "answers.jsonl"]).expect(1, &[]);
    run(&strict, &["--replay", "answers.jsonl"]).expect(1, &[]);
    assert!(stored(&strict)[0]["ttft_ms"].is_u64());
}

#[test]
fn without_a_stream_there_is_no_first_token() {
    let server = slow();
    let project = timed(&server, "", "failed = 1");
    run(&project, &[]).expect(0, &[]);
    let case = stored(&project).remove(0);
    assert_eq!((&case["verdict"], &case["ttft_ms"]), (&"fail".into(), &Value::Null));
    let reason = case["reason"].as_str().unwrap();
    assert!(reason.contains("no time to first token was recorded"), "{reason}");
}
