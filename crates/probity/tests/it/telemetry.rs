//! `probity export --as otlp`, over a real socket. What is sent is read by `scripts/otlp-test`.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use crate::{project::Project, view::project_with_a_run};

/// A collector that takes every message, and hands over what came.
fn collector() -> (String, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while missing(&request) {
                let read = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            if sender.send(request).is_err() {
                break;
            }
        }
    });
    (address, seen)
}

/// Whether more of a request has to come.
fn missing(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|it| it == b"\r\n\r\n") else { return true };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    request.len() < end + 4 + length.parse::<usize>().unwrap()
}

fn export(project: &Project, words: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = project.command(&["export", "--as"]);
    let output = command.args(words).envs(variables.iter().copied()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const JSON: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");

/// Words of a command, variables, and what comes of them.
type Try = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);

#[test]
fn a_collector_gets_protobuf_unless_json_is_asked_for() {
    let project = project_with_a_run();
    let (address, seen) = collector();
    let tries: [Try; 4] = [
        (&[], &[], "application/x-protobuf"),
        (&[], &[JSON], "application/json"),
        (&["--encoding", "protobuf"], &[JSON], "application/x-protobuf"),
        (&["--encoding", "json"], &[], "application/json"),
    ];
    for (words, variables, expected) in tries {
        let words = [&["otlp", "--to", &address], words].concat();
        let (code, said) = export(&project, &words, variables);
        assert_eq!(code, Some(0), "{said}");
        let request = String::from_utf8_lossy(&seen.recv().unwrap()).into_owned();
        assert!(request.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("content-type: {expected}\r\n")), "{request}");
    }
}

#[test]
fn variables_of_opentelemetry_say_where_to_send() {
    let project = project_with_a_run();
    let (address, seen) = collector();
    let whole = format!("{address}/in");
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc%20def");
    let (code, said) = export(
        &project,
        &["otlp", "--send"],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &whole),
            headers,
        ],
    );
    assert_eq!(code, Some(0), "{said}");
    let request = String::from_utf8_lossy(&seen.recv().unwrap()).into_owned();
    assert!(request.starts_with("POST /in HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-key: abc def\r\n"), "{request}");
    // Headers are secrets: an address on the command line does not get those of another.
    let (code, said) = export(&project, &["otlp", "--to", &address], &[headers]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!String::from_utf8_lossy(&seen.recv().unwrap()).contains("x-key"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let project = project_with_a_run();
    let grpc: &[(&str, &str)] = &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let tries: [Try; 6] = [
        (&["promptfoo", "--to", "http://localhost:1"], &[], "`--to` goes with `--as otlp`"),
        (&["chat", "--no-texts"], &[], "`--no-texts` goes with `--as otlp`"),
        (&["otlp", "--overwrite"], &[], "`--overwrite` goes with `--as parquet`"),
        (&["otlp", "--encoding", "json"], &[], "`--encoding` goes with `--to` or `--send`"),
        (&["otlp", "--send"], &[], "`OTEL_EXPORTER_OTLP_ENDPOINT` is not set"),
        (&["otlp", "--to", "http://localhost:1"], grpc, "`OTEL_EXPORTER_OTLP_PROTOCOL` is `grpc`"),
    ];
    for (words, variables, expected) in tries {
        let (code, said) = export(&project, words, variables);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
