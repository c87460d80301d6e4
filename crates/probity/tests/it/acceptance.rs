//! What was asked of giving up early, one test for each line of the list.
//!
//! Two of its lines are about another repository: its scripts, and its dependencies.

use probity_testkit::{Answer, FakeServer, Rule, Script, Trouble, When};
use serde_json::Value;

use crate::{
    project::Project,
    run::{dataset, run, stored},
    suites::{backend, runners, statuses, summary},
};

/// 73 cases on one server.
fn seventy_three(server: &FakeServer, more: &str) -> Project {
    let suite = backend("fake", server) + &runners(&["one"], &["fake"]) + more;
    Project::new().file("cases.jsonl", dataset(73)).file("probity.toml", suite)
}

/// 73 cases on a program that fails like this.
fn failing_program(script: &str) -> Project {
    let suite = format!(
        "[backends.cli]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n{}",
        runners(&["one"], &["cli"])
    );
    Project::new().file("cases.jsonl", dataset(73)).file("probity.toml", suite)
}

#[test]
fn deterministic_cli_errors_abort_a_runner_within_3_cases_not_73() {
    let auth = "echo 'API Error: 401 authentication_error: invalid x-api-key' >&2; exit 1";
    let flag = "echo \\\"error: unknown option '--max-tokens'\\\" >&2; exit 1";
    for script in [auth, flag, "exit 127"] {
        let project = failing_program(script);
        let ran = run(&project, &[]);
        ran.expect(3, &[("N_CASES", "3"), ("N_PLANNED", "73"), ("FAIL_FAST_PERMANENT", "1")]);
        // Permanent errors are not tried again.
        ran.expect(3, &[("TOTAL_CALLS", "3")]);
    }
}

#[test]
fn transient_errors_still_retry_normally() {
    for trouble in [Trouble::RateLimit, Trouble::Overloaded, Trouble::Internal] {
        let rule = Rule::new(When::prompt_contains("7"), Answer::fault(trouble)).times(6);
        let server = FakeServer::start(Script::default().rule(rule));
        let ran = run(&seventy_three(&server, ""), &[]);
        ran.expect(0, &[("N_CASES", "73"), ("TOTAL_CALLS", "79"), ("FAIL_FAST", "0")]);
    }
    let server = FakeServer::start(
        Script::default().rule(Rule::new(When::prompt_contains("number 5"), Answer::Hang).times(1)),
    );
    let ran = run(&seventy_three(&server, ""), &["--attempt-timeout", "300ms"]);
    ran.expect(0, &[("N_CASES", "73"), ("TOTAL_CALLS", "74")]);
}

#[test]
fn fail_fast_1_is_emitted_when_the_threshold_is_breached() {
    let server = FakeServer::start(Script::always(Answer::fault(Trouble::Internal)));
    let ran = run(&seventy_three(&server, ""), &["--max-retries", "0"]);
    ran.expect(
        3,
        &[("FAIL_FAST", "1"), ("ABORTED", "1"), ("FAIL_FAST_PERMANENT", "0"), ("N_CASES", "3")],
    );
    assert!(!ran.keys["FAIL_FAST_REASON"].is_empty());
    let ran = run(&seventy_three(&server, ""), &["--max-retries", "0", "--no-fail-fast"]);
    ran.expect(3, &[("FAIL_FAST", "0"), ("N_CASES", "73")]);
}

#[test]
fn the_suite_skips_remaining_runners_on_permanent_fail_fast_and_continues_on_transient() {
    let names = ["one", "two", "three"];
    let of = |trouble| {
        let server = FakeServer::start(Script::always(Answer::fault(trouble)));
        let suite = backend("fake", &server) + &runners(&names, &["fake"]);
        let project = Project::new().file("cases.jsonl", dataset(73)).file("probity.toml", suite);
        run(&project, &["--max-retries", "0"]).expect(3, &[("FAIL_FAST", "1")]);
        statuses(&summary(&project))
    };
    assert_eq!(
        of(Trouble::BadKey),
        ["one on fake: aborted", "two on fake: skipped", "three on fake: skipped"]
    );
    assert_eq!(
        of(Trouble::Internal),
        ["one on fake: aborted", "two on fake: aborted", "three on fake: aborted"]
    );
}

#[test]
fn partial_results_are_always_written_on_abort() {
    let expired = Rule::new(When::Requests(31..10_000), Answer::fault(Trouble::BadKey));
    let server = FakeServer::start(Script::default().rule(expired));
    let project = seventy_three(&server, "");
    // One at a time, so that not many are on their way when the key expires.
    let ran = run(&project, &["-o", "partial.json", "-j", "1"]);
    let cases = stored(&project);
    ran.expect(3, &[("N_CASES", &cases.len().to_string())]);
    let passed = cases.iter().filter(|it| it["verdict"] == "pass").count();
    // A fourth may be on its way when the third error is noticed.
    assert_eq!(passed, 30);
    assert!((33..=34).contains(&cases.len()), "{}", cases.len());
    let partial: Value = serde_json::from_str(&project.read("partial.json")).unwrap();
    assert_eq!((&partial["complete"], &partial["passed"]), (&false.into(), &30.into()));
}

#[test]
fn results_say_why_a_run_was_given_up() {
    let server = FakeServer::start(Script::always(Answer::fault(Trouble::BadKey)));
    let project = seventy_three(&server, "");
    let ran = run(&project, &["-o", "suite_summary.json"]);
    let summary: Value = serde_json::from_str(&project.read("suite_summary.json")).unwrap();
    let lane = &summary["runners"][0];
    assert_eq!(lane["reason"], ran.keys["FAIL_FAST_REASON"].as_str());
    assert_eq!((&lane["permanent"], &summary["suite_fail_fast"]), (&true.into(), &true.into()));
    assert_eq!(summary["fail_fast_runners"], serde_json::json!(["one"]));
    assert_eq!(summary["fail_fast_backends"], serde_json::json!(["fake"]));
}

#[test]
fn a_probe_has_15_seconds_and_a_call_has_120() {
    let project = Project::new().file("probity.toml", "[backends.e]\nkind = \"echo\"\n");
    let shown = project.shown(&["config", "show"]);
    let value = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(
        (value("timeouts.probe"), value("timeouts.attempt")),
        ("\"15s\"".into(), "\"2m\"".into())
    );
}

#[test]
fn missing_config_keys_take_their_defaults() {
    let server = FakeServer::start(Script::always(Answer::fault(Trouble::BadKey)));
    let names = [
        "",
        "[fail_fast]\n",
        "[fail_fast]\nconsecutive_threshold = 2\n",
        "[fail_fast]\nthreshold = 2\n",
    ];
    let cases = names.map(|more| {
        let ran = run(&seventy_three(&server, more), &[]);
        assert_eq!(ran.code, Some(3));
        ran.keys["N_CASES"].clone()
    });
    assert_eq!(cases, ["3", "3", "2", "2"]);
}
