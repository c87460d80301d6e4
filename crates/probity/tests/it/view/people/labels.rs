//! What people said, as labels: for `judge agreement`, for export, and in a run that judges again.

use serde_json::{Value, json};

use super::{super::run, Browser, EDIT, View};
use crate::project::Project;

/// Gives 5 points for politeness to whoever says please, else 2, and always 3 for length.
const JUDGE: &str = r#"if grep 'Say please' >/dev/null; then polite=5; else polite=2; fi
echo "{\"criteria\": [{\"name\": \"polite\", \"score\": $polite, \"reason\": \"\"}, {\"name\": \"short\", \"score\": 3, \"reason\": \"\"}]}""#;

const SUITE: &str = r#"version = "1"
[backends.echo]
kind = "echo"
[backends.jury]
kind = "command"
command = ["sh", "JUDGE"]
[judge]
backend = "jury"
[[runners]]
name = "manners"
dataset = "cases.jsonl"
backends = ["echo"]
"#;

/// Six cases; the first three say please, so the judge finds them polite and they pass.
fn project() -> Project {
    let case = |at: u32| {
        let word = if at < 3 { "please" } else { "now" };
        json!({ "id": format!("c{at}"), "prompt": format!("Say {word} {at}"), "assert": [{
            "type": "llm-rubric", "metric": "manners", "threshold": 0.6, "value": [
                { "name": "polite", "description": "It is polite." },
                { "name": "short", "description": "It is short." },
            ],
        }] })
    };
    let cases: Vec<Value> = (0..6).map(case).collect();
    let project = Project::new().lines("cases.jsonl", &cases).file("judge.sh", JUDGE);
    let judge = project.path("judge.sh").display().to_string();
    let project = project.file("probity.toml", SUITE.replace("JUDGE", &judge));
    run(&project);
    project
}

/// Ada says that all pass but the last two; Bob looks at half of them, and agrees with the judge.
fn rate(project: &Project) {
    let view = View::start(project, EDIT);
    let first = "/runs/latest/cases/c0";
    let mut ada = Browser::of_page(&view, "Ada", first);
    let mut bob = Browser::of_page(&view, "Bob", first);
    for at in 0..6 {
        let case = format!("/runs/latest/cases/c{at}");
        let mark = if at < 4 { "pass" } else { "fail" };
        ada.say(&case, &[("what", "verdict"), ("mark", mark)]);
        let points = if at < 4 { "5" } else { "2" };
        let fields = [
            ("what", "points"),
            ("points manners: polite", points),
            ("points manners: short", "3"),
        ];
        ada.say(&case, &fields);
        if at % 2 == 0 {
            let mark = if at < 3 { "pass" } else { "fail" };
            bob.say(&case, &[("what", "verdict"), ("mark", mark)]);
        }
    }
    bob.say("/runs/latest/cases/c5", &[("what", "note"), ("note", "Nobody asked.")]);
    bob.say("/runs/latest/cases/c5", &[("what", "tag"), ("tag", "rude")]);
}

fn json_of(project: &Project, words: &[&str]) -> Value {
    let output = project.run(words);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn judges_are_measured_against_what_people_said() {
    let project = project();
    let words = ["judge", "agreement", "--from-store"];
    insta::assert_snapshot!(project.shown(&words), @r"
    exit 2
    --- err
    error: nobody has said anything of `latest`
    hint: `probity view --allow-edit` is where people do
    ");
    rate(&project);
    let found = json_of(&project, &["judge", "agreement", "--from-store", "latest", "--json"]);
    let matters: Vec<(&Value, &Value, &Value)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["about"], &it["by"], &it["compared"]))
        .collect();
    let (jury, six) = (json!("jury"), json!(6));
    let names = [json!("manners: polite"), json!("manners: short"), json!("verdict")];
    let expected =
        [(&names[0], &jury, &six), (&names[1], &jury, &six), (&names[2], &Value::Null, &six)];
    assert_eq!(matters, expected);
    // Ada gave 5 points to the first four, the judge to the first three: chance agrees on a half.
    let polite = &found[0];
    assert!((polite["kappa"].as_f64().unwrap() - (5.0 / 6.0 - 0.5) / 0.5).abs() < 1e-9, "{polite}");
    let verdict = &found[2];
    assert_eq!(verdict["names"], json!(["Ada", "Bob"]));
    assert_eq!(verdict["kappa_by_person"][1], 1.0);
    // The judge's verdict on `c3` is the only one that Ada does not share.
    assert_eq!(verdict["agreement"]["count"], 5);
    let shown = project.shown(&words);
    assert!(shown.contains("manners: polite by jury\n6 answers judged"), "{shown}");
    assert!(shown.contains("against Ada") && shown.contains("against Bob"), "{shown}");
    let code = |words: &[&str]| {
        let words = [&["judge", "agreement", "--from-store"], words].concat();
        project.run(&words).status.code()
    };
    // Verdicts have a kappa of 2/3. That of the points for length is not defined: all of them are 3.
    let verdict_alone = |least| code(&["--judge", "x", "--min-kappa", least]);
    assert_eq!((verdict_alone("0.6"), verdict_alone("0.7")), (Some(0), Some(1)));
    assert_eq!(code(&["--min-kappa", "-1"]), Some(1));
    let other =
        json_of(&project, &["judge", "agreement", "--from-store", "--judge", "x", "--json"]);
    assert_eq!(other.as_array().unwrap().len(), 1, "the verdict is of no judge: {other}");
}

#[test]
fn labels_go_out_and_come_back() {
    let project = project();
    rate(&project);
    let written = project.run(&["export", "latest", "--as", "labels", "-o", "labels.jsonl"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let lines: Vec<Value> =
        project.read("labels.jsonl").lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 18);
    let last = lines.iter().find(|it| it["case_id"] == "c5").unwrap();
    let mut last = last.clone();
    let named: Vec<Value> = ["id", "run"].map(|it| last[it].take()).to_vec();
    assert!(named[0].as_str().unwrap().ends_with("/manners on echo/c5#1: verdict"), "{named:?}");
    let expected = json!({
        "id": null, "run": null, "about": "verdict", "people": ["Ada"], "human": ["fail"],
        "judge": "fail", "case_id": "c5", "repeat": 0, "runner": "manners", "backend": "echo",
        "prompt": "Say now 5", "text": "Say now 5", "tags": { "Bob": ["rude"] },
        "notes": { "Bob": "Nobody asked." },
    });
    assert_eq!(last, expected);
    let from_store = json_of(&project, &["judge", "agreement", "--from-store", "--json"]);
    let from_file =
        json_of(&project, &["judge", "agreement", "labels.jsonl", "--json", "-o", "scores.jsonl"]);
    assert_eq!(from_file, from_store);
    let again = json_of(&project, &["judge", "agreement", "scores.jsonl", "--json"]);
    assert_eq!(again, from_store);
    // Every line is a text that can be checked, too.
    let checked = project.run_with(&["check", "refusal", "--jsonl"], project.read("labels.jsonl"));
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.matches("\"refusal\":false").count(), 18, "{checked}");
}

#[test]
fn a_run_that_judges_again_keeps_what_people_said() {
    let project = project();
    rate(&project);
    // With a lower threshold all pass, as Ada said of the fourth.
    let cases = project.read("cases.jsonl").replace("0.6", "0.1");
    std::fs::write(project.path("cases.jsonl"), cases).unwrap();
    let shown = project.shown(&["rescore", "latest", "--informational"]);
    let line = "what people said of 6 results was carried over; of 9 marks, 6 confirm the verdict, 8 did before";
    assert!(shown.contains(line), "{shown}");
    let view = View::start(&project, &[]);
    let runs = view.get("/api/v1/runs").json();
    let origin = &runs["runs"][1]["run_id"];
    let case = view.get("/api/v1/runs/latest/cases/c5").json();
    let people = case["results"][0]["people"].as_array().unwrap();
    assert_eq!(people.len(), 5, "{case}");
    assert!(people.iter().all(|it| it["carried_from"] == *origin), "{case}");
    let found = json_of(&project, &["judge", "agreement", "--from-store", "--json"]);
    assert_eq!(found[2]["agreement"]["count"], 4, "all pass now, and Ada says four do");
    // Judged again by the criteria that the run has: the same replies, the same remarks.
    let shown = project.shown(&["rescore", "latest", "--stored", "--informational"]);
    assert!(shown.contains("what people said of 6 results was carried over"), "{shown}");
    let shown = project.shown(&["rescore", "latest", "--stored", "--informational"]);
    assert!(shown.contains("what people said of 6 results was carried over"), "{shown}");
}
