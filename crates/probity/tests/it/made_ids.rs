//! Cases without an id get one that is made of what they ask.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use probity_testkit::{FakeServer, Script};
use serde_json::{Value, json};

use crate::project::Project;

const SUITE: &str = "\
version: 1
backends:
  b: { kind: openai, base_url: URL, model: m }
runners:
  - { name: r, dataset: cases.jsonl }
";

const CASES: &str = r#"{"prompt": "What is the capital of {{ country }}? One word.", "prompt_vars": {"country": "Île-de-France"}, "assert": [{"type": "regex", "value": "."}]}
{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello"}], "assert": [{"type": "regex", "value": "."}]}
{"prompt": "???", "system": "Guess.", "assert": [{"type": "regex", "value": "."}]}
"#;

/// The same first case in the other formats, with other expectations and in other places.
const TOML: &str = r#"version = "1.0.0"
[[test_cases]]
id = "first"
prompt = "something else"
expected_response = "x"
[[test_cases]]
expected_response = "Paris"
prompt_vars = { country = "Île-de-France" }
prompt = "What is the capital of {{ country }}? One word."
tags = ["geography"]
"#;
const YAML: &str = "- prompt: 'What is the capital of {{ country }}? One word.'
  prompt_vars: { country: Île-de-France }
  expected_response: Paris
";
const CSV: &str = "prompt,id,prompt_vars,expected_response
\"What is the capital of {{ country }}? One word.\",,\"{\"\"country\"\": \"\"Île-de-France\"\"}\",Paris
";

fn out(project: &Project, words: &[&str]) -> String {
    let output = project.run(words);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// The ids of a dataset, as it is written in JSON Lines.
fn ids(project: &Project, file: &str) -> Vec<String> {
    out(project, &["dataset", "convert", file, "written.jsonl", "--force"]);
    let written = project.read("written.jsonl");
    let cases = written.lines().filter_map(|line| {
        let case: Value = serde_json::from_str(line).unwrap();
        Some(case.get("id")?.as_str()?.to_owned())
    });
    cases.collect()
}

#[test]
fn an_id_is_made_of_what_is_asked_and_of_nothing_else() {
    let project = Project::new()
        .file("cases.jsonl", CASES)
        .file("cases.toml", TOML)
        .file("cases.yaml", YAML)
        .file("cases.csv", CSV)
        .file("other.yaml", YAML.replace("Île-de-France", "France"));
    let of_lines = ids(&project, "cases.jsonl");
    assert_snapshot!(of_lines.join("\n"), @r"
    what-is-the-capital-of-île-d0f4804c48998087
    say-hello-1f18061ffafc5254
    f8e1374c0961a863
    ");
    assert_eq!(ids(&project, "cases.toml"), ["first", &of_lines[0]]);
    assert_eq!(ids(&project, "cases.yaml"), [of_lines[0].as_str()]);
    assert_eq!(ids(&project, "cases.csv"), [of_lines[0].as_str()]);
    assert_ne!(ids(&project, "other.yaml"), [of_lines[0].as_str()]);
    let asks = |more: &str| format!("{{\"prompt\": \"Hi\", \"expected_response\": \"x\"{more}}}\n");
    let all = [
        "",
        ", \"user\": \"a\"",
        ", \"user\": \"b\"",
        ", \"tools\": [{\"name\": \"t\"}], \"tool_results\": {\"t\": 1}",
    ];
    let project = project.file("asks.jsonl", all.map(asks).concat());
    let made: BTreeSet<String> = ids(&project, "asks.jsonl").into_iter().collect();
    assert_eq!(made.len(), all.len(), "{made:?}");
    // What was written states the ids, and stays the same dataset.
    out(&project, &["dataset", "convert", "cases.jsonl", "kept.toml"]);
    assert_eq!(project.read("kept.toml").matches("\nid = ").count(), 3);
    assert_eq!(ids(&project, "kept.toml"), of_lines);
}

#[test]
fn a_made_id_is_a_valid_one() {
    let case = |at: u32| {
        let prompt = format!("İstanbul'da saat kaç, {at}. kez?");
        json!({ "prompt": prompt, "expected_response": "x" }).to_string()
    };
    let lines: Vec<String> = (0..20).map(case).collect();
    let project = Project::new().file("cases.jsonl", lines.join("\n"));
    let made = ids(&project, "cases.jsonl");
    assert!(made.iter().all(|id| id.starts_with("istanbul-da-saat-kaç-")), "{made:?}");
    let digits = |id: &String| id.rsplit('-').next().unwrap().len();
    assert!(made.iter().all(|id| digits(id) == 16), "{made:?}");
    out(&project, &["dataset", "validate", "written.jsonl"]);
}

#[test]
fn runs_know_cases_by_made_ids() {
    let server = FakeServer::start(Script::default());
    let project = Project::new()
        .file("cases.jsonl", CASES)
        .file("probity.yaml", SUITE.replace("URL", &server.url()));
    out(&project, &["dataset", "validate", "cases.jsonl"]);
    let second = ids(&project, "cases.jsonl").remove(1);
    out(&project, &["run", "--case", &second]);
    assert_eq!(server.seen().asked, 1);
    assert!(out(&project, &["show", "latest", &second]).contains(&second));
    out(&project, &["run"]);
    // In another order, with another case: nothing that was answered is asked again.
    let mut lines: Vec<&str> = CASES.lines().rev().collect();
    lines.push(r#"{"prompt": "new", "assert": [{"type": "regex", "value": "."}]}"#);
    let project = project.file("cases.jsonl", lines.join("\n"));
    let before = server.seen().asked;
    out(&project, &["run", "--resume"]);
    assert_eq!(server.seen().asked - before, 1);
}

#[test]
fn two_cases_that_ask_the_same_need_an_id() {
    let project = Project::new()
        .file(
            "same.jsonl",
            "{\"prompt\": \"Say a\", \"expected_response\": \"a\"}\n{\"prompt\": \"Say a\", \"expected_response\": \"b\"}\n",
        )
        .file("nothing.jsonl", "{\"expected_response\": \"a\"}\n")
        .file("number.jsonl", "{\"id\": 7, \"prompt\": \"p\", \"expected_response\": \"a\"}\n");
    assert_snapshot!(project.shown(&["dataset", "validate", "same.jsonl"]), @r#"
    exit 2
    --- out
    same.jsonl: not ok, 1 case, 1 error
    --- err
    error[duplicate-id]: id `say-a-d4651609cf93a932`, made of what is asked, is already taken (case `say-a-d4651609cf93a932`)
     --> same.jsonl:2:1
      |
    2 | {"prompt": "Say a", "expected_response": "b"}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: its first use is at same.jsonl:1; give one of the two another `id`
    "#);
    assert_snapshot!(project.shown(&["dataset", "validate", "nothing.jsonl"]), @r#"
    exit 2
    --- out
    nothing.jsonl: not ok, 0 cases, 1 error
    --- err
    error[missing-field]: field `prompt` is missing
     --> nothing.jsonl:1:1
      |
    1 | {"expected_response": "a"}
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert_snapshot!(project.shown(&["dataset", "validate", "number.jsonl"]), @r#"
    exit 2
    --- out
    number.jsonl: not ok, 0 cases, 1 error
    --- err
    error[wrong-type]: field `id` must be a string, not a number
     --> number.jsonl:1:8
      |
    1 | {"id": 7, "prompt": "p", "expected_response": "a"}
      |        ^
    "#);
}
