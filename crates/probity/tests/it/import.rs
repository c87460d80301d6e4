//! Configurations of promptfoo: imported as suites, and run as they are.

use std::fs;

use probity_testkit::{Answer, FakeServer, Script};
use serde_json::Value;

use crate::{
    project::Project,
    schema,
    watch::{end, wait_for_runs, watch_with},
};

/// The fake server in the place of OpenAI's, with two prompts and two tests.
fn config(server: &FakeServer) -> String {
    format!(
        r#"
description: Greetings
prompts:
  - file://prompts/short.txt
  - label: chat
    raw: '[{{"role": "system", "content": "Speak {{{{lang}}}}."}}, {{"role": "user", "content": "{{{{text}}}}"}}]'
providers:
  - id: openai:chat:gpt-4o-mini
    label: small
    config: {{ apiBaseUrl: "{}/v1", apiKeyEnvar: THE_KEY, max_tokens: 20 }}
  - id: openai:gpt-4o
    prompts: [chat]
    config: {{ apiBaseUrl: "{}/v1", apiKeyEnvar: THE_KEY }}
tests:
  - vars: {{ text: hello, lang: French }}
    assert: [{{ type: contains, value: bonjour }}]
  - vars: {{ text: 'say "yes"', lang: German }}
"#,
        server.url(),
        server.url()
    )
}

fn project(server: &FakeServer) -> Project {
    Project::new()
        .file("evals/promptfooconfig.yaml", config(server))
        .file("evals/prompts/short.txt", "Say {{text}} in {{lang}}.\n---\nTranslate: {{ text }}\n")
        // A registry of OpenAI's evals looks like this too.
        .file("data/x", "")
        .file(".env", "THE_KEY=key-of-the-test-0123456789\n")
}

fn messages(server: &FakeServer) -> Vec<String> {
    let mut all: Vec<String> = server
        .seen()
        .last
        .iter()
        .map(|it| {
            let body: Value = serde_json::from_slice(&it.body).expect("JSON");
            let said = body["messages"].as_array().expect("messages").iter();
            let said =
                said.map(|it| format!("{}: {}", it["role"].as_str().unwrap_or("?"), it["content"]));
            let said: Vec<String> = said.collect();
            format!("{} {} {}", body["model"], body["max_tokens"], said.join(" | "))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_configuration_becomes_a_suite_as_a_person_would_write_it() {
    let server = FakeServer::start(Script::always(Answer::text("bonjour")));
    let project = project(&server);
    let shown = project.shown(&["import", "evals", "-o", "out"]).replace(&server.url(), "URL");
    insta::assert_snapshot!(shown, @r"
    exit 0
    --- out
    out/probity.toml
    out/cases.yaml
    2 backends, 2 runners, 2 cases from promptfoo: everything was carried over
    run it with: probity run out/probity.toml
    ");
    insta::assert_snapshot!(project.read("out/probity.toml").replace(&server.url(), "URL"), @r#"
    # From promptfooconfig.yaml, by `probity import`.
    # Greetings
    version = "1"

    # A reply that declines is a reply like any other.
    [refusal]
    detect = false

    # openai:chat:gpt-4o-mini
    [backends.small]
    kind = "openai"
    model = "gpt-4o-mini"
    base_url = "URL/v1"
    api_key_env = "THE_KEY"
    temperature = 0.0
    max_tokens = 20

    [backends.gpt-4o]
    kind = "openai"
    model = "gpt-4o"
    base_url = "URL/v1"
    api_key_env = "THE_KEY"
    temperature = 0.0
    max_tokens = 1024

    [[runners]]
    name = "tests"
    dataset = "cases.yaml"
    backends = ["small"]

    [[runners.prompts]]
    name = "short"
    template = "Say {{text}} in {{lang}}."

    [[runners.prompts]]
    name = "short-2"
    template = "Translate: {{ text }}"

    [[runners.prompts]]
    name = "chat"
    messages = [{ role = "system", content = "Speak {{lang}}." }, { role = "user", content = "{{text}}" }]

    [[runners]]
    name = "tests-2"
    dataset = "cases.yaml"
    backends = ["gpt-4o"]

    [[runners.prompts]]
    name = "chat"
    messages = [{ role = "system", content = "Speak {{lang}}." }, { role = "user", content = "{{text}}" }]
    "#);
    insta::assert_snapshot!(project.read("out/cases.yaml"), @r#"
    version: "1.0.0"
    test_cases:
      - id: "test-1"
        prompt_vars: {"lang":"French","text":"hello"}
        assert: [{"type":"contains","value":"bonjour"}]
      - id: "test-2"
        prompt_vars: {"lang":"German","text":"say \"yes\""}
    "#);
    let again = project.shown(&["import", "evals", "-o", "out"]);
    assert!(again.contains("exists already"), "{again}");
}

#[test]
fn what_is_imported_asks_what_promptfoo_asks() {
    let server = FakeServer::start(Script::always(Answer::text("bonjour")));
    let project = project(&server);
    assert_eq!(project.run(&["import", "evals", "-o", "out"]).status.code(), Some(0));
    assert_eq!(project.run(&["run", "out/probity.toml"]).status.code(), Some(0));
    let written = messages(&server);
    insta::assert_snapshot!(written.join("\n"), @r#"
    "gpt-4o" 1024 system: "Speak French." | user: "hello"
    "gpt-4o" 1024 system: "Speak German." | user: "say \"yes\""
    "gpt-4o-mini" 20 system: "Speak French." | user: "hello"
    "gpt-4o-mini" 20 system: "Speak German." | user: "say \"yes\""
    "gpt-4o-mini" 20 user: "Say hello in French."
    "gpt-4o-mini" 20 user: "Say say \"yes\" in German."
    "gpt-4o-mini" 20 user: "Translate: hello"
    "gpt-4o-mini" 20 user: "Translate: say \"yes\""
    "#);

    let other = FakeServer::start(Script::always(Answer::text("bonjour")));
    let project = self::project(&other);
    assert_eq!(project.run(&["run", "evals/promptfooconfig.yaml"]).status.code(), Some(0));
    assert_eq!(messages(&other), written);
    let shown = project.shown(&["runs"]);
    assert!(shown.contains("promptfooconfig.yaml"), "{shown}");
    let resumed = project.run(&["run", "evals/promptfooconfig.yaml", "--resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert_eq!(messages(&other).len(), written.len(), "{resumed:?}");
}

#[test]
fn what_is_not_carried_over_is_listed_and_refused() {
    let project = Project::new().file("outside.py", "").file(
        "evals/promptfooconfig.yaml",
        r#"
prompts: ["{{q}}"]
providers: [echo, "openai:realtime:gpt-4o-realtime", "file://../outside.py"]
tests:
  - vars: { q: hi }
  - vars: { q: ho }
    assert: [{ type: regex, value: "(?=look)ahead" }]
redteam: { plugins: [x] }
"#,
    );
    insta::assert_snapshot!(project.shown(&["run", "evals/promptfooconfig.yaml"]), @r"
    exit 2
    --- err
    promptfooconfig.yaml:8: not carried over: `redteam` makes its tests with a model (have promptfoo write them to a file, and import that)
    promptfooconfig.yaml:3: not carried over: provider `openai:realtime:gpt-4o-realtime` is speech, which no backend is (describe another backend, see docs/backends.md)
    promptfooconfig.yaml:3: not carried over: `../outside.py` is outside the folder of the configuration (import again with --allow-outside if it may be read)
    error: 3 things of `evals/promptfooconfig.yaml` cannot be carried over
    hint: --lossy takes what is left; `probity import` writes a suite to complete by hand
    ");
    let output = project.run(&["run", "evals/promptfooconfig.yaml", "--lossy", "--quiet"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(project.run(&["import", "evals/promptfooconfig.yaml"]).status.code(), Some(1));
    assert_eq!(
        project.run(&["import", "evals/promptfooconfig.yaml", "--force", "--lossy"]).status.code(),
        Some(0)
    );
    let looked = project.shown(&[
        "doctor",
        "evals/promptfooconfig.yaml",
        "--lossy",
        "--store",
        "other/runs.db",
    ]);
    assert!(project.path("other/imported").is_dir(), "{looked}");
}

/// Every command that takes a suite, with a configuration of promptfoo in its place.
const WITH_A_CONFIG: [&[&str]; 12] = [
    &["run", "evals/promptfooconfig.yaml", "--quiet"],
    &["rescore", "--suite", "evals/promptfooconfig.yaml"],
    &["gate", "--suite", "evals/promptfooconfig.yaml"],
    &["compare", "latest", "latest", "--judge", "echo", "--suite", "evals/promptfooconfig.yaml"],
    &[
        "judge",
        "agreement",
        "labels.jsonl",
        "--judge",
        "echo",
        "--suite",
        "evals/promptfooconfig.yaml",
    ],
    &["doctor", "evals/promptfooconfig.yaml"],
    &["config", "show", "evals/promptfooconfig.yaml"],
    &["cache", "stats", "evals/promptfooconfig.yaml"],
    &["export", "evals/promptfooconfig.yaml", "--as", "langfuse"],
    &["import", "results.json", "--suite", "evals/promptfooconfig.yaml"],
    &["classify", "replies.jsonl", "--suite", "evals/promptfooconfig.yaml"],
    &["check", "refusal", "--text", "no", "--suite", "evals/promptfooconfig.yaml"],
];

#[test]
fn every_command_asks_before_it_leaves_out_a_part_of_a_configuration() {
    let results = include_str!("../../../probity-import/tests/fixtures/promptfoo.json");
    let project = Project::new()
        .file(
            "evals/promptfooconfig.yaml",
            r#"
prompts: ["{{q}}", "file://../outside.txt"]
providers: [echo]
tests: [{ vars: { q: hi }, assert: [{ type: contains, value: hi }] }]
"#,
        )
        .file("outside.txt", "Again: {{q}}")
        .file("labels.jsonl", r#"{"human": 4, "prompt": "p", "answer": "a", "rubric": "r"}"#)
        .file("replies.jsonl", r#"{"case_id": "a", "raw_response": "no"}"#)
        .file("results.json", results);
    let first = [WITH_A_CONFIG[0], &["--lossy"]].concat();
    assert_eq!(project.run(&first).status.code(), Some(0));
    let refused = "1 thing of `evals/promptfooconfig.yaml` cannot be carried over";
    let outside = "`../outside.txt` is outside the folder";
    for words in WITH_A_CONFIG {
        let strict = project.shown(words);
        assert!(strict.starts_with("exit 2") && strict.contains(refused), "{words:?} {strict}");
        let lossy = project.shown(&[words, &["--lossy"]].concat());
        assert!(!lossy.contains(refused) && lossy.contains(outside), "{words:?} {lossy}");
        let whole = project.shown(&[words, &["--allow-outside"]].concat());
        assert!(!whole.contains(refused) && !whole.contains(outside), "{words:?} {whole}");
    }
}

#[test]
fn keys_never_get_into_a_suite() {
    let project = Project::new().file(
        "promptfooconfig.yaml",
        r#"
prompts: ["{{q}}"]
providers:
  - id: openai:gpt-4o
    config: { apiKey: sk-secret-1234567890, headers: { X-Token: secret-abcdefghij } }
  - id: https://app.example/ask
    config: { method: POST, headers: { Authorization: Bearer secret-0987654321 }, body: { q: "{{prompt}}" } }
env: { OTHER_API_KEY: secret-in-env-123 }
tests: [{ vars: { q: hi }, assert: [{ type: contains, value: hi }] }]
"#,
    );
    let shown = project.shown(&["import", "promptfooconfig.yaml"]);
    let json = project.shown(&["import", "promptfooconfig.yaml", "--json", "--force"]);
    let all = format!("{shown}{json}{}", project.read("probity.toml"));
    assert!(!all.contains("secret"), "{all}");
    assert!(project.read("probity.toml").contains("{{ env.HTTP_AUTHORIZATION }}"), "{all}");
}

#[test]
fn the_report_for_scripts_satisfies_its_schema() {
    let project = Project::new().file("qa.csv", "question,answer\nhi,hello\nbye,\n").file(
        "promptfooconfig.yaml",
        "prompts: ['{{q}}']\nproviders: [echo, nobody:x]\ntests: [{vars: {q: 1}}]\n",
    );
    for (file, code) in [("qa.csv", 1), ("promptfooconfig.yaml", 1)] {
        let output = project.run(&["import", file, "--json", "-o", "out", "--force"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        schema::check("import", &report);
        assert_eq!(report["lost"], 1, "{report:#}");
    }
}

#[test]
fn scripts_are_told_why_nothing_was_imported() {
    let project = Project::new()
        .file("promptfooconfig.yaml", "prompts: [hi]\nproviders: [nobody:x]\n")
        .file("broken.yaml", "a: [\n");
    for (file, lost) in [("promptfooconfig.yaml", 1), ("broken.yaml", 0)] {
        let output = project.run(&["import", file, "--json", "-o", "out"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        schema::check("import", &report);
        assert_eq!(report["lost"], lost, "{report:#}");
        assert!(report["error"].as_str().is_some_and(|it| !it.is_empty()), "{report:#}");
        assert!(!project.path("out").exists(), "nothing is left behind");
    }
}

#[test]
fn a_program_runs_in_the_folder_that_is_named_for_it() {
    let project = Project::new()
        .file("evals/work/place.txt", "here")
        .file("evals/work/say.sh", "cat place.txt\n")
        .file(
            "evals/promptfooconfig.yaml",
            r#"
prompts: [hi]
providers: [{ id: "exec:sh say.sh", config: { basePath: work } }]
tests: [{ assert: [{ type: equals, value: here }] }]
"#,
        );
    let output = project.run(&["run", "evals/promptfooconfig.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn variables_that_no_test_has_are_sent_as_empty() {
    let server = FakeServer::start(Script::always(Answer::text("4")));
    let project = Project::new().file(
        "promptfooconfig.yaml",
        format!(
            r#"
prompts: ["hi"]
providers:
  - id: {}/v1/chat/completions
    config:
      headers: {{ content-type: application/json, x-of: "a{{{{ key_of_test }}}}" }}
      body: {{ model: m, messages: [{{ role: user, content: "{{{{prompt}}}}" }}], session: "eval-{{{{ context.uuid }}}}" }}
tests: [{{ vars: {{ other: 1 }}, assert: [{{ type: contains, value: "4" }}] }}]
"#,
            server.url()
        ),
    );
    let output = project.run(&["run", "promptfooconfig.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let body: Value = serde_json::from_slice(&server.seen().last[0].body).expect("JSON");
    assert_eq!(body["session"], "eval-", "{body:#}");
}

#[test]
fn code_is_named_as_not_carried_over() {
    let project =
        Project::new().file("promptfooconfig.js", "module.exports = { prompts: ['hi'] };");
    insta::assert_snapshot!(project.shown(&["import", "."]), @r"
    exit 2
    --- err
    error: the file cannot be imported
      caused by: `promptfooconfig.js` is code, which is never run by an import
    ");
    insta::assert_snapshot!(project.shown(&["import", "nothing.yaml"]), @r"
    exit 2
    --- err
    error: the file cannot be imported
      caused by: `nothing.yaml` cannot be read: No such file or directory (os error 2)
    ");
}

#[test]
fn an_application_of_ones_own_is_asked_through_http() {
    let server = FakeServer::start(Script::always(Answer::text("4")));
    let project = Project::new().file(
        "promptfooconfig.yaml",
        format!(
            r#"
prompts: ["What is {{{{sum}}}}?"]
providers:
  - id: {}/v1/chat/completions
    config:
      method: POST
      headers: {{ content-type: application/json }}
      body: {{ model: m, messages: [{{ role: user, content: "{{{{prompt}}}}" }}], note: "{{{{sum}}}}" }}
      transformResponse: "(json, text) => json?.choices?.[0]?.message?.content ?? text"
tests:
  - vars: {{ sum: 2+2 }}
    assert: [{{ type: equals, value: "4" }}]
"#,
            server.url()
        ),
    );
    let output = project.run(&["run", "promptfooconfig.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let body: Value = serde_json::from_slice(&server.seen().last[0].body).expect("JSON");
    assert_eq!(body["messages"][0]["content"], "What is 2+2?");
    assert_eq!(body["note"], "2+2");
}

#[test]
fn functions_of_the_user_are_run_where_they_are() {
    let project = Project::new()
        .file("evals/provider.py", "def call_api(prompt, options, context):\n    return {'output': options['config']['greeting'] + ' ' + prompt}\n")
        .file("evals/prompt.py", "def make(context):\n    return 'to ' + context['vars']['name']\n")
        .file(
            "evals/promptfooconfig.yaml",
            r#"
prompts: [file://prompt.py:make]
providers: [{ id: "file://provider.py", config: { greeting: hello } }]
tests:
  - vars: { name: Ada }
    assert: [{ type: equals, value: hello to Ada }]
"#,
        );
    let output = project.run(&["run", "evals/promptfooconfig.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(project.run(&["import", "evals", "-o", "other"]).status.code(), Some(0));
    assert!(project.read("other/probity.toml").contains("../evals/provider.py"));
    let output = project.run(&["run", "other/probity.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_configuration_is_watched_with_the_files_that_it_names() {
    let server = FakeServer::start(Script::default());
    let config = format!(
        "prompts: ['Say {{{{x}}}}']\nproviders: [{{ id: openai:m, config: {{ apiBaseUrl: '{}/v1' }} }}]\ntests: tests.csv\n",
        server.url()
    );
    let project =
        Project::new().file("promptfooconfig.yaml", config).file("tests.csv", "x\na\nb\n");
    let child = watch_with(&project, &["promptfooconfig.yaml"]);
    wait_for_runs(&project, 1);
    assert_eq!(server.seen().asked, 2);
    fs::write(project.path("tests.csv"), "x\na\nb\nc\n").unwrap();
    wait_for_runs(&project, 2);
    let (_, told) = end(&project, child);
    assert!(told.contains("tests.csv changed"), "{told}");
    assert_eq!(server.seen().asked, 3, "only the new test is asked: {told}");
}

#[test]
fn keys_in_addresses_are_not_copied() {
    let config = r"
prompts: ['{{q}}']
providers:
  - id: https://ann:hidden-password@app.example/chat?team=a&api_key=hidden-key#x
    label: app
    config: { body: { q: '{{prompt}}' } }
  - id: webhook:https://hidden-token@hook.example/x?sig=hidden-signature
    label: hook
  - id: openai:gpt-4o
    label: proxy
    config: { apiBaseUrl: 'https://bob:hidden-secret@proxy.example/v1' }
  - id: wss://app.example/socket?token=hidden-socket
    label: socket
    config: { messageTemplate: '{{prompt}}' }
  - id: https://plain.example/a?page=2&keyword=x
    label: plain
tests:
  - vars: { q: hi }
    assert: [{ type: webhook, value: 'https://judge.example/?key=hidden-judge' }]
";
    let project = Project::new().file("promptfooconfig.yaml", config);
    let shown = project.shown(&["import", "promptfooconfig.yaml"]);
    let suite = project.read("probity.toml");
    let cases = project.read("cases.yaml");
    assert!(!format!("{shown}{suite}{cases}").contains("hidden"), "{shown}{suite}{cases}");
    for part in [
        r#"url = "https://ann:{{ env.APP_PASSWORD }}@app.example/chat?team=a&api_key={{ env.APP_API_KEY }}#x""#,
        r#"url = "https://{{ env.HOOK_TOKEN }}@hook.example/x?sig={{ env.HOOK_KEY }}""#,
        r#"base_url = "https://bob:{{ env.PROXY_PASSWORD }}@proxy.example/v1""#,
        r#"url = "wss://app.example/socket?token={{ env.SOCKET_TOKEN }}""#,
        r#"url = "https://plain.example/a?page=2&keyword=x""#,
        r#"env = ["WEBHOOK_KEY"]"#,
    ] {
        assert!(suite.contains(part), "{part}\n{suite}");
    }
    assert!(shown.contains("put it into the variable `APP_API_KEY`"), "{shown}");
}

#[test]
fn options_about_results_are_refused_for_configurations() {
    let project = Project::new()
        .file("promptfooconfig.yaml", "prompts: [a]\nproviders: [echo]\n")
        .file(".other", "A=1\n");
    for (flag, value) in [("--store", "x.db"), ("--env-file", ".other")] {
        let shown = project.shown(&["import", "promptfooconfig.yaml", flag, value]);
        let refused = format!("`{flag}` does nothing here: it is about results");
        assert!(shown.contains(&refused), "{shown}");
    }
}
