//! Suite files in YAML.

use std::fs;

use insta::assert_snapshot;
use probity_testkit::{FakeServer, Script};

use crate::{
    project::Project,
    watch::{end, wait_for_runs, watch},
};

const CASES: &str = "{\"id\": \"a\", \"prompt\": \"say a\", \"assert\": [{\"type\": \"regex\", \"value\": \".\"}]}\n";

/// Two backends that share their settings, and a table with nothing in it but comments.
const SUITE: &str = "\
version: 1
x-shared:
  server: &server { kind: openai, base_url: URL, model: m-1 }
  calm: &calm { model: m-2, temperature: 0 }
backends:
  one: *server
  two:
    <<: [*calm, *server]
    max_tokens: 7
retry:
  max_retries: 1
  backoff_base:
gates:
  # pass_rate: 0.5
runners:
  - name: words
    dataset: cases.jsonl
    backends: [one, two]
    prompt: |
      Answer in one word.
      {{ prompt }}
";

fn project(name: &str, server: &FakeServer) -> Project {
    Project::new().file("cases.jsonl", CASES).file(name, SUITE.replace("URL", &server.url()))
}

fn out(project: &Project, words: &[&str]) -> String {
    let output = project.run(words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_suite_in_yaml_is_run_and_read_by_every_command() {
    let server = FakeServer::start(Script::default());
    for name in ["probity.yaml", "probity.yml"] {
        let project = project(name, &server);
        let before = server.seen().asked;
        out(&project, &["run"]);
        assert_eq!(server.seen().asked - before, 2);
        out(&project, &["run", "--dry-run", "--requests", "requests.jsonl"]);
        let requests = project.read("requests.jsonl");
        let models: Vec<bool> =
            requests.lines().map(|it| it.contains("\"model\":\"m-2\"")).collect();
        assert_eq!(models, [false, true], "the first of merged tables counts: {requests}");
        assert!(requests.contains("Answer in one word.\\nsay a"), "{requests}");
        assert!(requests.contains("\"max_tokens\":7"), "{requests}");
        let shown = out(&project, &["config", "show"]);
        let retries = shown.lines().find(|it| it.contains("max_retries")).unwrap();
        assert!(retries.contains(&format!("{name}:11")), "{retries}");
        let doctor = project.run(&["doctor"]);
        let told = String::from_utf8(doctor.stdout).unwrap();
        assert!(told.contains("one") && told.contains("two"), "{told}");
        out(&project, &["rescore"]);
        out(&project, &["rescore", "--suite", name]);
        assert!(out(&project, &["trend"]).contains("words"));
        out(&project, &["cache", "stats"]);
    }
}

#[test]
fn a_suite_in_toml_comes_first_and_another_is_run_by_its_name() {
    let server = FakeServer::start(Script::default());
    let toml =
        "[backends.e]\nkind = \"echo\"\n[[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = project("probity.yaml", &server).file("probity.toml", toml);
    out(&project, &["run"]);
    assert_eq!(server.seen().asked, 0);
    out(&project, &["run", "probity.yaml"]);
    assert_eq!(server.seen().asked, 2);
}

#[test]
fn without_a_suite_all_names_are_told() {
    let project = Project::new();
    assert_snapshot!(project.shown(&["run"]), @r"
    exit 2
    --- err
    error: there is no suite file `probity.toml`, `probity.yaml` or `probity.yml`
    hint: `probity init` writes one to start from; `probity run FILE` names another
    ");
    assert_snapshot!(project.shown(&["doctor", "other.yaml"]), @r"
    exit 2
    --- err
    error: there is no suite file `other.yaml`
    hint: `probity init` writes one to start from; `probity run FILE` names another
    ");
    let project = project.file("probity.yaml", "version: 1\n");
    assert_snapshot!(project.shown(&["run", "probity.toml"]), @r"
    exit 2
    --- err
    error: there is no suite file `probity.toml`
    hint: `probity init` writes one to start from; `probity run FILE` names another
    ");
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    let project = Project::new().file("cases.jsonl", CASES).file(
        "fields.yaml",
        "version: 1
backends:
  b:
    kind: opnai
    temperature: warm
    max_tokns: 5
  c: { kind: openai, model: m, base_url: secret-before, api_key: sk-123456, modle: x }
runners:
  - name: r
    dataset: cases.jsonl
    backends: [d]
    prompt: |
      One line,
      {{ promt }}
retry: { max_retries: many }
",
    );
    assert_snapshot!(project.shown(&["run", "fields.yaml"]), @r"
    exit 2
    --- err
    error[unknown-field]: unknown field `max_tokns`
     --> fields.yaml:6:5
      |
    6 |     max_tokns: 5
      |     ^^^^^^^^^
      |
      = help: did you mean `max_tokens`?

    error[unknown-value]: unknown kind of backend `opnai`
     --> fields.yaml:4:11
      |
    4 |     kind: opnai
      |           ^^^^^
      |
      = help: did you mean `openai`?

    error[key-in-file]: a key has no place in a suite file
     --> fields.yaml:7:57
      |
    7 | ...                   api_key
      |                       ^^^^^^^
      |
      = help: put it into a variable, and name that with `api_key_env`

    error[unknown-field]: unknown field `modle`
    --> fields.yaml:7:77
     = help: did you mean `model`?

    error[unknown-backend]: there is no backend `d`
      --> fields.yaml:11:15
       |
    11 |     backends: [d]
       |               ^^^
       |
       = help: describe it under [backends.d]

    error[wrong-type]: `retry.max_retries` must be a whole number
      --> fields.yaml:15:23
       |
    15 | retry: { max_retries: many }
       |                       ^^^^

    error: the suite file `fields.yaml` cannot be used
    ");
}

#[test]
fn a_backend_with_an_empty_url_and_a_key_are_refused() {
    let suite = "backends:\n  a: { kind: http, url: }\n  b: { kind: openai, api_key: sk-123456 }\n\
                 runners: [{ name: r, dataset: cases.jsonl }]\n";
    let project = Project::new().file("cases.jsonl", CASES).file("probity.yaml", suite);
    assert_snapshot!(project.shown(&["run"]), @r"
    exit 2
    --- err
    error[missing-field]: backend `a` of kind `http` needs `url`
     --> probity.yaml:2:6
      |
    2 |   a: { kind: http, url: }
      |      ^^^^^^^^^^^^^^^^^^^^

    error[key-in-file]: a key has no place in a suite file
     --> probity.yaml:3:22
      |
    3 |                      api_key
      |                      ^^^^^^^
      |
      = help: put it into a variable, and name that with `api_key_env`

    error[missing-field]: backend `b` of kind `openai` needs `model`
    --> probity.yaml:3:6

    error: the suite file `probity.yaml` cannot be used
    ");
}

#[test]
fn what_is_no_yaml_of_a_suite_is_refused() {
    let project = Project::new()
        .file("syntax.yaml", "backends:\n  b: [echo\nrunners: []\n")
        .file("twice.yaml", "backends:\n  b: { kind: echo }\n  b: { kind: echo }\n")
        .file("merge.yaml", "backends:\n  b:\n    <<: echo\n")
        .file("list.yaml", "- name: r\n");
    assert_snapshot!(project.shown(&["run", "syntax.yaml"]), @r"
    exit 2
    --- err
    error[yaml]: illegal placement of ':' indicator
     --> syntax.yaml:3:8
      |
    3 | runners: []
      |        ^

    error: the suite file `syntax.yaml` cannot be used
    ");
    assert_snapshot!(project.shown(&["run", "twice.yaml"]), @r"
    exit 2
    --- err
    error[duplicate-key]: `b` is there twice
     --> twice.yaml:3:3
      |
    3 |   b: { kind: echo }
      |   ^

    error: the suite file `twice.yaml` cannot be used
    ");
    assert_snapshot!(project.shown(&["run", "merge.yaml"]), @r"
    exit 2
    --- err
    error[yaml]: `<<` takes a table or a list of tables, not a string
     --> merge.yaml:3:9
      |
    3 |     <<: echo
      |         ^^^^

    error: the suite file `merge.yaml` cannot be used
    ");
    assert_snapshot!(project.shown(&["run", "list.yaml"]), @r"
    exit 2
    --- err
    error[wrong-type]: a suite must be a table, not a list
     --> list.yaml:1:1
      |
    1 | - name: r
      | ^^^^^^^^^

    error: the suite file `list.yaml` cannot be used
    ");
}

#[test]
fn a_changed_suite_in_yaml_is_run_again() {
    let server = FakeServer::start(Script::default());
    let project = project("probity.yaml", &server);
    let child = watch(&project);
    wait_for_runs(&project, 1);
    let changed = project.read("probity.yaml").replace("one word", "two words");
    fs::write(project.path("probity.yaml"), changed).unwrap();
    wait_for_runs(&project, 2);
    let (code, told) = end(&project, child);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("probity.yaml changed"), "{told}");
    assert_eq!(server.seen().asked, 4);
}
