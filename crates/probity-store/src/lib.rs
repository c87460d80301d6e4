//! Keeps runs in SQLite.
//!
//! One writer takes events in, readers give views out. Whatever the writer has taken
//! is on the disk when it returns, and counts are never kept: they are computed from
//! the records each time they are asked for.

mod browse;
mod cache;
mod done;
mod id;
mod lock;
mod merge;
#[cfg(target_os = "linux")]
mod newborn;
mod people;
mod private;
mod reader;
mod recorder;
mod result;
mod runs;
mod schema;
mod sealed;
mod side_by_side;
mod upgrade;
mod view;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use browse::{
    CaseCursor, CaseQuery, CaseRow, CasesPage, Failing, GridPage, GridQuery, GridRow, RunsPage,
    RunsQuery, ScoreBars, ScoreRange, Sort, Standing, SuiteRow, Trouble, Waited,
};
pub use cache::{Cache, CacheStats};
pub use done::Finished;
pub use id::new_run_id;
pub use lock::Ledger;
pub use merge::{MergeError, MergeSource, merge};
pub use people::{LastRemark, Rated, carry_remarks, say};
pub use reader::{LaneView, Reader, Tally};
#[cfg(feature = "simulated")]
pub use recorder::BadDisk;
pub use recorder::{NewRun, Recorder, record_whole};
pub use result::Damaged;
pub use runs::{ListedRun, RunRow};
use schema::Content;
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
    /// It is a database, and another program's.
    #[error("`{}` is not a store of this program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The cache cannot be opened or is none.
    #[error("failed to open the cache `{}`", path.display())]
    OpenCache {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// It is a database, and no cache.
    #[error("`{}` is not a cache of this program", path.display())]
    ForeignCache {
        /// The file.
        path: PathBuf,
    },
    /// A cache failed when it was looked at or cleared.
    #[error("failed to use the cache")]
    UseCache(#[source] rusqlite::Error),
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
    /// A row is not what was written.
    #[error(transparent)]
    Damaged(Damaged),
    /// What is in it makes no sense.
    #[error("the store holds something unexpected: {0}")]
    Content(String),
    /// A lane that ran to its end has fewer results than it had.
    #[error("{lane} ended with {planned} results, and {present} are left: the store is damaged")]
    Incomplete {
        /// The lane.
        lane: String,
        /// Results that are there.
        present: u64,
        /// Results that were recorded.
        planned: u64,
    },
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
    /// Why reading failed.
    pub(crate) fn of_reading(error: rusqlite::Error) -> Self {
        use rusqlite::Error::FromSqlConversionFailure;
        let FromSqlConversionFailure(at, kind, source) = error else { return Self::Read(error) };
        match source.downcast() {
            Ok(damaged) => Self::Damaged(*damaged),
            Err(source) => Self::Read(FromSqlConversionFailure(at, kind, source)),
        }
    }

    /// Whether a cache is no longer what was written.
    pub fn is_damage(&self) -> bool {
        let (Self::OpenCache { source, .. } | Self::UseCache(source)) = self else { return false };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
        )
    }

    /// Whether reading took longer than it may.
    pub fn is_interrupted(&self) -> bool {
        let Self::Read(source) = self else { return false };
        source.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
    }

    /// Whether others that write to the store kept us from it.
    pub fn is_locked(&self) -> bool {
        let (Self::Write(source) | Self::Open { source, .. }) = self else { return false };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("`probity run` makes one; `--store PATH` names another"),
            Self::Folder { .. } | Self::Open { .. } | Self::Foreign { .. } | Self::Lock { .. } => {
                Some("name another place with `--store PATH`")
            }
            Self::OpenCache { .. } | Self::UseCache(_) => Some(
                "`probity cache clear` removes one that is damaged; `cache.path` names another place",
            ),
            Self::ForeignCache { .. } => Some("name another place with `cache.path`"),
            Self::Newer { .. } => {
                Some("update the program, or name another store with `--store PATH`")
            }
            Self::UnknownRun(_) | Self::AmbiguousRun { .. } => {
                Some("`probity runs` lists the runs; `latest` is the last one")
            }
            Self::Busy(_) => Some("wait until it has ended, or stop it"),
            Self::Write(_) => Some("what was recorded before is kept"),
            Self::Damaged(_) => {
                Some("restore the store from a copy, or remove the run with `probity runs rm RUN`")
            }
            Self::Read(_) | Self::Content(_) => None,
            Self::Incomplete { .. } => {
                Some("restore the store, or ask again what is missing with `probity run --resume`")
            }
        }
    }
}

/// Opens the database of a store, and brings it to the format that this program knows.
///
/// What may only be read is opened for reading if it has that format already; writing to
/// it fails later.
fn open(path: &Path) -> Result<Connection, StoreError> {
    match open_to_write(path) {
        Err(StoreError::Open { source, .. }) if is_denied(&source) => {
            let opened = open_to_read(path).map(|it| it.connection);
            opened.ok_or(StoreError::Open { path: path.to_owned(), source })
        }
        outcome => outcome,
    }
}

/// The pages of a new store. Long texts are in chains of pages, which are four times shorter with these than with the usual
/// ones; short results do not mind.
const PAGE_BYTES: u32 = 16 << 10;

fn open_to_write(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::Open { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(failed)?;
    // Nothing is written before it is known whose file it is.
    if !schema::is_ours(&connection, Content::Store).map_err(failed)? {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    // Of a store that is there already, pages stay as large as they are.
    connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed)?;
    schema::prepare(&connection).map_err(failed)?;
    schema::migrate(&connection, path)?;
    Ok(connection)
}

/// A connection that writes nothing.
struct ReadOnly {
    connection: Connection,
    /// Whether it takes the file for one that nobody changes, and does not see what others write.
    is_immutable: bool,
}

/// A store as it stands, on a disk or in a folder where nothing may be written.
fn open_to_read(path: &Path) -> Option<ReadOnly> {
    let is_ready = |connection: &Connection| {
        schema::is_current(connection).unwrap_or(false)
            && schema::is_ours(connection, Content::Store).unwrap_or(false)
    };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok();
    let shared = connection.filter(is_ready);
    shared.map(|connection| ReadOnly { connection, is_immutable: false }).or_else(|| {
        // Without the files that readers and writers share SQLite reads only what is sure not
        // to change. What a log holds that was not brought in would be missing then.
        let log = PathBuf::from(format!("{}-wal", path.display()));
        if fs::metadata(&log).is_ok_and(|it| it.len() > 0) {
            return None;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(immutable_uri(path), flags).ok();
        let fixed = connection.filter(is_ready);
        fixed.map(|connection| ReadOnly { connection, is_immutable: true })
    })
}

/// An address by which SQLite opens a file that nobody changes.
fn immutable_uri(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.display().to_string();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Whether something kept us from writing.
fn is_denied(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    )
}

/// Makes an empty database that only its owner may read, and its folder. What is there stays as
/// it is.
fn make_place(path: &Path) -> Result<(), StoreError> {
    make_folder(path)?;
    // Why it cannot be made is told when it is opened.
    let _ = private::create(path);
    Ok(())
}

/// Makes a new store, and its folder. What is there stays as it is.
fn make_store(path: &Path) -> Result<(), StoreError> {
    make_folder(path)?;
    #[cfg(target_os = "linux")]
    if !path.exists() && newborn::make(path).is_ok() {
        return Ok(());
    }
    // Otherwise SQLite makes it.
    make_place(path)
}

/// Makes the folder of a store, and keeps what is in it out of version control.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    private::make_folders(folder)
        .map_err(|source| StoreError::Folder { path: path.to_owned(), source })?;
    if folder.ends_with(".probity") {
        // A store without it works as well.
        let _ = fs::write(folder.join(".gitignore"), "*\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn only_a_cache_is_damaged_and_only_if_it_is_not_what_was_written() {
        let damaged = |source| StoreError::UseCache(source).is_damage();
        assert!(damaged(failure(ffi::SQLITE_CORRUPT)) && damaged(failure(ffi::SQLITE_NOTADB)));
        assert!(!damaged(failure(ffi::SQLITE_FULL)));
        assert!(!StoreError::Read(failure(ffi::SQLITE_CORRUPT)).is_damage());
    }

    #[test]
    fn others_that_write_are_told_from_other_failures_of_writing() {
        assert!(StoreError::Write(failure(ffi::SQLITE_BUSY)).is_locked());
        assert!(!StoreError::Write(failure(ffi::SQLITE_FULL)).is_locked());
        assert!(!StoreError::Read(failure(ffi::SQLITE_BUSY)).is_locked());
    }

    #[test]
    fn reading_that_was_interrupted_is_told_from_other_failures_of_reading() {
        assert!(StoreError::Read(failure(ffi::SQLITE_INTERRUPT)).is_interrupted());
        assert!(!StoreError::Read(failure(ffi::SQLITE_CORRUPT)).is_interrupted());
        assert!(!StoreError::Write(failure(ffi::SQLITE_INTERRUPT)).is_interrupted());
    }

    #[test]
    fn a_place_where_nothing_may_be_written_is_told_from_a_full_one() {
        for code in [ffi::SQLITE_READONLY, ffi::SQLITE_CANTOPEN, ffi::SQLITE_PERM] {
            assert!(is_denied(&failure(code)), "{code}");
        }
        assert!(!is_denied(&failure(ffi::SQLITE_FULL)));
    }

    #[test]
    fn a_hint_names_what_helps() {
        let hint = |error: StoreError| error.hint().unwrap_or_default();
        let path = || PathBuf::from("x.db");
        assert!(hint(StoreError::Missing { path: path() }).contains("`probity run`"));
        assert!(hint(StoreError::Foreign { path: path() }).contains("`--store PATH`"));
        assert!(hint(StoreError::UnknownRun("x".to_owned())).contains("`probity runs`"));
        assert!(hint(StoreError::ForeignCache { path: path() }).contains("`cache.path`"));
        assert_eq!(hint(StoreError::Content("x".to_owned())), "");
    }

    #[test]
    fn a_store_of_another_program_is_not_even_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE mine (x); PRAGMA user_version = 15").unwrap();
        assert!(schema::is_current(&connection).unwrap());
        let error = Reader::open_to_look(&path).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    }

    #[test]
    fn an_address_keeps_what_has_a_meaning_in_addresses() {
        let address = immutable_uri(Path::new("/a b/50%?#.db"));
        assert_eq!(address, "file:/a b/50%25%3f%23.db?immutable=1");
    }
}
