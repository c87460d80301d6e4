//! Keys stay with workers, and workers may do no more than they have to.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use probity_testkit::{FakeServer, Script};

use crate::{
    lab::{Going, Nats, Worker, all_bytes, dataset, run, stored, suite},
    project::Project,
};

const KEY: &str = "sk-live-0123456789abcdefghijklmnop";

/// Passes bytes on to a server, and keeps them.
fn tap(port: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (kept, target) = (seen.clone(), format!("127.0.0.1:{port}"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&target) else { continue };
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                let kept = kept.clone();
                thread::spawn(move || {
                    let mut buffer = [0; 8192];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        kept.lock().unwrap().extend_from_slice(&buffer[..count]);
                        if to.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                });
            }
        }
    });
    (url, seen)
}

#[test]
fn keys_are_neither_on_the_wire_nor_on_the_disk_of_the_server() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::start();
    let (url, seen) = tap(nats.url().rsplit(':').next().unwrap());
    let project = Project::new()
        .file("cases.jsonl", dataset(20))
        .file("probity.toml", suite(&server, "api_key_env = \"LAB_KEY\"", ""));
    let worker = Worker::with_env(&url, "w", &[], &[("LAB_KEY", KEY)]);
    let printed = run(&project, &["--workers", &url]);
    assert!(printed.contains("N_CASES=20\n"), "{printed}");
    assert_eq!(server.seen().keys.keys().collect::<Vec<_>>(), [KEY]);
    drop(worker);
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    let wire = seen.lock().unwrap().clone();
    assert!(has(&wire, "Return the number"), "the tap sees what is sent");
    assert!(has(&wire, "LAB_KEY"), "and the name of the variable");
    assert!(!has(&wire, KEY));
    assert!(!has(&all_bytes(&nats.store()), KEY));
    assert!(!has(project.read("err").as_bytes(), KEY));
}

/// What `docs/workers.md` says a run and a worker need, with the prefix `probity`.
fn permissions() -> String {
    let docs = include_str!("../../../../docs/workers.md");
    let begin = docs.find("authorization {").expect("the page has the permissions");
    let end = docs[begin..].find("```").unwrap();
    docs[begin..begin + end].to_owned()
}

#[test]
fn the_documented_permissions_are_enough_and_no_more() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::with(&permissions());
    let at = |user: &str| nats.url().replace("nats://", &format!("nats://{user}:{user}-password@"));
    let project = Project::new()
        .file("cases.jsonl", dataset(10))
        .file("probity.toml", suite(&server, "", ""));
    let worker = Worker::start(&at("worker"), "w", &[]);
    let going = Going::start(&project, &["--workers", &at("coordinator")]);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=10\n"), "{printed}\n{}\n{}", worker.log(), nats.log());
    assert!(!nats.log().contains("Violation"), "{}", nats.log());
    // A worker's credentials can neither hand over calls nor make streams.
    let checked = project.run(&["doctor", "--workers", &at("worker")]);
    let shown = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(3), "{shown}");
    // Nor can it read results, or put calls into the queue.
    for (subject, what) in [
        ("$JS.API.STREAM.MSG.GET.probity_results", "read results"),
        ("$JS.API.CONSUMER.DURABLE.CREATE.probity_results.mine", "read results"),
        ("$JS.API.STREAM.MSG.GET.OBJ_probity_out", "read large results"),
        ("$JS.API.CONSUMER.MSG.NEXT.probity_results.mine", "read results"),
        ("probity.call.x.y.z", "hand over calls"),
        ("probity.run.x", "announce runs"),
    ] {
        assert!(is_refused(&nats, "worker", &format!("PUB {subject} 2\r\n{{}}\r\n")), "{what}");
    }
    for subject in ["probity.result.>", "probity.inbox.>", "probity.call.>", "_INBOX.>", ">"] {
        assert!(is_refused(&nats, "worker", &format!("SUB {subject} 1\r\n")), "{subject}");
    }
    assert!(!is_refused(&nats, "worker", "SUB probity.run.> 1\r\n"));
}

/// Whether the server refuses a line of a user.
fn is_refused(nats: &Nats, user: &str, line: &str) -> bool {
    let mut socket = TcpStream::connect(nats.url().trim_start_matches("nats://")).unwrap();
    let connect = format!(
        "CONNECT {{\"verbose\":false,\"user\":\"{user}\",\"pass\":\"{user}-password\"}}\r\n{line}PING\r\n"
    );
    socket.write_all(connect.as_bytes()).unwrap();
    let mut said = String::new();
    let mut buffer = [0; 4096];
    while !said.contains("PONG") {
        let count = socket.read(&mut buffer).unwrap();
        assert!(count > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    said.contains("Permissions Violation")
}

#[test]
fn what_no_worker_would_send_does_a_run_no_harm() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::with(&permissions());
    let at = |user: &str| nats.url().replace("nats://", &format!("nats://{user}:{user}-password@"));
    let project = Project::new()
        .file("cases.jsonl", dataset(10))
        .file("probity.toml", suite(&server, "", ""));
    let mut hostile = Hostile::connect(&nats);
    hostile.say("SUB probity.run.> 1\r\n");
    let going = Going::start(&project, &["--workers", &at("coordinator")]);
    let heard = hostile.hear("MSG probity.run.");
    let run = heard.split_whitespace().next().unwrap();
    let deep = "[".repeat(100_000);
    let wrong = r#"{"wire":1,"worker":"evil","delivery":-1,"took":"long","result":{"Ok":7}}"#;
    let zeros = "0".repeat(32);
    for body in ["", "\0\u{1b}[2J", &deep, wrong, r#"{"id":"x","worker":1}"#] {
        for subject in [
            format!("probity.result.{run}.{zeros}"),
            format!("probity.result.{run}.no-call"),
            format!("probity.started.{run}"),
            "probity.worker.evil".to_owned(),
        ] {
            hostile.say(&format!("PUB {subject} {}\r\n{body}\r\n", body.len()));
        }
    }
    hostile.say("PING\r\n");
    hostile.hear("PONG");
    let worker = Worker::start(&at("worker"), "w", &[]);
    let printed = going.ended(&project);
    assert!(printed.contains("N_CASES=10\n"), "{printed}\n{}\n{}", worker.log(), nats.log());
    assert_eq!(server.seen().asked, 10);
    assert!(stored(&project).iter().all(|it| it["verdict"] == "pass" && it["worker"] == "w"));
    assert!(!nats.log().contains("Violation"), "{}", nats.log());
}

/// Somebody with the credentials of a worker, and a connection of their own.
struct Hostile {
    socket: TcpStream,
    heard: String,
}

impl Hostile {
    fn connect(nats: &Nats) -> Self {
        let socket = TcpStream::connect(nats.url().trim_start_matches("nats://")).unwrap();
        let mut hostile = Self { socket, heard: String::new() };
        hostile.say(
            "CONNECT {\"verbose\":false,\"user\":\"worker\",\"pass\":\"worker-password\"}\r\n",
        );
        hostile
    }

    fn say(&mut self, lines: &str) {
        self.socket.write_all(lines.as_bytes()).unwrap();
    }

    /// What comes after a mark, once it has come.
    fn hear(&mut self, mark: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some((_, rest)) = self.heard.split_once(mark)
                && rest.contains('\n')
            {
                return rest.to_owned();
            }
            let count = self.socket.read(&mut buffer).unwrap();
            assert!(count > 0, "{}", self.heard);
            self.heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
}

#[test]
fn a_wrong_password_and_a_missing_server_are_said_before_anything_is_begun() {
    let server = FakeServer::start(Script::default());
    let nats = Nats::with("authorization { user: me, password: right }");
    let project =
        Project::new().file("cases.jsonl", dataset(1)).file("probity.toml", suite(&server, "", ""));
    let wrong = nats.url().replace("nats://", "nats://me:wrong-word@");
    let printed = run(&project, &["--workers", &wrong]);
    let err = project.read("err");
    assert!(printed.starts_with("EXIT=Some(2)") && err.contains("uthorization"), "{printed}{err}");
    assert!(!err.contains("wrong-word"), "{err}");
    let printed = run(&project, &["--workers", "nats://127.0.0.1:1"]);
    assert!(printed.starts_with("EXIT=Some(2)"), "{printed}");
    assert!(!project.path(".probity/probity.db").exists(), "nothing was begun");
}
