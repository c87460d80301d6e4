//! Shows the runs of a store in a browser, and to programs.
//!
//! Everything is read: nothing that is asked here changes a store. Pages are made on the server, from the same parts as the
//! HTML report, and can be read without a script. What a model wrote is text in them and nothing else; the policy that is
//! sent along forbids scripts, styles and pictures from anywhere else.

mod address;
mod api;
mod assets;
mod filter;
mod guard;
mod live;
mod load;
mod pages;
mod problem;
mod query;
mod reply;
mod route;
mod site;
mod suites;
mod survey;

use std::{
    convert::Infallible, io, net::SocketAddr, path::PathBuf, pin::pin, sync::Arc, time::Duration,
};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

pub use survey::{BackendSurvey, Examined, Findings, Problems, RunnerSurvey, Survey, Surveyor};

use crate::{guard::Guard, reply::Response, site::Site};

/// Connections that are open at once; what comes beyond that waits.
const MOST_CONNECTIONS: usize = 1024;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a connection lasts, whatever it is used for.
const LONGEST: Duration = Duration::from_mins(10);
/// How long what is being sent then may take.
const LAST: Duration = Duration::from_mins(1);

/// What is shown, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store.
    pub store: PathBuf,
    /// Where to listen; port 0 is any that is free.
    pub address: SocketAddr,
    /// The share of errors above which the results of a run are not usable.
    pub max_error_rate: f64,
    /// The suite file of the folder where this was started.
    pub suite: Option<PathBuf>,
    /// How suite files are looked into.
    pub surveyor: Surveyor,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
    guard: Arc<Guard>,
    address: SocketAddr,
}

impl Server {
    /// Begins to listen.
    pub async fn bind(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let guard = Arc::new(Guard::new(address)?);
        Ok(Self { listener, site: Arc::new(Site::new(options)), guard, address })
    }

    /// The address to open. If others can reach it, it holds the token that lets one in.
    pub fn url(&self) -> String {
        match self.guard.token() {
            None => format!("http://{}/", self.address),
            Some(token) => format!("http://{}/?token={token}", self.address),
        }
    }

    /// Answers until the program ends.
    pub async fn serve(self) -> io::Result<Infallible> {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let site = Arc::clone(&self.site);
        // Nobody waits for it, and whoever asks for a list that cannot be made is told why.
        tokio::spawn(async move { site.read(load::count_ahead).await });
        loop {
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            let Ok((stream, _)) = self.listener.accept().await else {
                // One that went away again, or too many open files: the next one may do better.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (site, guard) = (Arc::clone(&self.site), Arc::clone(&self.guard));
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let (site, guard) = (Arc::clone(&site), Arc::clone(&guard));
                    async move { Ok::<Response, Infallible>(answer(&site, &guard, request).await) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .max_buf_size(64 << 10)
                    .serve_connection(TokioIo::new(stream), service);
                let mut connection = pin!(connection);
                // A client that goes away in the middle is none of our business; one that never reads what it is sent has
                // to go at some time.
                if timeout(LONGEST, connection.as_mut()).await.is_err() {
                    connection.as_mut().graceful_shutdown();
                    let _ = timeout(LAST, connection).await;
                }
                drop(place);
            });
        }
    }
}

async fn answer(site: &Arc<Site>, guard: &Guard, request: Request<Incoming>) -> Response {
    let (head, _) = request.into_parts();
    let path = head.uri.path();
    let response = match guard.admit(&head) {
        Ok(guard::Entry::Granted) => route::answer(site, path, head.uri.query()).await,
        Ok(guard::Entry::Exchange(response)) => Ok(*response),
        Err(problem) => Err(problem),
    };
    response.unwrap_or_else(|problem| match route::is_for_programs(path) {
        true => reply::json_problem(&problem),
        false => reply::page_problem(&problem),
    })
}
