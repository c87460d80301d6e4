//! The demo's server: as much of a chat API as the demo asks for, on loopback.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::pending,
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use http_body_util::{BodyExt as _, Collected, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};

use super::model::{Action, Asked, act};

/// Listens as long as the program runs.
pub(super) struct Server {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    calls: Mutex<Calls>,
    answered: Condvar,
}

#[derive(Default)]
struct Calls {
    /// How often each prompt came.
    prompts: BTreeMap<String, u64>,
    /// Calls that got an answer.
    answered: u64,
}

/// What is read of a request.
#[derive(Deserialize)]
struct Chat {
    model: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

impl Server {
    /// Port 0 takes a free one.
    pub(super) fn start(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let state = Arc::<State>::default();
        let shared = state.clone();
        thread::Builder::new().name("demo-server".to_owned()).spawn(move || {
            // It ends with the program, or when nobody can connect any more.
            let _ = runtime.block_on(accept(listener, shared));
        })?;
        Ok(Self { port, state })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Calls that have been answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.state.calls().answered
    }

    /// Waits until so many calls have been answered; false if that takes too long.
    pub(super) fn wait_for(&self, answered: u64, limit: Duration) -> bool {
        let calls = self.state.calls();
        let is_short = |calls: &mut Calls| calls.answered < answered;
        let waited = self.state.answered.wait_timeout_while(calls, limit, is_short);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl State {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a prompt, and says how often it came before.
    fn count(&self, prompt: &str) -> u64 {
        let mut calls = self.calls();
        let count = calls.prompts.entry(prompt.to_owned()).or_default();
        *count += 1;
        *count - 1
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, state.clone()));
            // A client that leaves is no error.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let has_key = request.headers().contains_key(AUTHORIZATION);
    if !request.uri().path().ends_with("/chat/completions") {
        return Ok(respond(200, &json!({ "object": "list", "data": [] }), None));
    }
    let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let Ok(Chat { model, messages }) = serde_json::from_slice::<Chat>(&body) else {
        let message = "the demo answers plain chats only";
        return Ok(respond(400, &error("invalid_request_error", message), None));
    };
    let prompt = messages.last().map_or("", |it| it.content.as_str());
    let before = state.count(prompt);
    let response = match act(&Asked { model: &model, prompt, has_key, before }) {
        Action::Hang => pending().await,
        Action::Say(text) => respond(200, &completion(&model, prompt, &text), None),
        Action::SayAfter(wait, text) => {
            tokio::time::sleep(wait).await;
            respond(200, &completion(&model, prompt, &text), None)
        }
        Action::Refuse { status, kind, message, retry_after } => {
            respond(status, &error(kind, message), retry_after)
        }
    };
    state.calls().answered += 1;
    state.answered.notify_all();
    Ok(response)
}

fn completion(model: &str, prompt: &str, text: &str) -> Value {
    let words = |text: &str| text.split_whitespace().count();
    json!({
        "object": "chat.completion",
        "model": model,
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": text },
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": words(prompt), "completion_tokens": words(text) },
    })
}

fn error(kind: &str, message: &str) -> Value {
    json!({ "error": { "type": kind, "message": message } })
}

fn respond(status: u16, body: &Value, retry_after: Option<u32>) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        response = response.header(RETRY_AFTER, seconds);
    }
    let body = Full::new(Bytes::from(body.to_string()));
    response.body(body).expect("statuses and headers are constants that are valid")
}
