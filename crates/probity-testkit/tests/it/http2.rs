//! HTTP/2 by prior knowledge: the same answers, and the same ways to break.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use probity_testkit::{Answer, FakeServer, Script, Seen};
use tokio::{net::TcpStream, runtime::Builder, task::spawn_blocking};

use crate::client::{OPENAI, PATIENCE};

type Client = http2::SendRequest<Full<Bytes>>;

fn with_client(server: &FakeServer, scenario: impl AsyncFnOnce(Client)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let io = TokioIo::new(stream);
        let (client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        scenario(client).await;
    });
}

async fn ask(client: &mut Client, prompt: &str) -> hyper::Result<Response<Incoming>> {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    let request = Request::post(format!("http://fake{OPENAI}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    client.send_request(request).await
}

#[test]
fn it_is_served_without_being_negotiated() {
    let server = FakeServer::start(Script::default());
    with_client(&server, async |mut client| {
        for prompt in ["first", "second"] {
            let response = ask(&mut client, prompt).await.unwrap();
            assert_eq!(response.status(), 200);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains(prompt));
        }
    });
    let seen = server.seen();
    assert_eq!((seen.connections, seen.requests, seen.aborted), (1, 2, 0));
}

#[test]
fn a_truncated_body_begins_well() {
    let server = FakeServer::start(Script::always(Answer::Truncated));
    with_client(&server, async |mut client| {
        let mut body = ask(&mut client, "x").await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b"{\"id\":"));
        assert!(body.frame().await.unwrap().is_err());
    });
    assert_eq!(server.seen().aborted, 0);
}

#[test]
fn a_connection_can_be_cut() {
    for answer in [Answer::Reset, Answer::Close] {
        let server = FakeServer::start(Script::always(answer));
        with_client(&server, async |mut client| {
            assert!(ask(&mut client, "x").await.is_err());
        });
        assert_eq!(server.seen().aborted, 0);
    }
}

#[test]
fn a_client_may_give_up_one_request_of_many() {
    let server = Arc::new(FakeServer::start(Script::always(Answer::Hang)));
    // Waits on another thread: this one has the client's connection to serve.
    let until = async |holds: fn(&Seen) -> bool| {
        let server = Arc::clone(&server);
        spawn_blocking(move || server.wait_until(holds, PATIENCE)).await.unwrap()
    };
    with_client(&server, async |client| {
        let tasks = [(); 3].map(|()| {
            let mut client = client.clone();
            tokio::spawn(async move { ask(&mut client, "x").await })
        });
        assert!(until(|seen| seen.outcome("hang") == 3).await);
        tasks[0].abort();
        assert!(until(|seen| seen.aborted == 1).await);
        assert_eq!(server.seen().in_flight, 2);
    });
    assert!(server.wait_until(|seen| seen.in_flight == 0, PATIENCE));
}
