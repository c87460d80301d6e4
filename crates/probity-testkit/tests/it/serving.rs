//! Connections, limits, start and end.

use std::{
    io::{ErrorKind, Read},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use probity_testkit::{Answer, FakeServer, Latency, Limits, Rate, RetryAfter, Script};

use crate::client::{OPENAI, PATIENCE, abandon, ask, open, question, read, send};

#[test]
fn dropping_the_server_ends_it_and_frees_the_port() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let address = server.address();
    let mut stream = open(address, &question(OPENAI, "x"));
    assert!(server.wait_until(|seen| seen.in_flight == 1, PATIENCE));
    drop(server);
    assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)));
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    TcpListener::bind(address).unwrap();
}

#[test]
fn waiting_gives_up_in_the_end() {
    let server = FakeServer::start(Script::default());
    assert!(!server.wait_until(|seen| seen.requests == 1, Duration::ZERO));
    assert!(server.wait_until(|seen| seen.requests == 0, Duration::ZERO));
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let server = FakeServer::start(Script::default());
    let once = question(OPENAI, "first").replace("connection: close\r\n", "");
    let stream = open(server.address(), &format!("{once}{}", question(OPENAI, "second")));
    let text = String::from_utf8(read(stream).unwrap()).unwrap();
    let (first, second) = (text.find("\"first\""), text.find("\"second\""));
    assert!(first.is_some() && first < second, "{text}");
    assert_eq!((server.seen().connections, server.seen().requests), (1, 2));
}

#[test]
fn two_hundred_connections_are_served_at_once() {
    let latency = Latency::fixed(Duration::from_millis(1));
    let server = FakeServer::start(Script { latency, ..Script::default() });
    let streams: Vec<_> =
        (0..200).map(|n| open(server.address(), &question(OPENAI, &format!("word{n}")))).collect();
    for (n, stream) in streams.into_iter().enumerate() {
        let text = String::from_utf8(read(stream).unwrap()).unwrap();
        assert!(text.contains(&format!("\"content\":\"word{n}\"")), "{text}");
    }
    let seen = server.seen();
    assert_eq!((seen.connections, seen.requests, seen.in_flight), (200, 200, 0));
    assert_eq!((seen.prompts.len(), seen.aborted), (200, 0));
}

#[test]
fn two_hundred_hanging_requests_are_all_in_flight() {
    let server = FakeServer::start(Script::always(Answer::Hang));
    let asked = question(OPENAI, "x");
    let streams: Vec<_> = (0..200).map(|_| open(server.address(), &asked)).collect();
    assert!(server.wait_until(|seen| seen.in_flight == 200, PATIENCE));
    drop(streams);
    assert!(server.wait_until(|seen| seen.in_flight == 0, PATIENCE));
    assert_eq!((server.seen().peak_in_flight, server.seen().aborted), (200, 200));
}

#[test]
fn too_many_requests_at_once_are_turned_away() {
    let limits = Limits {
        max_concurrent: Some(2),
        retry: vec![RetryAfter::Seconds(7)],
        ..Limits::default()
    };
    let server = FakeServer::start(Script { limits, ..Script::always(Answer::Hang) });
    let first = open(server.address(), &question(OPENAI, "1"));
    let _second = open(server.address(), &question(OPENAI, "2"));
    assert!(server.wait_until(|seen| seen.outcome("hang") == 2, PATIENCE));
    let third = ask(&server, "3");
    assert_eq!(third.status, 429);
    assert_eq!(third.header("retry-after"), Some("7"));
    assert_eq!(server.seen().outcome("limited"), 1);
    first.shutdown(std::net::Shutdown::Both).unwrap();
    assert!(server.wait_until(|seen| seen.in_flight == 1, PATIENCE));
    let fourth = open(server.address(), &question(OPENAI, "4"));
    assert!(server.wait_until(|seen| seen.outcome("hang") == 3, PATIENCE));
    assert_eq!(server.seen().peak_in_flight, 3);
    drop(fourth);
}

#[test]
fn requests_that_come_too_fast_are_turned_away() {
    // So slow a refill that no machine is slow enough to see it.
    let rate = Some(Rate { per_second: 1e-9, burst: 3 });
    let limits = Limits { rate, ..Limits::default() };
    let server = FakeServer::start(Script { limits, ..Script::default() });
    let statuses = [(); 5].map(|()| ask(&server, "x").status);
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(server.seen().outcome("limited"), 2);
}

#[test]
fn many_threads_may_wait_and_ask() {
    let server = FakeServer::start(Script::default());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.wait_until(|seen| seen.requests == 40, PATIENCE));
        for _ in 0..4 {
            scope.spawn(|| (0..10).for_each(|_| assert_eq!(ask(&server, "x").status, 200)));
        }
        assert!(waiting.join().unwrap());
    });
    assert_eq!(server.seen().prompt("x"), 40);
}

#[test]
fn half_a_request_is_an_aborted_one() {
    let server = FakeServer::start(Script::default());
    let whole = question(OPENAI, "x");
    let stream = open(server.address(), &whole[..whole.len() - 10]);
    assert!(server.wait_until(|seen| seen.in_flight == 1, PATIENCE));
    abandon(&server, &stream);
    assert_eq!((server.seen().requests, server.seen().asked), (1, 0));
    assert_eq!(send(&server, &whole).status, 200);
}
