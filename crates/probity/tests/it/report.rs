//! Reports of real runs, in every format.

use std::{fs, process::Command};

use serde_json::Value;

use crate::project::Project;

const SUITE: &str = r#"version = "1"
[backends.echo]
kind = "echo"
[[runners]]
name = "words"
dataset = "data/cases.jsonl"
[runners.gates]
pass_rate = 0.9
"#;

const CASES: &str = r#"{"id":"good","prompt":"one","expected_response":"one","tags":["a"]}
{"id":"bad","prompt":"two </script> @you | `x`\n::error::no","expected_response":"three"}
{"id":"sorry","prompt":"I'm sorry, but I can't help with that.","expected_response":"=1+1"}
"#;

fn project() -> Project {
    let project = Project::new().file("data/cases.jsonl", CASES).file("suite.toml", SUITE);
    let output = quiet(&mut project.command(&["run", "suite.toml", "-q", "--informational"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    project
}

/// The output of a program that GitHub does not run.
fn quiet(command: &mut Command) -> std::process::Output {
    command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY").output().unwrap()
}

#[test]
fn every_format_is_written_by_its_ending() {
    let project = project();
    let names = ["r.html", "r.junit.xml", "r.xml", "r.md", "r.csv", "r.json", "r.jsonl", "r.txt"];
    let mut words = vec!["report"];
    names.iter().for_each(|name| words.extend(["-o", *name]));
    let output = quiet(&mut project.command(&words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    assert_eq!(project.read("r.xml"), project.read("r.junit.xml"));
    assert!(
        project.read("r.xml").contains("tests=\"4\" failures=\"3\" errors=\"0\" skipped=\"0\"")
    );
    assert!(project.read("r.md").starts_with("## ❌ Failed: `suite.toml`\n"));
    assert_eq!(project.read("r.csv").matches("\r\n").count(), 4);
    assert!(project.read("r.csv").contains(",'=1+1,"));
    let page = project.read("r.html");
    let island = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let island: Value = serde_json::from_str(island).unwrap();
    assert_eq!(island["cases"][0]["prompt"], "two </script> @you | `x`\n::error::no");
}

#[test]
fn an_unknown_ending_is_refused_with_those_that_are_known() {
    let output = quiet(&mut project().command(&["report", "-o", "r.pdf"]));
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: `r.pdf` does not have the suffix of a report format
    hint: reports end in .txt, .jsonl, .summary.json, .json, .csv, .md, .junit.xml, .xml, .html
    ");
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let project = project();
    let summary = project.path("summary.md");
    fs::write(&summary, "before\n").unwrap();
    let mut command = project.command(&["report"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary);
    let output = command.output().unwrap();
    assert!(output.status.success());
    let out = String::from_utf8(output.stdout).unwrap();
    let commands: Vec<&str> = out.lines().filter(|line| line.starts_with("::")).collect();
    insta::assert_snapshot!(commands.join("\n"), @r"
    ::error title=gate failed%3A words on echo::pass_rate at least 90 %25: 33.3 %25 (1 of 3)
    ::warning file=data/cases.jsonl,line=2,title=fail%3A bad::words on echo: expected `three`, got `two </script> @you | `x`\n::error::no` (they part at byte 1)
    ::warning file=data/cases.jsonl,line=3,title=refusal%3A sorry::words on echo: the model declined: `sorry, but I can't help`
    ");
    let text = fs::read_to_string(&summary).unwrap();
    assert!(text.starts_with("before\n## ❌ Failed"), "{text}");
}

#[test]
fn annotations_name_files_from_the_top_of_the_repository() {
    let project = project();
    let mut command = project.command(&["report"]);
    command.env("GITHUB_ACTIONS", "true").env_remove("GITHUB_STEP_SUMMARY");
    let output = command.env("GITHUB_WORKSPACE", project.path("data")).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("::warning file=cases.jsonl,line=2,"), "{out}");
}

#[test]
fn annotations_name_the_line_of_a_case_without_an_id() {
    let yaml = "- prompt: seven\n  expected_response: seven\n\n- tags: [a]\n  prompt: eight\n  expected_response: nine\n";
    let suite = SUITE.replace("data/cases.jsonl", "data");
    let project = Project::new()
        .file("data/a.jsonl", "{\"prompt\":\"one\",\"expected_response\":\"one\"}\n{\"prompt\":\"two\",\"expected_response\":\"three\"}\n")
        .file("data/b.yaml", yaml)
        .file("suite.toml", suite);
    quiet(&mut project.command(&["run", "suite.toml", "-q", "--informational"]));
    let mut command = project.command(&["report"]);
    command.env("GITHUB_ACTIONS", "true").env_remove("GITHUB_STEP_SUMMARY");
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(out.contains("::warning file=data/a.jsonl,line=2,title=fail%3A two-"), "{out}");
    assert!(out.contains("::warning file=data/b.yaml,line=4,title=fail%3A eight-"), "{out}");
}

#[test]
fn a_summary_that_cannot_be_written_is_no_failure() {
    let project = project();
    let mut command = project.command(&["report"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", project.path("no/such"));
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no summary for GitHub"));
}

#[test]
fn a_full_summary_is_left_alone() {
    let project = project();
    let summary = project.path("summary.md");
    fs::write(&summary, "x".repeat((1 << 20) - 100)).unwrap();
    let mut command = project.command(&["report"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary);
    assert!(command.output().unwrap().status.success());
    assert_eq!(fs::metadata(&summary).unwrap().len(), (1 << 20) - 100);
}
