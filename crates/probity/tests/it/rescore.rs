//! Stored replies, judged again: by `rescore` from the store, by `classify` from our own export.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{run, stored, verdicts},
    skills,
};

const WORDS: &str = r#"{"id":"pass","prompt":"Paris","expected_response":"Paris"}
{"id":"refund","prompt":"your money","assert":[{"type":"contains","value":"refund"}]}
{"id":"none","prompt":"hi"}
{"id":"leak","prompt":"I'm sorry, but I can't help with that zebra.","expected_response":"x"}
{"id":"word","prompt":"policy_violation","expected_response":"policy_violation"}
"#;

fn words(suite: &str) -> Project {
    let echo =
        "[backends.echo]\nkind = \"echo\"\n[[policies]]\nname = \"animals\"\nwords = [\"zebra\"]\n";
    let runner = "[[runners]]\nname = \"words\"\ndataset = \"cases.jsonl\"\n";
    Project::new().file("cases.jsonl", WORDS).file("probity.toml", format!("{echo}{runner}{suite}"))
}

#[test]
fn stored_replies_are_judged_by_the_dataset_of_now() {
    let project = words("");
    project.run(&["run", "-q"]);
    let before = stored(&project);
    let changed = WORDS
        .replace("\"refund\"}", "\"money\"}")
        .replace("hi\"", "hi\",\"expected_response\":\"ho\"");
    let project = project.file("cases.jsonl", changed);
    let output = project.run(&["rescore"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("words on echo: 2 flipped (0 from pass to fail, 1 from fail to pass)"),
        "{text}"
    );
    assert!(text.contains("undecided -> fail: expected `ho`, got `hi`"), "{text}");
    assert!(text.contains("0 calls"), "{text}");
    let after = stored(&project);
    assert_eq!(after.len(), before.len());
    let flipped: Vec<String> = verdicts(&before)
        .into_iter()
        .zip(verdicts(&after))
        .filter(|(was, is)| was != is)
        .map(|(_, (id, verdict))| format!("{id} {verdict}"))
        .collect();
    assert_eq!(flipped, ["none fail", "refund pass"]);
    let runs = project.run(&["runs", "--json"]);
    let runs = String::from_utf8(runs.stdout).unwrap();
    assert_eq!(runs.lines().count(), 2, "{runs}");
    // Judged once more by the same dataset nothing flips.
    let output = project.run(&["rescore"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0 flipped"), "{text}");
}

#[test]
fn gates_of_now_decide_about_old_replies() {
    let project = words("");
    project.run(&["run", "-q"]);
    let strict = project.read("probity.toml") + "gates = { pass_rate = 1.0 }\n";
    let project = project.file("strict.toml", strict);
    assert_eq!(project.run(&["rescore", "--suite", "strict.toml"]).status.code(), Some(1));
    let other = project.read("probity.toml").replace("\"words\"\ndata", "\"others\"\ndata");
    let project = project.file("other.toml", other);
    let output = project.run(&["rescore", "--suite", "other.toml"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("the suite has no runner `words`"), "{error}");
}

#[test]
fn every_reply_that_breaks_a_policy_counts_and_no_other() {
    let gated = |most: u64| {
        let project = words(&format!("gates = {{ policy_hits = {{ max = {most} }} }}\n"));
        project.run(&["run", "-q"]).status.code()
    };
    // The refusal breaks the policy; the answer `policy_violation` does not.
    assert_eq!((gated(0), gated(1)), (Some(1), Some(0)));
}

#[test]
fn a_case_that_nothing_decides_is_no_pass() {
    let project = words("gates = { pass_rate = { min = 0.1 } }\n");
    let output = project.run(&["run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("1 undecided"), "{text}");
    let allowed = format!("max_undecided = 0.5\n{}", project.read("probity.toml"));
    let project = project.file("probity.toml", allowed);
    assert_eq!(project.run(&["run", "-q"]).status.code(), Some(0));
    let project = project.file("cases.jsonl", "{\"id\":\"none\",\"prompt\":\"hi\"}\n");
    assert_eq!(project.run(&["run", "-q"]).status.code(), Some(3));
}

/// What `classify` says of an export is what the run said.
pub(crate) fn check_export(project: &Project) {
    let output = project.run(&["report", "latest", "-o", "cases.jsonl.export.jsonl"]);
    assert!(output.status.success());
    let output = project.run(&["classify", "cases.jsonl.export.jsonl", "-o", "again.jsonl"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = |name: &str| -> Vec<Value> {
        project.read(name).lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    let (before, after) = (lines("cases.jsonl.export.jsonl"), lines("again.jsonl"));
    assert_eq!(verdicts(&before), verdicts(&after));
    for (before, after) in before.iter().zip(&after) {
        let class = |it: &Value| it["classification"]["primary"].clone();
        assert_eq!(class(before), class(after), "{}", before["case_id"]);
    }
    let output = project.run(&["rescore"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let flips = text.lines().filter(|it| it.contains(" flipped (")).collect::<Vec<_>>();
    assert!(!flips.is_empty() && flips.iter().all(|it| it.contains(": 0 flipped")), "{text}");
}

#[test]
fn the_export_of_a_plain_run_is_classified_the_same() {
    let project = words("");
    project.run(&["run", "-q"]);
    check_export(&project);
}

#[test]
fn the_export_of_a_choice_of_skills_is_classified_the_same() {
    let answer =
        |prompt: &str, text: &str| Rule::new(When::prompt_contains(prompt), Answer::text(text));
    let script = Script::default()
        .rule(answer("merge this", r#"{"skills":["git"]}"#))
        .rule(answer("join tables", r#"{"skills":["git","tests"]}"#))
        .rule(answer("be quiet", r#"{"skills":[]}"#))
        .rule(answer("mumble", "I would rather not say"));
    let server = FakeServer::start(script);
    let cases = [
        json!({ "id": "right", "prompt": "merge this", "expected_skills": ["git"] }),
        json!({ "id": "wrong", "prompt": "join tables", "expected_skills": ["sql"] }),
        json!({ "id": "quiet", "prompt": "be quiet", "should_activate": false }),
        json!({ "id": "mumble", "prompt": "mumble", "expected_skills": ["tests"] }),
    ];
    let runner = "kind = \"activation\"\nskills = [\"skills\"]\ndataset = \"cases.jsonl\"";
    let project = skills::project(&server, runner, &cases);
    run(&project, &[]);
    assert_eq!(stored(&project).len(), 4);
    check_export(&project);
}

#[test]
fn a_rescore_that_was_killed_is_not_the_latest_run() {
    let project = words("");
    project.run(&["run", "-q"]);
    let before = stored(&project);
    project.run(&["rescore"]);
    // As a kill leaves it before the first results are in.
    let store = rusqlite::Connection::open(project.path(".probity/probity.db")).unwrap();
    let killed = "UPDATE runs SET status = 'running', finished_ms = NULL, sum = NULL WHERE id = 2;
                  DELETE FROM results WHERE lane IN (SELECT id FROM lanes WHERE run = 2)";
    store.execute_batch(killed).unwrap();
    drop(store);
    assert_eq!(stored(&project), before);
    let output = project.run(&["rescore"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("0 flipped"), "{text}");
    assert_eq!(verdicts(&stored(&project)), verdicts(&before));
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(runs.matches("\"status\":\"killed\"").count(), 1, "{runs}");
}
