//! Fetches a file over HTTP, and continues what was begun.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use probity_http::{
    Bytes, Client, Error, Method, Proxies, Request, Response, Settings, StatusCode, Target, Url,
    header::{ACCEPT_ENCODING, CONTENT_RANGE, HeaderMap, HeaderValue, LOCATION, RANGE},
};
use tokio::time::timeout;

use super::{Step, is_sha256};

/// Times in a row that nothing comes before a place is given up.
const PATIENCE: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// How long a place may be silent in the middle of a file.
const SILENCE_LIMIT: Duration = Duration::from_mins(1);
const MOST_REDIRECTS: usize = 8;
/// Pages of an index are some kilobytes.
const LONGEST_PAGE: usize = 16 << 20;

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody is there, or nothing can be understood.
    #[error("it cannot be reached")]
    Unreachable {
        /// Why.
        #[source]
        source: Error,
    },
    /// It answers that it will not.
    #[error("it answers with {status}")]
    Status {
        /// How.
        status: StatusCode,
    },
    /// It stops before the end, again and again.
    #[error("the connection breaks after {bytes} bytes; the next pull continues there")]
    Cut {
        /// How far it came.
        bytes: u64,
        /// Why.
        #[source]
        source: Option<Error>,
    },
    /// There is more than there should be.
    #[error("it sends more than the {due} bytes that the file should have")]
    TooLong {
        /// What should be.
        due: u64,
    },
    /// It cannot be an address. Which one is not told: it may hold a password or a signature.
    #[error("it has an address that cannot be used")]
    BadAddress,
    /// It sends us to where everybody could read along.
    #[error("it redirects from https to http")]
    Downgrade,
    /// It sends us around.
    #[error("it redirects again and again")]
    Endless {
        /// How often.
        redirects: usize,
    },
    /// There is too little room.
    #[error("there is no room in `{folder}`")]
    NoRoom {
        /// The folder.
        folder: PathBuf,
        /// Bytes that are missing.
        needed: u64,
        /// Bytes that are there.
        free: u64,
    },
    /// What came cannot be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What is known of a file that was fetched.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// Its checksum, as the hub says it.
    pub(super) linked_sha256: Option<String>,
}

/// What asks servers.
#[derive(Debug)]
pub(super) struct Fetcher {
    outside: Client,
    /// A proxy elsewhere would not find this machine.
    loopback: Client,
}

/// How an exchange ended.
enum Progress {
    Whole,
    /// The next one may do better.
    Broken {
        source: Option<Error>,
    },
}

impl Fetcher {
    pub(super) fn new() -> Self {
        let client = |proxies| {
            Client::new(Settings {
                most_idle: 1,
                idle_limit: SILENCE_LIMIT,
                connect_limit: CONNECT_LIMIT,
                proxies,
            })
        };
        Self { outside: client(Proxies::OfSystem), loopback: client(Proxies::Unused) }
    }

    /// A page of text.
    pub(super) async fn page(&self, address: &str) -> Result<String, FetchError> {
        let (mut response, _) = self.get(address, 0).await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status { status: response.status() });
        }
        let mut page = Vec::new();
        while let Some(chunk) = chunk(&mut response).await.map_err(unreachable)? {
            page.extend_from_slice(&chunk);
            if page.len() > LONGEST_PAGE {
                return Err(FetchError::TooLong { due: LONGEST_PAGE as u64 });
            }
        }
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    /// Fetches into a file what is not in it yet.
    pub(super) async fn fetch(
        &self,
        address: &str,
        part: &Path,
        due: Option<u64>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Fetched, FetchError> {
        let mut fetched = Fetched::default();
        let mut failures = 0;
        // A server that begins anew each time comes no further by that.
        let mut furthest = 0;
        loop {
            let had = length(part);
            if due.is_some_and(|due| had == due) {
                return Ok(fetched);
            }
            let asked = self.get(address, had).await;
            let progress = match asked {
                Ok((response, linked)) => {
                    fetched.linked_sha256 = linked.or(fetched.linked_sha256);
                    take(response, part, due, tell).await?
                }
                // Nothing was fetched yet, so that this place is not there at all.
                Err(error) if had == 0 => return Err(error),
                Err(FetchError::Unreachable { source }) => {
                    Progress::Broken { source: Some(source) }
                }
                Err(error) => return Err(error),
            };
            let Progress::Broken { source } = progress else { return Ok(fetched) };
            let bytes = length(part);
            failures = if bytes > furthest { 0 } else { failures + 1 };
            furthest = furthest.max(bytes);
            if failures == PATIENCE {
                return Err(FetchError::Cut { bytes, source });
            }
            tokio::time::sleep(PAUSE * (failures + 1)).await;
        }
    }

    /// Asks for a file from a byte on, and follows redirects.
    async fn get(
        &self,
        address: &str,
        from: u64,
    ) -> Result<(Response, Option<String>), FetchError> {
        let mut url = Url::parse(address).map_err(|_| FetchError::BadAddress)?;
        let mut linked = None;
        for _ in 0..MOST_REDIRECTS {
            let client = if is_loopback(&url) { &self.loopback } else { &self.outside };
            let target = Target::new(&url).map_err(|_| FetchError::BadAddress)?;
            let request = Request {
                method: Method::GET,
                target: &target,
                headers: headers_from(from),
                body: Bytes::new(),
            };
            let answered = timeout(SILENCE_LIMIT, client.send(request)).await;
            let response = answered.unwrap_or(Err(Error::Silence)).map_err(unreachable)?;
            linked = linked_sha256(response.headers()).or(linked);
            if !response.status().is_redirection() {
                return Ok((response, linked));
            }
            let next = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
            let next = next.ok_or(FetchError::Status { status: response.status() })?;
            let next = url.join(next).map_err(|_| FetchError::BadAddress)?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(FetchError::Downgrade);
            }
            url = next;
        }
        Err(FetchError::Endless { redirects: MOST_REDIRECTS })
    }
}

/// Writes what comes into a file.
async fn take(
    mut response: Response,
    part: &Path,
    due: Option<u64>,
    tell: &mut dyn FnMut(Step),
) -> Result<Progress, FetchError> {
    let failed = |source| written(part, source);
    let begins = match response.status() {
        StatusCode::PARTIAL_CONTENT => range_start(response.headers()),
        StatusCode::OK => Some(0),
        // What is here is no part of what is there.
        StatusCode::RANGE_NOT_SATISFIABLE => None,
        status => return Err(FetchError::Status { status }),
    };
    let mut file = OpenOptions::new().create(true).append(true).open(part).map_err(failed)?;
    let had = match begins {
        Some(begin) if begin == length(part) => begin,
        Some(0) => {
            file.set_len(0).map_err(failed)?;
            0
        }
        Some(_) | None => {
            file.set_len(0).map_err(failed)?;
            return Ok(Progress::Broken { source: None });
        }
    };
    let total = due.or_else(|| response.content_length().map(|it| had + it));
    make_room(part, total.map_or(0, |total| total.saturating_sub(had)))?;
    let mut bytes = had;
    loop {
        let chunk = match chunk(&mut response).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(source) => return Ok(Progress::Broken { source: Some(source) }),
        };
        bytes += chunk.len() as u64;
        if let Some(due) = due.filter(|due| bytes > *due) {
            discard(file, part);
            return Err(FetchError::TooLong { due });
        }
        if let Err(source) = file.write_all(&chunk) {
            // Half a model on a full disk is in everybody's way.
            if is_disk(&source) {
                discard(file, part);
            }
            return Err(written(part, source));
        }
        tell(Step::Fetched { bytes, total });
    }
    match total.is_none_or(|total| bytes == total) {
        true => Ok(Progress::Whole),
        false => Ok(Progress::Broken { source: None }),
    }
}

/// Sees to it that so many bytes more have room.
pub(super) fn make_room(part: &Path, needed: u64) -> Result<(), FetchError> {
    let folder = part.parent().unwrap_or(part);
    // A file system that does not say how much room it has will say so when it is full.
    let Ok(room) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    match needed <= free {
        true => Ok(()),
        false => Err(FetchError::NoRoom { folder: folder.to_owned(), needed, free }),
    }
}

/// Whether an error means that the disk, or what we may have of it, is full.
pub(super) fn is_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn discard(file: File, part: &Path) {
    drop(file);
    // If even that fails, the next pull finds a part that it continues.
    let _ = fs::remove_file(part);
}

fn written(part: &Path, source: io::Error) -> FetchError {
    FetchError::Write { path: part.to_owned(), source }
}

fn unreachable(source: Error) -> FetchError {
    FetchError::Unreachable { source }
}

/// What is said with the wish for a file from a byte on.
fn headers_from(from: u64) -> HeaderMap {
    // Packed for the way, its length would be another.
    let mut headers =
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    if let Ok(range) = HeaderValue::try_from(format!("bytes={from}-"))
        && from > 0
    {
        headers.insert(RANGE, range);
    }
    headers
}

/// The next piece of a file.
async fn chunk(response: &mut Response) -> Result<Option<Bytes>, Error> {
    timeout(SILENCE_LIMIT, response.chunk()).await.unwrap_or(Err(Error::Silence))
}

pub(super) fn length(part: &Path) -> u64 {
    fs::metadata(part).map_or(0, |it| it.len())
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback()),
        None => false,
    }
}

/// The checksum that the hub says before it sends us to where the file is.
fn linked_sha256(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get("x-linked-etag")?.to_str().ok()?;
    let tag = tag.trim_start_matches("W/").trim_matches('"').to_ascii_lowercase();
    is_sha256(&tag).then_some(tag)
}

/// The first byte of what is sent.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
