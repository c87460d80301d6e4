use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc,
    thread,
};

use super::*;

/// Answers requests with these texts, one each, and hands over what came.
fn server(answers: Vec<&'static str>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let read = stream.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request);
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.to_lowercase();
                let length = length.split("content-length: ").nth(1).unwrap();
                let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
                if body.len() >= length {
                    break;
                }
            }
            sender.send(String::from_utf8_lossy(&request).into_owned()).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, seen)
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn to(address: &str, headers: &str) -> Destination {
    Destination {
        address: address.to_owned(),
        is_whole: false,
        headers: headers.to_owned(),
        encoding: Encoding::Json,
    }
}

fn send(address: &str, headers: &str) -> Result<Taken, CollectorError> {
    send_to(&to(address, headers))
}

fn send_to(to: &Destination) -> Result<Taken, CollectorError> {
    let collector = Collector::new(to)?.with_first_wait(Duration::from_millis(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(collector.send(b"{\"resourceSpans\":[]}".to_vec()))
}

#[test]
fn a_message_goes_to_traces_with_its_headers() {
    let (address, seen) = server(vec![TAKEN]);
    let taken =
        send(&format!("{address}/api/public/otel/"), "Authorization=Basic%20c2VjcmV0, x-a=b")
            .unwrap();
    assert_eq!(taken, Taken::default());
    let request = seen.recv().unwrap();
    assert!(request.starts_with("POST /api/public/otel/v1/traces HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("authorization: Basic c2VjcmV0\r\n") && request.contains("x-a: b\r\n")
    );
    assert!(request.contains("content-type: application/json\r\n"));
    assert!(request.ends_with("{\"resourceSpans\":[]}"));
}

#[test]
fn a_collector_that_is_busy_is_sent_to_again() {
    let gateway =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let (address, seen) = server(vec![BUSY, gateway, TAKEN]);
    assert_eq!(send(&format!("{address}/v1/traces"), "").unwrap().retries, 2);
    let requests: Vec<String> = seen.iter().take(3).collect();
    assert!(requests.iter().all(|it| it.starts_with("POST /v1/traces ")));
}

#[test]
fn a_collector_that_stays_busy_is_given_up() {
    let (address, _seen) = server(vec![BUSY; 5]);
    let error = send(&address, "").unwrap_err();
    assert!(error.to_string().contains("HTTP 429"), "{error}");
}

#[test]
fn what_is_refused_is_not_sent_again_and_secrets_are_not_told() {
    let refused = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 31\r\n\r\nno such key: abcdefgh-12345678!";
    let (address, seen) = server(vec![refused]);
    let error = send(&address, "api-key=abcdefgh-12345678").unwrap_err().to_string();
    assert!(error.contains("HTTP 401: no such key: ") && !error.contains("abcdefgh"), "{error}");
    assert_eq!(seen.iter().count(), 1);
}

#[test]
fn what_was_not_taken_is_told() {
    let partial = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 65\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}";
    let (address, _seen) = server(vec![partial]);
    let taken = send(&address, "").unwrap();
    assert_eq!((taken.rejected, taken.message.as_deref()), (3, Some("too old")));
}

#[test]
fn a_whole_address_is_left_alone_and_protobuf_is_named() {
    let (address, seen) = server(vec![TAKEN]);
    let address = format!("{address}/in");
    send_to(&Destination { is_whole: true, encoding: Encoding::Protobuf, ..to(&address, "") })
        .unwrap();
    let request = seen.recv().unwrap();
    assert!(request.starts_with("POST /in HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("content-type: application/x-protobuf\r\n"));
}

#[test]
fn wrong_words_are_named_without_their_secrets() {
    let wrong = |address: &str, headers: &str| {
        Collector::new(&to(address, headers)).unwrap_err().to_string()
    };
    assert_eq!(
        "`ftp://[redacted]@host` is not the address of a server",
        wrong("ftp://user:secret@host", "")
    );
    assert_eq!("header 2 is not `name=value`", wrong("http://host", "a=b,secret"));
}

#[test]
fn any_number_of_spans_can_be_counted() {
    let mut all = Taken { rejected: 1, retries: 2, ..Taken::default() };
    all.add(&Taken { rejected: u64::MAX, retries: 1, message: Some("all of them".to_owned()) });
    assert_eq!(all, Taken { rejected: u64::MAX, retries: 3, message: None });
}
