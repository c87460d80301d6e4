//! Servers that say what they are told to, and keep what they hear.

use std::sync::{Arc, Mutex};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// The authority that the test trusts, and what it vouches for: `localhost`, `server.example` and `127.0.0.1`.
pub(super) const AUTHORITY: &[u8] = include_bytes!("ca.der");
const CERTIFICATE: &[u8] = include_bytes!("leaf.der");
const KEY: &[u8] = include_bytes!("leaf.key.der");

/// What was heard, in order.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn add(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The only thing that was heard.
    pub(super) fn only(&self) -> String {
        let all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }
}

/// A server: where it is, and what it hears.
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) requests: Heard,
    /// An entry for each connection.
    pub(super) connections: Heard,
}

/// How a server may be spoken to.
#[derive(Clone, Copy)]
pub(super) enum Wire {
    Plain,
    /// By TLS, in these protocols.
    Tls(&'static [&'static str]),
}

/// Answers every request on every connection with these bytes.
pub(super) async fn answering(wire: Wire, answer: impl Into<Vec<u8>>) -> Server {
    let answer: Arc<Vec<u8>> = Arc::new(answer.into());
    let (listener, server) = listening().await;
    let (requests, connections) = (server.requests.clone(), server.connections.clone());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (requests, connections, answer) =
                (requests.clone(), connections.clone(), answer.clone());
            tokio::spawn(async move {
                match wire {
                    Wire::Plain => {
                        connections.add("plain".to_owned());
                        talk(stream, &requests, &answer).await;
                    }
                    Wire::Tls(protocols) => {
                        // Whoever does not trust us leaves.
                        let Ok(stream) = acceptor(protocols).accept(stream).await else { return };
                        let protocol = stream.get_ref().1.alpn_protocol().unwrap_or(b"none");
                        connections.add(String::from_utf8_lossy(protocol).into_owned());
                        talk(stream, &requests, &answer).await;
                    }
                }
            });
        }
    });
    server
}

/// A proxy that makes tunnels to one port of this machine, whatever it is asked for.
pub(super) async fn tunnelling(wire: Wire, port: u16) -> Server {
    let (listener, server) = listening().await;
    let requests = server.requests.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let requests = requests.clone();
            tokio::spawn(async move {
                match wire {
                    Wire::Plain => tunnel(stream, port, &requests).await,
                    Wire::Tls(protocols) => {
                        let stream = acceptor(protocols).accept(stream).await.unwrap();
                        tunnel(stream, port, &requests).await;
                    }
                }
            });
        }
    });
    server
}

/// A server of HTTP/2 behind TLS that answers with the version it was asked in.
pub(super) async fn newest() -> Server {
    let (listener, server) = listening().await;
    let requests = server.requests.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor(&["h2", "http/1.1"]).accept(stream).await.unwrap();
            let requests = requests.clone();
            let service = hyper::service::service_fn(move |request: http::Request<_>| {
                let _: &hyper::body::Incoming = request.body();
                let said = format!("{:?} {}", request.version(), request.uri());
                requests.add(said.clone());
                async move {
                    let body = http_body_util::Full::new(crate::Bytes::from(said));
                    Ok::<_, std::convert::Infallible>(http::Response::new(body))
                }
            });
            let executor = hyper_util::rt::TokioExecutor::new();
            tokio::spawn(async move {
                let builder = hyper_util::server::conn::auto::Builder::new(executor);
                let stream = hyper_util::rt::TokioIo::new(stream);
                let _ = builder.serve_connection(stream, service).await;
            });
        }
    });
    server
}

pub(super) async fn listening() -> (TcpListener, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server { port, requests: Heard::default(), connections: Heard::default() };
    (listener, server)
}

fn acceptor(protocols: &[&str]) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, requests: &Heard, answer: &[u8]) {
    while let Some(request) = heard(&mut stream).await {
        requests.add(request);
        if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if !String::from_utf8_lossy(answer).to_lowercase().contains("content-length") {
            // It ends with the connection.
            let _ = stream.shutdown().await;
            return;
        }
    }
}

async fn tunnel(mut stream: impl AsyncRead + AsyncWrite + Unpin, port: u16, requests: &Heard) {
    let request = heard(&mut stream).await.unwrap();
    requests.add(request);
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

/// A request; none if there is no other.
async fn heard(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .map_or("0", |it| it.split("\r\n").next().unwrap_or("0"));
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.ok().filter(|it| *it > 0)?;
        request.extend_from_slice(&buffer[..read]);
    }
}
