//! What is sent back, with the headers that every answer has.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    StatusCode,
    body::{Body, Frame, SizeHint},
    header::{self, HeaderName, HeaderValue},
};
use maud::Markup;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::{pages, problem::Problem};

/// An answer.
pub(crate) type Response = hyper::Response<Payload>;

/// No script, style, picture or frame from anywhere else, and none that stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The content of an answer.
#[derive(Debug)]
pub(crate) enum Payload {
    /// All of it.
    Whole(Option<Bytes>),
    /// Piece by piece, until nobody sends any more.
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let framed = |bytes: Option<Bytes>| bytes.map(|it| Ok(Frame::data(it)));
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(framed(bytes.take())),
            Self::Stream(receiver) => receiver.poll_recv(context).map(framed),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// An answer of a type. It is asked for again each time, since runs go on.
pub(crate) fn whole(
    status: StatusCode,
    content_type: &'static str,
    content: impl Into<Bytes>,
) -> Response {
    let mut response = hyper::Response::new(Payload::Whole(Some(content.into())));
    *response.status_mut() = status;
    with_headers(response, content_type)
}

fn with_headers(mut response: Response, content_type: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn page(markup: Markup) -> Response {
    whole(StatusCode::OK, "text/html; charset=utf-8", markup.into_string())
}

pub(crate) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let text = serde_json::to_vec(value).map_err(|error| Problem::internal(error.to_string()))?;
    Ok(whole(StatusCode::OK, "application/json", text))
}

/// Events as they happen.
pub(crate) fn events(receiver: mpsc::Receiver<Bytes>) -> Response {
    with_headers(hyper::Response::new(Payload::Stream(receiver)), "text/event-stream")
}

/// Sends a browser elsewhere, with a cookie.
pub(crate) fn redirect(to: &HeaderValue, cookie: HeaderValue) -> Response {
    let mut response = see(to);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

/// Sends a browser elsewhere.
pub(crate) fn see(to: &HeaderValue) -> Response {
    let mut response = whole(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    response.headers_mut().insert(header::LOCATION, to.clone());
    response
}

pub(crate) fn json_problem(problem: &Problem) -> Response {
    let text = serde_json::to_vec(&problem.envelope()).unwrap_or_default();
    refused(problem, whole(problem.status, "application/json", text))
}

pub(crate) fn page_problem(problem: &Problem) -> Response {
    let page = pages::problem::render(problem).into_string();
    refused(problem, whole(problem.status, "text/html; charset=utf-8", page))
}

fn refused(problem: &Problem, mut response: Response) -> Response {
    let headers = response.headers_mut();
    if problem.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
