//! Suites of several runners and backends: order, parallel runs, foreign runners, time limits.

use std::{fmt::Write as _, time::Duration};

use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, Trouble, When};
use serde_json::Value;

use crate::{
    project::Project,
    run::{Ran, dataset, run, stored},
};

/// A backend of the OpenAI dialect.
pub(crate) fn backend(name: &str, server: &FakeServer) -> String {
    format!(
        "[backends.{name}]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"{name}\"\n",
        server.url()
    )
}

/// Runners of 20 cases on some backends.
pub(crate) fn runners(names: &[&str], backends: &[&str]) -> String {
    let mut text = String::from("[retry]\nbackoff_base = 0.01\n");
    for name in names {
        let _ = writeln!(
            text,
            "[[runners]]\nname = \"{name}\"\ndataset = \"cases.jsonl\"\nbackends = {backends:?}"
        );
    }
    text
}

pub(crate) fn project(head: &str, rest: &str) -> Project {
    Project::new()
        .file("cases.jsonl", dataset(20))
        .file("probity.toml", format!("version = \"1\"\n{head}\n{rest}"))
}

pub(crate) fn summary(project: &Project) -> Value {
    serde_json::from_str(&project.read(".probity/suite_summary.json")).unwrap()
}

/// `runner on backend: status` of each lane.
pub(crate) fn statuses(summary: &Value) -> Vec<String> {
    let lanes = summary["runners"].as_array().unwrap();
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    lanes
        .iter()
        .map(|it| {
            format!("{} on {}: {}", text(it, "runner"), text(it, "backend"), text(it, "status"))
        })
        .collect()
}

#[test]
fn a_key_that_expires_half_way_ends_its_backend_and_leaves_the_other_whole() {
    let good = FakeServer::start(Script::default());
    // The key is good for 30 of 60 calls.
    let expired = Rule::new(When::Requests(31..10_000), Answer::fault(Trouble::BadKey));
    let expiring = FakeServer::start(Script::default().rule(expired));
    // One call at a time, so that it is known which cases the key was good for.
    let backends =
        backend("good", &good) + &backend("expiring", &expiring) + "max_concurrency = 1\n";
    let names = ["one", "two", "three"];
    let project = project("", &(backends + &runners(&names, &["good", "expiring"])));
    let ran = run(&project, &["-o", "suite_summary.json"]);
    let reason = "auth: http <n>: incorrect api key provided";
    ran.expect(
        3,
        &[("ABORTED", "1"), ("FAIL_FAST", "1"), ("FAIL_FAST_PERMANENT", "1"), ("N_PLANNED", "120")],
    );
    assert!(ran.keys["FAIL_FAST_REASON"].starts_with(reason), "{:?}", ran.keys);
    let summary = summary(&project);
    assert_eq!(
        statuses(&summary),
        [
            "one on good: ok",
            "one on expiring: ok",
            "two on good: ok",
            "two on expiring: aborted",
            "three on good: ok",
            "three on expiring: skipped",
        ]
    );
    let lanes = summary["runners"].as_array().unwrap();
    for lane in lanes.iter().filter(|it| it["backend"] == "good") {
        assert_eq!((&lane["results"], &lane["passed"]), (&20.into(), &20.into()));
        assert!(lane["duration_seconds"].as_f64().is_some());
    }
    let (aborted, skipped) = (&lanes[3], &lanes[5]);
    assert!(aborted["reason"].as_str().unwrap().starts_with(reason));
    assert_eq!(aborted["permanent"], true);
    // A fourth case may be on its way when the third error is noticed.
    let errors = aborted["errors"].as_u64().unwrap();
    assert!((3..=4).contains(&errors), "{aborted}");
    assert_eq!((&aborted["passed"], &aborted["failed"]), (&10.into(), &0.into()));
    assert_eq!((&skipped["calls"], &skipped["results"]), (&0.into(), &0.into()));
    assert!(skipped["reason"].as_str().unwrap().starts_with(reason));
    assert_eq!(summary["fail_fast_runners"], serde_json::json!(["two"]));
    assert_eq!(summary["fail_fast_backends"], serde_json::json!(["expiring"]));
    assert_eq!((&summary["suite_fail_fast"], &summary["aborted"]), (&true.into(), &true.into()));
    // What scripts are told is what the summary says, and what was really asked.
    let calls: u64 = lanes.iter().map(|it| it["calls"].as_u64().unwrap()).sum();
    assert_eq!(summary["total_calls"], calls);
    // The call of a case that was cut off counts, too.
    assert!((90 + errors..=91 + errors).contains(&calls), "{calls} calls, {errors} errors");
    let asked = good.seen().asked + expiring.seen().asked;
    let told: u64 = ran.keys["TOTAL_CALLS"].parse().unwrap();
    assert!((asked..=asked + 1).contains(&told), "{told} calls told, {asked} seen");
    assert_eq!(ran.keys["N_CASES"], (90 + errors).to_string());
    assert_eq!(project.read("suite_summary.json"), project.read(".probity/suite_summary.json"));
    // A new key, and the run goes on where it was: nothing is asked twice.
    let before = good.seen().asked;
    let fresh = FakeServer::start(Script::default());
    let suite = project.read("probity.toml").replace(&expiring.url(), &fresh.url());
    let project = project.file("probity.toml", suite);
    let ran = run(&project, &["--retry-errors"]);
    ran.expect(
        0,
        &[("ABORTED", "0"), ("FAIL_FAST", "0"), ("N_CASES", "120"), ("TOTAL_CALLS", "30")],
    );
    assert_eq!(good.seen().asked, before);
}

#[test]
fn runners_run_one_after_the_other_or_at_the_same_time() {
    let slow = || {
        let latency = Latency { fixed: Duration::from_millis(30), ..Latency::default() };
        FakeServer::start(Script { latency, ..Script::default() })
    };
    let order = |head: &str, words: &[&str]| {
        let server = slow();
        let suite = backend("slow", &server) + &runners(&["one", "two"], &["slow"]);
        let project = project(head, &suite);
        let words: Vec<&str> = words.iter().copied().chain(["--events", "events.jsonl"]).collect();
        run(&project, &words).expect(0, &[("N_CASES", "40")]);
        let events = project.read("events.jsonl");
        let lanes: Vec<u64> = events
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|it| it["event"] == "case-started")
            .map(|it| it["data"]["lane"].as_u64().unwrap())
            .collect();
        // Whether any case of the second begins before the last of the first.
        let first_of_second = lanes.iter().position(|it| *it == 1).unwrap();
        lanes[first_of_second..].contains(&0)
    };
    assert!(!order("", &[]));
    assert!(order("parallel = true", &[]));
    assert!(order("", &["--parallel"]));
}

#[test]
fn a_bad_key_in_a_parallel_suite_ends_every_runner_that_needs_it() {
    let (good, bad) = (
        FakeServer::start(Script::default()),
        FakeServer::start(Script::always(Answer::fault(Trouble::BadKey))),
    );
    let backends = backend("good", &good) + &backend("bad", &bad);
    let suite = backends + &runners(&["one", "two", "three"], &["good", "bad"]);
    let project = project("parallel = true", &suite);
    let ran = run(&project, &[]);
    ran.expect(3, &[("FAIL_FAST_PERMANENT", "1")]);
    let summary = summary(&project);
    for lane in summary["runners"].as_array().unwrap() {
        match lane["backend"] == "good" {
            true => assert_eq!(lane["status"], "ok"),
            false => assert_eq!(lane["status"], "aborted", "{lane}"),
        }
    }
    // Three cases show that it is hopeless, whichever runner they are of.
    assert!(bad.seen().asked <= 6, "{}", bad.seen().asked);
}

#[test]
fn some_runners_are_picked_by_name() {
    let server = FakeServer::start(Script::default());
    let suite = backend("fake", &server) + &runners(&["one", "two", "three"], &["fake"]);
    let project = project("", &suite);
    run(&project, &["probity.toml", "three", "one"]).expect(0, &[("N_CASES", "40")]);
    assert_eq!(statuses(&summary(&project)), ["one on fake: ok", "three on fake: ok"]);
    let ran = run(&project, &["probity.toml", "four"]);
    ran.expect(2, &[("ABORTED", "1")]);
    assert!(ran.err.contains("there is no runner `four`"), "{}", ran.err);
    // A summary of an earlier run does not stand for one that never was.
    let summary = summary(&project);
    assert_eq!((&summary["run_id"], &summary["aborted"]), (&Value::Null, &true.into()));
    assert!(summary["error"].as_str().unwrap().contains("there is no runner `four`"));
}

/// A program that prints some lines and ends.
fn program(name: &str, lines: &str, code: u8) -> String {
    let script = format!(
        "printf '%b' '{}'; echo a word to people >&2; exit {code}",
        lines.replace('\n', "\\\\n")
    );
    format!(
        "[[runners]]\nname = \"{name}\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
    )
}

#[test]
fn foreign_runners_speak_the_contract() {
    let server = FakeServer::start(Script::default());
    let whole = "TOTAL_CALLS=73\nCOST_USD=0.4300\nABORTED=0\nN_CASES=73\nN_PLANNED=73\nFAIL_FAST=0\nRESULT_FILE=out.json\n";
    let suite = backend("fake", &server)
        + &runners(&["own"], &["fake"])
        + &program("whole", whole, 0)
        + &program("sparse", "TOTAL_CALLS=2\n", 0)
        + &program("tired", "TOTAL_CALLS=5\nABORTED=1\nN_CASES=4\n", 0)
        + &program("silent", "all is well\n", 0)
        + &program("broken", "TOTAL_CALLS=1\n", 7);
    let project = project("", &suite);
    let ran = run(&project, &[]);
    // 20 of our own, and what they say of theirs.
    ran.expect(
        3,
        &[("TOTAL_CALLS", "101"), ("COST_USD", "0.4300"), ("N_CASES", "97"), ("N_PLANNED", "97")],
    );
    let summary = summary(&project);
    assert_eq!(
        statuses(&summary),
        [
            "own on fake: ok",
            "whole on program: ok",
            "sparse on program: ok",
            "tired on program: aborted",
            "silent on program: error",
            "broken on program: error",
        ]
    );
    let lanes = summary["runners"].as_array().unwrap();
    assert_eq!((&lanes[1]["results"], &lanes[1]["planned"]), (&73.into(), &73.into()));
    assert_eq!(lanes[1]["figures"]["result_files"][0], "out.json");
    assert_eq!(lanes[5]["reason"], "it ended with exit code 7: a word to people");
    let kept = stored(&project);
    let of_whole = kept.iter().find(|it| it["runner"] == "whole").unwrap();
    assert_eq!(of_whole["raw_response"], whole);
}

#[test]
fn a_foreign_runner_that_gives_a_backend_up_skips_the_rest_of_that_backend_alone() {
    let (a, b) = (FakeServer::start(Script::default()), FakeServer::start(Script::default()));
    let first = |more: &str| {
        let lines = format!("FAIL_FAST=1\\nFAIL_FAST_REASON=authentication_error\\n{more}");
        let script = format!("printf '%b' '{}'", lines.replace("\\n", "\\\\n"));
        format!(
            "[[runners]]\nname = \"foreign\"\nkind = \"program\"\nbackends = [\"a\"]\n\
             command = [\"sh\", \"-c\", \"{script}\", \"{{{{ backend }}}}\"]\n"
        )
    };
    let suite = |more: &str| {
        backend("a", &a) + &backend("b", &b) + &first(more) + &runners(&["own"], &["a", "b"])
    };
    // Its words say that the error is permanent.
    let permanent = project("", &suite(""));
    run(&permanent, &[]).expect(3, &[("FAIL_FAST_PERMANENT", "1"), ("N_CASES", "20")]);
    assert_eq!(
        statuses(&summary(&permanent)),
        ["foreign on a: aborted", "own on a: skipped", "own on b: ok"]
    );
    // It says itself that the error is transient.
    let passing = project("", &suite("FAIL_FAST_PERMANENT=0\\n"));
    run(&passing, &[]).expect(3, &[("FAIL_FAST_PERMANENT", "0"), ("N_CASES", "40")]);
    assert_eq!(
        statuses(&summary(&passing)),
        ["foreign on a: aborted", "own on a: ok", "own on b: ok"]
    );
}

#[test]
fn a_program_that_failed_is_run_again_and_keys_stay_secret() {
    let server = FakeServer::start(Script::default());
    let suite = backend("fake", &server)
        + "[[runners]]\nname = \"p\"\nkind = \"program\"\n\
           command = [\"sh\", \"-c\", \"echo N_CASES=1; echo RESULT_FILE=$MY_API_KEY; echo $MY_API_KEY >&2; test -e ready\"]\n\
           [[runners]]\nname = \"q\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"echo $MY_API_KEY >&2; exit 9\"]\n";
    let project = project("", &suite);
    let run = |words: &[&str]| {
        let words: Vec<&str> = ["run", "--porcelain"].iter().chain(words).copied().collect();
        let output = project.command(&words).env("MY_API_KEY", "quite-a-long-secret").output();
        Ran::of(&output.unwrap())
    };
    let ran = run(&["-o", "r.html", "-o", "r.jsonl", "-o", "suite_summary.json"]);
    ran.expect(3, &[("ABORTED", "1")]);
    for name in ["r.html", "r.jsonl", "suite_summary.json", ".probity/suite_summary.json"] {
        assert!(!project.read(name).contains("quite-a-long-secret"), "{name}");
    }
    assert!(!ran.err.contains("quite-a-long-secret"), "{}", ran.err);
    let store = std::fs::read(project.path(".probity/probity.db")).unwrap();
    assert!(!String::from_utf8_lossy(&store).contains("quite-a-long-secret"));
    // The one that failed for good fails again; nothing passes because it is not looked at.
    run(&["--resume"]).expect(3, &[("ABORTED", "1")]);
    let wrong = run(&["--replay", "r.jsonl"]);
    wrong.expect(2, &[]);
    assert!(wrong.err.contains("cannot be replayed from a recording"), "{}", wrong.err);
    let missed = run(&["--case", "nothing"]);
    missed.expect(2, &[]);
}

#[test]
fn a_run_that_was_given_up_is_not_whole_because_nothing_is_left_to_ask() {
    let (good, bad) = (
        FakeServer::start(Script::default()),
        FakeServer::start(Script::always(Answer::fault(Trouble::Internal))),
    );
    let suite = backend("good", &good)
        + &backend("bad", &bad)
        + "[retry]\nmax_retries = 0\n[[runners]]\nname = \"long\"\ndataset = \"cases.jsonl\"\nbackends = [\"good\"]\n\
           [[runners]]\nname = \"short\"\ndataset = \"three.jsonl\"\nbackends = [\"bad\"]\n\
           budget = { max_calls = 3 }\n";
    let project = project("max_error_rate = 0.5", &suite).file("three.jsonl", dataset(3));
    run(&project, &[]).expect(3, &[("FAIL_FAST", "1"), ("N_CASES", "23")]);
    let ran = run(&project, &["--resume"]);
    ran.expect(3, &[("FAIL_FAST", "1"), ("TOTAL_CALLS", "0"), ("N_CASES", "23")]);
    // What a runner may use counts over all sessions.
    run(&project, &["--retry-errors"]).expect(3, &[("TOTAL_CALLS", "0")]);
}

#[test]
fn a_runner_may_be_another_probity() {
    let server = FakeServer::start(Script::default());
    let inner = backend("fake", &server) + &runners(&["inner"], &["fake"]);
    let program = env!("CARGO_BIN_EXE_probity");
    let outer = format!(
        "[[runners]]\nname = \"nested\"\nkind = \"program\"\n\
         command = [\"{program}\", \"run\", \"inner.toml\", \"--porcelain\", \"-q\", \"--store\", \"inner.db\"]\n"
    );
    let project = project("", &outer).file("inner.toml", inner);
    let ran = run(&project, &[]);
    ran.expect(
        0,
        &[("TOTAL_CALLS", "20"), ("N_CASES", "20"), ("N_PLANNED", "20"), ("ABORTED", "0")],
    );
}

#[test]
fn a_runner_that_takes_too_long_is_stopped_and_says_so() {
    let hanging = FakeServer::start(Script::always(Answer::Hang));
    let quick = FakeServer::start(Script::default());
    let suite = backend("hanging", &hanging)
        + &backend("quick", &quick)
        + &runners(&["slow"], &["hanging"])
        + "timeout = \"300ms\"\n[[runners]]\nname = \"sleeper\"\nkind = \"program\"\ntimeout = \"300ms\"\n\
           command = [\"sh\", \"-c\", \"echo TOTAL_CALLS=3; sleep 600\"]\n\
           [[runners]]\nname = \"next\"\ndataset = \"cases.jsonl\"\nbackends = [\"quick\"]\n";
    let project = project("", &suite);
    let ran = run(&project, &[]);
    ran.expect(3, &[("ABORTED", "1"), ("FAIL_FAST", "0"), ("N_CASES", "20")]);
    let summary = summary(&project);
    assert_eq!(
        statuses(&summary),
        ["slow on hanging: timeout", "sleeper on program: timeout", "next on quick: ok"]
    );
    let lanes = summary["runners"].as_array().unwrap();
    assert_eq!(lanes[0]["reason"], "it took longer than 300ms");
    assert_eq!(lanes[1]["calls"], 3, "what it had said until then counts");
}

#[test]
fn every_path_has_its_lines_and_its_summary() {
    let server = FakeServer::start(Script::default());
    let suite = backend("fake", &server) + &runners(&["one"], &["fake"]);
    let keys = |ran: &Ran| ran.keys.keys().cloned().collect::<Vec<_>>();
    let project = project("", &suite);
    let whole = run(&project, &[]);
    whole.expect(0, &[]);
    let all = keys(&whole);
    assert_eq!(all.len(), 9, "{all:?}");
    let paths: [(&[&str], i32); 5] = [
        (&["--dry-run"], 0),
        (&["--max-calls", "3"], 3),
        (&["--case", "no-such-case"], 2),
        (&["--filter", "("], 2),
        (&["nowhere.toml"], 2),
    ];
    for (words, code) in paths {
        let ran = run(&project, words);
        ran.expect(code, &[]);
        assert_eq!(keys(&ran), all, "{words:?}");
        assert!(
            serde_json::from_str::<Value>(&project.read(".probity/suite_summary.json")).is_ok()
        );
    }
}

#[test]
fn a_program_whose_own_gates_fail_fails_the_suite() {
    let runner = |code: u8| {
        let script = format!("echo TOTAL_CALLS=0; echo N_CASES=2; echo N_PLANNED=2; exit {code}");
        format!(
            "[[runners]]\nname = \"p\"\nkind = \"program\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
        )
    };
    for (code, expected) in [(0, 0), (1, 1)] {
        let project = project("", &runner(code));
        assert_eq!(project.run(&["run", "-q"]).status.code(), Some(expected), "exit {code}");
    }
}
