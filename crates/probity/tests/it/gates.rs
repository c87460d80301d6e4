//! Gates: what they do to a run, to its exit code and to how long it goes on.

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};

use crate::{
    project::Project,
    run::{dataset, project, run, stored},
};

/// A hundred cases of which those with a 7 fail: 19 of 100.
fn sevens() -> FakeServer {
    let rule = Rule::new(When::prompt_contains("7"), Answer::text("wrong"));
    FakeServer::start(Script::default().rule(rule))
}

fn gated(server: &FakeServer, gates: &str) -> Project {
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
    assert!(
        ran.err.contains("gate FAIL pass_rate at least 82 %: 81.0 % (81 of 100)"),
        "{}",
        ran.err
    );
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
    // Too many errors are no basis for anything, whatever the gates say.
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
        ran.err.contains("stopped: the gates are decided (fail), 89 cases left"),
        "{}",
        ran.err
    );
    // Without the flag a resumed run asks the rest.
    run(&project, &["--resume"]).expect(1, &[("N_CASES", "100")]);
    assert_eq!(server.seen().asked, 100);
}

#[test]
fn what_an_earlier_sitting_found_counts_for_the_decision() {
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
