//! What workers make of a run: the same as the run itself would.

use std::{collections::BTreeSet, time::Duration};

use probity_testkit::{Answer, FakeServer, Latency, Rule, Script, Trouble, When};

use crate::{
    lab::{Nats, Worker, dataset, project, run, stored, suite, timeless},
    project::Project,
};

/// Some answers are wrong, some calls fail at first.
fn script() -> Script {
    Script::default().rule(Rule::new(When::prompt_contains("7"), Answer::text("wrong"))).rule(
        Rule::new(When::prompt_contains("number 133"), Answer::fault(Trouble::Unavailable))
            .times(1),
    )
}

#[test]
fn a_run_with_workers_gives_the_same_as_one_without() {
    let (here, there) = (FakeServer::start(script()), FakeServer::start(script()));
    let alone = project(200, &here, "");
    let printed = run(&alone, &["-j", "8"]);
    let nats = Nats::start();
    let workers: Vec<Worker> =
        (1..=3).map(|at| Worker::start(&nats.url(), &format!("w{at}"), &["-j", "4"])).collect();
    let handed = project(200, &there, "");
    let other = run(&handed, &["-j", "8", "--workers", &nats.url()]);
    assert_eq!(printed, other);
    let text = |project: &Project, url: &str| {
        serde_json::to_string_pretty(&timeless(project)).unwrap().replace(url, "URL")
    };
    assert_eq!(text(&alone, &here.url()), text(&handed, &there.url()));
    assert_eq!(here.seen().asked, there.seen().asked);
    let by: BTreeSet<String> =
        stored(&handed).iter().map(|it| it["worker"].as_str().unwrap().to_owned()).collect();
    let names: BTreeSet<String> = workers.iter().map(|it| it.name.clone()).collect();
    assert!(by.is_subset(&names) && by.len() > 1, "{by:?}");
    let listed = handed.run(&["workers", "--connect", &nats.url()]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(names.iter().all(|it| listed.contains(it)), "{listed}");
    for worker in workers {
        assert_eq!(worker.leave(), Some(0));
    }
    // Nothing of it is left on the server.
    let checked = handed.run(&["doctor", "--workers", &nats.url()]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn bodies_larger_than_a_message_go_through_the_object_store() {
    let server = FakeServer::start(Script::always(Answer::text(&"y".repeat(40_000))));
    let nats = Nats::with("max_payload: 16384");
    let long = "x".repeat(50_000);
    let cases = format!("{{\"id\":\"long\",\"prompt\":\"{long}\",\"expected_response\":\"y\"}}\n");
    let project =
        Project::new().file("cases.jsonl", cases).file("probity.toml", suite(&server, "", ""));
    let _worker = Worker::start(&nats.url(), "w", &[]);
    let printed = run(&project, &["--workers", &nats.url()]);
    assert!(printed.contains("N_CASES=1"), "{printed}");
    let case = &stored(&project)[0];
    assert_eq!(case["raw_response"].as_str().map(str::len), Some(40_000));
    assert_eq!(case["prompt"].as_str().map(str::len), Some(50_000));
}

#[test]
fn judges_embeddings_and_conversations_go_to_workers_too() {
    let nats = Nats::start();
    let _worker = Worker::start(&nats.url(), "w", &["-j", "4"]);
    let cases = "{\"id\":\"a\",\"turns\":[\"say one\",\"say two\"]}\n\
                 {\"id\":\"b\",\"prompt\":\"hello\",\"assert\":[{\"type\":\"contains\",\"value\":\"hello\"}]}\n";
    let suite = "version = \"1\"\n[backends.mirror]\nkind = \"echo\"\n\
                 [[runners]]\nname = \"talk\"\ndataset = \"cases.jsonl\"\n";
    let made = || Project::new().file("cases.jsonl", cases).file("probity.toml", suite);
    let (alone, handed) = (made(), made());
    let printed = run(&alone, &[]);
    assert_eq!(printed, run(&handed, &["--workers", &nats.url()]));
    assert_eq!(timeless(&alone), timeless(&handed));
    assert!(stored(&handed).iter().all(|it| it["worker"] == "w"));
}

#[test]
fn people_see_who_works_for_a_run_and_what_waits() {
    let latency = Latency { fixed: Duration::from_millis(400), jitter: Duration::ZERO };
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let nats = Nats::start();
    let project = project(40, &server, "");
    let _worker = Worker::start(&nats.url(), "box-1", &["-j", "2"]);
    let words = ["-j", "8", "--events", "events.jsonl", "--workers", &nats.url()];
    let going = crate::lab::Going::start(&project, &words);
    let viewed = crate::lab::Viewed::start(&project);
    let mut page = String::new();
    crate::lab::wait_until("the page shows the worker at work", || {
        page = viewed.latest_run();
        page.contains("box-1") && page.contains("2 calls at work, 6 waiting, 0 delivered again")
    });
    drop(viewed);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=40"), "{printed}");
    let events = project.read("events.jsonl");
    let seen = events.lines().filter(|it| it.contains(r#""event":"workers-seen""#));
    assert!(
        seen.clone().any(|it| it.contains(r#""name":"box-1","slots":2,"in_flight":2"#)),
        "{events}"
    );
}

#[test]
fn a_worker_that_leaves_brings_its_calls_to_an_end() {
    let latency = Latency { fixed: Duration::from_millis(300), jitter: Duration::ZERO };
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let nats = Nats::start();
    let project = Project::new()
        .file("cases.jsonl", dataset(24))
        .file("probity.toml", suite(&server, "", ""));
    let first = Worker::start(&nats.url(), "first", &["-j", "4"]);
    let going = crate::lab::Going::start(&project, &["-j", "8", "--workers", &nats.url()]);
    assert!(server.wait_until(|seen| seen.asked >= 4, crate::lab::PATIENCE));
    let _second = Worker::start(&nats.url(), "second", &["-j", "4"]);
    assert_eq!(first.leave(), Some(0));
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=24") && printed.contains("TOTAL_CALLS=24"), "{printed}");
    assert!(stored(&project).iter().all(|it| it["failures"].as_array().unwrap().is_empty()));
    assert_eq!(server.seen().asked, 24);
}
