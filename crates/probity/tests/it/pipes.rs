//! Whoever reads standard output may leave: the verdict and the files stay what they are.

use crate::{
    gates::{gated, sevens},
    project::Project,
    run::run,
};

const FAILING: &str = "{ pass_rate = 0.82 }";

#[test]
fn a_failing_gate_fails_whether_or_not_anybody_reads() {
    let server = sevens();
    let project = gated(&server, FAILING);
    assert_eq!(project.deserted(&["run", "-o", "r.json", "-o", "r.xml"]), Some(1));
    for file in ["r.json", "r.xml", ".probity/suite_summary.json"] {
        assert!(project.path(file).is_file(), "{file}");
    }
    assert_eq!(project.deserted(&["run", "--porcelain"]), Some(1));
    assert_eq!(project.deserted(&["gate", "-o", "gate.md"]), Some(1));
    assert!(project.path("gate.md").is_file());
    assert_eq!(project.deserted(&["report"]), Some(0));
    assert_eq!(project.deserted(&["show", "--json"]), Some(0));
}

#[test]
fn merged_runs_are_judged_whether_or_not_anybody_reads() {
    let server = sevens();
    let project = gated(&server, FAILING);
    run(&project, &["--shard", "1/2"]);
    let first = String::from_utf8(project.run(&["runs", "--json"]).stdout).unwrap();
    let first: serde_json::Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    run(&project, &["--shard", "2/2"]);
    assert_eq!(project.deserted(&["merge", first["run_id"].as_str().unwrap(), "latest"]), Some(1));
}

#[test]
fn github_gets_its_summary_when_nobody_reads_the_annotations() {
    let server = sevens();
    let project = gated(&server, FAILING);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = project.command(&["run", "-o", "r.csv"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", project.path("step.md"));
    let output = command.stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(project.read("step.md").contains("pass_rate"));
    assert!(project.path("r.csv").is_file());
}

#[test]
fn what_is_wrong_with_files_is_told_by_the_exit_code_as_well() {
    let twice = "{\"id\":\"a\",\"prompt\":\"p\"}\n{\"id\":\"a\",\"prompt\":\"p\"}\n";
    let project = Project::new()
        .file("wrong.jsonl", twice)
        .file("dull.jsonl", "{\"id\":\"a\",\"prompt\":\"p\"}\n")
        .file("evaluation.json", "{}")
        .file("results.jsonl", "{\"id\":\"a\"}\n");
    for (words, code) in [
        (&["dataset", "validate", "wrong.jsonl"][..], 2),
        (&["dataset", "validate", "--json", "wrong.jsonl"], 2),
        (&["dataset", "lint", "--strict", "dull.jsonl"], 2),
        (&["check", "evaluation", "evaluation.json"], 2),
        (&["classify", "results.jsonl"], 2),
        (&["schema", "event"], 0),
        (&["config", "default"], 0),
    ] {
        assert_eq!(project.run(words).status.code(), Some(code), "{words:?}");
        assert_eq!(project.deserted(words), Some(code), "{words:?}");
    }
}
