//! What the program reads: suites, datasets and stored results.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{Schema, lines};
use crate::project::Project;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder, by the ending of their names.
fn files(folder: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == ending) {
                found.push((path.clone(), fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_suites_and_datasets_that_come_with_the_program_satisfy_their_schemas() {
    let (mut suites, mut cases, mut rubrics) = (0, 0, 0);
    let case = Schema::named("case");
    for folder in ["examples", "crates/probity/starter", "crates/probity/suites"] {
        for (path, text) in files(folder, "toml") {
            let document: Value = toml::from_str(&text).unwrap();
            if let Some(items) = document["test_cases"].as_array() {
                cases += items.len();
                items.iter().for_each(|it| case.check(it));
            } else if document.get("test_prompts").is_some() {
                rubrics += 1;
                case.check(&document);
            } else if document.get("runners").is_some() {
                suites += 1;
                Schema::named("suite").check(&document);
            } else {
                // What the cases of long contexts are made of, and how the tasks of agents are solved.
                let others = ["long-context/needles.toml", "agent/solutions.toml"];
                let is_known = others.iter().any(|it| path.ends_with(it));
                assert!(is_known, "what is {}?", path.display());
            }
        }
    }
    for (_, text) in files("crates/probity/suites", "jsonl") {
        for line in text.lines().filter(|it| !it.starts_with('#') && !it.trim().is_empty()) {
            cases += 1;
            case.check(&serde_json::from_str(line).unwrap());
        }
    }
    assert!(
        suites >= 8 && cases >= 400 && rubrics >= 1,
        "{suites} suites, {cases} cases and {rubrics} rubrics"
    );
}

#[test]
fn the_suites_of_the_documentation_satisfy_the_schema() {
    let mut seen = 0;
    for (path, text) in files("docs", "md") {
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("\n```").next().unwrap();
            let is_suite = ["[backends.", "[[runners]]", "[shell]", "[[shell.", "[[policies]]"];
            if !is_suite.iter().any(|it| block.contains(it)) {
                continue;
            }
            seen += 1;
            let document: Value = toml::from_str(block)
                .unwrap_or_else(|error| panic!("{}: {error}\n{block}", path.display()));
            Schema::named("suite").check(&document);
        }
    }
    assert!(seen > 3, "{seen} suites in the documentation");
}

#[test]
fn what_classify_reads_and_writes_satisfies_its_schemas() {
    let (_, text) = files("examples", "jsonl")
        .into_iter()
        .find(|(path, _)| path.ends_with("results.jsonl"))
        .unwrap();
    let more = [
        json!({ "id": "a", "raw_response": "x", "category": "my own", "extra": [1] }),
        json!({ "case_id": "a", "error": { "status": "429", "exit_code": 1, "signal": 9 } }),
        json!({ "case_id": "a", "raw_response": null, "error_kind": "network" }),
        json!({ "case_id": "a", "raw_response": "ls -l", "expected_command": "ls -l",
                "safe": true, "posix_compliant": true, "category": "safety" }),
        json!({ "case_id": "a", "raw_response": "b", "expected_response": "a", "verdict": "?" }),
        json!({ "case_id": "a", "raw_response": "b",
                "assert": [{ "type": "llm-rubric", "value": "It is polite." }] }),
        json!({ "case_id": "a", "raw_response": "b", "finish_reason": "stop",
                "assert": [{ "type": "finish_reason", "value": "stop" }] }),
    ];
    let text = more.iter().fold(text, |text, it| text + &it.to_string() + "\n");
    let project = Project::new().file("results.jsonl", text);
    lines(&project.read("results.jsonl"))
        .iter()
        .for_each(|it| Schema::named("classify-input").check(it));
    let output = project.run(&["classify", "results.jsonl", "-q"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let classified = lines(&String::from_utf8(output.stdout).unwrap());
    assert!(classified.len() > 12);
    classified.iter().for_each(|it| Schema::named("classified").check(it));
    let reasons = classified.iter().map(|it| &it["classification"]["details"]["reason"]);
    assert!(reasons.clone().any(|it| it == "unjudged"), "{:?}", reasons.collect::<Vec<_>>());
}
