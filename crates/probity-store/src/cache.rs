//! Answers of earlier calls, by what was asked of whom.

mod writer;

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use probity_core::record::{CacheKind, InputDigest};
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension as _};

use crate::{
    StoreError, make_place,
    schema::{self, Content},
};
use writer::Writer;

/// Answers that were given before.
#[derive(Debug)]
pub struct Cache {
    connection: Mutex<Connection>,
    path: PathBuf,
    writer: Writer,
    /// Whether anything in it was found not to be what was written.
    damaged: Arc<AtomicBool>,
}

/// What is in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Answers.
    pub entries: u64,
    /// Bytes of all answers.
    pub bytes: u64,
    /// When the oldest was given, in milliseconds since 1970.
    pub oldest_ms: Option<i64>,
}

impl Cache {
    /// Opens a cache, and makes it if need be.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make_place(path)?;
        let failed = |source| StoreError::OpenCache { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(failed)?;
        if !schema::is_ours(&connection, Content::Cache).map_err(failed)? {
            return Err(StoreError::ForeignCache { path: path.to_owned() });
        }
        let ready = schema::prepare(&connection).and_then(|()| {
            for kept in CacheKind::ALL {
                connection.execute_batch(&format!(
                    "CREATE TABLE IF NOT EXISTS {} (
                        key BLOB PRIMARY KEY,
                        answer TEXT NOT NULL,
                        at_ms INTEGER NOT NULL,
                        sum INTEGER
                     ) STRICT;",
                    kept.plural()
                ))?;
                // Earlier versions wrote none.
                let has_sum = "SELECT 1 FROM pragma_table_info(?) WHERE name = 'sum'";
                if !connection.prepare(has_sum)?.exists([kept.plural()])? {
                    let add = format!("ALTER TABLE {} ADD COLUMN sum INTEGER", kept.plural());
                    connection.execute_batch(&add)?;
                }
            }
            let id = Content::Cache.application_id();
            if connection
                .query_row("PRAGMA application_id", [], |row| Ok(row.get::<_, i32>(0)? != id))?
            {
                connection.pragma_update(None, "application_id", id)?;
            }
            spare_syncs(&connection)
        });
        ready.map_err(failed)?;
        let damaged = Arc::new(AtomicBool::new(false));
        let writer = Writer::new(path, damaged.clone());
        Ok(Self { connection: Mutex::new(connection), path: path.to_owned(), writer, damaged })
    }

    fn with<T>(
        &self,
        use_it: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // A thread that panicked in here left nothing half done: SQLite rolls back.
        use_it(&self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The answer of a key. A cache that cannot be read, or that was found to be damaged, has none.
    pub fn get(&self, kept: CacheKind, key: [u8; 16]) -> Option<String> {
        if self.is_damaged() {
            return None;
        }
        if let Some(unwritten) = self.writer.get(kept, key) {
            return Some(unwritten);
        }
        let sql = format!("SELECT answer, sum FROM {} WHERE key = ?", kept.plural());
        let found = self.with(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_row([key], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
                })
                .optional()
        });
        match found {
            Ok(None) => None,
            Ok(Some((answer, None))) => Some(answer),
            Ok(Some((answer, Some(sum)))) if sum == sum_of(key, &answer) => Some(answer),
            Ok(Some(_)) => {
                self.damaged.store(true, Ordering::Relaxed);
                None
            }
            Err(error) => {
                self.damaged.fetch_or(is_damage(&error), Ordering::Relaxed);
                None
            }
        }
    }

    /// Keeps an answer, in a moment. One that cannot be kept is asked for again another time.
    pub fn put(&self, kept: CacheKind, key: [u8; 16], answer: &str, at_ms: i64) {
        if !self.is_damaged() {
            self.writer.put(kept, key, answer, at_ms);
        }
    }

    /// Waits until everything that is kept is written.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Whether anything in it was found not to be what was written. Nothing is read from it then.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives a cache that is damaged another name, which is returned: the next run begins a new
    /// one. None if it may be something else; it is left then.
    pub fn set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
        if !may_be_cache(path)? {
            return Ok(None);
        }
        let named = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
        let aside = named(".damaged");
        fs::rename(path, &aside)?;
        for end in ["-wal", "-shm"] {
            // They are there only while it is open, and after a crash.
            let _ = fs::rename(named(end), named(&format!(".damaged{end}")));
        }
        Ok(Some(aside))
    }

    /// What is in it of one kind.
    pub fn stats(&self, kept: CacheKind) -> Result<CacheStats, StoreError> {
        let sql = format!(
            "SELECT count(*), coalesce(sum(length(CAST(answer AS BLOB))), 0), min(at_ms) FROM {}",
            kept.plural()
        );
        self.with(|connection| {
            connection.query_row(&sql, [], |row| {
                Ok(CacheStats { entries: row.get(0)?, bytes: row.get(1)?, oldest_ms: row.get(2)? })
            })
        })
        .map_err(StoreError::UseCache)
    }

    /// Removes a cache that is damaged. Returns false, and leaves it, if it may be something else.
    pub fn remove_damaged(path: &Path) -> io::Result<bool> {
        if !may_be_cache(path)? {
            return Ok(false);
        }
        fs::remove_file(path)?;
        for end in ["-wal", "-shm"] {
            // They are there only after a crash.
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
        Ok(true)
    }

    /// Forgets everything of some kinds. Returns how many answers that were.
    pub fn clear(&self, kinds: &[CacheKind]) -> Result<usize, StoreError> {
        self.with(|connection| {
            let mut removed = 0;
            for kept in kinds {
                removed += connection.execute(&format!("DELETE FROM {}", kept.plural()), [])?;
            }
            connection.execute_batch("VACUUM")?;
            Ok(removed)
        })
        .map_err(StoreError::UseCache)
    }
}

/// An answer that a power cut takes can be asked for again.
fn spare_syncs(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA synchronous = NORMAL;")
}

/// What tells whether an answer is the one that was kept for a key.
fn sum_of(key: [u8; 16], answer: &str) -> i64 {
    let InputDigest(digest) = InputDigest::of([&key[..], answer.as_bytes()]);
    let mut sum = [0; 8];
    sum.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(sum)
}

/// Whether a database is no longer what was written.
fn is_damage(error: &Error) -> bool {
    let by_code = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    );
    let by_value = matches!(
        error,
        Error::FromSqlConversionFailure(..) | Error::InvalidColumnType(..) | Error::Utf8Error(..)
    );
    by_code || by_value
}

/// Whether a file is a cache, or lies where nothing else does.
fn may_be_cache(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    File::open(path)?.take(PAGE).read_to_end(&mut beginning)?;
    let in_our_place = path.parent().is_some_and(|folder| folder.ends_with(".probity"));
    Ok(in_our_place || is_cache(&beginning))
}

/// The size of the page with a database's head and the beginning of its schema.
const PAGE: u64 = 4096;

/// Whether a file begins like a cache: by the id in its head, or by its one table.
fn is_cache(beginning: &[u8]) -> bool {
    let id = beginning.get(68..72);
    let table = b"CREATE TABLE answers (";
    beginning.starts_with(b"SQLite format 3\0")
        && (id == Some(&Content::Cache.application_id().to_be_bytes()[..])
            || beginning.windows(table.len()).any(|it| it == table))
}
