//! Cases that are variables for the templates of their runner, which asks and asserts with them.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    rescore::check_export,
    run::{run, stored},
};

const SUITE: &str = r#"
[backends.b]
kind = "openai"
base_url = "URL"
model = "m-1"
[[runners]]
name = "r"
dataset = "cases.jsonl"
assert = [{ type = "icontains", value = "{{ want }}" }]
"#;

const VARIANTS: &str = r#"
[[runners.prompts]]
name = "terse"
template = "One word. Capital of {{ country }}?"
[[runners.prompts]]
name = "polite"
messages = [{ role = "user", content = "Please name the capital of {{ country }}." }]
"#;

fn server() -> FakeServer {
    let answer =
        |prompt: &str, text: &str| Rule::new(When::prompt_contains(prompt), Answer::text(text));
    FakeServer::start(
        Script::default().rule(answer("France", "paris")).rule(answer("Peru", "42 [1]")),
    )
}

fn project(server: &FakeServer, more: &str, cases: &[Value]) -> Project {
    let suite = format!("{}{more}", SUITE.replace("URL", &server.url()));
    Project::new().lines("cases.jsonl", cases).file("probity.toml", suite)
}

fn of(country: &str, want: &Value) -> Value {
    let id = country.to_lowercase();
    json!({ "id": id, "prompt_vars": { "country": country, "want": want } })
}

#[test]
fn variants_ask_and_runners_assert_with_the_variables_of_cases() {
    let server = server();
    let mut several = of("Peru", &json!("[{{ number }}]"));
    several["id"] = Value::Null;
    several["prompt_vars"]["number"] = json!(1);
    several["prompt_vars"]["any"] = json!(["x", "42"]);
    several["assert"] = json!([
        { "type": "contains-any", "value": "{{ any }}" },
        { "type": "contains-all", "value": ["{{ number }}", "4{{ number + 1 }}"] },
        { "type": "assert-set", "assert": [{ "type": "regex", "value": "\\[{{ number }}\\]$" }] },
        { "type": "javascript", "value": "context.vars.number === 1 && '{{' + '}}' === `{{}}`" },
    ]);
    let cases = [of("France", &json!("PARIS")), of("Peru", &json!(41)), several];
    let project = project(&server, VARIANTS, &cases);
    run(&project, &[]).expect(0, &[("N_CASES", "6")]);
    let found: Vec<String> = stored(&project)
        .iter()
        .map(|it| {
            let id = it["case_id"].as_str().unwrap();
            // One is made of its first variable that is a text.
            let id = id.split_once('-').map_or_else(|| id.to_owned(), |it| format!("{}-…", it.0));
            format!("{id} {} {}", it["variant"], it["verdict"])
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    france "terse" "pass"
    peru "terse" "fail"
    peru-… "terse" "pass"
    france "polite" "pass"
    peru "polite" "fail"
    peru-… "polite" "pass"
    "#);
    assert_eq!(server.seen().prompt("One word. Capital of France?"), 1);
    let reason = |it: &Value| it["verdict"] == "fail" && it["reason"] != "`41` is missing";
    assert!(!stored(&project).iter().any(reason));
    check_export(&project);
}

#[test]
fn what_lacks_a_variable_is_refused_before_anything_is_asked() {
    let server = server();
    let no_want = json!({ "id": "a", "prompt_vars": { "country": "France" } });
    let first = project(&server, VARIANTS, &[no_want]);
    insta::assert_snapshot!(first.shown(&["run"]), @r#"
    exit 2
    --- err
    error[undefined-variable]: `want` has no value in `icontains` (case `a`)
     --> cases.jsonl:1:1
      |
    1 | {"id":"a","prompt_vars":{"country":"France"}}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add it to `prompt_vars`, or write braces that are not a variable as `{% raw %}{{ … }}{% endraw %}`

    error: a dataset has errors, so nothing was run
    "#);
    let own = json!({ "id": "a", "prompt_vars": { "want": "x" }, "assert": [{ "type": "contains", "value": "so {{ wnat }}" }] });
    let second = project(&server, VARIANTS, &[own]);
    insta::assert_snapshot!(second.shown(&["run"]), @r#"
    exit 2
    --- err
    error[undefined-variable]: `wnat` has no value in `contains` (case `a`)
     --> cases.jsonl:1:82
      |
    1 | {"id":"a","prompt_vars":{"want":"x"},"assert":[{"type":"contains","value":"so {{ wnat }}"}]}
      |                                                                                  ^^^^
      |
      = help: add it to `prompt_vars`, or write braces that are not a variable as `{% raw %}{{ … }}{% endraw %}`

    error: a dataset has errors, so nothing was run
    "#);
    let asked = project(&server, "", &[of("France", &json!("x"))]);
    insta::assert_snapshot!(asked.shown(&["run"]), @r#"
    exit 2
    --- err
    error[bad-case]: the case has no `prompt`, and its runner has no template to ask with (case `france`)
     --> cases.jsonl:1:1
      |
    1 | {"id":"france","prompt_vars":{"country":"France","want":"x"}}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: a dataset has errors, so nothing was run
    "#);
    let around = project(&server, "prompt = \"Say: {{ prompt }}\"", &[of("France", &json!("x"))]);
    insta::assert_snapshot!(around.shown(&["run"]), @r#"
    exit 2
    --- err
    error[undefined-variable]: `prompt` of the runner cannot be filled in: `prompt` has no value (case `france`)
      --> probity.toml:10:19
       |
    10 | prompt = "Say: {{ prompt }}"
       |                   ^^^^^^
       |
       = help: a runner's template sees `prompt`, `id`, `tags`, `category`, `difficulty`, the case's `prompt_vars`, and `examples` if there are some

    error: the suite has errors, so nothing was run
    "#);
    assert_eq!(server.seen().asked, 0);
}

#[test]
fn a_variable_counts_where_the_case_has_no_label_of_its_name() {
    let server = server();
    let of = |category: &str| json!({ "id": category, "prompt_vars": { "category": "Capital", "tags": "?", "want": "paris" } });
    let mut labelled = of("labelled");
    labelled["category"] = json!("City");
    let prompt = "prompt = \"{{ category }} of France{{ tags }}{% if difficulty %}!{% endif %}\"";
    let project = project(&server, prompt, &[of("own"), labelled]);
    run(&project, &[]).expect(0, &[("N_CASES", "2")]);
    let asked = |prompt: &str| server.seen().prompt(prompt);
    assert_eq!((asked("Capital of France?"), asked("City of France?")), (1, 1));
}

#[test]
fn a_mistake_of_the_runner_is_told_of_once() {
    let server = server();
    let cases: Vec<Value> = ["France", "Peru", "Spain"].map(|it| of(it, &json!("x"))).into();
    let project = project(&server, VARIANTS, &cases);
    let suite = project.read("probity.toml").replace("icontains", "context-recall");
    let shown = project.file("probity.toml", suite).shown(&["run"]);
    insta::assert_snapshot!(shown, @r#"
    exit 2
    --- err
    error[missing-field]: an assertion of the runner cannot be used: `context-recall` needs a context: `context`, `context_transform`, or `context` in `prompt_vars` (case `france`)
     --> probity.toml:9:11
      |
    9 | assert = [{ type = "context-recall", value = "{{ want }}" }]
      |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: the suite has errors, so nothing was run
    "#);
}

#[test]
fn converting_keeps_templates_as_they_were_written() {
    let server = server();
    let case = json!({ "id": "a", "prompt_vars": { "want": "x" }, "assert": [{ "type": "contains", "value": "{{ want }}" }] });
    let project = project(&server, VARIANTS, &[case]);
    let done = project.run(&["dataset", "convert", "cases.jsonl", "cases.toml"]);
    assert!(done.status.success());
    assert!(project.read("cases.toml").contains("{{ want }}"));
    assert_eq!(project.run(&["dataset", "validate", "cases.toml"]).status.code(), Some(0));
}
