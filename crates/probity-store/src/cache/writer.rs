//! Writes answers to a cache, beside those who get them.
//!
//! A transaction costs as much as ten answers, so that those of a moment share one. What is not written yet can be read.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use probity_core::record::CacheKind;
use rusqlite::{Connection, params};

use super::{is_damage, sum_of};
use crate::schema;

/// How far apart transactions begin; the first after a pause begins at once. Keys are digests, so that a small transaction writes
/// a page of the index for nearly every answer.
const APART: Duration = Duration::from_millis(200);
/// Bytes that may wait. Who has more to write waits as well.
const MOST_BYTES: usize = 16 << 20;

/// What an answer is kept for.
type Place = (CacheKind, [u8; 16]);

/// A thread that writes, once there is something to write.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    /// Something is to be written, or that was all.
    news: Condvar,
    /// Something has been written.
    written: Condvar,
    damaged: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Place, Kept>,
    /// What is being written.
    writing: Arc<BTreeMap<Place, Kept>>,
    bytes: usize,
    /// Whether somebody waits for all of it.
    is_urgent: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct Kept {
    answer: String,
    at_ms: i64,
}

impl Writer {
    pub(super) fn new(path: &Path, damaged: Arc<AtomicBool>) -> Self {
        let queue = Queue {
            state: Mutex::default(),
            news: Condvar::new(),
            written: Condvar::new(),
            damaged,
        };
        Self { path: path.to_owned(), queue: Arc::new(queue), thread: Mutex::new(None) }
    }

    /// An answer that is not written yet.
    pub(super) fn get(&self, kept: CacheKind, key: [u8; 16]) -> Option<String> {
        let state = self.queue.state();
        let place = (kept, key);
        let found = state.waiting.get(&place).or_else(|| state.writing.get(&place));
        found.map(|it| it.answer.clone())
    }

    /// Has an answer written.
    pub(super) fn put(&self, kept: CacheKind, key: [u8; 16], answer: &str, at_ms: i64) {
        self.begin();
        let mut state = self.queue.state();
        while state.bytes > MOST_BYTES {
            state.is_urgent = true;
            self.queue.news.notify_one();
            state = self.queue.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_first = state.waiting.is_empty();
        state.bytes += answer.len();
        state.waiting.insert((kept, key), Kept { answer: answer.to_owned(), at_ms });
        drop(state);
        if is_first {
            self.queue.news.notify_one();
        }
    }

    /// Waits until everything is written.
    pub(super) fn flush(&self) {
        let mut state = self.queue.state();
        while !state.waiting.is_empty() || !state.writing.is_empty() {
            state.is_urgent = true;
            self.queue.news.notify_one();
            state = self.queue.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts the thread, unless it is there.
    fn begin(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (path, queue) = (self.path.clone(), self.queue.clone());
            *thread = Some(thread::spawn(move || queue.write_all(&path)));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.state().is_closed = true;
        self.queue.news.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // One that panicked has written what it could.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, path: &Path) {
        let mut connection = None;
        while let Some(batch) = self.next() {
            let begun = Instant::now();
            // One that cannot be opened, for want of descriptors, may be opened a moment later.
            if connection.is_none() {
                connection = open(path).ok();
            }
            if !self.damaged.load(Ordering::Relaxed)
                && let Some(connection) = &mut connection
                && let Err(error) = write(connection, &batch)
            {
                self.damaged.fetch_or(is_damage(&error), Ordering::Relaxed);
            }
            self.done();
            self.rest(begun + APART);
        }
    }

    /// The next answers, as soon as there are some; none when there will be no more.
    fn next(&self) -> Option<Arc<BTreeMap<Place, Kept>>> {
        let mut state = self.state();
        while state.waiting.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_urgent = false;
        state.writing = Arc::new(std::mem::take(&mut state.waiting));
        Some(state.writing.clone())
    }

    fn done(&self) {
        let mut state = self.state();
        let written = std::mem::take(&mut state.writing);
        state.bytes -= written.values().map(|it| it.answer.len()).sum::<usize>();
        drop(state);
        self.written.notify_all();
    }

    /// Lets answers pile up until then, unless somebody waits for them.
    fn rest(&self, then: Instant) {
        let mut state = self.state();
        while !state.is_closed && !state.is_urgent {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let rested = self.news.wait_timeout(state, left);
            state = rested.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    schema::prepare(&connection)?;
    super::spare_syncs(&connection)?;
    Ok(connection)
}

fn write(connection: &mut Connection, batch: &BTreeMap<Place, Kept>) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for ((kept, key), Kept { answer, at_ms }) in batch {
        let sql = format!(
            "INSERT OR REPLACE INTO {} (key, answer, at_ms, sum) VALUES (?, ?, ?, ?)",
            kept.plural()
        );
        let sum = sum_of(*key, answer);
        transaction.prepare_cached(&sql)?.execute(params![key, answer, at_ms, sum])?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cache;

    const KIND: CacheKind = CacheKind::Answer;

    fn key(at: u64) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&at.to_le_bytes());
        key
    }

    #[test]
    fn what_is_kept_is_there_at_once_and_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.db");
        let cache = Cache::open(&path).unwrap();
        for at in 0..1000 {
            cache.put(KIND, key(at), &format!("answer {at}"), 7);
            assert_eq!(cache.get(KIND, key(at)).unwrap(), format!("answer {at}"));
        }
        cache.put(KIND, key(3), "another", 8);
        cache.flush();
        assert_eq!(Cache::open(&path).unwrap().get(KIND, key(3)).unwrap(), "another");
        cache.put(KIND, key(4), "the last", 9);
        drop(cache);
        let cache = Cache::open(&path).unwrap();
        assert_eq!(cache.stats(KIND).unwrap().entries, 1000);
        assert_eq!(cache.get(KIND, key(4)).unwrap(), "the last");
    }

    #[test]
    fn who_has_more_to_write_than_may_wait_waits() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("cache.db")).unwrap();
        let long = "x".repeat(1 << 20);
        for at in 0..64 {
            cache.put(KIND, key(at), &long, 0);
            assert!(cache.writer.queue.state().bytes <= MOST_BYTES + long.len());
        }
    }
}
