//! Servers that the suite itself describes: what is sent, what is read, what goes wrong.

use std::collections::BTreeSet;

use probity_testkit::{
    AWS_ACCESS_KEY, AWS_SECRET_KEY, Answer, FakeServer, Fault, RetryAfter, Rule, Script, Trouble,
    When,
};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{bodies, run, stored},
};

const TOKEN: &str = "tok-of-the-app-0123456789";

/// The fake server as an application that nobody knows the language of.
const SUITE: &str = r#"
[backends.app]
kind = "http"
url = "URL/v1/chat/completions?team={{ team }}"
model = "m-1"
headers = { authorization = "Bearer {{ env.APP_TOKEN }}", x-case = "{{ id }}" }
reply = "/choices/0/message/content"
error = "/error/message"
usage = { input_tokens = "/usage/prompt_tokens", output_tokens = "/usage/completion_tokens" }
MORE
[backends.app.body]
model = "{{ model }}"
messages = "{{ messages }}"
user = "{{ env.APP_TOKEN }}"
conversation = { id = "{{ session }}", note = "{{ id }} of {{ team }}" }
[[runners]]
name = "r"
dataset = "cases.jsonl"
system = "be brief"
[retry]
backoff_base = 0.01
"#;

fn project_with(server: &FakeServer, suite: &str, more: &str) -> Project {
    let case = |at: u32| {
        json!({
            "id": format!("c{at}"), "prompt": format!("Return the number {at}"),
            "expected_response": at.to_string(), "prompt_vars": { "team": "a & b" },
        })
    };
    Project::new()
        .lines("cases.jsonl", &[0, 1].map(case))
        .file(".env", format!("APP_TOKEN={TOKEN}\n"))
        .file("probity.toml", suite.replace("URL", &server.url()).replace("MORE", more))
}

fn project(server: &FakeServer) -> Project {
    project_with(server, SUITE, "")
}

#[test]
fn the_suite_says_what_is_sent_and_where_the_reply_stands() {
    let server = FakeServer::start(Script::default());
    let project = project(&server);
    run(&project, &["--repeat", "2"]).expect(0, &[("TOTAL_CALLS", "4")]);
    let seen = server.seen();
    let (received, body) = (&seen.last[0], bodies(&server).remove(0));
    assert_eq!(received.path, "/v1/chat/completions?team=a%20%26%20b");
    assert_eq!(received.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(received.headers["content-type"], "application/json");
    let id = body["conversation"]["note"].as_str().unwrap().split(' ').next().unwrap();
    assert_eq!(received.headers["x-case"], id);
    let messages = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": format!("Return the number {}", &id[1..]) },
    ]);
    assert_eq!((&body["messages"], &body["user"]), (&messages, &json!(TOKEN)));
    // Each conversation has a session of its own.
    let sessions: BTreeSet<String> =
        bodies(&server).iter().map(|it| it["conversation"]["id"].to_string()).collect();
    assert_eq!(sessions.len(), 4);
    let cases = stored(&project);
    assert!(cases.iter().all(|it| it["verdict"] == "pass" && it["usage"]["input_tokens"] == 5));
    assert!(cases.iter().all(|it| it["usage"]["estimated"].is_null()), "{cases:?}");
}

#[test]
fn values_of_variables_are_kept_nowhere() {
    let fault = Fault::new(Trouble::BadKey).echo_key();
    let server = FakeServer::start(Script::always(Answer::Fault(fault)));
    let project = project(&server);
    let ran = run(&project, &["--max-retries", "0", "--record", "answers.jsonl"]);
    assert!(!ran.err.contains(TOKEN), "{}", ran.err);
    run(&project, &["--dry-run", "--requests", "requests.jsonl"]);
    let store = std::fs::read(project.path(".probity/probity.db")).unwrap();
    let shown = project.shown(&["show", "latest", "--json"]);
    let requests = project.read("requests.jsonl");
    let texts = [shown, requests.clone(), project.read("answers.jsonl")];
    assert!(texts.iter().all(|it| !it.contains(TOKEN)), "{texts:?}");
    assert!(!store.windows(TOKEN.len()).any(|it| it == TOKEN.as_bytes()));
    let line: Value = serde_json::from_str(requests.lines().next().unwrap()).unwrap();
    assert_eq!(line["body"]["user"], "[redacted]");
    assert_eq!(line["body"]["conversation"]["note"], "c0 of a & b");
    assert_eq!(line["url"], format!("{}/v1/chat/completions?team=[redacted]", server.url()));
}

#[test]
fn a_replay_gives_each_case_its_own_answer() {
    let server = FakeServer::start(Script::default());
    let suite = SUITE.replace(
        "messages = \"{{ messages }}\"",
        "messages = [{ role = \"user\", content = \"{{ id }}\" }]",
    );
    let case = |id: &str| json!({ "id": id, "prompt": "p", "expected_response": id, "prompt_vars": { "team": "t" } });
    let cases = [case("a"), case("b")].map(|it| it.to_string()).join("\n");
    let project = project_with(&server, &suite, "").file("cases.jsonl", cases);
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "2")]);
    run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
    let verdicts: Vec<Value> = stored(&project).iter().map(|it| it["verdict"].clone()).collect();
    assert_eq!(verdicts, ["pass", "pass"]);
}

#[test]
fn a_token_in_a_header_of_the_suite_is_not_kept() {
    let token = "app-0123456789abcdef";
    let echoed = format!("application/json {token}");
    let body = json!({ "choices": [{ "message": { "content": echoed } }] });
    let server = FakeServer::start(Script::always(Answer::json(&body.to_string())));
    let headers = format!("headers = {{ x-app = \"{token}\", accept = \"application/json\" }}");
    let suite = SUITE.replace("headers = {", "x-headers = {");
    let project = project_with(&server, &suite, &headers);
    run(&project, &["--limit", "1"]);
    assert_eq!(server.seen().last[0].headers["x-app"], token);
    assert_eq!(stored(&project).remove(0)["raw_response"], "application/json [redacted]");
}

#[test]
fn a_header_for_a_key_takes_it_from_a_variable() {
    for name in ["apikey", "api_key", "X-Api-Key", "X-Auth", "auth_tokens", "Cookie", "APP.SECRET"]
    {
        let suite = format!(
            "[backends.a]\nkind = \"http\"\nurl = \"http://h\"\nheaders = {{ \"{name}\" = \"sk-1\" }}"
        );
        let shown = Project::new().file("probity.toml", suite).shown(&["run"]);
        assert!(shown.contains("error[key-in-file]") && !shown.contains("sk-1"), "{shown}");
    }
}

fn error_of(answer: Answer) -> Value {
    let server = FakeServer::start(Script::always(answer));
    let project = project(&server);
    run(&project, &["--max-retries", "0", "--limit", "1"]);
    stored(&project).remove(0)["error"].clone()
}

#[test]
fn errors_are_those_of_all_servers() {
    let kind = |trouble| error_of(Answer::fault(trouble))["kind"].as_str().unwrap().to_owned();
    assert_eq!(kind(Trouble::BadKey), "auth");
    assert_eq!(kind(Trouble::ContextLength), "too_large");
    assert_eq!(kind(Trouble::RateLimit), "rate_limit");
    assert_eq!(kind(Trouble::BadGateway), "server");
    let said =
        error_of(Answer::json(r#"{"choices":[],"error":{"message":"the engine is on fire"}}"#));
    assert_eq!(said["message"], "HTTP 200: the engine is on fire");
    let nothing = error_of(Answer::json(r#"{"choices":[]}"#));
    let message = nothing["message"].as_str().unwrap();
    assert!(message.contains("it has nothing at `/choices/0/message/content`"), "{message}");
    assert_eq!(error_of(Answer::Garbage)["kind"], "server");
    assert_eq!(error_of(Answer::Truncated)["kind"], "network");

    let limited = Fault::new(Trouble::RateLimit).retry(RetryAfter::Seconds(1));
    let rule = Rule::new(When::Requests(1..2), Answer::Fault(limited));
    let server = FakeServer::start(Script::default().rule(rule));
    run(&project(&server), &["--limit", "1"]).expect(0, &[("TOTAL_CALLS", "2")]);
    // A call that is made again belongs to the same conversation.
    let sessions: BTreeSet<String> =
        bodies(&server).iter().map(|it| it["conversation"]["id"].to_string()).collect();
    assert_eq!(sessions.len(), 1);
}

#[test]
fn a_text_can_be_sent_and_all_of_the_answer_read() {
    let server = FakeServer::start(Script::default());
    let suite = format!(
        "[backends.app]\nkind = \"http\"\nurl = \"{}/v1/chat/completions\"\n\
         body = '{{\"model\": \"m\", \"messages\": [{{\"role\": \"user\", \"content\": {{{{ prompt | tojson }}}}}}]}}'\n\
         [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n",
        server.url()
    );
    let case = r#"{"id":"a","prompt":"say \"hi\"","assert":[{"type":"contains","value":"chat.completion"}]}"#;
    let project = Project::new().file("cases.jsonl", case).file("probity.toml", suite);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "1")]);
    assert_eq!(bodies(&server)[0]["messages"][0]["content"], "say \"hi\"");
    assert!(stored(&project)[0]["raw_response"].as_str().unwrap().starts_with('{'));
}

#[test]
fn answers_without_a_session_are_cached_by_all_that_is_sent() {
    let suite = SUITE.replace("id = \"{{ session }}\", ", "") + "[cache]\nenabled = true\n";
    let server = FakeServer::start(Script::default());
    let project = project_with(&server, &suite, "");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "0")]);
    // The prompt is the same, and what is sent is not.
    let cases = project.read("cases.jsonl").replace("a & b", "another");
    let project = project.file("cases.jsonl", cases);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    // What a server remembers is a part of its answer.
    let stateful = project_with(&server, &(SUITE.to_owned() + "[cache]\nenabled = true\n"), "");
    run(&stateful, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    run(&stateful, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
}

#[test]
fn a_case_that_cannot_be_sent_is_refused_before_the_run() {
    let server = FakeServer::start(Script::default());
    let project = project(&server).file("cases.jsonl", r#"{"id":"a","prompt":"hi"}"#);
    let ran = run(&project, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let message = "case `a` cannot be sent to backend `app`: `url` of the backend cannot be \
                   filled in: `team` has no value";
    assert!(ran.err.contains(message), "{}", ran.err);
    assert_eq!(server.seen().requests, 0);
    // Nothing that is sent would have a place for it.
    let talk = json!({ "id": "a", "prompt_vars": { "team": "x" }, "messages": [
        { "role": "user", "content": "a" }, { "role": "assistant", "content": "b" },
        { "role": "user", "content": "c" },
    ]});
    let deaf = SUITE.replace("messages = \"{{ messages }}\"", "messages = \"{{ prompt }}\"");
    let refused = |suite: &str, why: &str| {
        let project = project_with(&server, suite, "").file("cases.jsonl", talk.to_string());
        let ran = run(&project, &[]);
        assert!(ran.code == Some(2) && ran.err.contains(why), "{}", ran.err);
    };
    let stateless = deaf.replace("id = \"{{ session }}\", ", "");
    refused(&stateless, "needs a conversation, which backend `app`");
    refused(&deaf, "case `a` cannot be sent to backend `app`: the conversation began elsewhere");
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn a_value_of_a_case_stays_in_its_place() {
    let server = FakeServer::start(Script::default());
    let suite = SUITE
        .replace("completions?team={{ team }}", "completions?team={{ team }}&note={{ team }}")
        .replace("x-case = \"{{ id }}\"", "x-case = \"{{ note }}\"");
    let case = |team: &str, note: &str| {
        let vars = json!({ "team": team, "note": note });
        json!({ "id": "a", "prompt": "Return the number 1", "expected_response": "1", "prompt_vars": vars })
            .to_string()
    };
    let with = |team, note| project_with(&server, &suite, "").file("cases.jsonl", case(team, note));
    let ran = run(&with("../x?admin=1#/@evil.example {{ env.APP_TOKEN }}", "plain"), &[]);
    let team = "..%2Fx%3Fadmin%3D1%23%2F%40evil.example%20%7B%7B%20env.APP_TOKEN%20%7D%7D";
    let path = format!("/v1/chat/completions?team={team}&note={team}");
    assert_eq!(server.seen().last[0].path, path, "{}", ran.err);
    // A line of its own in a header would be a header of its own.
    let ran = run(&with("t", "a\r\nx-admin: 1"), &[]);
    assert!(ran.err.contains("the value of the header `x-case` cannot be sent"), "{}", ran.err);
    assert_eq!(server.seen().requests, 1);
}

/// A server that is sent what the user says now, and remembers what was said before.
const STATEFUL: &str = r#"
[backends.app]
kind = "http"
url = "URL/v1/chat/completions"
reply = "/answer"
MORE
[backends.app.body]
model = "m"
messages = [{ role = "user", content = "{{ prompt }}" }]
session = "{{ session }}"
[[runners]]
name = "r"
dataset = "cases.jsonl"
"#;

fn sessions_of(answer: &str, suite: &str, case: &Value) -> Vec<Value> {
    let server = FakeServer::start(Script::always(Answer::json(answer)));
    let suite = suite.replace("URL", &server.url());
    let project = Project::new().file("cases.jsonl", case.to_string()).file("probity.toml", suite);
    let ran = run(&project, &[]);
    assert_eq!(stored(&project)[0]["verdict"], "pass", "{}", ran.err);
    let mut bodies = bodies(&server);
    bodies.iter_mut().map(|it| it["session"].take()).collect()
}

#[test]
fn a_conversation_goes_on_in_the_session_of_its_first_reply() {
    let case = json!({ "id": "a", "turns": ["one", { "user": "two" }, {
        "user": "three", "assert": [{ "type": "contains", "value": "ok" }],
    }]});
    let named = STATEFUL.replace("MORE", "session = \"/id\"");
    let sessions = sessions_of(r#"{"answer":"ok","id":"s-7"}"#, &named, &case);
    assert_eq!(sessions, [Value::Null, json!("s-7"), json!("s-7")]);
    let own = sessions_of(r#"{"answer":"ok"}"#, &STATEFUL.replace("MORE", ""), &case);
    assert!(own.len() == 3 && own[0].is_string() && own.iter().all(|it| *it == own[0]), "{own:?}");
}

#[test]
fn a_judge_that_is_asked_again_has_another_session() {
    let case = json!({ "id": "a", "prompt": "hi", "assert": [{ "type": "closed-qa", "value": "polite" }] });
    let suite = STATEFUL.replace("MORE", "") + "judge_repeats = 3\n";
    let answer = json!({ "answer": r#"{"reason": "so", "answer": "yes"}"# }).to_string();
    let sessions = sessions_of(&answer, &suite, &case);
    let different: BTreeSet<String> = sessions.iter().map(Value::to_string).collect();
    assert_eq!((sessions.len(), different.len()), (4, 4), "{sessions:?}");
}

#[test]
fn a_value_that_a_case_lacks_is_never_sent_as_a_word() {
    let server = FakeServer::start(Script::default());
    let refused = |suite: &str, what: &str, name: &str| {
        let ran = run(&project_with(&server, suite, ""), &[]);
        let message = format!("`{what}` of the backend cannot be filled in: `{name}` has no value");
        assert!(ran.code == Some(2) && ran.err.contains(&message), "{}", ran.err);
    };
    refused(&SUITE.replace("team={{ team }}", "of={{ category }}"), "url", "category");
    refused(
        &SUITE.replace("x-case = \"{{ id }}\"", "x-case = \"{{ difficulty }}\""),
        "headers.x-case",
        "difficulty",
    );
    refused(
        &SUITE.replace("{{ id }} of {{ team }}", "{{ temperature }} of it"),
        "body",
        "temperature",
    );
    // The server gives the first request no session yet.
    let named = SUITE.replace("MORE", "session = \"/id\"");
    refused(
        &named.replace("x-case = \"{{ id }}\"", "x-in = \"{{ session }}\""),
        "headers.x-in",
        "session",
    );
    // A field of its own is left out, and a template may say what to send instead.
    let suite = SUITE
        .replace("user = \"{{ env.APP_TOKEN }}\"", "user = \"{{ category }}\"")
        .replace("x-case = \"{{ id }}\"", "x-case = \"{{ category or 'any' }}\"");
    let project = project_with(&server, &suite, "");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2")]);
    let seen = server.seen();
    assert_eq!(seen.last[0].headers["x-case"], "any");
    assert_eq!(bodies(&server)[0].get("user"), None);
}

#[test]
fn doctor_says_whether_the_server_answers() {
    let server = FakeServer::start(Script::default());
    let project = project(&server);
    let ran = project.run(&["doctor"]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.code() == Some(0) && text.contains("reachable  yes"), "{text}");
    drop(server);
    let ran = project.run(&["doctor"]);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.code() == Some(3) && text.contains("nothing listens at"), "{text}");
    let unset = project.file(".env", "");
    let text = String::from_utf8_lossy(&unset.run(&["doctor"]).stdout).into_owned();
    assert!(text.contains("needs a key in the variable `APP_TOKEN`"), "{text}");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let suite = r#"
[backends.a]
kind = "http"
[backends.b]
kind = "http"
url = "http://{{ id }}.example/chat"
method = "GET"
body = { q = "{{ prompt" }
headers = { Authorization = "Bearer sk-1", x-api-key = "abc", x-team = "red" }
reply = "answer"
stream = true
[backends.c]
kind = "openai"
model = "m"
reply = "/answer"
[[runners]]
name = "r"
dataset = "cases.jsonl"
"#;
    let project = Project::new().file("probity.toml", suite).file("cases.jsonl", "");
    insta::assert_snapshot!(project.shown(&["run"]));
}

#[test]
fn requests_are_signed_for_a_service_of_aws() {
    const SIGNED: &str = r#"
max_error_rate = 1.0
[backends.app]
kind = "http"
url = "URL/model/m-1/converse"
aws_service = "bedrock"
reply = "/output/message/content/0/text"
body = { messages = [{ role = "user", content = [{ text = "{{ prompt }}" }] }] }
[[runners]]
name = "r"
dataset = "cases.jsonl"
[retry]
backoff_base = 0.01
"#;
    let server = FakeServer::start(Script::default());
    let with = |secret: &str| {
        let variables = format!(
            "AWS_ACCESS_KEY_ID={AWS_ACCESS_KEY}\nAWS_SECRET_ACCESS_KEY={secret}\nAWS_REGION=eu-west-1\n"
        );
        project_with(&server, SIGNED, "").file(".env", variables)
    };
    let project = with(AWS_SECRET_KEY);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "2"), ("ABORTED", "0")]);
    assert!(stored(&project).iter().all(|it| it["verdict"] == "pass"));
    let seen = server.seen();
    let signature = seen.last[0].header("authorization").unwrap_or_default();
    assert!(signature.contains("/eu-west-1/bedrock/aws4_request"), "{signature}");
    let refused = with("another-secret");
    run(&refused, &["--max-retries", "0"]);
    assert!(stored(&refused).iter().all(|it| it["error"]["kind"] == "auth"));
    let unsigned = project_with(&server, SIGNED, "").shown(&["run"]);
    assert!(
        unsigned.contains(
            "needs a region in the variable `AWS_REGION`: its host `127.0.0.1` names none"
        ),
        "{unsigned}"
    );
    let both = SIGNED.replace("reply =", "api_key_env = \"SOME_KEY\"\nreply =");
    let refused = project_with(&server, &both, "").shown(&["run"]);
    assert!(refused.starts_with("exit 2"), "{refused}");
    assert!(
        refused.contains("a request that `aws_service` signs has no `api_key_env`")
            && refused.contains("probity.toml:7:1"),
        "{refused}"
    );
}

#[test]
fn a_variable_may_be_part_of_the_address_of_any_server() {
    let server = FakeServer::start(Script::default());
    let suite = "[backends.app]\nkind = \"openai\"\nbase_url = \"{{ env.PLACE }}/v1\"\nmodel = \"m\"\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = |suite: &str| project_with(&server, suite, "");
    let told = project(suite).file(".env", format!("PLACE={}\n", server.url()));
    run(&told, &[]).expect(0, &[("TOTAL_CALLS", "2"), ("ABORTED", "0")]);
    let unset = project(suite).shown(&["run"]);
    assert!(unset.contains("PLACE"), "{unset}");
    let of_case = project(&suite.replace("env.PLACE", "team")).shown(&["run", "--dry-run"]);
    assert!(of_case.contains("`base_url` must be the same for every case"), "{of_case}");
}
