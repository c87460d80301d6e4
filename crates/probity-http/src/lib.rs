//! Sends requests over HTTP/1.1 and HTTP/2, to servers in the open and behind TLS, directly and through proxies.
//!
//! It does nothing on its own: no redirect is followed, because a key must not travel to another host, and nothing is
//! tried again, because a call that nobody sees did not happen. Only a request of which no byte was written, because the
//! server had closed a connection that was kept, is written to another one.

mod body;
mod connect;
mod error;
mod target;
mod tls;

use std::{fmt, time::Duration};

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, Entry, HeaderName, PROXY_AUTHORIZATION, RANGE,
    USER_AGENT,
};
use http_body_util::Full;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};

pub use bytes::Bytes;
#[cfg(feature = "simulated")]
pub use http;
pub use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
pub use url::Url;

pub use self::{body::Response, error::Error, target::Target};
use connect::Connector;

/// What of an answer is read at once, and the most that its headers may have. Each connection keeps such a buffer.
const READ_AT_ONCE: usize = 64 << 10;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("probity/", env!("CARGO_PKG_VERSION")));
const ANYTHING: HeaderValue = HeaderValue::from_static("*/*");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// How connections are made and kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many connections to one server are kept while nobody uses them.
    pub most_idle: usize,
    /// How long.
    pub idle_limit: Duration,
    /// How long it may take until there is a connection, that of its name, of proxies and of TLS included.
    pub connect_limit: Duration,
    /// Whether the proxies are used that the environment or the system names.
    pub proxies: Proxies,
}

/// Which proxies are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxies {
    /// Those that `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` name, except for the servers of `NO_PROXY`; without these, those
    /// of the system.
    OfSystem,
    /// None.
    Unused,
}

/// A request.
#[derive(Debug)]
pub struct Request<'a> {
    /// What is wanted.
    pub method: Method,
    /// Of whom.
    pub target: &'a Target,
    /// What is said beside the body.
    pub headers: HeaderMap,
    /// The body; empty if there is none.
    pub body: Bytes,
}

/// Connections, shared by all clones.
#[derive(Clone)]
pub struct Client {
    connector: Connector,
    hyper: legacy::Client<Connector, Full<Bytes>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client without connections yet. Certificates are read when the first connection needs them.
    pub fn new(settings: Settings) -> Self {
        Self::with_connector(settings, Connector::new(settings))
    }

    fn with_connector(settings: Settings, connector: Connector) -> Self {
        let hyper = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.idle_limit)
            .pool_max_idle_per_host(settings.most_idle)
            .http1_max_buf_size(READ_AT_ONCE)
            .build(connector.clone());
        Self { connector, hyper }
    }

    /// Reads the certificates now that connections to this place need, if they need any: that these cannot be used is better
    /// known before anything is asked.
    pub fn prepare(&self, target: &Target) -> Result<(), Error> {
        match self.connector.needs_tls(target.uri()) {
            true => self.connector.prepare_tls().map_err(Error::Tls),
            false => Ok(()),
        }
    }

    /// Sends a request, and waits for the beginning of the answer.
    pub async fn send(&self, request: Request<'_>) -> Result<Response, Error> {
        let Request { method, target, mut headers, body } = request;
        // Of a part, nobody could unpack anything.
        if !headers.contains_key(RANGE) {
            add(&mut headers, ACCEPT_ENCODING, || Some(GZIP));
        }
        add(&mut headers, USER_AGENT, || Some(AGENT));
        add(&mut headers, ACCEPT, || Some(ANYTHING));
        add(&mut headers, AUTHORIZATION, || target.authorization().cloned());
        add(&mut headers, PROXY_AUTHORIZATION, || self.connector.proxy_authorization(target.uri()));
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.uri().clone();
        *request.headers_mut() = headers;
        self.hyper.request(request).await.map(Response::new).map_err(Error::of_exchange)
    }
}

/// Adds a header that the request does not bring along.
fn add(headers: &mut HeaderMap, name: HeaderName, value: impl FnOnce() -> Option<HeaderValue>) {
    if let Entry::Vacant(place) = headers.entry(name)
        && let Some(value) = value()
    {
        place.insert(value);
    }
}

#[cfg(test)]
mod tests;
