mod server;

use std::{io, io::Write as _, sync::Arc};

use data_encoding::BASE64;
use flate2::{Compression, write::GzEncoder};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::{RootCertStore, pki_types::CertificateDer};

use super::*;
use crate::{connect::Connector, tls::Tls};
use server::{AUTHORITY, Server, Wire, answering, listening, newest, tunnelling};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn settings() -> Settings {
    Settings {
        most_idle: 64,
        idle_limit: Duration::from_mins(1),
        connect_limit: Duration::from_secs(30),
        proxies: Proxies::Unused,
    }
}

/// A client that trusts the authority of the tests, with these proxies.
fn client(proxies: Option<Matcher>) -> Client {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(AUTHORITY)).unwrap();
    let mut connector = Connector::with_proxies(settings(), proxies.map(Arc::new));
    connector.trusted = Some(Tls::trusting(roots).unwrap());
    Client::with_connector(settings(), connector)
}

fn get(target: &Target) -> Request<'_> {
    Request { method: Method::GET, target, headers: HeaderMap::new(), body: Bytes::new() }
}

async fn read(client: &Client, address: &str) -> Result<String, Error> {
    let target = Target::parse(address)?;
    let mut response = client.send(get(&target)).await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(body).unwrap())
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

fn packed_answer(body: &[u8]) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".to_vec();
    answer.extend_from_slice(body);
    answer
}

#[tokio::test]
async fn a_request_says_who_asks_and_what_may_come() {
    let server = answering(Wire::Plain, HELLO).await;
    let address = format!("http://user:secret@127.0.0.1:{}/a?b=c", server.port);
    assert_eq!(read(&client(None), &address).await.unwrap(), "hello");
    let request = server.requests.only();
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    for line in ["accept-encoding: gzip", "accept: */*", "user-agent: probity/"] {
        assert!(request.contains(line), "{line}: {request}");
    }
    let user = format!("authorization: Basic {}\r\n", BASE64.encode(b"user:secret"));
    assert!(request.contains(&user), "{request}");
    assert!(request.contains(&format!("host: 127.0.0.1:{}\r\n", server.port)), "{request}");
}

#[tokio::test]
async fn a_request_has_the_last_word_on_its_headers() {
    let server = answering(Wire::Plain, HELLO).await;
    let target = Target::parse(&format!("http://user:pw@127.0.0.1:{}/", server.port)).unwrap();
    let own = HeaderMap::from_iter([
        (AUTHORIZATION, HeaderValue::from_static("Bearer own")),
        (ACCEPT, HeaderValue::from_static("text/plain")),
        (RANGE, HeaderValue::from_static("bytes=3-")),
    ]);
    let request = Request { method: Method::POST, headers: own, body: "{}".into(), ..get(&target) };
    client(None).send(request).await.unwrap();
    let request = server.requests.only();
    assert!(request.contains("authorization: Bearer own\r\n"), "{request}");
    assert!(request.contains("accept: text/plain\r\n"), "{request}");
    assert!(request.contains("content-length: 2\r\n") && request.ends_with("{}"), "{request}");
    assert!(!request.contains("Basic") && !request.contains("gzip"), "{request}");
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    let server = answering(Wire::Plain, moved).await;
    let target = Target::parse(&format!("http://127.0.0.1:{}/a", server.port)).unwrap();
    let response = client(None).send(get(&target)).await.unwrap();
    assert_eq!(response.status(), StatusCode::FOUND);
    assert_eq!(server.requests.all().len(), 1);
}

#[tokio::test]
async fn connections_are_kept_for_as_many_as_were_in_flight() {
    let server = answering(Wire::Plain, HELLO).await;
    let client = client(None);
    let address = format!("http://127.0.0.1:{}/", server.port);
    for _ in 0..3 {
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (client, address) = (client.clone(), address.clone());
            asked.spawn(async move { read(&client, &address).await.unwrap() });
        }
        asked.join_all().await;
    }
    assert_eq!(server.requests.all().len(), 150);
    assert!(server.connections.all().len() <= 50, "{}", server.connections.all().len());
}

#[tokio::test]
async fn a_packed_answer_is_unpacked() {
    let text = "probity ".repeat(10_000);
    let members = [packed(text.as_bytes()), packed(b"and more")].concat();
    let server = answering(Wire::Plain, packed_answer(&members)).await;
    let address = format!("http://127.0.0.1:{}/", server.port);
    let target = Target::parse(&address).unwrap();
    let response = client(None).send(get(&target)).await.unwrap();
    assert_eq!(response.content_length(), None);
    assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(read(&client(None), &address).await.unwrap(), format!("{text}and more"));
}

#[tokio::test]
async fn an_empty_answer_need_not_be_packed() {
    let empty = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n";
    let server = answering(Wire::Plain, empty).await;
    let read = read(&client(None), &format!("http://127.0.0.1:{}/", server.port)).await;
    assert_eq!(read.unwrap(), "");
}

#[tokio::test]
async fn a_packed_answer_that_breaks_off_or_is_none_is_an_error() {
    let whole = packed("probity ".repeat(1000).as_bytes());
    for body in [&whole[..whole.len() - 4], &whole[..5], b"not packed at all"] {
        let server = answering(Wire::Plain, packed_answer(body)).await;
        let read = read(&client(None), &format!("http://127.0.0.1:{}/", server.port)).await;
        assert!(matches!(read, Err(Error::Packed(_))), "{read:?}");
    }
}

#[tokio::test]
async fn what_was_packed_a_thousandfold_comes_in_pieces() {
    const SIZE: usize = 256 << 20;
    let server = answering(Wire::Plain, packed_answer(&packed(&vec![0; SIZE]))).await;
    let target = Target::parse(&format!("http://127.0.0.1:{}/", server.port)).unwrap();
    let mut response = client(None).send(get(&target)).await.unwrap();
    let mut most = 0;
    let mut all = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        most = most.max(chunk.len());
        all += chunk.len();
    }
    assert_eq!(all, SIZE);
    assert!(most <= 8 << 20, "{most}");
}

#[tokio::test]
async fn servers_behind_tls_are_asked_in_the_newest_protocol_they_speak() {
    let server = newest().await;
    let address = format!("https://localhost:{}/v1", server.port);
    assert_eq!(read(&client(None), &address).await.unwrap(), format!("HTTP/2.0 {address}"));
    let older = answering(Wire::Tls(&["http/1.1"]), HELLO).await;
    let address = format!("https://127.0.0.1:{}/", older.port);
    assert_eq!(read(&client(None), &address).await.unwrap(), "hello");
    assert_eq!(older.connections.only(), "http/1.1");
    assert!(older.requests.only().starts_with("GET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_gets_no_request() {
    let server = answering(Wire::Tls(&["http/1.1"]), HELLO).await;
    let mut connector = Connector::new(settings());
    connector.trusted = Some(Tls::trusting(RootCertStore::empty()).unwrap());
    let stranger = Client::with_connector(settings(), connector);
    let error = read(&stranger, &format!("https://localhost:{}/", server.port)).await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
    let causes: Vec<String> = error.causes().map(ToString::to_string).collect();
    assert!(causes.iter().any(|it| it.contains("certificate")), "{causes:?}");
    assert!(server.requests.all().is_empty());
}

#[tokio::test]
async fn the_limit_of_connecting_includes_tls() {
    let (listener, Server { port, .. }) = listening().await;
    let settings = Settings { connect_limit: Duration::from_millis(100), ..settings() };
    let client = Client::with_connector(settings, Connector::new(settings));
    let address = format!("https://localhost:{port}/");
    // Taken, and never answered.
    let silent = tokio::spawn(async move {
        let _kept = listener.accept().await;
        std::future::pending::<()>().await;
    });
    let error = read(&client, &address).await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)) && error.is_timeout(), "{error:?}");
    silent.abort();
}

#[tokio::test]
async fn a_refused_connection_says_so() {
    let (listener, Server { port, .. }) = listening().await;
    drop(listener);
    let error = read(&client(None), &format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
    let kind = error.io_error().map(io::Error::kind);
    assert_eq!(kind, Some(io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel";
    let server = answering(Wire::Plain, cut).await;
    let read = read(&client(None), &format!("http://127.0.0.1:{}/", server.port)).await;
    assert!(matches!(read, Err(Error::Body(_))), "{read:?}");
    let nothing = answering(Wire::Plain, "").await;
    let read = self::read(&client(None), &format!("http://127.0.0.1:{}/", nothing.port)).await;
    assert!(matches!(read, Err(Error::Exchange(_))), "{read:?}");
}

#[tokio::test]
async fn a_proxy_gets_whole_addresses_and_its_password() {
    for wire in [Wire::Plain, Wire::Tls(&[])] {
        let proxy = answering(wire, HELLO).await;
        let scheme = if matches!(wire, Wire::Plain) { "http" } else { "https" };
        let address = format!("{scheme}://us%40er:secret@localhost:{}", proxy.port);
        let client = client(Some(Matcher::builder().http(address).build()));
        assert_eq!(read(&client, "http://server.example/a?b").await.unwrap(), "hello");
        let request = proxy.requests.only();
        assert!(request.starts_with("GET http://server.example/a?b HTTP/1.1\r\n"), "{request}");
        let password = format!("proxy-authorization: Basic {}\r\n", BASE64.encode(b"us@er:secret"));
        assert!(request.contains(&password), "{request}");
    }
}

#[tokio::test]
async fn a_proxy_does_not_see_what_is_said_to_a_secure_server() {
    let server = answering(Wire::Tls(&["http/1.1"]), HELLO).await;
    for wire in [Wire::Plain, Wire::Tls(&[])] {
        let proxy = tunnelling(wire, server.port).await;
        let scheme = if matches!(wire, Wire::Plain) { "http" } else { "https" };
        let address = format!("{scheme}://user:secret@localhost:{}", proxy.port);
        let client = client(Some(Matcher::builder().all(address).build()));
        assert_eq!(read(&client, "https://server.example/v1").await.unwrap(), "hello");
        let request = proxy.requests.only();
        assert!(request.starts_with("CONNECT server.example:443 HTTP/1.1\r\n"), "{request}");
        let password = format!("proxy-authorization: Basic {}\r\n", BASE64.encode(b"user:secret"));
        assert!(request.to_lowercase().contains(&password.to_lowercase()), "{request}");
    }
    let requests = server.requests.all();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|it| it.starts_with("GET /v1 ") && !it.contains("proxy-")));
}

#[tokio::test]
async fn a_tunnel_carries_the_newest_protocol_too() {
    let server = newest().await;
    let proxy = tunnelling(Wire::Plain, server.port).await;
    let address = format!("http://localhost:{}", proxy.port);
    let client = client(Some(Matcher::builder().https(address).build()));
    let said = read(&client, "https://server.example/v1").await.unwrap();
    assert_eq!(said, "HTTP/2.0 https://server.example/v1");
}

#[tokio::test]
async fn a_server_of_no_proxy_is_asked_directly() {
    let server = answering(Wire::Plain, HELLO).await;
    let matcher = Matcher::builder().all("http://127.0.0.1:1").no("other.example,127.0.0.0/8");
    let address = format!("http://127.0.0.1:{}/", server.port);
    assert_eq!(read(&client(Some(matcher.build())), &address).await.unwrap(), "hello");
    assert!(!server.requests.only().contains("proxy-authorization"));
}
