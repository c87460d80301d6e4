//! How a connection comes about: directly, or through a proxy, with TLS where that is asked for.

use std::{
    io::IoSlice,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Uri, header::USER_AGENT, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::{AGENT, Proxies, Settings, error::TimedOut, tls::Tls};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Tcp = TokioIo<TcpStream>;

/// A peer that is gone without a word is found out by these.
const KEEPALIVE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxies: Option<Arc<Matcher>>,
    limit: Duration,
    /// Whom to trust instead of those whom the system trusts, in tests.
    pub(crate) trusted: Option<Tls>,
}

/// A connection.
pub(crate) struct Link {
    stream: Stream,
    /// Whether a proxy at the other end has to be told where a request goes.
    is_to_proxy: bool,
}

enum Stream {
    Direct(Box<MaybeHttpsStream<Tcp>>),
    /// Through a proxy that does not see what is said.
    Tunnel(Box<MaybeHttpsStream<MaybeHttpsStream<Tcp>>>),
}

impl Connector {
    pub(crate) fn new(settings: Settings) -> Self {
        let proxies = match settings.proxies {
            Proxies::OfSystem => Some(Arc::new(Matcher::from_system())),
            Proxies::Unused => None,
        };
        Self::with_proxies(settings, proxies)
    }

    pub(crate) fn with_proxies(settings: Settings, proxies: Option<Arc<Matcher>>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(settings.connect_limit));
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(PROBES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self { tcp, proxies, limit: settings.connect_limit, trusted: None }
    }

    /// Whether anything on the way to a server is encrypted.
    pub(crate) fn needs_tls(&self, server: &Uri) -> bool {
        is_secure(server) || self.proxy(server).is_some_and(|it| is_secure(it.uri()))
    }

    /// Reads the certificates, unless that has been done.
    pub(crate) fn prepare_tls(&self) -> Result<(), rustls::Error> {
        self.tls().map(drop)
    }

    /// What a proxy wants to hear with each request that it hands on. One that makes a tunnel hears it when it does.
    pub(crate) fn proxy_authorization(&self, server: &Uri) -> Option<HeaderValue> {
        if is_secure(server) {
            return None;
        }
        self.proxy(server)?.basic_auth().cloned()
    }

    fn proxy(&self, server: &Uri) -> Option<Intercept> {
        self.proxies.as_ref()?.intercept(server)
    }

    fn tls(&self) -> Result<Tls, rustls::Error> {
        match &self.trusted {
            Some(trusted) => Ok(trusted.clone()),
            None => Tls::of_system(),
        }
    }

    async fn connect(mut self, server: Uri) -> Result<Link, BoxError> {
        let Some(proxy) = self.proxy(&server) else {
            let stream = self.dial(server, |tls| tls.servers).await?;
            return Ok(Link { stream: Stream::Direct(Box::new(stream)), is_to_proxy: false });
        };
        if !is_secure(&server) {
            let stream = self.dial(proxy.uri().clone(), |tls| tls.proxies).await?;
            return Ok(Link { stream: Stream::Direct(Box::new(stream)), is_to_proxy: true });
        }
        let tls = self.tls()?;
        let to_proxy = HttpsConnector::from((self.tcp, tls.proxies));
        let headers = HeaderMap::from_iter([(USER_AGENT, AGENT)]);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy).with_headers(headers);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let stream = HttpsConnector::from((tunnel, tls.servers)).call(server).await?;
        Ok(Link { stream: Stream::Tunnel(Box::new(stream)), is_to_proxy: false })
    }

    /// A connection without anybody in between. Certificates are read only if it is a secure one.
    async fn dial(
        &mut self,
        to: Uri,
        config: fn(Tls) -> Arc<ClientConfig>,
    ) -> Result<MaybeHttpsStream<Tcp>, BoxError> {
        if to.scheme() == Some(&Scheme::HTTP) {
            return Ok(MaybeHttpsStream::Http(self.tcp.call(to).await?));
        }
        HttpsConnector::from((self.tcp.clone(), config(self.tls()?))).call(to).await
    }
}

fn is_secure(uri: &Uri) -> bool {
    uri.scheme() == Some(&Scheme::HTTPS)
}

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (limit, connecting) = (self.limit, self.clone().connect(server));
        Box::pin(async move {
            tokio::time::timeout(limit, connecting).await.unwrap_or_else(|_| Err(TimedOut.into()))
        })
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        let connected = match &self.stream {
            Stream::Direct(stream) => stream.connected(),
            Stream::Tunnel(stream) => stream.connected(),
        };
        connected.proxy(self.is_to_proxy)
    }
}

impl Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        match &mut self.stream {
            Stream::Direct(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tunnel(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match &mut self.stream {
            Stream::Direct(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tunnel(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.stream {
            Stream::Direct(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tunnel(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.stream {
            Stream::Direct(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tunnel(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Direct(stream) => stream.is_write_vectored(),
            Stream::Tunnel(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        match &mut self.stream {
            Stream::Direct(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Stream::Tunnel(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }
}
