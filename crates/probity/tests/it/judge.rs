//! Judges: rubrics in ordinary cases, outages, injections, and how far they agree with people.

mod panel;
mod presets;

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::{Value, json};

use crate::{
    project::Project,
    run::{run, stored},
    skills::suite,
};

const RUNNER: &str = "dataset = \"cases.jsonl\"\njudge = \"judge\"";

fn is_judge() -> When {
    When::ModelIs("fake-large".to_owned())
}

fn judged(score: u8) -> Answer {
    let reply = json!({ "criteria": [{ "name": "rubric", "score": score, "reason": "so it is" }] });
    Answer::text(&reply.to_string())
}

fn case(id: &str, assertions: &Value) -> String {
    json!({ "id": id, "prompt": format!("Say {id}"), "assert": assertions }).to_string()
}

fn project(server: &FakeServer, cases: &[String]) -> Project {
    Project::new().file("cases.jsonl", cases.join("\n")).file("probity.toml", suite(server, RUNNER))
}

fn of<'a>(cases: &'a [Value], id: &str) -> &'a Value {
    cases.iter().find(|it| it["case_id"] == id).unwrap()
}

#[test]
fn a_rubric_is_one_assertion_among_others() {
    let about = |text: &str| When::All(vec![is_judge(), When::prompt_contains(text)]);
    let script = Script::default()
        .rule(Rule::new(about("\nfine\n"), judged(4)))
        .rule(Rule::new(about("\npoor\n"), judged(3)))
        .rule(Rule::new(about("\nrude\n"), judged(1)));
    let server = FakeServer::start(script);
    let polite = json!([{ "type": "llm-rubric", "value": "It is polite." }]);
    let cases = [
        case("fine", &polite),
        case("poor", &polite),
        json!({ "id": "poor-but-enough", "prompt": "Say poor",
            "assert": [{ "type": "llm-rubric", "value": "It is polite.", "threshold": 0.5 }] })
        .to_string(),
        json!({ "id": "not-rude", "prompt": "Say rude",
            "assert": [{ "type": "not-llm-rubric", "value": "It is polite." }] })
        .to_string(),
        // What fails without the judge is not worth a call.
        json!({ "id": "wrong-anyway", "prompt": "Say fine",
            "assert": [{ "type": "llm-rubric", "value": "x" }, { "type": "contains", "value": "no" }] })
        .to_string(),
    ];
    let project = project(&server, &cases);
    let dry = project.shown(&["run", "--dry-run"]);
    assert!(dry.contains("5 answers, at most 5 judgements by judge (fake-large)"), "{dry}");
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "9"), ("N_CASES", "5")]);
    let cases = stored(&project);
    let verdicts: Vec<(&str, &str)> = cases
        .iter()
        .map(|it| (it["case_id"].as_str().unwrap(), it["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("fine", "pass"),
            ("not-rude", "pass"),
            ("poor", "fail"),
            ("poor-but-enough", "pass"),
            ("wrong-anyway", "fail"),
        ]
    );
    let poor = of(&cases, "poor");
    let score = &poor["classification"]["scores"][0];
    assert_eq!(score["reason"], "the judge gave 0.50: so it is");
    assert_eq!((&score["value"], &score["passed"]), (&json!(0.5), &json!(false)));
    assert_eq!(poor["asked"][1]["role"], "judge rubric 1");
    assert_eq!(of(&cases, "wrong-anyway")["calls"], 1);
}

#[test]
fn a_judge_is_asked_more_strictly_until_it_can_be_read() {
    let script = Script::default()
        .rule(Rule::new(is_judge(), Answer::text("I like it.")).times(1))
        .rule(Rule::new(
            When::All(vec![
                is_judge(),
                When::prompt_contains("could not be used: it is not a JSON object"),
            ]),
            judged(5),
        ));
    let server = FakeServer::start(script);
    let cases = [case("fine", &json!([{ "type": "llm-rubric", "value": "x" }]))];
    let project = project(&server, &cases);
    run(&project, &[]).expect(0, &[("TOTAL_CALLS", "3")]);
    let case = &stored(&project)[0];
    assert_eq!(
        (&case["verdict"], &case["asked"][1]["reply"]),
        (&json!("pass"), &json!("I like it."))
    );
}

#[test]
fn a_judge_that_cannot_be_read_is_no_failure_of_the_case_nor_of_a_backend() {
    let script = Script::default().rule(Rule::new(is_judge(), Answer::text("Eight out of ten.")));
    let server = FakeServer::start(script);
    let rubric = json!([{ "type": "llm-rubric", "value": "x" }]);
    let cases: Vec<String> = (0..8).map(|at| case(&format!("c{at}"), &rubric)).collect();
    let ran = run(&project(&server, &cases), &[]);
    // Each answer and three tries; nothing trips, and the run is degraded.
    ran.expect(3, &[("TOTAL_CALLS", "32"), ("N_CASES", "8"), ("FAIL_FAST", "0"), ("ABORTED", "1")]);
    assert!(ran.err.contains("8 of 8 cases: 0 passed, 0 failed, 8 errors"), "{}", ran.err);
}

#[test]
fn a_judge_outage_is_never_a_fail_and_stops_what_needs_the_judge_alone() {
    let script = Script::default().rule(Rule::new(is_judge(), Answer::fault(Trouble::BadKey)));
    let server = FakeServer::start(script);
    let rubric = json!([{ "type": "llm-rubric", "value": "x" }]);
    let cases: Vec<String> = (0..50).map(|at| case(&format!("c{at}"), &rubric)).collect();
    let plain: Vec<String> = (0..20)
        .map(|at| json!({ "id": format!("p{at}"), "prompt": format!("Say {at}"), "expected_response": at.to_string() }).to_string())
        .collect();
    let more = "[[runners]]\nname = \"judged-too\"\ndataset = \"cases.jsonl\"\njudge = \"judge\"\nbackends = [\"small\"]\n\
                [[runners]]\nname = \"plain\"\ndataset = \"plain.jsonl\"\nbackends = [\"small\"]";
    let project = Project::new()
        .file("cases.jsonl", cases.join("\n"))
        .file("plain.jsonl", plain.join("\n"))
        .file("probity.toml", suite(&server, &format!("{RUNNER}\n{more}")));
    let ran = run(&project, &[]);
    ran.expect(3, &[("FAIL_FAST", "1"), ("FAIL_FAST_PERMANENT", "1"), ("N_CASES", "23")]);
    assert!(ran.keys["FAIL_FAST_REASON"].starts_with("auth: judge `judge`: "), "{:?}", ran.keys);
    let summary: Value =
        serde_json::from_str(&project.read(".probity/suite_summary.json")).unwrap();
    let statuses: Vec<&str> = summary["runners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["aborted", "skipped", "ok"]);
    let failed =
        summary["runners"].as_array().unwrap().iter().map(|it| it["failed"].as_u64().unwrap());
    assert_eq!(failed.sum::<u64>(), 0, "an outage is an error, and never a fail");
    // No more answers were paid for than it takes to find out.
    assert!(server.seen().asked <= 3 * 2 + 20, "{}", server.seen().asked);
}

#[test]
fn a_model_that_judges_itself_is_flagged() {
    let script =
        Script::default().rule(Rule::new(When::system_contains("impartial judge"), judged(5)));
    let server = FakeServer::start(script);
    let cases = [case("fine", &json!([{ "type": "llm-rubric", "value": "x" }]))];
    let project = Project::new()
        .file("cases.jsonl", cases.join("\n"))
        .file("probity.toml", suite(&server, "dataset = \"cases.jsonl\""));
    let ran = run(&project, &[]);
    ran.expect(0, &[("TOTAL_CALLS", "2")]);
    assert!(ran.err.contains("r on small: the model judges its own answers"), "{}", ran.err);
    let ran = run(&project, &["--judge-model", "fake-other"]);
    ran.expect(0, &[]);
    assert!(!ran.err.contains("judges its own answers"), "{}", ran.err);
    let seen = server.seen();
    assert_eq!((seen.models["fake-other"], seen.models["fake-small"]), (1, 3));
    let ran = run(&project, &["--model", "fake-other", "--judge-model", "fake-other"]);
    assert!(ran.err.contains("judges its own answers"), "{}", ran.err);
}

#[test]
fn agreement_with_people_is_reckoned_from_labels() {
    let server = FakeServer::start(Script::default());
    let labels = "# human, then judge: 4 of 5 the same\n\
        {\"human\": 5, \"judge\": 5}\n{\"human\": 4, \"judge\": 4}\n{\"human\": 2, \"judge\": 2}\n\
        {\"human\": 1, \"judge\": 2}\n{\"human\": 3, \"judge\": 3}\n";
    let project = project(&server, &[]).file("labels.jsonl", labels);
    insta::assert_snapshot!(project.shown(&["judge", "agreement", "labels.jsonl"]));
    let code = |least: &str| {
        project.run(&["judge", "agreement", "labels.jsonl", "--min-kappa", least]).status.code()
    };
    // Chance would agree on 5 * 1 + 4 * 1 + 2 * 2 + 3 * 1 of 25: (4/5 - 5/25) / (1 - 5/25) = 0.75.
    assert_eq!((code("0.75"), code("0.76")), (Some(0), Some(1)));
    let wrong = project.file(
        "bad.jsonl",
        "{\"judge\": 1}\n{\"human\": {}, \"judge\": 1}\nnonsense\n{\"human\": 1, \"case_id\": \"a\", \"criterion\": \"x\"}\n",
    );
    insta::assert_snapshot!(wrong.shown(&["judge", "agreement", "bad.jsonl"]));
}

#[test]
fn a_judge_is_asked_about_labelled_answers() {
    let about = |text: &str| When::All(vec![is_judge(), When::prompt_contains(text)]);
    let pair = json!({
        "criteria": [{ "name": "rubric", "a": 2, "b": 4, "reason": "" }], "winner": "a",
    });
    let two = json!({ "criteria": [
        { "name": "right", "score": 5, "reason": "" }, { "name": "short", "score": 2, "reason": "" },
    ] });
    let script = Script::default()
        .rule(Rule::new(about("ANSWER B"), Answer::text(&pair.to_string())))
        .rule(Rule::new(about("\"short\""), Answer::text(&two.to_string())))
        .rule(Rule::new(about("\ngood\n"), judged(5)))
        .rule(Rule::new(about("\nbad\n"), judged(2)))
        .rule(Rule::new(is_judge(), Answer::text("no idea")));
    let server = FakeServer::start(script);
    let line = |human: Value, answer: &str| {
        json!({ "human": human, "prompt": "Be good.", "answer": answer, "rubric": "It is good." })
            .to_string()
    };
    let labels = [
        line(json!([5, 4, 5]), "good"),
        line(json!([1, null, 1]), "bad"),
        line(json!([3, 3, 3]), "odd"),
        json!({ "human": { "right": 5, "short": 3 }, "prompt": "p", "answer": "x", "rubric": [
            { "name": "right", "description": "r" }, { "name": "short", "description": "s" },
        ] })
        .to_string(),
    ];
    let project = project(&server, &[]).file("labels.jsonl", labels.join("\n"));
    // The runner says who judges.
    let output =
        project.run(&["judge", "agreement", "labels.jsonl", "--json", "-o", "scores.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    // good 5 and 5, bad 1 and 2, right 5 and 5, short 3 and 2; the odd one was not read.
    assert_eq!((&found["compared"], &found["unjudged"]), (&json!(4), &json!(1)));
    assert_eq!(found["agreement"]["count"], 2);
    assert_eq!(found["bias"], 0.0);
    // Each question once, the unreadable one three times.
    assert_eq!(server.seen().asked, 6);
    let scores = project.read("scores.jsonl");
    assert_eq!(scores.lines().count(), 5);
    // The scores are labels themselves, and need no judge any more.
    let kept: Vec<&str> = scores.lines().filter(|it| !it.contains("error")).collect();
    let project = project.file("kept.jsonl", kept.join("\n"));
    let again = project.run(&["judge", "agreement", "kept.jsonl", "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&again["kappa"], &again["bias"]), (&found["kappa"], &found["bias"]));
    // Two answers: the points decide, whatever winner is named.
    let labels = json!({ "human": "b", "prompt": "p", "answers": ["x", "y"], "rubric": "r" });
    let project = project
        .file("pairs.jsonl", format!("{labels}\n{}", labels.to_string().replace("\"b\"", "\"a\"")));
    let project = project.file("probity.toml", suite(&server, "dataset = \"cases.jsonl\""));
    let unsaid = project.shown(&["judge", "agreement", "pairs.jsonl"]);
    assert!(unsaid.contains("the suite names no judge"), "{unsaid}");
    let shown = project.run(&["judge", "agreement", "pairs.jsonl", "--judge", "judge", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["labels"], &shown["table"]), (&json!(["a", "b"]), &json!([[0, 1], [0, 1]])));
}
