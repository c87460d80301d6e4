//! Each dialect end to end: what is sent, what comes back, what an error means.

use probity_testkit::{
    Answer, FakeServer, Fault, Finish, Received, Reply, RetryAfter, Rule, Script, Text, Trouble,
    When,
};
use serde_json::Value;

use crate::{
    project::Project,
    run::{dataset, run, stored},
};

pub(crate) const KEY: &str = "sk-of-the-vendor-0123456789";

/// A kind of backend, and more fields of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoken {
    pub(crate) kind: &'static str,
    pub(crate) more: &'static str,
}

impl Spoken {
    pub(crate) fn plain(kind: &'static str) -> Self {
        Self { kind, more: "" }
    }
}

/// A suite of one case at a server of a kind.
pub(crate) fn project(spoken: Spoken, server: &FakeServer) -> Project {
    let Spoken { kind, more } = spoken;
    let path = if kind.starts_with("vertex") { "/v1/projects/p/locations/l" } else { "" };
    let suite = format!(
        "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{}{path}\"\nmodel = \"m-1\"\nmax_tokens = 9\n\
         temperature = 0.5\napi_key_env = \"A_KEY\"\n{more}\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\nsystem = \"be brief\"\n\
         [retry]\nbackoff_base = 0.01\n",
        server.url()
    );
    Project::new()
        .file("cases.jsonl", dataset(1))
        .file(".env", format!("A_KEY={KEY}\n"))
        .file("probity.toml", suite)
}

pub(crate) fn sent(server: &FakeServer) -> (Received, Value) {
    let received = server.seen().last.into_iter().next_back().expect("a request");
    let body = serde_json::from_slice(&received.body).expect("JSON");
    (received, body)
}

/// What one answer of a server comes to: class, error kind, reply.
pub(crate) fn outcome(spoken: Spoken, answer: Answer) -> (String, Option<String>, Value) {
    let server = FakeServer::start(Script::always(answer));
    let project = project(spoken, &server);
    run(&project, &["--max-retries", "0"]);
    let case = stored(&project).remove(0);
    let class = case["classification"]["primary"].as_str().unwrap().to_owned();
    (class, case["error"]["kind"].as_str().map(ToOwned::to_owned), case["raw_response"].clone())
}

fn finished(finish: Finish) -> Answer {
    Answer::Reply(Reply { finish, ..Reply::default() })
}

/// What every dialect has in common.
pub(crate) fn check_common(kind: Spoken) {
    let trouble = |trouble| outcome(kind, Answer::fault(trouble)).1;
    assert_eq!(trouble(Trouble::BadKey).as_deref(), Some("auth"), "{kind:?}");
    assert_eq!(trouble(Trouble::NoSuchModel).as_deref(), Some("not_found"), "{kind:?}");
    assert_eq!(trouble(Trouble::ContextLength).as_deref(), Some("too_large"), "{kind:?}");
    assert_eq!(trouble(Trouble::TooLarge).as_deref(), Some("too_large"), "{kind:?}");
    assert_eq!(trouble(Trouble::RateLimit).as_deref(), Some("rate_limit"), "{kind:?}");
    assert_eq!(trouble(Trouble::GatewayTimeout).as_deref(), Some("timeout"), "{kind:?}");
    assert_eq!(trouble(Trouble::Internal).as_deref(), Some("server"), "{kind:?}");
    let (class, error, _) = outcome(kind, finished(Finish::ContentFilter));
    assert_eq!((class.as_str(), error), ("refusal", None), "{kind:?}");
    let (_, error, reply) = outcome(kind, finished(Finish::ToolUse));
    assert_eq!((error, reply), (None, r#"[{"name":"lookup","arguments":{}}]"#.into()), "{kind:?}");
    let empty = Reply { text: Text::Fixed("\u{200b}".to_owned()), ..Reply::default() };
    assert_eq!(outcome(kind, Answer::Reply(empty)).1.as_deref(), Some("empty"), "{kind:?}");

    let limited = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(1));
    let script = Script::default().rule(Rule::new(When::Requests(1..2), Answer::Fault(limited)));
    let server = FakeServer::start(script);
    let project = project(kind, &server);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    let case = stored(&project).remove(0);
    assert_eq!(
        (&case["verdict"], &case["raw_response"]),
        (&"pass".into(), &"0".into()),
        "{kind:?}"
    );
    assert_eq!(case["usage"]["input_tokens"], 5, "{case}");
    // Bedrock does not say who answered.
    let model = if kind.kind == "bedrock" { Value::Null } else { "m-1".into() };
    assert_eq!(case["model"], model, "{case}");
}

/// What `doctor` says of a server that lists the model, and of one that does not.
pub(crate) fn check_doctor(kind: Spoken) {
    for (models, code) in [(vec!["m-1".to_owned()], 0), (vec!["m-2".to_owned()], 3)] {
        let server = FakeServer::start(Script { models, ..Script::default() });
        let ran = project(kind, &server).run(&["doctor"]);
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert_eq!(ran.status.code(), Some(code), "{kind:?}: {text}");
    }
}

/// What `doctor` says of a server whose list has other names than the model's.
fn check_doctor_of_any(kind: Spoken) {
    let server = FakeServer::start(Script::default());
    let ran = project(kind, &server).run(&["doctor"]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn gemini() {
    let server = FakeServer::start(Script::default());
    run(&project(Spoken::plain("gemini"), &server), &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    let (received, body) = sent(&server);
    assert_eq!(received.path, "/v1beta/models/m-1:generateContent");
    assert_eq!(received.headers["x-goog-api-key"], KEY);
    assert!(!received.headers.contains_key("authorization"));
    let expected = serde_json::json!({
        "generationConfig": { "temperature": 0.5, "maxOutputTokens": 9 },
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "contents": [{ "role": "user", "parts": [{ "text": "Return the number 0" }] }],
    });
    assert_eq!(body, expected);
    check_common(Spoken::plain("gemini"));
    check_doctor(Spoken::plain("gemini"));
}

#[test]
fn vertex() {
    for (kind, tail) in [
        ("vertex", "google/models/m-1:generateContent"),
        ("vertex-anthropic", "anthropic/models/m-1:rawPredict"),
    ] {
        let server = FakeServer::start(Script::default());
        run(&project(Spoken::plain(kind), &server), &[]).expect(0, &[("TOTAL_CALLS", "1")]);
        let (received, body) = sent(&server);
        let home = "/v1/projects/p/locations/l/publishers";
        assert_eq!(received.path, format!("{home}/{tail}"));
        assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
        assert!(body.get("model").is_none(), "{body}");
        let version = body.get("anthropic_version").and_then(Value::as_str);
        assert_eq!(version, (kind != "vertex").then_some("vertex-2023-10-16"));
        check_doctor_of_any(Spoken::plain(kind));
    }
    check_common(Spoken::plain("vertex"));
    check_common(Spoken::plain("vertex-anthropic"));
}

#[test]
fn where_a_project_is_comes_from_its_variables() {
    let suite = "[backends.b]\nkind = \"vertex\"\nmodel = \"m\"\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    for (variables, expected) in [
        ("", "needs a `base_url`, or the variable `GOOGLE_CLOUD_PROJECT`"),
        ("GOOGLE_CLOUD_PROJECT=p\n", "a key in the variable `GOOGLE_OAUTH_ACCESS_TOKEN`"),
    ] {
        let project = Project::new()
            .file("cases.jsonl", dataset(1))
            .file(".env", variables)
            .file("probity.toml", suite);
        let shown = project.shown(&["run"]);
        assert!(shown.starts_with("exit 2") && shown.contains(expected), "{shown}");
    }
}

#[test]
fn responses() {
    let server = FakeServer::start(Script::default());
    run(&project(Spoken::plain("openai-responses"), &server), &[])
        .expect(0, &[("TOTAL_CALLS", "1")]);
    let (received, body) = sent(&server);
    assert_eq!(received.path, "/responses");
    assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
    let expected = serde_json::json!({
        "model": "m-1", "temperature": 0.5, "max_output_tokens": 9, "store": false,
        "instructions": "be brief",
        "input": [{ "role": "user", "content": "Return the number 0" }],
    });
    assert_eq!(body, expected);
    check_common(Spoken::plain("openai-responses"));
    check_doctor(Spoken::plain("openai-responses"));
}

#[test]
fn azure() {
    let server = FakeServer::start(Script::default());
    run(&project(Spoken::plain("azure"), &server), &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    let (received, body) = sent(&server);
    let path = "/openai/deployments/m-1/chat/completions?api-version=2024-10-21";
    assert_eq!(received.path, path);
    assert_eq!(received.headers["api-key"], KEY);
    assert!(!received.headers.contains_key("authorization"));
    assert_eq!(body["messages"][1]["content"], "Return the number 0");
    check_common(Spoken::plain("azure"));
    let (class, error, _) =
        outcome(Spoken::plain("azure"), Answer::fault(Trouble::AzureContentFilter));
    assert_eq!((class.as_str(), error.as_deref()), ("refusal", Some("content_filter")));
    // It lists models and not deployments, so that any list will do.
    check_doctor_of_any(Spoken::plain("azure"));
}
