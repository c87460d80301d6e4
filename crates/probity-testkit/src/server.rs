//! The server itself: sockets, connections, and what goes out on them.

use std::{
    future, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Request, Response, body::Incoming, header::HeaderValue, http::request::Parts,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime,
    sync::oneshot,
    time::sleep,
};

use crate::{
    answer::{Answer, Fault, Reply, Text, Trouble},
    bedrock,
    body::{AnswerBody, Content},
    embeddings, fault, gemini,
    question::{self, Complaint, Question},
    reply::{self, json_response},
    rerank,
    route::{Dialect, Endpoint, route},
    script::Script,
    seen::{Received, Seen},
    state::{Decision, Shared, Ticket},
    wire::{Line, Wire},
};

/// Neither JSON nor UTF-8.
const GARBAGE: &[u8] = b"upstream says: \xff\xfe {\"choices\":";

/// A running server. It stops when it is dropped.
pub struct FakeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Panics
    ///
    /// If the machine has no free port, or no more threads.
    pub fn start(script: Script) -> Self {
        Self::bind(script, 0).expect("the machine has a free port and a thread to spare")
    }

    /// Starts a server on this port of the loopback interface, 0 for any.
    pub fn bind(script: Script, port: u16) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            // Connections of a server that was stopped just now must not hold the port.
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
            // With the 128 of std, a burst of connections waits a second for its second try.
            socket.listen(4096)?
        };
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(script));
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("fake-model".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            // Dropping the runtime ends all connections, even those that hang.
            move || runtime.block_on(serve(listener, shared, stopped))
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it saw so far.
    pub fn seen(&self) -> Seen {
        self.shared.seen()
    }

    /// Waits until what it saw is as wanted; false if that takes longer than `timeout`.
    pub fn wait_until(&self, holds: impl FnMut(&Seen) -> bool, timeout: Duration) -> bool {
        self.shared.wait_until(holds, timeout)
    }

    /// Forgets what it saw, how often rules were used, and the numbers of requests.
    pub fn reset(&self) {
        self.shared.reset();
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread is gone only if it panicked, which joining it will tell.
            let _ = stop.send(());
        }
        let is_fine = self.thread.take().is_none_or(|thread| thread.join().is_ok());
        assert!(is_fine || thread::panicking(), "the server's thread panicked");
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    shared.connected();
                    tokio::spawn(connection(stream, Arc::clone(&shared)));
                }
                // Out of descriptors, mostly: others have to be closed first.
                Err(_) => sleep(Duration::from_millis(10)).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // It fails only on a socket that is gone already.
    let _ = stream.set_nodelay(true);
    let line = Arc::new(Line::default());
    let io = TokioIo::new(Wire::new(stream, Arc::clone(&line)));
    let service = service_fn(|request| respond(request, Arc::clone(&shared), Arc::clone(&line)));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None);
    tokio::select! {
        biased;
        // First, so that what was sent before the cut gets out. A client that goes away in
        // the middle is an error here; its ticket counts it.
        _ = builder.serve_connection(io, service) => {}
        () = line.is_cut() => {}
    }
}

async fn respond(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    line: Arc<Line>,
) -> Result<Response<AnswerBody>, hyper::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let (dialect, endpoint) = route(&head.method, path, &head.headers);
    match endpoint {
        Endpoint::Seen => {
            let seen = serde_json::to_vec(&shared.seen()).expect("it has text keys only");
            return Ok(whole(json_response(200, seen), None));
        }
        Endpoint::Reset => {
            shared.reset();
            return Ok(whole(json_response(200, b"{}".to_vec()), None));
        }
        Endpoint::Generate
        | Endpoint::Embed
        | Endpoint::Rerank
        | Endpoint::Models
        | Endpoint::PublisherModels
        | Endpoint::Version
        | Endpoint::WrongMethod
        | Endpoint::Unknown => {}
    }

    let mut ticket = shared.enter(path);
    let body = body.collect().await?.to_bytes();
    let question = match endpoint {
        Endpoint::Generate => {
            ticket.take_number();
            question::read(dialect, path, &head.headers, &body)
                .map_err(|complaint| ("invalid", fault::refuse(dialect, &complaint)))
        }
        Endpoint::Embed => {
            ticket.take_number();
            embeddings::read(dialect, &head.headers, &body)
                .map_err(|complaint| ("invalid", fault::refuse(dialect, &complaint)))
        }
        Endpoint::Rerank => {
            ticket.take_number();
            rerank::read(&head.headers, &body)
                .map_err(|complaint| ("invalid", fault::refuse(dialect, &complaint)))
        }
        Endpoint::Models => Err(match listing(dialect, &head, path) {
            Ok(()) => ("listed", reply::models(dialect, &shared.script.models)),
            Err(complaint) => ("invalid", fault::refuse(dialect, &complaint)),
        }),
        Endpoint::PublisherModels => {
            let list = gemini::publisher_models(&shared.script.models).to_string();
            Err(("listed", json_response(200, list.into_bytes())))
        }
        Endpoint::Version => Err(("listed", reply::version())),
        Endpoint::WrongMethod => Err(("invalid", fault::wrong_method(dialect, &head.method, path))),
        Endpoint::Unknown | Endpoint::Seen | Endpoint::Reset => {
            Err(("unknown_path", fault::unknown_path(dialect, &head.method, path)))
        }
    };
    shared.received(Received {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or(path, |path| path.as_str()).to_owned(),
        headers: head.headers,
        body,
    });
    match question {
        Ok(question) => Ok(generate(&question, &shared, &line, ticket).await),
        Err((outcome, response)) => {
            shared.outcome(outcome);
            Ok(whole(response, Some(ticket)))
        }
    }
}

/// Whether the models may be listed.
fn listing(dialect: Dialect, head: &Parts, path: &str) -> Result<(), Complaint> {
    match dialect {
        Dialect::Bedrock => bedrock::authorize(&head.headers, head.method.as_str(), path, &[]),
        Dialect::OpenAi
        | Dialect::Responses
        | Dialect::Anthropic
        | Dialect::Ollama
        | Dialect::Gemini => Ok(()),
    }
}

async fn generate(
    question: &Question,
    shared: &Shared,
    line: &Arc<Line>,
    mut ticket: Ticket,
) -> Response<AnswerBody> {
    let (answer, after) = match shared.decide(question, &mut ticket) {
        Decision::Answer { answer, after } => (answer, after),
        Decision::Limited => {
            let retry = shared.script.limits.retry.clone();
            let fault = Fault { trouble: Trouble::RateLimit, retry, echo_key: false };
            return whole(fault::respond(&fault, question), Some(ticket));
        }
    };
    if !after.is_zero() {
        sleep(after).await;
    }
    let number = ticket.number();
    let proper = || reply::answer(question, &Reply::default(), number);
    let response = match answer {
        Answer::Reply(reply) => reply::answer(question, reply, number).map(Content::Whole),
        Answer::Fault(fault) => fault::respond(fault, question).map(Content::Whole),
        Answer::Raw { status, headers, body } => raw(*status, headers, body).map(Content::Whole),
        Answer::Garbage => json_response(200, GARBAGE.to_vec()).map(Content::Whole),
        Answer::EmptyBody => json_response(200, Vec::new()).map(Content::Whole),
        Answer::EmptyText => {
            let empty = Reply { text: Text::Fixed(String::new()), ..Reply::default() };
            reply::answer(question, &empty, number).map(Content::Whole)
        }
        Answer::Redirect { status, location } => {
            raw(*status, &[("location".to_owned(), location.clone())], "").map(Content::Whole)
        }
        Answer::HangAfterHeaders => with_length(proper()).map(|_| Content::Never),
        Answer::SlowBody { chunk, every } => {
            with_length(proper()).map(|body| Content::slow(body, *chunk, *every))
        }
        Answer::Truncated => with_length(proper()).map(|body| Content::Cut {
            rest: body.slice(..body.len() / 2),
            line: Arc::clone(line),
        }),
        Answer::HugeBody { bytes } => proper().map(|rest| Content::Huge { spaces: *bytes, rest }),
        Answer::Hang => return future::pending().await,
        Answer::Close => {
            ticket.answered();
            line.close();
            return future::pending().await;
        }
        Answer::Reset => {
            ticket.answered();
            line.reset();
            return future::pending().await;
        }
    };
    response.map(|content| AnswerBody::new(content, Some(ticket)))
}

fn raw(status: u16, headers: &[(String, String)], body: &str) -> Response<Bytes> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    builder.body(Bytes::from(body.to_owned())).expect("the script has a valid status and headers")
}

fn with_length(mut response: Response<Bytes>) -> Response<Bytes> {
    let length = HeaderValue::from(response.body().len());
    response.headers_mut().insert("content-length", length);
    response
}

fn whole(response: Response<Bytes>, ticket: Option<Ticket>) -> Response<AnswerBody> {
    response.map(|body| AnswerBody::new(Content::Whole(body), ticket))
}
