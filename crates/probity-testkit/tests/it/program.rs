//! The server as a program.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::client::{OPENAI, open, question, read};

fn start(args: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_probity-fake-model"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening on http://").unwrap().to_owned();
    (child, address)
}

fn ask(address: &str) -> String {
    let bytes = read(open(address.parse().unwrap(), &question(OPENAI, "say hello"))).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn it_says_where_it_listens_and_ends_with_stdin() {
    let (mut child, address) = start(&["--latency-ms", "1", "--jitter-ms", "1"]);
    assert!(ask(&address).contains("\"content\":\"hello\""));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_ends_when_told_to() {
    for signal in ["-TERM", "-INT"] {
        let (mut child, address) = start(&["--rate-500", "1", "--ignore-stdin"]);
        drop(child.stdin.take());
        assert!(ask(&address).starts_with("HTTP/1.1 500"));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(child.wait().unwrap().success());
    }
}
