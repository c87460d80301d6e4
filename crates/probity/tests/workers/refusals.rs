//! Workers that do not do what a run asks for, and say why.

use probity_testkit::{FakeServer, Script};

use crate::{
    lab::{Going, Nats, Worker, dataset, project, suite, wait_until},
    project::Project,
};

#[test]
fn a_worker_with_another_definition_of_a_backend_is_refused() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::start();
    let project = project(2, &server, "");
    let other = Project::new()
        .file("cases.jsonl", dataset(2))
        .file("probity.toml", suite(&server, "temperature = 0.5", ""));
    let file = other.path("probity.toml").display().to_string();
    let refused = Worker::start(&nats.url(), "other", &["--suite", &file]);
    let going = Going::start(&project, &["--workers", &nats.url()]);
    wait_until("the worker says why", || refused.log().contains("define it differently"));
    wait_until("the run says why", || project.read("err").contains("define it differently"));
    assert_eq!(server.seen().asked, 0);
    let listed = project.run(&["workers", "--connect", &nats.url()]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("define it differently"), "{listed}");
    // One that only knows the name of the suite fetches its definition.
    let named = Worker::start(&nats.url(), "named", &["--suite", "probity.toml"]);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=2\n"), "{printed}\n{}", named.log());
}

#[test]
fn a_worker_without_the_key_does_not_offer_the_backend() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::start();
    let project = Project::new()
        .file("cases.jsonl", dataset(2))
        .file("probity.toml", suite(&server, "api_key_env = \"FAR_AWAY_KEY\"", ""));
    let without = Worker::start(&nats.url(), "without", &[]);
    // The run itself has no key either.
    let going = Going::start(&project, &["--workers", &nats.url()]);
    wait_until("the worker says why", || without.log().contains("FAR_AWAY_KEY"));
    let env = [("FAR_AWAY_KEY", "sk-of-the-worker-alone")];
    let _with = Worker::with_env(&nats.url(), "with", &[], &env);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=2\n"), "{printed}");
    assert_eq!(server.seen().keys.keys().collect::<Vec<_>>(), ["sk-of-the-worker-alone"]);
}

#[test]
fn a_worker_serves_what_it_is_told_to() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::start();
    let project = project(2, &server, "");
    let _other = Worker::start(&nats.url(), "other", &["--serve", "elsewhere"]);
    let going = Going::start(&project, &["--workers", &nats.url()]);
    wait_until("the run says so", || project.read("err").contains("calls wait for a worker"));
    let _right = Worker::start(&nats.url(), "right", &["--serve", "fake,elsewhere"]);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=2\n"), "{printed}");
}
