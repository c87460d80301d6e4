//! Runs that are followed while they go on.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::Stdio,
    time::Duration,
};

use probity_testkit::{Answer, FakeServer, Fault, Latency, Rule, Script, Trouble, When};
use serde_json::Value;

use super::View;
use crate::{resume::wait_until, run::project};

/// The events of an answer, one after the other.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(view: &View, target: &str) -> Self {
        let mut stream = view.connect();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", view.address).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        Self(reader)
    }

    /// The name and the data of the next event.
    fn next(&mut self) -> (String, String) {
        let (mut name, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ends without `end`");
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(rest) = line.strip_prefix("event: ") {
                rest.clone_into(&mut name);
            } else if let Some(rest) = line.strip_prefix("data: ") {
                data.push_str(rest);
            } else if line.is_empty() && !name.is_empty() {
                return (name, data);
            }
        }
    }

    /// The states up to the end.
    fn states(mut self) -> Vec<Value> {
        let mut states = Vec::new();
        loop {
            let (name, data) = self.next();
            match name.as_str() {
                "progress" => states.push(serde_json::from_str(&data).unwrap()),
                "end" => return states,
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_run_of_another_process_is_followed_to_its_end() {
    let latency = Latency::fixed(Duration::from_millis(60));
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let project = project(80, &[("fake", &server)], "");
    let mut command = project.command(&["run", "-q", "-j", "2"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().unwrap();
    let view = View::start(&project, &[]);
    wait_until("the run is in the store", || {
        let got = view.get("/api/v1/runs");
        got.status == 200 && got.json()["runs"][0]["status"] == "running"
    });
    let page = view.page("/runs/latest");
    assert!(page.contains("data-live=\"/runs/"), "{page}");
    let html = Events::open(&view, "/runs/latest/live");
    let states = Events::open(&view, "/api/v1/runs/latest/events").states();
    assert!(running.wait().unwrap().success());
    let done: Vec<u64> = states.iter().map(|it| it["lanes"][0]["done"].as_u64().unwrap()).collect();
    assert!(done.is_sorted(), "{done:?}");
    assert!(done.first() < done.last(), "it goes on while one looks: {done:?}");
    assert_eq!(done.last(), Some(&80));
    let last = states.last().unwrap();
    assert_eq!((&last["status"], &last["next"]), (&"complete".into(), &Value::Null));
    let mut html = html;
    let (name, data) = html.next();
    assert_eq!(name, "progress");
    assert!(data.contains("numbers on fake") && data.contains("of 80"), "{data}");
    assert!(!view.page("/runs/latest").contains("data-live"), "it is over");
}

#[test]
fn a_run_that_gives_up_says_why_and_how_to_go_on() {
    let refused = Script::always(Answer::fault(Trouble::BadKey));
    let server = FakeServer::start(refused);
    let project = project(30, &[("fake", &server)], "");
    project.run(&["run", "-q"]);
    let view = View::start(&project, &[]);
    let states = Events::open(&view, "/api/v1/runs/latest/events").states();
    let last = states.last().unwrap();
    let told = last["lanes"][0]["told"].as_str().unwrap();
    assert!(told.contains("stopped by a permanent error"), "{told}");
    let next = last["next"].as_str().unwrap();
    assert!(next.starts_with("probity run ") && next.contains(" --resume "), "{next}");
    let page = view.page("/runs/latest");
    assert!(page.contains("Go on with") && page.contains("--resume"), "{page}");
    assert!(page.contains("<span class=\"pill error\">auth</span>"), "{page}");
}

#[test]
fn waits_are_told_with_their_reason() {
    let limited =
        Rule::new(When::prompt_contains("number 3"), Answer::Fault(Fault::new(Trouble::RateLimit)))
            .times(1);
    let server = FakeServer::start(Script::default().rule(limited));
    let project = project(10, &[("fake", &server)], "");
    project.run(&["run", "-q"]);
    let view = View::start(&project, &[]);
    let states = Events::open(&view, "/api/v1/runs/latest/events").states();
    let waits = &states.last().unwrap()["waits"];
    assert_eq!((&waits[0]["backend"], &waits[0]["kind"]), (&"fake".into(), &"rate_limit".into()));
    let case = view.page("/runs/latest/cases/case-3");
    assert!(case.contains("1 failed try") && case.contains("waited"), "{case}");
}

#[test]
fn so_many_may_follow_and_the_next_is_told_so() {
    let latency = Latency::fixed(Duration::from_mins(1));
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let project = project(3, &[("fake", &server)], "");
    let mut command = project.command(&["run", "-q"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().unwrap();
    let view = View::start(&project, &[]);
    wait_until("the run is in the store", || view.get("/api/v1/runs/latest").status == 200);
    let target = "/api/v1/runs/latest/events";
    let mut followers: Vec<Events> = (0..256).map(|_| Events::open(&view, target)).collect();
    let refused = view.get(target);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &"too_many".into()));
    assert_eq!(view.get("/").status, 200, "pages are shown all the same");
    // A place is free again when somebody has gone.
    followers.pop();
    wait_until("a place is free", || {
        let mut stream = view.connect();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", view.address).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200")
    });
    running.kill().unwrap();
    running.wait().unwrap();
}
