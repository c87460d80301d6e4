//! Whoever is killed, nothing is lost and nothing counts twice.

use std::{thread, time::Duration};

use probity_testkit::{FakeServer, Latency, Script};
use serde_json::Value;

use crate::{
    lab::{
        Going, Nats, PATIENCE, Worker, dataset, project, run, stored, suite, timeless, wait_until,
    },
    project::Project,
};

fn slow(millis: u64) -> FakeServer {
    let latency = Latency::fixed(Duration::from_millis(millis));
    FakeServer::start(Script { latency, ..Script::default() })
}

fn failures(cases: &[Value]) -> Vec<Value> {
    cases.iter().flat_map(|it| it["failures"].as_array().unwrap().clone()).collect()
}

#[test]
fn a_call_whose_worker_is_killed_goes_to_another_and_both_are_recorded() {
    let server = slow(1500);
    let nats = Nats::start();
    let project = project(1, &server, "");
    let mut first = Worker::start(&nats.url(), "first", &["-j", "1"]);
    let words = ["--workers", &nats.url(), "--ack-wait", "2s", "--events", "events.jsonl"];
    let going = Going::start(&project, &words);
    assert!(server.wait_until(|seen| seen.asked == 1, PATIENCE));
    first.kill();
    let _second = Worker::start(&nats.url(), "second", &["-j", "1"]);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=1\n") && printed.contains("TOTAL_CALLS=2\n"), "{printed}");
    let case = &stored(&project)[0];
    assert_eq!(case["worker"], "second");
    assert_eq!(case["calls"], 2);
    let failed = &case["failures"][0];
    assert_eq!(failed["worker"], "first");
    let message = failed["error"]["message"].as_str().unwrap();
    assert_eq!(message, "worker `first` was lost while it held the call");
    assert!(project.read("events.jsonl").contains("attempt-failed"));
}

#[test]
fn results_that_nobody_delivers_any_more_are_asked_for() {
    let server = slow(300);
    let nats = Nats::start();
    let project = project(40, &server, "");
    let _worker = Worker::start(&nats.url(), "w", &["-j", "2"]);
    let words =
        ["-j", "4", "--workers", &nats.url(), "--ack-wait", "1s", "--events", "events.jsonl"];
    let going = Going::start(&project, &words);
    assert!(server.wait_until(|seen| seen.asked >= 6, PATIENCE), "{}", project.read("err"));
    let events = project.read("events.jsonl");
    let begun: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    let run = begun["data"]["run_id"].as_str().unwrap();
    // As if the server were lost that had them on their way.
    let deleted = nats.request(&format!("$JS.API.CONSUMER.DELETE.probity_results.{run}"));
    assert!(deleted.contains("\"success\":true"), "{deleted}");
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=40\n") && printed.contains("TOTAL_CALLS=40\n"), "{printed}");
    assert_eq!(server.seen().asked, 40);
}

#[test]
fn a_call_that_kills_every_worker_ends_as_an_error_of_its_case() {
    let nats = Nats::start();
    let suite = "version = \"1\"\n[backends.poison]\nkind = \"command\"\n\
                 command = [\"sh\", \"-c\", \"touch begun; kill -9 $PPID\"]\n\
                 [[runners]]\nname = \"r\"\ndataset = \"cases.jsonl\"\n";
    let project = Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite);
    let going = Going::start(
        &project,
        &["--workers", &nats.url(), "--ack-wait", "1s", "--max-deliver", "2"],
    );
    let mut workers: Vec<Worker> = (1..=2)
        .map(|at| {
            let mut worker = Worker::start(&nats.url(), &format!("w{at}"), &["-j", "1"]);
            // Each takes the call, and dies of it.
            worker.exit_code();
            worker
        })
        .collect();
    let printed = going.ended(&project);
    workers.clear();
    let case = &stored(&project)[0];
    let error = case["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("2 times") && error.contains("`w1`, `w2`"), "{printed}\n{case:#}");
    assert_eq!(case["verdict"], "error");
}

#[test]
fn a_run_that_is_killed_takes_finished_results_from_the_stream() {
    let server = slow(700);
    let nats = Nats::start();
    let project = project(12, &server, "");
    let worker = Worker::start(&nats.url(), "w", &["-j", "6"]);
    let going = Going::start(&project, &["-j", "6", "--no-fail-fast", "--workers", &nats.url()]);
    assert!(server.wait_until(|seen| seen.in_flight == 6, PATIENCE));
    going.kill();
    // What was in flight comes to its end without the run.
    assert!(server.wait_until(|seen| seen.in_flight == 0, PATIENCE));
    let asked = server.seen().asked;
    assert!(asked >= 6, "{asked}");
    let printed = run(&project, &["-j", "6", "--resume", "--workers", &nats.url()]);
    assert!(printed.contains("N_CASES=12\n"), "{printed}");
    let seen = server.seen();
    assert_eq!(seen.asked, 12, "nothing is asked again: {:?}", seen.prompts);
    assert!(seen.prompts.values().all(|it| *it == 1));
    let calls: u64 = stored(&project).iter().map(|it| it["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 12);
    drop(worker);
    let whole = crate::lab::project(12, &server, "");
    run(&whole, &["-j", "6"]);
    assert_eq!(timeless(&whole), timeless(&project));
}

#[test]
fn a_run_that_is_killed_waits_for_calls_that_are_still_being_made() {
    let server = slow(3000);
    let nats = Nats::start();
    let project = project(4, &server, "");
    let _worker = Worker::start(&nats.url(), "w", &["-j", "4"]);
    let going = Going::start(&project, &["-j", "4", "--no-fail-fast", "--workers", &nats.url()]);
    assert!(server.wait_until(|seen| seen.in_flight >= 1, PATIENCE));
    going.kill();
    let printed = run(&project, &["-j", "4", "--resume", "--workers", &nats.url()]);
    assert!(printed.contains("N_CASES=4\n"), "{printed}");
    assert_eq!(server.seen().asked, 4, "nothing is asked twice");
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_waited_for() {
    let server = slow(100);
    let mut nats = Nats::start();
    let project = project(40, &server, "");
    let _workers: Vec<Worker> =
        (1..=2).map(|at| Worker::start(&nats.url(), &format!("w{at}"), &["-j", "2"])).collect();
    let words = ["-j", "4", "--workers", &nats.url(), "--ack-wait", "3s", "--events", "events"];
    let going = Going::start(&project, &words);
    assert!(server.wait_until(|seen| seen.asked >= 8, PATIENCE));
    nats.kill();
    wait_until("the run says so", || project.read("err").contains("cannot be reached"));
    nats.up();
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=40\n") && printed.contains("ABORTED=0\n"), "{printed}");
    assert!(project.read("err").contains("is back after"), "{}", project.read("err"));
    let events = project.read("events");
    assert!(events.contains("workers-paused") && events.contains("workers-resumed"));
    let cases = stored(&project);
    assert!(cases.iter().all(|it| it["verdict"] == "pass"), "{:?}", failures(&cases));
}

#[test]
fn random_kills_lose_nothing_and_count_nothing_twice() {
    campaign(300, 12);
}

/// Calls that a run of a campaign has in flight.
const IN_FLIGHT: u64 = 12;

/// Kills coordinator, workers and server in turn while a run goes on.
fn campaign(cases: usize, kills: u32) {
    let server = slow(20);
    let mut nats = Nats::start();
    let project = Project::new()
        .file("cases.jsonl", dataset(cases))
        .file("probity.toml", suite(&server, "", "[fail_fast]\nenabled = false\n"));
    let url = nats.url();
    let start_worker = |at: u32| Worker::start(&url, &format!("w{at}"), &["-j", "4"]);
    let mut workers: Vec<Worker> = (0..3).map(start_worker).collect();
    let in_flight = IN_FLIGHT.to_string();
    let common = ["-j", &in_flight, "--workers", &url, "--ack-wait", "1s", "--max-deliver", "50"];
    let resumed: Vec<&str> = common.iter().copied().chain(["--resume"]).collect();
    let mut going = Going::start(&project, &common);
    let mut random = fastrand::Rng::with_seed(18);
    let mut killed = 0;
    while killed < kills {
        let asked = server.seen().asked;
        // A run that was begun again has reached the server when more calls are made than the one before had in flight. Before
        // that, a server that is gone is an error.
        let left_over = if killed % 3 == 2 { IN_FLIGHT } else { 0 };
        let enough = asked + left_over + random.u64(1..9);
        if !server.wait_until(|seen| seen.asked > enough, Duration::from_secs(8)) {
            break;
        }
        match killed % 3 {
            0 => {
                let at = random.usize(0..workers.len());
                workers[at].kill();
                workers[at] = start_worker(100 + killed);
            }
            1 => {
                going.kill();
                going = Going::start(&project, &resumed);
            }
            _ => {
                nats.kill();
                thread::sleep(Duration::from_millis(random.u64(1..300)));
                nats.up();
            }
        }
        killed += 1;
    }
    let printed = going.ended(&project) + &project.read("err");
    // The last one may have found nothing left to do.
    assert!(killed == kills, "{killed} kills, then {printed}");
    let cases_stored = stored(&project);
    assert_eq!(cases_stored.len(), cases, "{printed}");
    assert!(cases_stored.iter().all(|it| it["verdict"] == "pass"));
    assert!(printed.contains(&format!("N_CASES={cases}\n")), "{printed}");
    let whole = crate::lab::project(cases, &server, "");
    run(&whole, &["-j", &in_flight]);
    let verdicts = |project: &Project| -> Vec<(Value, Value)> {
        let all = stored(project);
        all.iter().map(|it| (it["case_id"].clone(), it["raw_response"].clone())).collect()
    };
    assert_eq!(verdicts(&whole), verdicts(&project));
}
