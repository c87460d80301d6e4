//! Runners that are programs, and backends that are.

use probity_core::{
    classification::{Class, Verdict},
    failure::ErrorKind,
    kind::Evidence,
    record::LaneStatus,
};
use probity_run::plan::Choice;
use serde_json::json;

use crate::project::{Project, Ran};

/// A suite of one program that is a script for `sh`.
fn suite(script: &str, more: &str) -> String {
    format!(
        "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", '''{script}''', \"{{{{ runner }}}}\"]\n{more}\n"
    )
}

fn run(script: &str, more: &str) -> Ran {
    Project::new().run(&suite(script, more))
}

#[test]
fn what_a_program_prints_is_what_it_did() {
    let ran = run(
        "echo $0; echo TOTAL_CALLS=12; echo COST_USD=0.5; echo N_CASES=7; echo RESULT_FILE=x.json",
        "",
    );
    let record = ran.of("program");
    assert_eq!((record.verdict, record.class, record.calls), (Verdict::Pass, Class::Pass, 12));
    assert_eq!(ran.outcome.lanes, [LaneStatus::Complete]);
    assert_eq!(ran.outcome.used.calls, 12);
    assert!((ran.outcome.used.cost_usd - 0.5).abs() < 1e-12 && record.cost_usd == Some(0.5));
    assert!(record.reply.as_deref().unwrap().starts_with("p\n"), "{:?}", record.reply);
    let Some(Evidence::Program(report)) = record.classification.details.evidence.as_deref() else {
        panic!("{:?}", record.classification)
    };
    assert_eq!((report.cases, report.planned, report.exit_code), (7, 7, Some(0)));
    assert_eq!(report.result_file.as_deref(), Some("x.json"));
    assert_eq!(
        report.missing,
        ["ABORTED", "N_PLANNED", "FAIL_FAST", "FAIL_FAST_REASON", "FAIL_FAST_PERMANENT"]
    );
}

#[test]
fn a_program_fails_or_gives_up_as_it_says() {
    let gate = run("echo TOTAL_CALLS=1; echo N_CASES=1; exit 1", "");
    assert_eq!(
        (gate.of("program").class, &gate.outcome.lanes[0]),
        (Class::Fail, &LaneStatus::Complete)
    );
    let check = |script: &str, expected: LaneStatus| {
        let ran = run(script, "");
        assert_eq!(ran.outcome.lanes, [expected], "{script}");
        assert_eq!(ran.of("program").class, Class::Error, "{script}");
    };
    let gave_up = |reason: &str| LaneStatus::GaveUp { reason: reason.to_owned() };
    let broken = |reason: &str| LaneStatus::Broken { reason: reason.to_owned() };
    check("echo N_CASES=1; echo N_PLANNED=3", gave_up("1 of 3 cases finished"));
    check("echo ABORTED=1", gave_up("it reports that it was aborted (ABORTED=1)"));
    check("echo N_CASES=0", gave_up("it ran no case (N_CASES=0)"));
    check("echo N_CASES=0; exit 1", gave_up("it ran no case (N_CASES=0)"));
    check("echo oops >&2; exit 9", broken("it ended with exit code 9: oops"));
    check("echo N_CASES=1; kill -9 $$", broken("it ended with SIGKILL"));
    let (reason, permanent) = ("bad key".to_owned(), true);
    check(
        "echo FAIL_FAST=1; echo FAIL_FAST_REASON=bad key; echo FAIL_FAST_PERMANENT=1",
        LaneStatus::FailFast { reason, permanent },
    );
}

#[test]
fn a_program_that_takes_too_long_is_ended_and_its_words_count() {
    let ran = run("echo TOTAL_CALLS=2; sleep 60", "timeout = \"200ms\"");
    let reason = "it took longer than 200ms".to_owned();
    assert_eq!(ran.outcome.lanes, [LaneStatus::TimedOut { reason }]);
    assert_eq!((ran.of("program").class, ran.outcome.used.calls), (Class::Timeout, 2));
    // Run several times, the limit is that of all of them together.
    let plan = Project::new().read(&suite("true", "timeout = \"200ms\"\nrepeat = 2")).plan();
    assert_eq!(plan.lanes[0].info.planned, 2);
}

#[test]
fn a_program_that_cannot_be_found_is_warned_of_and_breaks() {
    let text = "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"no-such-program\"]\n";
    let project = Project::new();
    let scanned = project.read(text).scanned(&Choice::default()).remove(0);
    let warning = scanned.warning.unwrap();
    assert!(warning.starts_with("runner `p` cannot be started: "), "{warning}");
    assert!(matches!(project.run(text).outcome.lanes[0], LaneStatus::Broken { .. }));
    let found = project.read(&suite("true", "")).scanned(&Choice::default()).remove(0);
    assert_eq!((found.warning, found.selected, found.total), (None, 1, 1));
    let later = text.replace("no-such-program", "{{ backend }}");
    assert_eq!(project.read(&later).scanned(&Choice::default())[0].warning, None);
}

#[test]
fn another_command_is_another_question() {
    let input = |script: &str| {
        let plan = Project::new().read(&suite(script, "")).plan();
        let mut found = None;
        plan.lanes[0].inputs(&plan.backends[0], |_, input| found = Some(input));
        found.unwrap()
    };
    assert_eq!(input("echo 1"), input("echo 1"));
    assert_ne!(input("echo 1"), input("echo 2"));
}

#[test]
fn a_program_is_a_backend_and_its_errors_are_its_own() {
    let text = |script: &str| {
        format!(
            "[retry]\nmax_retries = 0\n[backends.b]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
             [[runners]]\nname = \"r\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n"
        )
    };
    let case = json!({ "id": "a", "prompt": "hello", "expected_response": "HELLO" });
    let project = Project::new().cases(&[case]);
    let ran = project.run(&text("tr a-z A-Z"));
    assert_eq!((ran.verdicts(), ran.outcome.used.calls), (vec![("a", "pass")], 1));
    assert!(ran.of("a").usage.estimated);
    let failed = project.run(&text("echo 'the disk is full' >&2; exit 7"));
    let error = failed.of("a").error.as_ref().unwrap();
    assert_eq!(error.exit_code, Some(7));
    assert!(error.message.contains("the disk is full"), "{}", error.message);
    assert_eq!(error.url, None);
}

#[test]
fn shell_commands_are_compared_by_what_they_say() {
    let case = |id: &str, command: &str| {
        json!({ "id": id, "prompt": format!("```sh\n{command}\n```"), "category": "correctness",
                "expected_command": "ls -l -a", "safe": true, "posix_compliant": true })
    };
    let text = "[grading]\nexecution = \"off\"\n[backends.b]\nkind = \"echo\"\n\
                [[runners]]\nname = \"r\"\nkind = \"command\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n";
    let project = Project::new().cases(&[case("same", "ls -la"), case("other", "ls -l")]);
    let ran = project.run(text);
    assert_eq!(ran.verdicts(), [("other", "fail"), ("same", "pass")]);
    let scanned = project.read(text).scanned(&Choice::default()).remove(0);
    assert_eq!((scanned.compared_commands, scanned.undecided.is_empty()), (2, true));
}

#[test]
fn what_a_program_says_of_its_failure_decides_whether_it_is_asked_again() {
    let text = |script: &str| {
        format!(
            "[retry]\nmax_retries = 1\nbackoff_base = 0.001\n[backends.b]\nkind = \"command\"\n\
             command = [\"sh\", \"-c\", \"{script}\"]\n\
             [[runners]]\nname = \"r\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n"
        )
    };
    let project = Project::new().cases(&[json!({ "id": "a", "prompt": "hello" })]);
    let failed = |script: &str| {
        let ran = project.run(&text(script));
        (ran.of("a").error.clone().unwrap(), ran.outcome.used.calls)
    };
    let (error, calls) = failed("echo '401 Unauthorized: invalid api key' >&2; exit 1");
    assert_eq!((error.kind, error.permanent, calls), (ErrorKind::Auth, true, 1), "{error}");
    let (error, calls) = failed("echo '503 Service Unavailable: overloaded' >&2; exit 1");
    assert_eq!((error.permanent, error.exit_code, calls), (false, Some(1), 2), "{error}");
    let (error, _) = failed("kill -TERM $$");
    assert_eq!((error.signal.as_deref(), error.kind), (Some("SIGTERM"), ErrorKind::Crash));
    assert!(error.message.starts_with("ended by SIGTERM: it said nothing"), "{error}");
    let (error, _) = failed("true");
    assert_eq!((error.kind, error.exit_code), (ErrorKind::Empty, Some(0)), "{error}");
}

#[test]
fn rules_of_the_suite_say_whether_a_failure_is_permanent() {
    let rules = "[[rules]]\nkind = \"server\"\npermanent = true\nany = [\"the wheel is broken\"]\n";
    let project =
        Project::new().cases(&[json!({ "id": "a", "prompt": "hello" })]).file("errors.toml", rules);
    let suite = "[errors]\nrules = \"errors.toml\"\n[retry]\nbackoff_base = 0.001\n[backends.b]\nkind = \"command\"\n\
                 command = [\"sh\", \"-c\", \"echo the wheel is broken >&2; exit 1\"]\n\
                 [[runners]]\nname = \"r\"\nbackends = [\"b\"]\ndataset = \"cases.jsonl\"\n";
    let ran = project.run(suite);
    let error = ran.of("a").error.as_ref().unwrap();
    assert_eq!((error.kind, error.permanent), (ErrorKind::Server, true), "{error}");
    assert_eq!(ran.outcome.used.calls, 1);
}
