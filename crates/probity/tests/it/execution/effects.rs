//! Commands that reading does not decide, and what becomes of them when they are executed.

use probity_testkit::FakeServer;
use serde_json::{Value, json};

use super::{Case, server, without_sandbox};
use crate::{
    project::Project,
    run::{of, run, stored, suite},
};

/// What the case accepts.
const EXPECTED: &str = "awk 'NR > 2' f.txt";

const CASES: [(&str, &str); 4] = [
    ("equal", "```sh\nawk \"NR > 2\" f.txt\n```"),
    ("same", "```sh\ntail -n +3 f.txt\n```"),
    ("other", "```sh\ntail -n +2 f.txt\n```"),
    ("silent", "```sh\ncurl example.org\n```"),
];

fn project(server: &FakeServer, grading: &str) -> Project {
    let line = |(id, _): &(&str, &str)| {
        let case = json!({ "id": id, "prompt": format!("Do <{id}>"), "expected_command": EXPECTED,
            "category": "correctness", "safe": true, "posix_compliant": true });
        format!("{case}\n")
    };
    let cases: String = CASES.iter().map(line).collect();
    Project::new()
        .file("cases.jsonl", cases)
        .file("probity.toml", suite(&[("fake", server)], grading))
}

fn answering() -> FakeServer {
    let cases: Vec<Case<'_>> = CASES.iter().map(|(id, reply)| (*id, *reply, Value::Null)).collect();
    server(&cases)
}

fn verdicts(project: &Project) -> Vec<(String, Value, Value)> {
    let found = stored(project);
    let of_case = |(id, _): &(&str, &str)| {
        let case = of(&found, id);
        let command = &case["classification"]["details"]["command"];
        let word = |it: &Value| it.as_str().unwrap_or("").to_owned();
        (word(&case["verdict"]), command["equivalence"].clone(), command["executed"].clone())
    };
    CASES.iter().map(of_case).collect()
}

fn expected(all: [(&str, &str, bool); 4]) -> Vec<(String, Value, Value)> {
    let each = |(verdict, equivalence, executed): (&str, &str, bool)| {
        let executed = if executed { json!(true) } else { Value::Null };
        (verdict.to_owned(), json!(equivalence), executed)
    };
    all.into_iter().map(each).collect()
}

#[test]
fn nothing_is_executed_unless_the_suite_asks() {
    let server = answering();
    let project = project(&server, "");
    run(&project, &[]);
    let never = [
        ("pass", "equal", false),
        ("fail", "unknown", false),
        ("fail", "unknown", false),
        ("fail", "unknown", false),
    ];
    assert_eq!(verdicts(&project), expected(never));
}

#[test]
fn an_assisting_execution_is_evidence_and_decides_nothing() {
    let server = answering();
    let project = project(&server, "[grading]\nexecution = \"assist\"\n");
    run(&project, &[]);
    let assisted = [
        ("pass", "equal", false),
        ("fail", "unknown", true),
        ("fail", "unknown", true),
        ("fail", "unknown", true),
    ];
    assert_eq!(verdicts(&project), expected(assisted));
    let found = stored(&project);
    let effect =
        |id: &str| of(&found, id)["classification"]["details"]["command"]["effect"].clone();
    assert_eq!(effect("same")["verdict"], "same_effect");
    assert_eq!(effect("other")["verdict"], "different");
    assert!(effect("other")["world"].is_string());
    assert_eq!(effect("silent")["verdict"], "unknown");
    let reason = of(&found, "same")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("(executed: they did the same in "), "{reason}");
}

#[test]
fn a_deciding_execution_passes_and_fails_commands_and_is_not_repeated() {
    let server = answering();
    let project = project(&server, "[grading]\nexecution = \"decide\"\n");
    let plan = String::from_utf8(project.run(&["run", "--dry-run"]).stdout).unwrap();
    assert!(
        plan.contains("  commands of 4 answers are executed where reading does not decide\n"),
        "{plan}"
    );
    run(&project, &[]);
    let decided = expected([
        ("pass", "equal", false),
        ("pass", "same_effect", true),
        ("fail", "different", true),
        ("fail", "unknown", true),
    ]);
    assert_eq!(verdicts(&project), decided);
    let found = stored(&project);
    let reason = |id: &str| of(&found, id)["reason"].as_str().unwrap().to_owned();
    assert!(
        reason("same").starts_with("`command` holds: they did the same in "),
        "{}",
        reason("same")
    );
    assert!(
        reason("other").starts_with("`tail -n +2 f.txt`: they do not do the same in the world `"),
        "{}",
        reason("other")
    );
    project.run(&["report", "-o", "report.md", "-o", "report.html"]);
    for name in ["report.md", "report.html"] {
        let report = project.read(name);
        assert!(report.contains("they do not do the same in the world"), "{report}");
    }
    // Judging again needs no sandbox.
    without_sandbox(&project, &["rescore"]);
    assert_eq!(verdicts(&project), decided);
}

#[test]
fn without_a_sandbox_nothing_is_decided_by_execution() {
    let server = answering();
    let project = project(&server, "[grading]\nexecution = \"decide\"\n");
    let ran = without_sandbox(&project, &["run", "--porcelain"]);
    let told = "numbers: commands that reading does not decide are not executed";
    assert!(ran.err.contains(told), "{}", ran.err);
    let undecided = [
        ("pass", "equal", false),
        ("undecided", "unknown", false),
        ("undecided", "unknown", false),
        ("undecided", "unknown", false),
    ];
    assert_eq!(verdicts(&project), expected(undecided));
    let reason = of(&stored(&project), "same")["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("nothing was executed, so the case is undecided: "), "{reason}");
}
