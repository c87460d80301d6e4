//! Backends that are asked: what is sent, what comes back, what an error means.

use std::time::Duration;

use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    record::{CallError, Source},
    request::{Message, Need, Request, Role},
};
use probity_run::backend::{About, Ask, Backend, Reply};
use probity_testkit::{
    AWS_ACCESS_KEY, AWS_SECRET_KEY, Answer, FakeServer, Fault, Finish, RetryAfter, Rule, Script,
    Text, Trouble, When,
};
use serde_json::{Value, json};

use crate::project::{Duty, Project, Read, bodies};

const KEY: &str = "sk-of-the-vendor-0123456789";

/// Long enough for a busy machine, and never waited for in full.
const LONG: Duration = Duration::from_mins(1);

fn read(kind: &str, server: &FakeServer, more: &str) -> Read {
    let path = if kind.starts_with("vertex") { "/v1/projects/p/locations/l" } else { "" };
    let text = format!(
        "[backends.b]\nkind = \"{kind}\"\nbase_url = \"{}{path}\"\nmodel = \"m-1\"\nmax_tokens = 9\n\
         temperature = 0.5\napi_key_env = \"A_KEY\"\n{more}\n",
        server.url()
    );
    Project::new().variable("A_KEY", KEY).read(&text)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn asked(backend: &Backend, request: &Request) -> Result<Reply, CallError> {
    let ask = Ask { request, repeat: 0, about: None };
    wait(backend.ask(&ask, LONG)).map_err(|failed| *failed.error)
}

fn hello() -> Request {
    Request::new(Some("be brief".into()), "Return the number 7")
}

/// What a server of a kind that always gives this answer comes to.
fn outcome(kind: &str, answer: Answer) -> Result<Reply, CallError> {
    let server = FakeServer::start(Script::always(answer));
    asked(&read(kind, &server, "").backend("b"), &hello())
}

const KINDS: [&str; 9] = [
    "openai",
    "openai-responses",
    "azure",
    "anthropic",
    "gemini",
    "vertex",
    "vertex-anthropic",
    "bedrock",
    "ollama",
];

#[test]
fn each_dialect_is_spoken_as_its_vendor_documents_it() {
    for kind in KINDS {
        let server = FakeServer::start(Script::default());
        let reply = asked(&read(kind, &server, "").backend("b"), &hello()).unwrap();
        assert_eq!((reply.text.as_str(), reply.usage.input_tokens), ("7", Some(5)), "{kind}");
        // Bedrock does not say who answered.
        assert_eq!(reply.model.as_deref(), (kind != "bedrock").then_some("m-1"), "{kind}");
        assert!(reply.stop_reason.is_some() && !reply.usage.estimated, "{kind}");
        let (path, header, value) = match kind {
            "openai" => ("/chat/completions", "authorization", format!("Bearer {KEY}")),
            "openai-responses" => ("/responses", "authorization", format!("Bearer {KEY}")),
            "azure" => (
                "/openai/deployments/m-1/chat/completions?api-version=2024-10-21",
                "api-key",
                KEY.to_owned(),
            ),
            "anthropic" => ("/v1/messages", "x-api-key", KEY.to_owned()),
            "gemini" => ("/v1beta/models/m-1:generateContent", "x-goog-api-key", KEY.to_owned()),
            "vertex" => (
                "/v1/projects/p/locations/l/publishers/google/models/m-1:generateContent",
                "authorization",
                format!("Bearer {KEY}"),
            ),
            "vertex-anthropic" => (
                "/v1/projects/p/locations/l/publishers/anthropic/models/m-1:rawPredict",
                "authorization",
                format!("Bearer {KEY}"),
            ),
            "bedrock" => ("/model/m-1/converse", "authorization", format!("Bearer {KEY}")),
            _ => ("/api/chat", "authorization", format!("Bearer {KEY}")),
        };
        let received = server.seen().last.pop_front().unwrap();
        assert_eq!((received.path.as_str(), received.method.as_str()), (path, "POST"), "{kind}");
        assert_eq!(received.header(header), Some(value.as_str()), "{kind}");
        assert_eq!(received.header("content-type"), Some("application/json"), "{kind}");
        let version = (kind == "anthropic").then_some("2023-06-01");
        assert_eq!(received.header("anthropic-version"), version, "{kind}");
    }
}

#[test]
fn an_error_of_a_vendor_is_told_by_its_kind() {
    let silent = probity_testkit::Reply {
        text: Text::Fixed("\u{200b}".to_owned()),
        ..probity_testkit::Reply::default()
    };
    let limited = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(7));
    let answers = [
        Answer::fault(Trouble::BadKey),
        Answer::fault(Trouble::NoSuchModel),
        Answer::fault(Trouble::ContextLength),
        Answer::Fault(limited),
        Answer::fault(Trouble::Internal),
        Answer::Reply(silent),
    ];
    let script = (1..).zip(answers).fold(Script::default(), |script, (at, answer)| {
        script.rule(Rule::new(When::Requests(at..at + 1), answer))
    });
    for kind in KINDS {
        let server = FakeServer::start(script.clone());
        let read = read(kind, &server, "");
        // Its words are those of a model that has crashed.
        let broken = if kind == "ollama" { ErrorKind::Crash } else { ErrorKind::Server };
        let backend = read.backend("b");
        for (expected, permanent) in [
            (ErrorKind::Auth, true),
            (ErrorKind::NotFound, true),
            (ErrorKind::TooLarge, true),
            (ErrorKind::RateLimit, false),
            (broken, false),
            (ErrorKind::Empty, false),
        ] {
            let error = asked(&backend, &hello()).unwrap_err();
            assert_eq!((error.kind, error.permanent), (expected, permanent), "{kind}");
            let url = error.url.as_deref().unwrap();
            assert!(url.starts_with("http://127.0.0.1:"), "{kind} {url}");
            let wait = (expected == ErrorKind::RateLimit).then_some(7.0);
            assert_eq!(error.retry_after, wait, "{kind}");
            if expected == broken {
                assert_eq!(error.status, Some(500), "{kind}");
                assert!(error.message.starts_with("HTTP 500: "), "{kind} {}", error.message);
            }
        }
    }
}

#[test]
fn what_is_no_answer_is_an_error_that_says_why() {
    let error = |answer| outcome("openai", answer).unwrap_err();
    let of = |answer| {
        let CallError { kind, permanent, message, .. } = error(answer);
        (kind, permanent, message)
    };
    let (kind, permanent, message) = of(Answer::Garbage);
    assert_eq!((kind, permanent), (ErrorKind::Server, false));
    assert!(message.starts_with("the answer is not understood: "), "{message}");
    assert!(message.contains("it begins `upstream says: "), "{message}");
    let (kind, _, message) = of(Answer::EmptyBody);
    assert_eq!((kind, message.as_str()), (ErrorKind::Empty, "the answer is empty: it has no body"));
    assert_eq!(of(Answer::Truncated).0, ErrorKind::Network);
    let (kind, _, message) = of(Answer::Close);
    assert_eq!(kind, ErrorKind::Network);
    // Each cause is told once.
    let causes: Vec<&str> = message.split(": ").collect();
    assert!(causes.len() > 1 && causes[0] == "the connection failed", "{message}");
    assert!((1..causes.len()).all(|at| !causes[..at].contains(&causes[at])), "{message}");
    let (status, location) = (307, "http://user:hush@elsewhere/x?key=hush".to_owned());
    let (_, _, message) = of(Answer::Redirect { status, location });
    assert!(message.starts_with("HTTP 307: it redirects to `"), "{message}");
    assert!(message.contains("elsewhere") && !message.contains("hush"), "{message}");
    // A long answer is shown up to 200 bytes.
    let (_, _, message) = of(Answer::json(&format!("\"{}\"", "ä".repeat(300))));
    let begun = message.split("it begins `").nth(1).unwrap();
    assert!((190..=201).contains(&begun.len()), "{message}");
    let raw = |status, body: &str| {
        let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
        of(Answer::Raw { status, headers, body: body.to_owned() }).2
    };
    assert_eq!(raw(502, ""), "HTTP 502: Bad Gateway");
    assert_eq!(raw(502, "no  upstream"), "HTTP 502: no  upstream");
    let huge = "x".repeat(70 << 10);
    assert_eq!(raw(502, &huge), "HTTP 502: Bad Gateway");
}

#[test]
fn an_answer_that_is_larger_than_any_reply_is_not_read() {
    let error = outcome("openai", Answer::HugeBody { bytes: 40 << 20 }).unwrap_err();
    assert_eq!((error.kind, error.permanent), (ErrorKind::Server, false));
    assert_eq!(error.message, "the answer is larger than 32 MiB");
}

#[test]
fn a_server_of_this_machine_that_does_not_listen_is_not_asked_again() {
    let server = FakeServer::start(Script::default());
    let backend = read("openai", &server, "").backend("b");
    let url = server.url();
    drop(server);
    let error = asked(&backend, &hello()).unwrap_err();
    assert_eq!((error.kind, error.permanent), (ErrorKind::Network, true));
    let expected =
        format!("the connection was refused: nothing listens at {url}/chat/completions;");
    assert!(error.message.starts_with(&expected), "{}", error.message);
    assert_eq!(error.url.as_deref(), Some(&*format!("{url}/chat/completions")));
    // Somebody was to be asked, so that it counts as a call.
    let ask = Ask { request: &hello(), repeat: 0, about: None };
    assert!(wait(backend.ask(&ask, LONG)).unwrap_err().is_call);
}

#[test]
fn a_server_that_takes_too_long_is_not_waited_for() {
    let server = FakeServer::start(Script::always(Answer::HangAfterHeaders));
    let backend = read("openai", &server, "").backend("b");
    let ask = Ask { request: &hello(), repeat: 0, about: None };
    let failed = wait(backend.ask(&ask, Duration::from_millis(20))).unwrap_err();
    assert_eq!((failed.error.kind, failed.is_call), (ErrorKind::Timeout, true));
    assert_eq!(failed.error.message, "no complete answer within 0.02 s");
}

#[test]
fn keys_that_servers_repeat_are_kept_nowhere() {
    let server =
        FakeServer::start(Script::always(Answer::Fault(Fault::new(Trouble::BadKey).echo_key())));
    let error = asked(&read("openai", &server, "").backend("b"), &hello()).unwrap_err();
    assert!(
        error.message.contains("[redacted]") && !error.message.contains(KEY),
        "{}",
        error.message
    );
    let server = FakeServer::start(Script::always(Answer::text(&format!("it is {KEY}"))));
    let reply = asked(&read("openai", &server, "").backend("b"), &hello()).unwrap();
    assert_eq!(reply.text, "it is [redacted]");
}

#[test]
fn a_reply_that_is_read_while_it_is_written_is_the_same() {
    for kind in ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "ollama"] {
        let server = FakeServer::start(Script::default());
        let whole = asked(&read(kind, &server, "").backend("b"), &hello()).unwrap();
        assert!(whole.first_token.is_none(), "{kind}");
        let streamed = asked(&read(kind, &server, "stream = true").backend("b"), &hello()).unwrap();
        assert_eq!((&streamed.text, &streamed.model), (&whole.text, &whole.model), "{kind}");
        assert_eq!(streamed.usage, whole.usage, "{kind}");
        let first = streamed.first_token.unwrap();
        assert!(first <= streamed.latency.unwrap(), "{kind}");
        let error = {
            let server = FakeServer::start(Script::always(Answer::fault(Trouble::BadKey)));
            asked(&read(kind, &server, "stream = true").backend("b"), &hello()).unwrap_err()
        };
        assert_eq!(error.kind, ErrorKind::Auth, "{kind}");
        let cut = {
            let server = FakeServer::start(Script::always(Answer::Truncated));
            asked(&read(kind, &server, "stream = true").backend("b"), &hello()).unwrap_err()
        };
        assert_eq!(cut.kind, ErrorKind::Network, "{kind}");
    }
}

fn events(kind: &str, body: &str) -> Answer {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    Answer::Raw { status: 200, headers, body: body.to_owned() }
}

#[test]
fn a_stream_that_is_none_is_read_as_what_it_is() {
    let of = |answer| {
        let server = FakeServer::start(Script::always(answer));
        asked(&read("openai", &server, "stream = true").backend("b"), &hello())
    };
    let whole = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
    for kind in ["application/json; charset=utf-8", "text/plain"] {
        assert_eq!(of(events(kind, whole)).unwrap().text, "hi", "{kind}");
    }
    let said = r#"data: {"choices":[{"delta":{"content":"hi"}}]}"#;
    assert_eq!(
        of(events("text/plain", &format!("{said}\n\ndata: [DONE]\n\n"))).unwrap().text,
        "hi"
    );
    let cut = of(events("text/event-stream", &format!("{said}\n\n"))).unwrap_err();
    assert_eq!((cut.kind, cut.status), (ErrorKind::Network, Some(200)));
    assert_eq!(cut.message, "the answer breaks off: its stream ended before its end");
    let wrong = of(events("text/event-stream", "data: {\"error\":{\"message\":\"on fire\"}}\n\n"));
    assert_eq!(wrong.unwrap_err().message, "HTTP 200: on fire");
}

#[test]
fn what_a_vendor_says_a_call_cost_is_what_it_cost() {
    let body = r#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1,"cost":0.25}}"#;
    let server = FakeServer::start(Script::always(Answer::json(body)));
    let backend = read("openrouter", &server, "price = { input = 1.0, output = 2.0 }").backend("b");
    let reply = asked(&backend, &hello()).unwrap();
    assert_eq!(reply.cost_usd, Some(0.25));
    assert_eq!(backend.cost(reply.usage, reply.cost_usd), Some(0.25));
    let reckoned = backend.cost(reply.usage, None).unwrap();
    assert!((reckoned - (5.0 + 2.0) / 1e6).abs() < 1e-12, "{reckoned}");
    assert!(backend.has_known_cost());
    let unknown = read("openai", &server, "").backend("b");
    assert!(!unknown.has_known_cost() && unknown.cost(reply.usage, None).is_none());
}

#[test]
fn an_answer_that_says_that_a_limit_is_used_up_is_an_answer() {
    let headers = [
        ("content-type", "application/json"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "7s"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let body = r#"{"choices":[{"message":{"content":"hi"}}]}"#.to_owned();
    let reply = outcome("openai", Answer::Raw { status: 200, headers, body }).unwrap();
    assert_eq!((reply.text.as_str(), reply.exhausted_for), ("hi", Some(Duration::from_secs(7))));
    assert_eq!(outcome("openai", Answer::text("hi")).unwrap().exhausted_for, None);
}

#[test]
fn a_server_lists_its_models_or_says_why_not() {
    for kind in ["openai", "anthropic", "gemini", "ollama", "vertex"] {
        let server = FakeServer::start(Script::default());
        let backend = read(kind, &server, "").backend("b");
        let http = backend.http().unwrap();
        let models = wait(http.probe(LONG)).models.unwrap().unwrap();
        assert_eq!(models.len(), 2, "{kind}: {models:?}");
        assert!(models[0].contains("fake-small"), "{kind}: {models:?}");
        // Vertex lists what nobody can compare.
        assert_eq!(http.is_same_model(&models[0], "m-1"), kind == "vertex", "{kind}");
        assert!(http.is_same_model(&models[0], "fake-small"), "{kind}");
    }
    let server = FakeServer::start(Script::default());
    let backend = read("openai", &server, "").backend("b");
    drop(server);
    let error = wait(backend.http().unwrap().probe(LONG)).models.unwrap_err();
    assert_eq!((error.kind, error.permanent), (ErrorKind::Network, true));
}

#[test]
fn requests_to_aws_are_signed() {
    let server = FakeServer::start(Script::default());
    let text = format!(
        "[backends.b]\nkind = \"bedrock\"\nbase_url = \"{}\"\nmodel = \"m-1\"\napi_key_env = \"AWS_SECRET_ACCESS_KEY\"\n",
        server.url()
    );
    let project = Project::new()
        .variable("AWS_REGION", "eu-west-1")
        .variable("AWS_ACCESS_KEY_ID", AWS_ACCESS_KEY)
        .variable("AWS_SECRET_ACCESS_KEY", AWS_SECRET_KEY);
    let reply = asked(&project.read(&text).backend("b"), &hello()).unwrap();
    assert_eq!(reply.text, "7");
    let received = server.seen().last.pop_front().unwrap();
    assert!(received.header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 "));
}

const CUSTOM: &str = r#"
[backends.app]
kind = "http"
url = "URL/v1/chat/completions?team={{ team }}"
model = "m-1"
headers = { authorization = "Bearer {{ env.APP_TOKEN }}", x-case = "{{ id }}" }
reply = "/choices/0/message/content"
error = "/error/message"
usage = { input_tokens = "/usage/prompt_tokens", output_tokens = "/usage/completion_tokens" }
[backends.app.body]
model = "{{ model }}"
messages = "{{ messages }}"
stop = "{{ stop }}"
conversation = "{{ session }}"
"#;

const TOKEN: &str = "tok-of-the-app-0123456789";

fn app(server: &FakeServer) -> Backend {
    let project = Project::new().variable("APP_TOKEN", TOKEN);
    project.read(&CUSTOM.replace("URL", &server.url())).backend("app")
}

fn about(id: &str) -> About {
    let prompt_vars = [("team".to_owned(), json!("a & b"))].into();
    About::new(TestCase { id: id.to_owned(), prompt_vars, ..TestCase::default() }.into())
}

#[test]
fn a_server_that_the_suite_describes_gets_what_the_suite_says() {
    let server = FakeServer::start(Script::default());
    let backend = app(&server);
    let (request, case) = (hello(), about("c"));
    let ask = Ask { request: &request, repeat: 0, about: Some(&case) };
    let reply = wait(backend.ask(&ask, LONG)).unwrap();
    assert_eq!((reply.text.as_str(), reply.usage.input_tokens), ("7", Some(5)));
    let received = server.seen().last.pop_front().unwrap();
    assert_eq!(received.path, "/v1/chat/completions?team=a%20%26%20b");
    assert_eq!(received.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(
        (received.header("x-case"), received.header("content-type")),
        (Some("c"), Some("application/json"))
    );
    let body = received.json();
    let said = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "Return the number 7" },
    ]);
    assert_eq!((&body["model"], &body["messages"]), (&json!("m-1"), &said));
    // What there is not is null, and no empty list.
    assert_eq!(body["stop"], Value::Null);
    // What a person may see has no secrets, and no session.
    let shown = backend.http().unwrap().shown_body(&ask).unwrap();
    assert_eq!(shown["conversation"], "[redacted]");
    assert!(backend.http().unwrap().shown_url().contains("team="));
    assert!(!format!("{backend:?}").contains(TOKEN));
}

#[test]
fn each_conversation_has_a_session_of_its_own() {
    let server = FakeServer::start(Script::default());
    let backend = app(&server);
    assert!(backend.has_sessions());
    let mut longer = hello();
    longer.messages.push(Message::text(Role::Assistant, "7"));
    longer.messages.push(Message::text(Role::User, "And 8"));
    for (id, repeat, request) in [
        ("c", 0, hello()),
        ("c", 0, hello()),
        ("c", 0, longer),
        ("c", 1, hello()),
        ("d", 0, hello()),
    ] {
        let case = about(id);
        let ask = Ask { request: &request, repeat, about: Some(&case) };
        wait(backend.ask(&ask, LONG)).unwrap();
    }
    let sessions: Vec<Value> =
        bodies(&server).iter().map(|it| it["conversation"].clone()).collect();
    assert_eq!((&sessions[0], &sessions[0]), (&sessions[1], &sessions[2]));
    assert!(sessions[0] != sessions[3] && sessions[0] != sessions[4] && sessions[3] != sessions[4]);
}

#[test]
fn errors_of_a_server_that_the_suite_describes_are_found_where_it_says() {
    let of = |answer| {
        let server = FakeServer::start(Script::always(answer));
        let (request, case) = (hello(), about("c"));
        let ask = Ask { request: &request, repeat: 0, about: Some(&case) };
        wait(app(&server).ask(&ask, LONG)).unwrap_err().error
    };
    let said = of(Answer::json(r#"{"choices":[],"error":{"message":"the engine is on fire"}}"#));
    assert_eq!(said.message, "HTTP 200: the engine is on fire");
    let nothing = of(Answer::json(r#"{"choices":[]}"#));
    assert!(
        nothing.message.contains("it has nothing at `/choices/0/message/content`"),
        "{nothing}"
    );
    assert_eq!(of(Answer::fault(Trouble::BadKey)).kind, ErrorKind::Auth);
    let server = FakeServer::start(Script::default());
    let request = hello();
    let ask = Ask { request: &request, repeat: 0, about: None };
    let error = wait(app(&server).ask(&ask, LONG)).unwrap_err().error;
    assert_eq!((error.kind, server.seen().asked), (ErrorKind::BadRequest, 0));
}

#[test]
fn backends_say_what_they_lack() {
    let server = FakeServer::start(Script::default());
    let lacks = |kind: &str| read(kind, &server, "").backend("b").lacks().into_owned();
    assert_eq!(lacks("openai"), []);
    assert_eq!(lacks("anthropic"), [Need::ResponseFormat]);
    assert_eq!(lacks("bedrock"), [Need::ImageUrl]);
    assert!(lacks("ollama").contains(&Need::ForcedCall), "{:?}", lacks("ollama"));
    let program = Project::new().read("[backends.b]\nkind = \"command\"\ncommand = [\"cat\"]");
    assert_eq!(program.backend("b").lacks().into_owned(), Need::ALL);
    let ignored = |kind: &str| {
        let backend = read(kind, &server, "seed = 1\nlogprobs = true\nstop = [\"x\"]").backend("b");
        backend.not_applied.clone()
    };
    assert_eq!(ignored("openai"), [""; 0]);
    assert_eq!(ignored("anthropic"), ["seed", "logprobs"]);
    assert_eq!(ignored("openai-responses"), ["seed", "stop"]);
    assert_eq!(ignored("gemini"), ["logprobs"]);
}

#[test]
fn embedders_and_rerankers_send_no_more_than_a_text() {
    let server = FakeServer::start(Script::default());
    let read = read("openai", &server, "stream = true\nresponse_format = \"json\"");
    let embedder = read.open("b", Duty::Embeds).unwrap();
    let request = Request::new(None, "some text");
    let ask = Ask { request: &request, repeat: 0, about: None };
    let vector = wait(embedder.embed(&ask, LONG)).unwrap();
    assert!(!vector.is_empty());
    let ranker = read.open("b", Duty::Ranks).unwrap();
    let question = Request::new(Some("some".into()), "some text");
    asked(&ranker, &question).unwrap();
    let sent = bodies(&server);
    assert_eq!(sent[0], json!({ "model": "m-1", "input": "some text" }));
    assert_eq!(sent[1], json!({ "model": "m-1", "query": "some", "documents": ["some text"] }));
    let other = Project::new().variable("A_KEY", KEY).read(&format!(
        "[backends.b]\nkind = \"anthropic\"\nbase_url = \"{}\"\nmodel = \"m\"\napi_key_env = \"A_KEY\"",
        server.url()
    ));
    assert!(other.open("b", Duty::Embeds).is_err());
    assert!(other.open("b", Duty::Ranks).is_err());
    // A reply that is no vector is an error.
    let echo = Project::new().read("[backends.b]\nkind = \"echo\"").backend("b");
    assert_eq!(wait(echo.embed(&ask, LONG)).unwrap_err().error.kind, ErrorKind::Server);
}

#[test]
fn an_echo_says_what_it_is_asked_and_counts_it() {
    let echo = Project::new().read("[backends.b]\nkind = \"echo\"").backend("b");
    let reply = asked(&echo, &hello()).unwrap();
    assert_eq!(
        (reply.text.as_str(), reply.model.as_deref()),
        ("Return the number 7", Some("echo"))
    );
    assert!(reply.usage.estimated && reply.usage.output_tokens.is_some());
    assert!(echo.has_known_cost() && !echo.is_replay() && echo.recorded_repeats().is_none());
}

#[test]
fn a_model_that_stops_for_a_tool_or_a_filter_says_so_in_every_dialect() {
    for kind in KINDS {
        let finished = |finish| {
            outcome(
                kind,
                Answer::Reply(probity_testkit::Reply {
                    finish,
                    ..probity_testkit::Reply::default()
                }),
            )
        };
        let called = finished(Finish::ToolUse).unwrap();
        assert_eq!(called.answer(), r#"[{"name":"lookup","arguments":{}}]"#, "{kind}");
        assert_eq!(called.source, Source::Backend);
        let cut = finished(Finish::Length).unwrap();
        assert_eq!(cut.text, "7", "{kind}");
        assert_ne!(cut.stop_reason, finished(Finish::Stop).unwrap().stop_reason, "{kind}");
    }
}

#[test]
fn one_call_that_fails_is_made_again_and_counted() {
    let limited = Fault::new(Trouble::Internal);
    let script = Script::default().rule(Rule::new(When::Requests(1..2), Answer::Fault(limited)));
    let server = FakeServer::start(script);
    let text = format!(
        "[retry]\nbackoff_base = 0.001\n[backends.b]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         price = {{ input = 1.0, output = 1.0 }}\n\
         [[runners]]\nname = \"r\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n",
        server.url()
    );
    let case = json!({ "id": "c", "prompt": "Return the number 7", "expected_response": "7" });
    let ran = Project::new().cases(&[case]).run(&text);
    let record = ran.of("c");
    assert_eq!((record.calls, record.failures.len(), record.reply.as_deref()), (2, 1, Some("7")));
    assert_eq!((record.failures[0].attempt, record.failures[0].error.kind), (1, ErrorKind::Server));
    assert_eq!((record.model.as_deref(), record.source), (Some("m"), Source::Backend));
    let cost = record.cost_usd.unwrap();
    assert!(
        (cost - 6e-6).abs() < 1e-12 && (ran.outcome.used.cost_usd - cost).abs() < 1e-12,
        "{cost}"
    );
    assert_eq!((ran.outcome.used.tokens, record.usage.total()), (6, 6));
    assert!(record.started_ms > 0 && record.elapsed_ms >= record.latency_ms);
}
