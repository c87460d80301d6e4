//! A client that shows what is on the wire.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use probity_testkit::FakeServer;
use serde_json::{Value, json};

/// Long enough for any machine; nothing waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const OPENAI: &str = "/v1/chat/completions";
pub(crate) const ANTHROPIC: &str = "/v1/messages";
pub(crate) const OLLAMA: &str = "/api/chat";

pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A connection with a request on its way.
pub(crate) fn open(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The text of a request that closes the connection after it.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: fake\r\nconnection: close\r\n\
         content-type: application/json\r\nauthorization: Bearer sk-test-0123456789abcdef\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The text of a proper question.
pub(crate) fn question(path: &str, prompt: &str) -> String {
    let body = json!({
        "model": "m",
        "max_tokens": 9,
        "stream": false,
        "messages": [{ "role": "user", "content": prompt }],
    });
    request("POST", path, "anthropic-version: 2023-06-01\r\n", &body.to_string())
}

/// Everything that comes until the server closes.
pub(crate) fn read(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn send(server: &FakeServer, request: &str) -> Answered {
    let bytes = read(open(server.address(), request)).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head came") + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answered { status, head, body: bytes[end..].to_vec() }
}

pub(crate) fn ask(server: &FakeServer, prompt: &str) -> Answered {
    send(server, &question(OPENAI, prompt))
}

/// Goes away and waits until the server has seen that.
pub(crate) fn abandon(server: &FakeServer, stream: &TcpStream) {
    let before = server.seen().aborted;
    stream.shutdown(Shutdown::Both).unwrap();
    assert!(server.wait_until(|seen| seen.aborted == before + 1 && seen.in_flight == 0, PATIENCE));
}
