//! Conversations, tools, images, formats and variables: what is really sent.

use probity_testkit::{FakeServer, Script};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{bodies, run, stored},
};

const SUITE: &str = r#"
[backends.b]
kind = "KIND"
base_url = "URL"
model = "m-1"
temperature = 0.5
[[runners]]
name = "r"
dataset = "cases.jsonl"
system = "be brief"
"#;

fn project(kind: &str, server: &FakeServer, cases: &[Value]) -> Project {
    let suite = SUITE.replace("KIND", kind).replace("URL", &server.url());
    Project::new()
        .lines("cases.jsonl", cases)
        .file("probity.toml", suite)
        .file("cat.gif", "GIF89a.")
        .file("doc.txt", "a long text")
        .file("data.json", r#"{"n": [1, 2.50]}"#)
        .file(
            "tools.json",
            r#"[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}]"#,
        )
}

fn conversation() -> Value {
    json!({
        "id": "talk", "messages": [
            { "role": "user", "content": [{ "text": "what is on {{ what }}?" }, { "image": "cat.gif" }] },
            { "role": "assistant", "content": "A cat.", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } }
            ]},
            { "role": "tool", "tool_call_id": "c1", "name": "add", "content": "2" },
            { "role": "user", "content": "Return the number 7" }
        ],
        "prompt_vars": { "what": "it" }, "tools": "tools.json", "tool_choice": "none",
        "response_format": { "type": "object" }, "settings": { "temperature": 0, "max_tokens": 5 },
        "assert": [{ "type": "contains", "value": "7" }]
    })
}

#[test]
fn a_conversation_is_sent_recorded_and_replayed() {
    let server = FakeServer::start(Script::default());
    let project = project("openai", &server, &[conversation()]);
    run(&project, &["--record", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "1")]);
    let body = bodies(&server).remove(0);
    assert_eq!(body["temperature"], 0.0, "{body}");
    assert_eq!((&body["max_tokens"], &body["tool_choice"]), (&json!(5), &json!("none")), "{body}");
    assert_eq!(body["tools"][0]["function"]["name"], "add");
    assert_eq!(body["response_format"]["type"], "json_schema");
    let expected = json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": [
            { "type": "text", "text": "what is on it?" },
            { "type": "image_url", "image_url": { "url": "data:image/gif;base64,R0lGODlhLg==" } },
        ]},
        { "role": "assistant", "content": "A cat.", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "add", "arguments": "{\"a\":1}" } },
        ]},
        { "role": "tool", "tool_call_id": "c1", "content": "2" },
        { "role": "user", "content": "Return the number 7" },
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(stored(&project)[0]["verdict"], "pass");
    let shown = project.shown(&["show", "latest", "talk"]);
    let asked = "user: what is on it?\n";
    assert!(shown.contains(asked) && shown.contains("[add returns] 2"), "{shown}");
    // A recording knows the whole conversation, and so does a resumed run.
    run(&project, &["--replay", "answers.jsonl"]).expect(0, &[("TOTAL_CALLS", "0")]);
    run(&project, &["--resume", "latest"]).expect(0, &[("TOTAL_CALLS", "0")]);
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn values_may_be_files_and_name_other_values() {
    let server = FakeServer::start(Script::default());
    let case = json!({
        "id": "a", "prompt": "{{ all }} {{ data | tojson }} {{ data.n[1] }}",
        "prompt_vars": {
            "doc": "file://doc.txt", "data": "file://data.json", "all": "see: {{ doc }}",
        },
        "assert": [{ "type": "contains", "value": "2" }]
    });
    let project = project("openai", &server, &[case]);
    run(&project, &[]);
    let body = bodies(&server).remove(0);
    assert_eq!(body["messages"][1]["content"], r#"see: a long text {"n":[1,2.5]} 2.5"#);
}

#[test]
fn what_would_be_sent_can_be_seen_without_sending_it() {
    let server = FakeServer::start(Script::default());
    let plain = json!({ "id": "p", "prompt": "hi", "expected_response": "hi" });
    let project = project("anthropic", &server, &[plain]);
    run(&project, &["--dry-run", "--requests", "requests.jsonl"]);
    assert_eq!(server.seen().requests, 0);
    let line: Value = serde_json::from_str(&project.read("requests.jsonl")).unwrap();
    assert_eq!((&line["case_id"], &line["prompt"]), (&json!("p"), &json!("hi")));
    assert_eq!(line["body"]["messages"], json!([{ "role": "user", "content": "hi" }]));
    assert_eq!(line["url"], format!("{}/v1/messages", server.url()));
}

#[test]
fn what_a_backend_lacks_is_refused_before_the_first_call() {
    let server = FakeServer::start(Script::default());
    let far = json!({
        "id": "far", "expected_response": "x",
        "messages": [{ "role": "user", "content": [{ "image": "https://example.com/a.png" }] }]
    });
    let project = project("ollama", &server, &[far]);
    insta::assert_snapshot!(project.shown(&["run"]));
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn a_wrong_conversation_is_told_with_its_place() {
    let server = FakeServer::start(Script::default());
    let bad = [
        json!({ "id": "a", "messages": [{ "role": "usr", "content": "x" }] }),
        json!({ "id": "b", "messages": [{ "role": "user", "content": [{ "image": "gone.png" }] }] }),
        json!({ "id": "c", "messages": [{ "role": "user", "content": "{{ nmae }}" }], "prompt_vars": { "name": 1 } }),
        json!({ "id": "d", "prompt": "x", "messages": [{ "role": "user", "content": "y" }] }),
        json!({ "id": "e", "prompt": "x", "tools": [{ "nam": "f" }] }),
        json!({ "id": "f", "prompt": "x", "prompt_vars": { "a": "{{ b }}", "b": "{{ a }}" } }),
        json!({ "id": "g", "prompt": "x", "prompt_vars": { "a": "file://gone.txt" } }),
    ];
    let project = project("openai", &server, &bad);
    insta::assert_snapshot!(project.shown(&["dataset", "validate", "cases.jsonl"]));
}

#[cfg(unix)]
#[test]
fn a_dataset_names_no_file_outside_its_folder_and_the_working_directory() {
    use std::os::unix::fs::symlink;

    let outside = Project::new().file("secret.txt", "a secret").file("schema.json", "{}");
    let secret = outside.path("secret.txt").display().to_string();
    let case = |id: &str, key: &str, value: Value| json!({ "id": id, "prompt": "p", key: value });
    let cases = [
        case("var", "prompt_vars", json!({ "doc": format!("file://{secret}") })),
        case("link", "prompt_vars", json!({ "doc": "file://link.txt" })),
        case("pipe", "prompt_vars", json!({ "doc": "file://pipe" })),
        case("schema", "schema", json!(outside.path("schema.json"))),
        case("tools", "tools", json!(outside.path("schema.json"))),
        json!({ "id": "image", "messages": [{ "role": "user", "content": [{ "image": secret }] }] }),
        case("up", "prompt_vars", json!({ "doc": "file://../doc.txt" })),
    ];
    let server = FakeServer::start(Script::default());
    let project = project("openai", &server, &[]).lines("data/cases.jsonl", &cases);
    symlink(&secret, project.path("data/link.txt")).expect("a link");
    let pipe = std::process::Command::new("mkfifo").arg(project.path("data/pipe")).status();
    assert!(pipe.expect("mkfifo runs").success());

    let told = project.shown(&["dataset", "validate", "data/cases.jsonl"]);
    assert_eq!(told.matches("outside the folder of the dataset").count(), 5, "{told}");
    assert_eq!(told.matches("not a regular file").count(), 1, "{told}");
    assert!(!told.contains("doc.txt"), "{told}");
}

#[test]
fn a_schema_of_a_dataset_has_nothing_fetched() {
    let server = FakeServer::start(Script::default());
    let outside = Project::new().file("schema.json", r#"{"type": "object"}"#);
    let near = format!("file://{}", outside.path("schema.json").display());
    for place in [format!("{}/schema.json", server.url()), near] {
        let case = json!({ "id": "a", "prompt": "p", "schema": { "$ref": place } });
        let project = project("openai", &server, &[case]);
        let told = project.shown(&["run"]);
        assert!(told.starts_with("exit 2"), "{place}: {told}");
    }
    assert_eq!(server.seen().requests, 0);
}

#[test]
fn a_dataset_sees_no_variable_of_the_environment() {
    let server = FakeServer::start(Script::default());
    let case = json!({ "id": "a", "prompt": "my {{ env.PLAN }}", "expected_response": "x" });
    let project = project("openai", &server, &[case]).file(".env", "PLAN=to-hide-it\n");
    let output = project.command(&["run"]).env("PLAN", "to-hide-it").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(!told.contains("to-hide-it"), "{told}");
    assert_eq!(server.seen().requests, 0);
}
