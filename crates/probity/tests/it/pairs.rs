//! Pairs of commands with known labels, judged by reading and by what they do.

use std::{collections::BTreeMap, io::Write as _, process::Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::project::Project;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    same: Vec<Pair>,
    different: Vec<Pair>,
    odd: Vec<Pair>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    a: String,
    b: String,
    why: String,
}

fn pairs() -> Pairs {
    toml::from_str(include_str!("../data/pairs.toml")).unwrap()
}

/// What is answered about each pair.
fn judged(pairs: &[Pair]) -> Vec<Value> {
    let project = Project::new();
    let mut command = project.command(&["check", "command", "--jsonl", "--no-cache"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = pairs
        .iter()
        .enumerate()
        .map(|(at, it)| {
            json!({ "id": at, "command": it.a, "against": it.b, "execute": true }).to_string()
                + "\n"
        })
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: BTreeMap<u64, Value> = BTreeMap::new();
    for line in text.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        answers.insert(answer["id"].as_u64().unwrap(), answer);
    }
    assert_eq!(answers.len(), pairs.len(), "{text}");
    answers.into_values().collect()
}

fn is_same(answer: &Value) -> bool {
    matches!(answer["equivalence"].as_str(), Some("equal" | "same_effect"))
}

#[test]
fn what_differs_is_never_called_the_same() {
    let Pairs { different, .. } = pairs();
    let wrong: Vec<String> = judged(&different)
        .iter()
        .zip(&different)
        .filter(|(answer, _)| is_same(answer))
        .map(|(answer, Pair { a, b, why })| format!("{a}\n{b}\n{why}\n{answer}\n"))
        .collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn what_differs_on_odd_names_and_files_has_a_caveat() {
    let Pairs { odd, .. } = pairs();
    for (answer, Pair { a, b, why }) in judged(&odd).iter().zip(&odd) {
        let is_said = !is_same(answer) || answer["effect"]["caveat"].is_string();
        assert!(is_said, "{a}\n{b}\n{why}\n{answer}");
    }
}

#[test]
fn what_is_the_same_is_never_called_different_by_effect_and_mostly_found() {
    let Pairs { same, .. } = pairs();
    let answers = judged(&same);
    for (answer, Pair { a, b, why }) in answers.iter().zip(&same) {
        assert_ne!(answer["effect"]["verdict"], "different", "{a}\n{b}\n{why}\n{answer}");
    }
    let found = answers.iter().filter(|it| is_same(it)).count();
    assert!(found * 10 >= same.len() * 7, "{found} of {}", same.len());
}
