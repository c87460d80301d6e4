//! What is written of a run: evaluation results, trends, exports.

use probity_testkit::{Answer, FakeServer, Rule, Script, When};
use serde_json::Value;

use crate::{
    project::Project,
    run::{dataset, project, run},
};

fn json(project: &Project, name: &str) -> Value {
    serde_json::from_str(&project.read(name)).unwrap()
}

/// A server that is wrong about every number with a 7.
fn sevens() -> FakeServer {
    let rule = Rule::new(When::prompt_contains("7"), Answer::text("wrong"));
    FakeServer::start(Script::default().rule(rule))
}

/// An evaluation result without what is never the same twice.
fn comparable(mut result: Value) -> String {
    for key in ["run_id", "timestamp", "latency_ms"] {
        result[key] = Value::Null;
    }
    result.to_string()
}

#[test]
fn a_resumed_run_has_the_result_of_an_uninterrupted_one() {
    let (first, second) = (sevens(), sevens());
    let whole = project(60, &[("fake", &first)], "");
    run(&whole, &["-o", "result.json"]).expect(0, &[]);
    let resumed = project(60, &[("fake", &second)], "");
    run(&resumed, &["--max-calls", "17"]).expect(3, &[]);
    run(&resumed, &["--resume", "--max-calls", "0", "-o", "result.json"]).expect(0, &[]);
    let result = json(&whole, "result.json");
    assert_eq!(comparable(json(&resumed, "result.json")), comparable(result.clone()));
    // 7, 17, 27, 37, 47, 57.
    assert_eq!((&result["passed"], &result["failed"]), (&54.into(), &6.into()));
    assert_eq!(result["csr"], serde_json::json!(0.9));
    assert_eq!(result["failed_cases"][0]["test_id"], "case-17");
    // The same records are the same bytes.
    let again = whole.run(&["report", "-o", "again.json"]);
    assert!(again.status.success());
    assert_eq!(whole.read("result.json"), whole.read("again.json"));
}

#[test]
fn several_lanes_are_listed() {
    let server = sevens();
    let project = project(10, &[("a", &server), ("b", &server)], "");
    run(&project, &["-o", "result.json", "-o", "cases.jsonl"]).expect(2, &[]);
    run(&project, &["-o", "result.json", "-o", "out.jsonl"]).expect(0, &[]);
    assert_eq!(project.read("out.jsonl").lines().count(), 20);
    let result = json(&project, "result.json");
    let backends: Vec<&str> = result["runners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["backend"].as_str().unwrap())
        .collect();
    assert_eq!(backends, ["a", "b"]);
    let shown = project.shown(&["check", "evaluation", "result.json"]);
    assert!(shown.contains("numbers on b: 9 of 10 passed"), "{shown}");
}

#[test]
fn a_result_that_does_not_add_up_is_refused() {
    let server = sevens();
    let project = project(10, &[("a", &server)], "");
    run(&project, &["-o", "result.json"]).expect(0, &[]);
    let bent = project.read("result.json").replace("\"passed\": 9", "\"passed\": 10");
    let project = project.file("bent.json", bent).file("none.json", "{}");
    let shown = project.shown(&["check", "evaluation", "bent.json", "none.json"]);
    for told in ["exit 2", "bent.json: numbers on a: ", "10 passed and 1 failed", "missing field"] {
        assert!(shown.contains(told), "{told}\n{shown}");
    }
}

#[test]
fn an_unknown_ending_is_refused_before_anything_is_asked() {
    let server = sevens();
    let project = project(10, &[("a", &server)], "");
    let ran = run(&project, &["-o", "result.docx"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
    assert!(ran.err.contains("does not have the suffix of a report format"), "{}", ran.err);
    assert!(ran.err.contains(".json"), "{}", ran.err);
}

#[test]
fn repeats_say_how_steady_cases_are() {
    // The second time each case is asked, the first ten fail.
    let rule = Rule::new(When::Requests(21..31), Answer::text("wrong"));
    let server = FakeServer::start(Script::default().rule(rule));
    let project = project(20, &[("fake", &server)], "");
    let ran = run(&project, &["--repeat", "2", "-j", "1", "-o", "result.json"]);
    ran.expect(0, &[("N_CASES", "40")]);
    let repeats = &json(&project, "result.json")["repeats"];
    assert_eq!(repeats["flaky"].as_array().unwrap().len(), 10);
    assert_eq!(repeats["pass_at"]["2"], serde_json::json!(1.0));
    assert_eq!(repeats["pass_hat"]["2"], serde_json::json!(0.5));
    assert!(ran.err.contains("pass@2 100.0 %, pass^2 50.0 %"), "{}", ran.err);
    assert!(ran.err.contains("flaky: 10: "), "{}", ran.err);
}

#[test]
fn a_trend_has_every_run_of_the_suite() {
    let (good, bad) = (FakeServer::start(Script::default()), sevens());
    let project = project(20, &[("fake", &good)], "");
    run(&project, &[]).expect(0, &[]);
    let project = project
        .file("probity.toml", crate::run::suite(&[("fake", &bad)], ""))
        .file("cases.jsonl", dataset(21));
    run(&project, &[]).expect(0, &[]);
    let shown = project.shown(&["trend"]);
    assert!(shown.contains("numbers on fake  █▇"), "{shown}");
    assert!(shown.contains("other dataset"), "{shown}");
    let shown = project.shown(&["trend", "other.toml"]);
    assert!(shown.contains("it has runs of probity.toml"), "{shown}");
}

#[test]
fn what_is_exported_is_what_was_asked_and_what_was_right() {
    let server = sevens();
    let project = project(10, &[("fake", &server)], "");
    run(&project, &[]).expect(0, &[]);
    let lines = |words: &[&str]| -> Vec<Value> {
        let output = project.run(words);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let chat = lines(&["export", "--as", "chat"]);
    assert_eq!(chat.len(), 9);
    assert_eq!(chat[0]["messages"][0]["content"], "Return the number 0");
    assert_eq!(lines(&["export", "--as", "chat", "--corrected"]).len(), 10);
    let pairs = lines(&["export", "--as", "preferences"]);
    assert_eq!(pairs.len(), 1);
    assert_eq!(pairs[0]["chosen"][0]["content"], "7");
    assert_eq!(pairs[0]["rejected"][0]["content"], "wrong");
}

#[test]
fn the_summary_of_a_suite_says_what_became_of_each_runner() {
    let bad = FakeServer::start(Script::always(Answer::fault(probity_testkit::Trouble::BadKey)));
    let good = sevens();
    let both = crate::run::suite(&[("bad", &bad), ("good", &good)], "");
    let second = "[[runners]]\nname = \"again\"\ndataset = \"cases.jsonl\"\n[retry]";
    let project = Project::new()
        .file("cases.jsonl", dataset(20))
        .file("probity.toml", both.replace("[retry]", second));
    run(&project, &["-o", "suite_summary.json"]).expect(3, &[("FAIL_FAST", "1")]);
    let summary = json(&project, "suite_summary.json");
    let statuses: Vec<(&str, &str, &str)> = summary["runners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap();
            (text("runner"), text("backend"), text("status"))
        })
        .collect();
    assert_eq!(
        statuses,
        [
            ("numbers", "bad", "aborted"),
            ("numbers", "good", "ok"),
            ("again", "bad", "skipped"),
            ("again", "good", "ok"),
        ]
    );
    assert_eq!(summary["suite_fail_fast"], true);
    assert_eq!(summary["fail_fast_runners"], serde_json::json!(["numbers"]));
    assert_eq!(summary["fail_fast_backends"], serde_json::json!(["bad"]));
    assert_eq!(summary["runners"][0]["permanent"], true);
    assert_eq!((&summary["total_calls"], &summary["passed"]), (&43.into(), &36.into()));
}

#[test]
fn what_is_shown_can_be_classified_again() {
    let server = sevens();
    let project = project(10, &[("fake", &server)], "");
    run(&project, &["-o", "out.jsonl"]).expect(0, &[]);
    let again = project.run(&["classify", "out.jsonl", "-o", "again.jsonl"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let verdicts = |name: &str| -> Vec<Value> {
        let lines = project.read(name);
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["verdict"].take())
            .collect()
    };
    assert_eq!(verdicts("again.jsonl"), verdicts("out.jsonl"));
    assert_eq!(verdicts("out.jsonl").iter().filter(|it| *it == "fail").count(), 1);
}
