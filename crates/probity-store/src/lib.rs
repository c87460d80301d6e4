//! Keeps runs in SQLite.
//!
//! One writer takes events in, readers give views out. Whatever the writer has taken
//! is on the disk when it returns, and counts are never kept: they are computed from
//! the records each time they are asked for.

mod cache;
mod id;
mod merge;
mod reader;
mod recorder;
mod schema;
mod view;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

pub use cache::{Cache, CacheStats};
pub use id::new_run_id;
pub use merge::{MergeError, MergeSource, merge};
pub use reader::{LaneView, Reader, RunRow, Tally};
pub use recorder::{NewRun, Recorder};
pub use view::StoredCases;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("there is no store at `{}`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The folder of the store cannot be made.
    #[error("failed to make the folder of the store `{}`", path.display())]
    Folder {
        /// The store.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file cannot be opened or is no store.
    #[error("failed to open the store `{}`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A later version of this program made it.
    #[error(
        "the store `{}` was written by a newer version of this program (format {found}, this one knows up to {known})",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// Writing failed.
    #[error("failed to write to the store")]
    Write(#[source] rusqlite::Error),
    /// Reading failed.
    #[error("failed to read from the store")]
    Read(#[source] rusqlite::Error),
    /// What is in it makes no sense.
    #[error("the store holds something unexpected: {0}")]
    Content(String),
    /// No run has this name.
    #[error("there is no run `{0}`")]
    UnknownRun(String),
    /// Several runs have a name that begins or ends like this.
    #[error("`{name}` may be any of {}", candidates.join(", "))]
    AmbiguousRun {
        /// What was asked for.
        name: String,
        /// The runs it may be.
        candidates: Vec<String>,
    },
    /// Another process is at work on the run.
    #[error("run `{0}` is being worked on by another process")]
    Busy(String),
    /// The lock of a run cannot be taken.
    #[error("failed to lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("`probity run` makes one; `--store PATH` names another"),
            Self::Folder { .. } | Self::Open { .. } | Self::Lock { .. } => {
                Some("name another place with `--store PATH`")
            }
            Self::Newer { .. } => {
                Some("update the program, or name another store with `--store PATH`")
            }
            Self::UnknownRun(_) | Self::AmbiguousRun { .. } => {
                Some("`probity runs` lists the runs; `latest` is the last one")
            }
            Self::Busy(_) => Some("wait until it has ended, or stop it"),
            Self::Write(_) => Some("what was recorded before is kept"),
            Self::Read(_) | Self::Content(_) => None,
        }
    }
}

/// Opens the database of a store, and brings it to the format that this program knows.
fn open(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::Open { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(failed)?;
    schema::prepare(&connection).map_err(failed)?;
    schema::migrate(&connection, path)?;
    Ok(connection)
}

/// Makes the folder of a store, and keeps what is in it out of version control.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)
        .map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
    if folder.ends_with(".probity") {
        // A store without it works as well.
        let _ = fs::write(folder.join(".gitignore"), "*\n");
    }
    Ok(())
}
