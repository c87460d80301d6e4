//! Runs and suites in the forms of other tools.

use serde_json::Value;

use super::{text, verdicts};
use crate::project::Project;

const CASES: &str = r#"{"id":"right","prompt":"Paris","expected_response":"Paris"}
{"id":"wrong","prompt":"Rome","assert":[{"type":"contains","value":"Paris","metric":"named"}]}
{"id":"open","prompt":"hi"}
{"id":"said","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"say \"so\" {% raw %}{{ x }}{% endraw %}"}],"assert":[{"type":"icontains","value":"SO"}]}
"#;

const SUITE: &str = r#"[backends.echo]
kind = "echo"
[backends.broken]
kind = "command"
command = ["false"]
[retry]
max_retries = 0
[fail_fast]
enabled = false

[[runners]]
name = "words"
dataset = "cases.jsonl"
backends = ["echo", "broken"]
"#;

fn project() -> Project {
    let project = Project::new().file("cases.jsonl", CASES).file("probity.toml", SUITE);
    project.run(&["run", "-q", "--repeat", "2"]);
    project
}

/// Exports the latest run and imports it in another place.
fn round_trip(kind: &str, is_folder: bool) -> (Vec<String>, Vec<String>) {
    let project = project();
    let output = project.run(&["export", "latest", "--as", kind, "--lossy", "-o", "out"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let before = verdicts(&project);
    let mut after = Vec::new();
    let files = match is_folder {
        true => {
            let entries = std::fs::read_dir(project.path("out")).unwrap();
            entries.map(|it| it.unwrap().path()).collect()
        }
        false => vec![project.path("out")],
    };
    for file in files {
        let elsewhere = Project::new();
        let read = elsewhere.run(&["import", &file.display().to_string()]);
        assert!(read.status.success(), "{}", text(&read.stderr));
        after.extend(verdicts(&elsewhere));
    }
    after.sort();
    let mut before = before;
    before.sort();
    (before, after)
}

#[test]
fn a_log_for_inspect_has_the_same_verdicts() {
    let (before, after) = round_trip("inspect-log", true);
    assert_eq!(before, after);
}

#[test]
fn results_for_promptfoo_have_the_same_verdicts() {
    let (before, after) = round_trip("promptfoo", false);
    // Repeats are tests of their own there.
    let count = |all: &[String], verdict: &str| {
        all.iter().filter(|it| it.ends_with(&format!("| {verdict}"))).count()
    };
    for verdict in ["pass", "fail", "error", "undecided"] {
        assert_eq!(count(&before, verdict), count(&after, verdict), "{after:#?}");
    }
    assert_eq!(count(&after, "undecided"), 2);
    assert_eq!(count(&after, "error"), 8);
}

#[test]
fn a_log_for_openai_evals_has_the_same_verdicts() {
    let (before, after) = round_trip("openai-evals", true);
    let verdicts = |all: &[String]| {
        let mut all: Vec<String> =
            all.iter().map(|it| it.rsplit(" | ").next().unwrap().to_owned()).collect();
        all.sort();
        all
    };
    assert_eq!(verdicts(&before), verdicts(&after));
}

#[test]
fn what_langfuse_takes_in_has_a_trace_and_scores_for_each_result() {
    let project = project();
    let output = project.run(&["export", "--as", "langfuse"]);
    let batch: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_type = |kind: &str| {
        batch["batch"].as_array().unwrap().iter().filter(|it| it["type"] == kind).count()
    };
    assert_eq!((of_type("trace-create"), of_type("generation-create")), (16, 16));
    // Six results are judged, and each of these has one check.
    assert_eq!(of_type("score-create"), 12);
}

#[test]
fn a_suite_becomes_a_configuration_of_promptfoo_and_says_what_it_lacks() {
    let project = project();
    insta::assert_snapshot!(project.shown(&["export", "probity.toml", "--as", "promptfoo"]));
    let lossy = project.run(&["export", "probity.toml", "--as", "promptfoo", "--lossy"]);
    assert!(lossy.status.success());
}

#[test]
fn a_suite_becomes_samples_with_a_registry() {
    let project = project();
    let shown =
        project.shown(&["export", "probity.toml", "--as", "openai-evals", "-o", "registry"]);
    insta::assert_snapshot!(shown);
    insta::assert_snapshot!(project.read("registry/evals/probity.yaml"));
    let samples = project.read("registry/data/words-includes/samples.jsonl");
    let sample = r#"{"input":[{"role":"user","content":"Rome"}],"ideal":"Paris"}"#;
    assert_eq!(samples.trim(), sample);
}

#[test]
fn a_suite_becomes_items_of_a_dataset() {
    let project = project();
    let output = project.run(&["export", "probity.toml", "--as", "langfuse", "--lossy"]);
    let items: Vec<Value> =
        text(&output.stdout).lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(items.len(), 4);
    assert_eq!(
        (&items[0]["id"], &items[0]["expectedOutput"]),
        (&"words/right".into(), &"Paris".into())
    );
}

#[test]
fn a_suite_is_no_log() {
    let output = project().run(&["export", "probity.toml", "--as", "inspect-log"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a log is made of a run"));
}

const VARIED: &str = r#"[backends.echo]
kind = "echo"

[[runners]]
name = "../words"
dataset = "cases.jsonl"
backends = ["echo"]
[[runners.prompts]]
name = "a-b"
template = "first {{ prompt }}"
[[runners.prompts]]
name = "a.b"
template = "second {{ prompt }}"

[[runners]]
name = "..-words"
dataset = "cases.jsonl"
backends = ["echo"]

[[runners]]
name = "outer"
kind = "program"
command = ["true"]
"#;

#[test]
fn names_that_look_the_same_stay_apart_and_in_the_folder() {
    let cases = r#"{"id":"one","prompt":"hi","assert":[{"type":"contains","value":"{% raw %}{{ x }}{% endraw %}"}]}
{"id":"two","prompt":"ho","expected_response":{"a":1}}
"#;
    let project = Project::new().file("in/cases.jsonl", cases).file("in/probity.toml", VARIED);
    let exported = project.run(&["export", "in/probity.toml", "--as", "promptfoo", "-o", "in/out"]);
    let said = text(&exported.stderr);
    assert_eq!(exported.status.code(), Some(1), "{said}");
    assert!(said.contains("runner `outer`: it is a program of its own"), "{said}");
    assert!(said.contains("case `two`: how the expected response is read"), "{said}");
    let mut names: Vec<String> = std::fs::read_dir(project.path("in/out"))
        .unwrap()
        .map(|it| it.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["..-words-2.promptfooconfig.yaml", "..-words.promptfooconfig.yaml"]);
    let config = project.read("in/out/..-words.promptfooconfig.yaml");
    assert!(config.contains("{% raw %}{{ x }}{% endraw %}"), "{config}");
    for variable in ["\"prompt_a_b\":\"first hi\"", "\"prompt_a_b_2\":\"second hi\""] {
        assert!(config.contains(variable), "{variable}: {config}");
    }
}

#[test]
fn a_suite_without_anything_that_can_be_carried_over_is_an_error() {
    let cases = r#"{"id":"one","prompt":"hi","assert":[{"type":"is-json"}]}"#;
    let project = Project::new().file("cases.jsonl", cases).file("probity.toml", SUITE);
    let exported = project.run(&["export", "probity.toml", "--as", "openai-evals", "-o", "out"]);
    assert_eq!(exported.status.code(), Some(2), "{}", text(&exported.stderr));
    assert!(!project.path("out").exists());
}

#[test]
fn json_for_openai_evals_is_written_as_a_text() {
    let cases = r#"{"id":"one","prompt":"hi","match":"json_equal","expected_response":[1,2]}"#;
    let project = Project::new().file("cases.jsonl", cases).file("probity.toml", SUITE);
    let exported = project.run(&["export", "probity.toml", "--as", "openai-evals", "-o", "out"]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let sample: Value =
        serde_json::from_str(project.read("out/data/words-json/samples.jsonl").trim()).unwrap();
    assert_eq!(sample["ideal"], "[1,2]");
}
