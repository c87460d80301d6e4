//! Gates: what they do to a run, to its exit code and to how long it goes on.

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};

use serde_json::json;

use crate::{
    project::Project,
    run::{dataset, project, run, stored},
};

/// A hundred cases of which those with a 7 fail: 19 of 100.
pub(crate) fn sevens() -> FakeServer {
    let rule = Rule::new(When::prompt_contains("7"), Answer::text("wrong"));
    FakeServer::start(Script::default().rule(rule))
}

pub(crate) fn gated(server: &FakeServer, gates: &str) -> Project {
    let suite = format!(
        "[backends.fake]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"fake-small\"\n\
         [[runners]]\nname = \"numbers\"\ndataset = \"cases.jsonl\"\ngates = {gates}\n\
         [retry]\nbackoff_base = 0.01\n",
        server.url()
    );
    Project::new().file("cases.jsonl", dataset(100)).file("probity.toml", suite)
}

#[test]
fn a_failing_case_fails_no_run_unless_a_gate_does() {
    let server = sevens();
    run(&project(100, &[("fake", &server)], ""), &[]).expect(0, &[("ABORTED", "0")]);
    run(&gated(&server, "{ pass_rate = 0.81 }"), &[]).expect(0, &[]);
    let failing = gated(&server, "{ pass_rate = 0.82 }");
    let ran = run(&failing, &[]);
    ran.expect(1, &[("N_CASES", "100")]);
    assert!(ran.err.contains("FAIL pass_rate at least 82 %: 81.0 % (81 of 100)"), "{}", ran.err);
    run(&failing, &["--fail-exit-code", "7"]).expect(7, &[]);
    run(&failing, &["--informational"]).expect(0, &[]);
    run(&gated(&server, "{ pass_rate = { pass = 0.82, warn = 0.8 } }"), &[]).expect(0, &[]);
    run(&gated(&server, "false"), &[]).expect(0, &[]);
    run(&gated(&server, "{ fail_rate = 0.19, failed = 19, error_rate = 0 }"), &[]).expect(0, &[]);
    run(&gated(&server, "{ latency_p50 = \"60s\", failed = 18 }"), &[]).expect(1, &[]);
}

#[test]
fn a_gate_on_nothing_fails() {
    let server = sevens();
    let ran = run(&gated(&server, "{ safety_accuracy = 1.0 }"), &[]);
    ran.expect(1, &[]);
    assert!(ran.err.contains("there is nothing to judge it by"), "{}", ran.err);
    run(&gated(&server, "{ safety = { pass = 1.0, allow_empty = true } }"), &[]).expect(0, &[]);
}

#[test]
fn errors_leave_the_rate_or_count_as_failures() {
    let rule = Rule::new(When::prompt_contains("99"), Answer::fault(Trouble::BadRequest));
    let server = FakeServer::start(Script::default().rule(rule));
    let project = gated(&server, "{ pass_rate = 1.0 }");
    run(&project, &[]).expect(0, &[]);
    run(&project, &["--errors-as-failures"]).expect(1, &[]);
    // Results with too many errors are not usable, whatever the gates say.
    let rule = Rule::new(When::prompt_contains("7"), Answer::fault(Trouble::BadRequest));
    let server = FakeServer::start(Script::default().rule(rule));
    let project = gated(&server, "{ pass_rate = 1.0 }\n[fail_fast]\nenabled = false\n");
    run(&project, &[]).expect(3, &[("N_CASES", "100")]);
}

#[test]
fn a_hopeless_run_stops_when_it_is_decided() {
    let server = FakeServer::start(Script::always(Answer::text("wrong")));
    let project = gated(&server, "{ pass_rate = 0.9 }");
    let ran = run(&project, &["--stop-when-decided", "-j", "1"]);
    ran.expect(1, &[("ABORTED", "0"), ("N_PLANNED", "100")]);
    // The next case may have begun when the eleventh is known to be wrong.
    let asked = server.seen().asked;
    assert!((11..=12).contains(&asked), "{asked} calls");
    assert!(
        ran.err.contains("stopped: the gates are decided (fail), and no remaining case can"),
        "{}",
        ran.err
    );
    // Without the flag a resumed run asks the rest.
    run(&project, &["--resume"]).expect(1, &[("N_CASES", "100")]);
    assert_eq!(server.seen().asked, 100);
}

#[test]
fn what_an_earlier_session_found_counts_for_the_decision() {
    let server = FakeServer::start(Script::always(Answer::text("wrong")));
    let project = gated(&server, "{ pass_rate = 0.9 }");
    run(&project, &["--max-calls", "6", "-j", "1"]).expect(3, &[("N_CASES", "6")]);
    let ran = run(&project, &["--resume", "--stop-when-decided", "-j", "1", "--max-calls", "0"]);
    ran.expect(1, &[("ABORTED", "0")]);
    let asked = server.seen().asked;
    assert!((11..=12).contains(&asked), "{asked} calls");
}

#[test]
fn with_alpha_a_sure_pass_stops_early_too() {
    let server = FakeServer::start(Script::default());
    let project = gated(&server, "{ pass_rate = 0.5 }");
    let ran = run(&project, &["--alpha", "0.05", "-j", "1"]);
    ran.expect(0, &[("ABORTED", "0"), ("N_PLANNED", "100")]);
    let asked = server.seen().asked;
    assert!((3..25).contains(&asked), "{asked} calls");
    // The same seed draws the same order, so that the same cases are asked again.
    let ids = |cases: Vec<serde_json::Value>| -> Vec<String> {
        cases.iter().map(|case| case["case_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = ids(stored(&project));
    run(&project, &["--alpha", "0.05", "-j", "1"]).expect(0, &[]);
    let again = ids(stored(&project));
    let (fewer, more) = if again.len() < first.len() { (&again, &first) } else { (&first, &again) };
    assert!(fewer.iter().all(|id| more.contains(id)), "{first:?} and then {again:?}");
    assert_ne!(first, (0..first.len()).map(|at| format!("case-{at}")).collect::<Vec<_>>());
    assert_eq!(run(&project, &["--alpha", "2"]).code, Some(2));
}

/// Shell-command cases: so many of correctness, and so many of safety.
pub(crate) fn commands(correctness: usize, safety: usize) -> String {
    let case = |id: String, category: &str| {
        let case = json!({
            "id": id,
            "prompt": format!("list {id}"),
            "expected_command": "ls",
            "category": category,
            "safe": true,
            "posix_compliant": true,
        });
        case.to_string()
    };
    let right = (0..correctness).map(|at| case(format!("c-{at}"), "correctness"));
    let safe = (0..safety).map(|at| case(format!("s-{at}"), "safety"));
    right.chain(safe).collect::<Vec<String>>().join("\n")
}

#[test]
fn safety_cases_that_all_end_in_errors_do_not_pass_the_usual_gate() {
    let rule = Rule::new(When::prompt_contains("list s-"), Answer::fault(Trouble::BadRequest));
    let server = FakeServer::start(Script::always(Answer::text("ls")).rule(rule));
    let suite = crate::run::suite(&[("fake", &server)], "[fail_fast]\nenabled = false\n")
        .replace("dataset = ", "kind = \"command\"\ndataset = ");
    let project = Project::new().file("cases.jsonl", commands(60, 3)).file("probity.toml", suite);
    let ran = run(&project, &["-o", "result.json"]);
    ran.expect(1, &[("N_CASES", "63")]);
    assert!(ran.err.contains("FAIL safety pass_rate at least 100 %"), "{}", ran.err);
    let result: serde_json::Value = serde_json::from_str(&project.read("result.json")).unwrap();
    assert_eq!(result["safety_accuracy"], json!(0.0));
    // Without safety cases there is nothing to gate on, and nobody asked for it.
    let project = project.file("cases.jsonl", commands(60, 0));
    run(&project, &[]).expect(0, &[]);
}

#[test]
fn a_run_that_was_decided_by_its_gates_says_nothing_about_others() {
    let server = FakeServer::start(Script::default());
    let project = gated(&server, "{ pass_rate = 0.5 }");
    run(&project, &["--stop-when-decided", "-j", "1"]).expect(0, &[]);
    let shown = project.shown(&["runs"]);
    assert!(shown.contains("decided"), "{shown}");
    let stricter = project.read("probity.toml").replace("0.5", "0.95");
    let project = project.file("other.toml", stricter);
    let shown = project.shown(&["gate", "--suite", "other.toml"]);
    assert!(shown.contains("exit 3"), "{shown}");
    assert!(project.shown(&["gate"]).contains("exit 0"));
    let shown = project.shown(&["bless"]);
    assert!(shown.contains("is incomplete"), "{shown}");
}

#[test]
fn errors_before_the_decision_are_measured_by_the_whole_run() {
    let rule = Rule::new(When::Requests(1..4), Answer::fault(Trouble::BadRequest));
    let rest = Rule::new(When::Requests(4..5), Answer::text("wrong"));
    let server = FakeServer::start(Script::default().rule(rule).rule(rest));
    let project = gated(&server, "{ failed = 0 }\n[fail_fast]\nenabled = false\n");
    let ran = run(&project, &["--stop-when-decided", "-j", "1"]);
    ran.expect(1, &[("ABORTED", "0")]);
}

#[test]
fn sums_of_dollars_are_compared_as_they_were_meant() {
    let server = FakeServer::start(Script::default());
    let price = "price = { input = 10000.0, output = 0.0 }\n";
    let suite = gated(&server, "{ cost_usd = 0.3 }").read("probity.toml");
    let suite = suite.replace("model = ", &format!("{price}model = "));
    // Three calls of ten tokens each: 0.1 + 0.1 + 0.1.
    let prompt = "a ".repeat(20);
    let case = |id: &str| json!({ "id": id, "prompt": prompt, "expected_response": "x" });
    let cases: Vec<String> = ["1", "2", "3"].iter().map(|id| case(id).to_string()).collect();
    let project = Project::new().file("cases.jsonl", cases.join("\n")).file("probity.toml", suite);
    let ran = run(&project, &[]);
    assert!(ran.err.contains("pass cost_usd at most $0.3: $0.3000"), "{}", ran.err);
}

#[test]
fn min_pass_is_held_against_what_is_really_asked() {
    let server = FakeServer::start(Script::default());
    let suite = gated(&server, "{ pass_rate = 0.5 }").read("probity.toml");
    let suite = suite.replace("gates = ", "repeat = 3\nmin_pass = 2\ngates = ");
    let project = Project::new().file("cases.jsonl", dataset(5)).file("probity.toml", suite);
    run(&project, &[]).expect(0, &[("N_CASES", "15")]);
    let ran = run(&project, &["--repeat", "1"]);
    ran.expect(2, &[("TOTAL_CALLS", "0")]);
}
