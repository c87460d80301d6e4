//! Answers of earlier calls, by what was asked of whom.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    sync::Mutex,
};

use probity_core::record::CacheKind;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{
    StoreError, make_folder,
    schema::{self, Content},
};

/// Answers that were given before.
#[derive(Debug)]
pub struct Cache {
    connection: Mutex<Connection>,
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
        make_folder(path)?;
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
                        at_ms INTEGER NOT NULL
                     ) STRICT;",
                    kept.plural()
                ))?;
            }
            let id = Content::Cache.application_id();
            if connection
                .query_row("PRAGMA application_id", [], |row| Ok(row.get::<_, i32>(0)? != id))?
            {
                connection.pragma_update(None, "application_id", id)?;
            }
            // An answer that a power cut takes can be asked for again.
            connection.execute_batch("PRAGMA synchronous = NORMAL;")
        });
        ready.map_err(failed)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn with<T>(
        &self,
        use_it: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // A thread that panicked in here left nothing half done: SQLite rolls back.
        use_it(&self.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The answer of a key. A cache that cannot be read has none.
    pub fn get(&self, kept: CacheKind, key: [u8; 16]) -> Option<String> {
        self.with(|connection| {
            connection
                .prepare_cached(&format!("SELECT answer FROM {} WHERE key = ?", kept.plural()))?
                .query_row([key], |row| row.get(0))
                .optional()
        })
        .ok()
        .flatten()
    }

    /// Keeps an answer. One that cannot be kept is asked for again another time.
    pub fn put(&self, kept: CacheKind, key: [u8; 16], answer: &str, at_ms: i64) {
        let sql = format!("INSERT OR REPLACE INTO {} VALUES (?, ?, ?)", kept.plural());
        let _ = self.with(|connection| {
            connection.prepare_cached(&sql)?.execute(params![key, answer, at_ms])
        });
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
        let mut beginning = Vec::new();
        File::open(path)?.take(PAGE).read_to_end(&mut beginning)?;
        let in_our_place = path.parent().is_some_and(|folder| folder.ends_with(".probity"));
        if !in_our_place && !is_cache(&beginning) {
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
