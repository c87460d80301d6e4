//! Skills whose texts change between runs.

use probity_testkit::{Answer, FakeServer, Script};
use serde_json::{Value, json};

use crate::{run::run, skills::project};

#[test]
fn a_baseline_and_a_comparison_say_which_skill_changed() {
    let server = FakeServer::start(Script::always(Answer::text(r#"{"skills": ["git"]}"#)));
    let case = json!({ "id": "a", "prompt": "rebase", "expected_skills": ["git"] });
    let runner = "kind = \"activation\"\ndataset = \"cases.jsonl\"\nskills = \"skills\"";
    let project = project(&server, runner, &[case]);
    run(&project, &[]).expect(0, &[]);
    let first = project.run(&["bless", "latest", "--as", "v1"]);
    assert!(first.status.success());
    // What has not changed is not mentioned.
    let same = run(&project, &["--baseline", "v1"]);
    same.expect(0, &[]);
    assert!(!same.err.contains("the skills differ"), "{}", same.err);
    let project = project
        .file("skills/git/SKILL.md", "---\ndescription: Branches.\n---\nOTHER\n")
        .file("skills/zip/SKILL.md", "---\ndescription: Archives.\n---\nZIP\n");
    let changed = run(&project, &["--baseline", "v1"]);
    changed.expect(0, &[]);
    let told = "the skills differ: changed git; new zip";
    assert!(changed.err.contains(told), "{}", changed.err);
    let runs = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let run_id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["run_id"].clone();
    let before = run_id(runs.lines().nth(1).unwrap());
    let before = before.as_str().unwrap();
    let shown = project.shown(&["compare", before, "latest"]);
    assert!(shown.contains(told), "{shown}");
    let output = project.run(&["compare", before, "latest", "--format", "json"]);
    let compared: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        compared["pairs"][0]["skills"],
        json!({ "changed": ["git"], "new": ["zip"], "gone": [] })
    );
}
