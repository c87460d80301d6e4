//! Results of other tools as runs, and our runs and suites for other tools.

mod export;

use std::{fs, path::PathBuf, process::Output};

use serde_json::Value;

use crate::{project::Project, run::stored, schema};

/// Results as `scripts/import-fixtures` had the tools write them.
pub(crate) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../probity-import/tests/fixtures").join(name)
}

/// A project with some of the fixtures in it.
fn with(names: &[&str]) -> Project {
    let add = |project: Project, name: &&str| project.file(name, fs::read(fixture(name)).unwrap());
    names.iter().fold(Project::new(), add)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn imported(project: &Project, words: &[&str]) -> Value {
    let words: Vec<&str> = ["import", "--json"].iter().chain(words).copied().collect();
    let output = project.run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    schema::check("imported-run", &report);
    report
}

/// The latest run, a line for each result.
pub(crate) fn verdicts(project: &Project) -> Vec<String> {
    let line = |it: &Value| {
        let field = |name: &str| it[name].as_str().unwrap_or("-").to_owned();
        let variant = it["variant"].as_str().map(|it| format!("/{it}")).unwrap_or_default();
        let lane = format!("{}{variant} on {}", field("runner"), field("backend"));
        format!("{lane} | {} {} | {}", field("case_id"), it["repeat"], field("verdict"))
    };
    stored(project).iter().map(line).collect()
}

fn runs(project: &Project) -> usize {
    text(&project.run(&["runs", "--json"]).stdout).lines().count()
}

fn told(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn results_of_promptfoo_become_a_run() {
    let project = with(&["promptfoo.json"]);
    let report = imported(&project, &["promptfoo.json"]);
    assert_eq!(report["from"], "promptfoo");
    let counts = ["passed", "failed", "errors", "undecided"].map(|it| report[it].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 8, 2], "{report:#}");
    insta::assert_snapshot!(verdicts(&project).join("\n"));
    let cases = stored(&project);
    let france = cases.iter().find(|it| it["case_id"] == "france" && it["variant"] == "chat");
    let france = france.unwrap();
    assert_eq!((&france["imported"], &france["source"]), (&"promptfoo".into(), &"imported".into()));
    assert_eq!(france["system"], "Answer in one word.");
    assert_eq!(france["reason"], "Expected output to contain \"Paris\"");
    let scores = &france["classification"]["scores"];
    assert_eq!((&scores[1]["name"], &scores[1]["type"]), (&"echoes".into(), &"icontains".into()));
    assert_eq!(france["case"]["tags"][0], "continent:Europe");
    let page = text(&project.run(&["show"]).stdout);
    assert!(page.contains("imported from promptfoo 0.121.20 (promptfoo.json)"), "{page}");
    assert!(!page.contains("--retry-errors"), "{page}");
    let listed = text(&project.run(&["runs"]).stdout);
    assert!(listed.contains("capitals (imported from promptfoo)"), "{listed}");
    project.run(&["report", "-o", "r.html", "-o", "r.md", "-o", "r.xml"]);
    for name in ["r.html", "r.md"] {
        assert!(project.read(name).contains("mported from"), "{name}");
    }
    assert!(project.read("r.xml").contains("<property name=\"imported\" value=\"promptfoo\"/>"));
}

#[test]
fn lines_of_promptfoo_are_the_same_results() {
    let project = with(&["promptfoo.jsonl"]);
    let report = imported(&project, &["promptfoo.jsonl"]);
    let counts = ["passed", "failed", "errors", "undecided"].map(|it| report[it].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 8, 2], "{report:#}");
}

#[test]
fn repeats_of_promptfoo_are_repeats() {
    let project = with(&["promptfoo-repeat.json"]);
    imported(&project, &["promptfoo-repeat.json"]);
    insta::assert_snapshot!(verdicts(&project).join("\n"), @r"
    tests on echo | france 0 | fail
    tests on echo | france 1 | fail
    tests on echo | test-2 0 | pass
    tests on echo | test-2 1 | pass
    ");
}

#[test]
fn a_log_of_inspect_is_read_from_an_archive_and_from_json() {
    let expected = "\
capitals on mockllm/model | 3 0 | error
capitals on mockllm/model | 3 1 | error
capitals on mockllm/model | france 0 | pass
capitals on mockllm/model | france 1 | fail
capitals on mockllm/model | long 0 | pass
capitals on mockllm/model | long 1 | pass
capitals on mockllm/model | peru 0 | fail
capitals on mockllm/model | peru 1 | pass";
    for name in ["inspect.eval", "inspect-deflated.eval", "inspect.json"] {
        let project = with(&[name]);
        let report = imported(&project, &[name]);
        assert_eq!(report["from"], "Inspect");
        assert_eq!(verdicts(&project).join("\n"), expected, "{name}");
        let cases = stored(&project);
        let long = cases.iter().find(|it| it["case_id"] == "long").unwrap();
        // A long text stands elsewhere in the log.
        assert!(long["prompt"].as_str().unwrap().starts_with("Repeat: word word"), "{name}");
        let boom = cases.iter().find(|it| it["case_id"] == "3").unwrap();
        assert!(boom["reason"].as_str().unwrap().contains("the sandbox is gone"), "{boom:#}");
        let scores = &cases.last().unwrap()["classification"]["scores"];
        assert_eq!((&scores[1]["name"], &scores[1]["weight"]), (&"brevity".into(), &0.0.into()));
    }
}

#[test]
fn samples_of_lm_eval_become_a_lane_for_each_task() {
    let names = ["results", "samples_choices", "samples_sums"];
    let file = |name: &str| {
        let suffix = if name == "results" { "json" } else { "jsonl" };
        format!("lm-eval/{name}_2026-11-16T12-00-00.000000.{suffix}")
    };
    let files = names.map(file);
    let project = with(&files.each_ref().map(String::as_str));
    let report = imported(&project, &[&files[0]]);
    assert_eq!(report["from"], "lm-eval");
    insta::assert_snapshot!(verdicts(&project).join("\n"), @r"
    choices on tiny/model | doc-0 0 | pass
    choices on tiny/model | doc-1 0 | fail
    sums on tiny/model | doc-1 0 | fail
    sums on tiny/model | doc-2 0 | pass
    sums on tiny/model | doc-3 0 | fail
    ");
    assert_eq!(stored(&project)[0]["raw_response"], " right");
    // One task alone, and by another of its scores.
    imported(&project, &[&files[2], "--decide-by", "exact_match,flexible-extract"]);
    let decided: Vec<String> = verdicts(&project);
    assert!(decided[0].ends_with("doc-1 0 | pass"), "{decided:?}");
}

#[test]
fn a_log_of_openai_evals_becomes_a_run() {
    let project = with(&["openai-evals.jsonl"]);
    imported(&project, &["openai-evals.jsonl"]);
    insta::assert_snapshot!(verdicts(&project).join("\n"), @r"
    capitals.dev.v0 on gpt-x | capitals.dev.0 0 | pass
    capitals.dev.v0 on gpt-x | capitals.dev.1 0 | fail
    capitals.dev.v0 on gpt-x | capitals.dev.10 0 | error
    capitals.dev.v0 on gpt-x | capitals.dev.2 0 | undecided
    ");
    let cases = stored(&project);
    assert_eq!(cases[1]["reason"], "expected \"Rome\", picked null");
    assert_eq!(cases[2]["error"]["kind"], "rate_limit");
}

#[test]
fn the_same_results_are_stored_once() {
    let project = with(&["promptfoo.json"]);
    let first = imported(&project, &["promptfoo.json"]);
    let again = project.run(&["import", "promptfoo.json"]);
    assert!(again.status.success());
    assert!(told(&again).contains("these results are stored already"), "{}", told(&again));
    let known = imported(&project, &["promptfoo.json"]);
    assert_eq!((&known["run_id"], &known["known"]), (&first["run_id"], &true.into()));
    assert_eq!(runs(&project), 1);
    imported(&project, &["promptfoo.json", "--force"]);
    assert_eq!(runs(&project), 2);
}

#[test]
fn what_does_not_fit_is_named_and_nothing_is_stored() {
    let whole = fs::read_to_string(fixture("promptfoo.json")).unwrap();
    let wrong = whole.replacen("\"latencyMs\": ", "\"latencyMs\": \"soon\", \"x\": ", 1);
    let project = Project::new().file("out.json", &wrong);
    let output = project.run(&["import", "out.json"]);
    assert_eq!(output.status.code(), Some(2));
    let said = told(&output);
    let line = 1 + wrong[..wrong.find("\"soon\"").unwrap()].matches('\n').count();
    let place = format!("out.json:{line}: `results.results[0].latencyMs`: invalid type: string");
    assert!(said.contains(&place), "{said}");
    let lines = fs::read_to_string(fixture("openai-evals.jsonl")).unwrap();
    let project =
        project.file("log.jsonl", lines.replace("\"correct\": false", "\"correct\": 0.5"));
    let output = project.run(&["import", "log.jsonl"]);
    assert!(told(&output).contains("log.jsonl:5: `data`: invalid type"), "{}", told(&output));
    let mut archive = fs::read(fixture("inspect.eval")).unwrap();
    let middle = archive.len() / 3;
    archive[middle..middle + 64].fill(0);
    let project = project.file("log.eval", archive);
    let output = project.run(&["import", "log.eval"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(!project.path(".probity/probity.db").exists());
}

const SUITE: &str = r#"[backends.copy]
kind = "echo"
model = "echo"

[[runners]]
name = "capitals"
dataset = "cases.jsonl"

[[runners.prompts]]
name = "short"
template = "Capital of {{ country }}?"
"#;

const CASES: &str = r#"{"id":"fr","prompt_vars":{"country":"France"},"assert":[{"type":"contains","value":"France"}]}
{"id":"it","prompt_vars":{"country":"Italy"},"assert":[{"type":"not-contains","value":"Rome"}]}
"#;

#[test]
fn results_take_over_the_names_of_a_suite_and_are_compared_with_its_runs() {
    let project = with(&["promptfoo-repeat.json"]).file("cases.jsonl", CASES);
    let project = project.file("probity.toml", SUITE);
    let ran = project.run(&["run", "-q"]);
    assert!(ran.status.success(), "{}", told(&ran));
    let report = imported(&project, &["promptfoo-repeat.json", "--suite", "probity.toml"]);
    let notes = report["notes"][0].as_str().unwrap();
    assert_eq!(notes, "tests on echo: 4 of 4 results are of cases of `capitals/short`");
    insta::assert_snapshot!(verdicts(&project).join("\n"), @r"
    capitals/short on copy | fr 0 | fail
    capitals/short on copy | fr 1 | fail
    capitals/short on copy | it 0 | pass
    capitals/short on copy | it 1 | pass
    ");
    let runs = text(&project.run(&["runs", "--json"]).stdout);
    let ids: Vec<String> = runs
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap()["run_id"].as_str().unwrap().to_owned())
        .collect();
    let compared = project.run(&["compare", &ids[0], &ids[1]]);
    let page = told(&compared);
    assert!(compared.status.success(), "{page}");
    assert!(page.contains("fr") && page.contains("promptfoo asked and judged"), "{page}");
    // The replies are judged by the suite: `fr` asks for something else there.
    let rescored = project.run(&["rescore", &ids[0]]);
    assert!(told(&rescored).contains("1 from fail to pass"), "{}", told(&rescored));
    let blessed = project.run(&["bless", &ids[0], "--as", "theirs"]);
    assert!(blessed.status.success(), "{}", told(&blessed));
    let gated = project.run(&["gate", &ids[1], "--baseline", "theirs"]);
    assert_eq!(gated.status.code(), Some(0), "{}", told(&gated));
    assert!(told(&gated).contains("theirs"), "{}", told(&gated));
}

#[test]
fn stored_criteria_judge_without_a_suite() {
    let project = with(&["promptfoo.json"]);
    imported(&project, &["promptfoo.json"]);
    let before = verdicts(&project);
    let said = told(&project.run(&["rescore", "--stored"]));
    // All that promptfoo checked comes out the same here; scripts and errors are kept as they are.
    let kept = "12 results without criteria that can be checked here, kept as judged";
    assert!(said.contains(kept), "{said}");
    assert_eq!(said.matches(": 0 flipped").count(), 4, "{said}");
    assert_eq!(verdicts(&project), before);
    assert_eq!(stored(&project)[0]["imported"], "promptfoo");
}

#[test]
fn stored_criteria_find_a_verdict_that_does_not_hold() {
    let mut results: Value =
        serde_json::from_str(&fs::read_to_string(fixture("promptfoo.json")).unwrap()).unwrap();
    let all = results["results"]["results"].as_array_mut().unwrap();
    let italy = |it: &&mut Value| it["response"]["output"] == "Capital of Italy?";
    all.iter_mut().find(italy).unwrap()["response"]["output"] = "Rome".into();
    let project = Project::new().file("wrong.json", results.to_string());
    imported(&project, &["wrong.json"]);
    let said = told(&project.run(&["rescore", "--stored"]));
    assert!(said.contains("1 flipped (1 from pass to fail, 0 from fail to pass)"), "{said}");
    assert_eq!(said.matches(": 0 flipped").count(), 3, "{said}");
}

#[test]
fn reports_of_imported_runs_are_as_the_schemas_say() {
    for name in ["promptfoo.json", "inspect.eval", "openai-evals.jsonl"] {
        let project = with(&[name]);
        imported(&project, &[name]);
        let written = project.run(&["report", "-o", "r.json", "-o", "suite_summary.json"]);
        assert!(written.status.success(), "{}", told(&written));
        schema::check("evaluation", &serde_json::from_str(&project.read("r.json")).unwrap());
        let summary: Value = serde_json::from_str(&project.read("suite_summary.json")).unwrap();
        schema::check("summary", &summary);
        assert!(summary["runners"][0]["imported"].is_string(), "{summary:#}");
        stored(&project).iter().for_each(|it| schema::check("run-result", it));
        // Another tool may come to more errors than a run of ours may have.
        assert!(project.run(&["bless", "--as", "theirs", "--force"]).status.success());
        let baseline = project.read("baselines/theirs.json");
        schema::check("baseline", &serde_json::from_str(&baseline).unwrap());
    }
}

#[test]
fn an_imported_run_is_not_gone_on_with() {
    let project = with(&["promptfoo.json"]).file("cases.jsonl", CASES).file("probity.toml", SUITE);
    let report = imported(&project, &["promptfoo.json"]);
    let id = report["run_id"].as_str().unwrap();
    for option in ["--resume", "--retry-errors"] {
        let output = project.run(&["run", option, id]);
        assert_eq!(output.status.code(), Some(2));
        assert!(told(&output).contains("was imported from promptfoo"), "{}", told(&output));
    }
}

#[test]
fn a_score_that_is_not_there_cannot_decide() {
    let project = with(&["inspect.json"]);
    let output = project.run(&["import", "inspect.json", "--decide-by", "elegance"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told(&output).contains("has no score `elegance`; it has: match, brevity"),
        "{}",
        told(&output)
    );
    // A score that is only in part right or wrong decides in part.
    let report = imported(&project, &["inspect.json", "--decide-by", "brevity"]);
    assert_eq!((&report["passed"], &report["undecided"]), (&0.into(), &6.into()), "{report:#}");
}
