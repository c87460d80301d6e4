//! Shows the runs of a store in a browser, and to programs.
//!
//! Everything is read: nothing that is asked here changes a store, except that people may be let say what they think of results
//! ([`Edits`]). Pages are made on the server, from the same parts as the
//! HTML report, and can be read without a script. What a model wrote is text in them and nothing else; the policy that is
//! sent along forbids scripts, styles and pictures from anywhere else.

mod address;
mod api;
mod assets;
mod edit;
mod filter;
mod guard;
mod live;
mod load;
mod metrics;
mod pages;
mod people;
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

use hyper::{
    Method, Request, body::Incoming, http::request::Parts, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};

pub use survey::{BackendSurvey, Examined, Findings, Problems, RunnerSurvey, Survey, Surveyor};

use crate::{
    edit::{Editing, Editor},
    guard::Guard,
    problem::Problem,
    reply::Response,
    site::Site,
};

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
    /// Whether people may say what they think of results; nothing can be written without it.
    pub edits: Option<Edits>,
}

/// What it takes to keep what people say.
#[derive(Clone, Copy, Debug)]
pub struct Edits {
    /// The time, in milliseconds since 1970.
    pub now_ms: fn() -> i64,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
    guard: Arc<Guard>,
    editing: Option<Arc<Editing>>,
    address: SocketAddr,
}

impl Server {
    /// Begins to listen.
    pub async fn bind(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let guard = Arc::new(Guard::new(address, options.edits)?);
        let editing = options.edits.map(Editing::new).transpose()?.map(Arc::new);
        Ok(Self { listener, site: Arc::new(Site::new(options)), guard, editing, address })
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
            let shared = Arc::new(Shared {
                site: Arc::clone(&self.site),
                guard: Arc::clone(&self.guard),
                editing: self.editing.clone(),
            });
            tokio::spawn(async move {
                let service = service_fn(move |request: Request<Incoming>| {
                    let shared = Arc::clone(&shared);
                    async move { Ok::<Response, Infallible>(answer(&shared, request).await) }
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

/// What the requests of a connection need.
struct Shared {
    site: Arc<Site>,
    guard: Arc<Guard>,
    editing: Option<Arc<Editing>>,
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let response = match shared.guard.admit(&head) {
        Ok(guard::Entry::Granted) => match &shared.editing {
            Some(editing) if head.method == Method::POST => {
                edit::answer(&shared.site, editing, &head, body).await
            }
            editing => {
                let editor = editing.as_ref().map(|it| it.editor(&head.headers));
                shown(shared, &head, editor).await
            }
        },
        Ok(guard::Entry::Exchange(response)) => Ok(*response),
        Err(problem) => Err(problem),
    };
    let is_for_programs = route::is_for_programs(path) || edit::is_from_program(&head);
    response.unwrap_or_else(|problem| match is_for_programs {
        true => reply::json_problem(&problem),
        false => reply::page_problem(&problem),
    })
}

/// What somebody asks to see, with what lets them say something about it.
async fn shown(shared: &Shared, head: &Parts, editor: Option<Editor>) -> Result<Response, Problem> {
    let (path, query) = (head.uri.path(), head.uri.query());
    let mut response = route::answer(&shared.site, path, query, editor.as_ref()).await?;
    if let Some(editor) = editor {
        editor.mark(&mut response);
    }
    Ok(response)
}
