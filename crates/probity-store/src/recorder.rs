//! The one writer of a run.

mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use probity_core::{
    event::{Event, Stamped},
    record::{Lane, RunInfo, RunStatus},
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::{
    Reader, StoreError, browse,
    lock::{Ledger, Lock},
    make_store, open,
    result::json,
    schema::PATIENCE,
    sealed::{LANES, RUNS},
};
use writer::Writer;

/// The lane of a run, a runner, a variant and a backend.
const IS_LANE: &str = "run = ?1 AND runner = ?2 AND variant = ?3 AND backend = ?4";

/// A variant as the column of that name has it.
pub(crate) fn variant(lane: &Lane) -> &str {
    lane.variant.as_deref().unwrap_or_default()
}

/// A run that is about to begin.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name.
    pub run_id: String,
    /// What the suite is called.
    pub suite: String,
    /// When it begins, in milliseconds since 1970.
    pub started_ms: i64,
    /// What else is known of it.
    pub info: RunInfo,
}

/// Writes the events of one run. Whoever has it is the only one at work on the run.
#[derive(Debug)]
pub struct Recorder {
    connection: Connection,
    path: PathBuf,
    run: i64,
    /// Rows of the lanes, by their place in `run-started`.
    lanes: Vec<i64>,
    /// The last instructions and their row; most cases of a run share them.
    last_system: Option<(Arc<str>, i64)>,
    lock: Lock,
    /// Whether everything that happened is on the disk.
    is_whole: bool,
}

impl Recorder {
    /// Begins a run. Lanes that are known by now are in the store with it.
    pub fn create<'a>(
        path: &Path,
        run: &NewRun,
        lanes: impl IntoIterator<Item = &'a Lane>,
    ) -> Result<Self, StoreError> {
        make_store(path)?;
        let mut connection = open_for_run(path)?;
        let lock = Lock::take(path, &run.run_id)?;
        let row = in_one(&mut connection, |transaction| {
            let row = insert_run(transaction, run)?;
            have_lanes(transaction, row, lanes)?;
            Ok(row)
        })?;
        Ok(Self::new((connection, path), row, lock))
    }

    /// Goes on with a run.
    pub fn resume(path: &Path, run_id: &str) -> Result<Self, StoreError> {
        let mut connection = open_for_run(path)?;
        let lock = Lock::take(path, run_id)?;
        let row: Option<i64> = connection
            .query_row("SELECT id FROM runs WHERE run_id = ?", [run_id], |row| row.get(0))
            .optional()
            .map_err(StoreError::of_reading)?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.to_owned()))?;
        in_one(&mut connection, |transaction| {
            transaction.execute(
                "UPDATE runs SET status = ?, finished_ms = NULL WHERE id = ?",
                params![RunStatus::Running.as_str(), row],
            )?;
            RUNS.renew(transaction, row)
        })?;
        Ok(Self::new((connection, path), row, lock))
    }

    fn new((connection, path): (Connection, &Path), run: i64, lock: Lock) -> Self {
        connection.set_prepared_statement_cache_capacity(64);
        Self {
            connection,
            path: path.to_owned(),
            run,
            lanes: Vec::new(),
            last_system: None,
            lock,
            is_whole: false,
        }
    }

    /// Whether a lane has results that were marked stale before.
    pub fn has_stale(&self, lane: &Lane) -> Result<bool, StoreError> {
        let Some(row) = self.find_lane(lane).map_err(StoreError::Write)? else { return Ok(false) };
        let sql = "SELECT EXISTS (SELECT 1 FROM results WHERE lane = ? AND stale <> 0)";
        self.connection.query_row(sql, [row], |row| row.get(0)).map_err(StoreError::of_reading)
    }

    /// Marks results of cases that are no longer in the dataset: they are kept, and do
    /// not count.
    pub fn mark_stale(
        &mut self,
        lane: &Lane,
        is_current: impl Fn(&str, u32) -> bool,
    ) -> Result<u64, StoreError> {
        let Some(row) = self.find_lane(lane).map_err(StoreError::Write)? else { return Ok(0) };
        let transaction = begin(&mut self.connection)?;
        let mark = || {
            let mut marked = 0;
            // Mostly none differs, and what is written has to reach the disk. They are written after
            // the reading: a row moves in the index that is read when it becomes stale.
            let mut differing: Vec<(i64, bool)> = Vec::new();
            let mut all = transaction
                .prepare("SELECT id, case_id, repeat, stale FROM results WHERE lane = ?")?;
            let mut rows = all.query([row])?;
            while let Some(row) = rows.next()? {
                let stale = !is_current(row.get_ref(1)?.as_str()?, row.get(2)?);
                marked += u64::from(stale);
                if stale != row.get::<_, bool>(3)? {
                    differing.push((row.get(0)?, stale));
                }
            }
            let mut update = transaction.prepare("UPDATE results SET stale = ? WHERE id = ?")?;
            for (id, stale) in &differing {
                update.execute(params![stale, id])?;
            }
            if !differing.is_empty() {
                browse::collect_again(&transaction, row)?;
            }
            Ok(marked)
        };
        let marked = mark().map_err(StoreError::Write)?;
        transaction.commit().map_err(StoreError::Write)?;
        Ok(marked)
    }

    /// Takes events in. When it returns they are on the disk.
    pub fn record(&mut self, events: &[Stamped]) -> Result<(), StoreError> {
        let Self { connection, run, lanes, last_system, .. } = self;
        let transaction = begin(connection)?;
        let mut write = || {
            let mut writer = Writer { transaction: &transaction, run: *run, lanes, last_system };
            events.iter().try_for_each(|Stamped { at_ms, event }| writer.write(*at_ms, event))
        };
        let written = write().and_then(|()| transaction.commit());
        if written.is_err() {
            // Its row may have gone with the transaction.
            *last_system = None;
        }
        if let (Ok(()), Some(last)) = (&written, events.last()) {
            self.is_whole = matches!(last.event, Event::RunFinished { .. });
        }
        written.map_err(StoreError::Write)
    }

    /// Takes events in, unless somebody else writes for longer than `patience`. Returns whether
    /// they are on the disk; if not, nothing of them is.
    pub fn try_record(
        &mut self,
        events: &[Stamped],
        patience: Duration,
    ) -> Result<bool, StoreError> {
        self.connection.busy_timeout(patience).map_err(StoreError::Write)?;
        let recorded = self.record(events);
        self.connection.busy_timeout(PATIENCE).map_err(StoreError::Write)?;
        match recorded {
            Ok(()) => Ok(true),
            Err(error) if error.is_locked() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many calls of a lane had begun when the process was killed that was at work on it.
    pub fn begun_before(&self, lane: &Lane) -> Option<u64> {
        self.lock.begun_before(lane)
    }

    /// Says how many calls lanes have made in all earlier sessions. What is known already is not written again.
    pub fn set_calls<'a>(
        &mut self,
        lanes: impl IntoIterator<Item = (&'a Lane, u64)>,
    ) -> Result<(), StoreError> {
        let run = self.run;
        in_one(&mut self.connection, |transaction| {
            let mut update = transaction.prepare(&format!(
                "UPDATE lanes SET calls = ?5 WHERE {IS_LANE} AND calls <> ?5 RETURNING id"
            ))?;
            for (lane, calls) in lanes {
                let values = params![run, lane.runner, variant(lane), lane.backend, calls];
                let row = update.query_row(values, |row| row.get(0)).optional()?;
                row.map_or(Ok(()), |row| LANES.renew(transaction, row))?;
            }
            Ok(())
        })
    }

    /// Where the calls of lanes are written down before they are made. What an earlier process
    /// wrote there is gone with this: `set_calls` keeps it. Every lane is in the store from now
    /// on, so that the calls of a process that is killed before its first event count as well.
    pub fn ledger<'a>(
        &mut self,
        lanes: impl IntoIterator<Item = &'a Lane>,
    ) -> Result<Ledger, StoreError> {
        let run = self.run;
        let lanes =
            in_one(&mut self.connection, |transaction| have_lanes(transaction, run, lanes))?;
        self.lock.ledger(&lanes)
    }

    /// Says how many results a lane is to have, where that is known only at its end.
    pub fn set_planned(&mut self, lane: usize, planned: u64) -> Result<(), StoreError> {
        let row = self.lanes[lane];
        in_one(&mut self.connection, |transaction| {
            let info: String =
                transaction
                    .query_row("SELECT info FROM lanes WHERE id = ?", [row], |it| it.get(0))?;
            if let Ok(info) = serde_json::from_str::<Lane>(&info) {
                let info = json(&Lane { planned, ..info });
                transaction
                    .execute("UPDATE lanes SET info = ? WHERE id = ?", params![info, row])?;
            }
            LANES.renew(transaction, row)
        })
    }

    /// Has the disk fail from now on, as SQLite sees it.
    #[cfg(feature = "simulated")]
    pub fn hinder(&mut self, disk: BadDisk) -> Result<(), StoreError> {
        let connection = &self.connection;
        let hinder = || match disk {
            BadDisk::FullAfter { pages } => {
                let used: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
                let most = used + i64::from(pages);
                let set = format!("PRAGMA max_page_count = {most}");
                connection.query_row(&set, [], |row| row.get::<_, i64>(0)).map(drop)
            }
            BadDisk::ReadOnly => connection.pragma_update(None, "query_only", true),
        };
        hinder().map_err(StoreError::Write)
    }

    fn find_lane(&self, lane: &Lane) -> rusqlite::Result<Option<i64>> {
        self.connection
            .query_row(
                &format!("SELECT id FROM lanes WHERE {IS_LANE}"),
                params![self.run, lane.runner, variant(lane), lane.backend],
                |row| row.get(0),
            )
            .optional()
    }

    /// Ends the work on the run. If it was not recorded to its end, what was counted stays, for whoever goes on with it.
    pub fn close(self) {
        drop(self.into_reader());
    }

    /// Ends the work on the run, and reads the store from now on.
    pub fn into_reader(self) -> Reader {
        let Self { connection, lock, is_whole, path, .. } = self;
        if is_whole {
            lock.release();
        }
        Reader::of(connection, path)
    }
}

/// How a disk fails, in a simulation.
#[cfg(feature = "simulated")]
#[derive(Clone, Copy, Debug)]
pub enum BadDisk {
    /// It is full after so many pages more.
    FullAfter {
        /// Pages of the store.
        pages: u32,
    },
    /// Nothing can be written.
    ReadOnly,
}

/// What takes single statements back is in memory. A few large pages of it would be a file otherwise, opened in the middle of a
/// run, when calls may have all descriptors.
fn open_for_run(path: &Path) -> Result<Connection, StoreError> {
    let connection = open(path)?;
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(StoreError::Write)?;
    Ok(connection)
}

/// Writes a run that is already over, with all its events. It is there as a whole, or not at all.
pub fn record_whole(path: &Path, run: &NewRun, events: &[Stamped]) -> Result<(), StoreError> {
    make_store(path)?;
    in_one(&mut open(path)?, |transaction| {
        let row = insert_run(transaction, run)?;
        let (mut lanes, mut last_system) = (Vec::new(), None);
        let mut writer =
            Writer { transaction, run: row, lanes: &mut lanes, last_system: &mut last_system };
        events.iter().try_for_each(|Stamped { at_ms, event }| writer.write(*at_ms, event))
    })
}

/// Writes in one transaction.
fn in_one<T>(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    let transaction = begin(connection)?;
    let written = write(&transaction).map_err(StoreError::Write)?;
    transaction.commit().map_err(StoreError::Write)?;
    Ok(written)
}

/// Has lanes in the store, with the calls that each of them made before.
fn have_lanes<'a>(
    connection: &Connection,
    run: i64,
    lanes: impl IntoIterator<Item = &'a Lane>,
) -> rusqlite::Result<Vec<(&'a Lane, u64)>> {
    let mut insert = connection.prepare(
        "INSERT INTO lanes (run, runner, variant, backend, info) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (run, runner, variant, backend) DO NOTHING",
    )?;
    let mut find = connection.prepare(&format!("SELECT calls FROM lanes WHERE {IS_LANE}"))?;
    let mut all = Vec::new();
    let mut is_new = false;
    for lane in lanes {
        let made =
            insert.execute(params![run, lane.runner, variant(lane), lane.backend, json(lane)])?;
        let calls = if made > 0 {
            is_new = true;
            LANES.renew(connection, connection.last_insert_rowid())?;
            0
        } else {
            let key = params![run, lane.runner, variant(lane), lane.backend];
            find.query_row(key, |row| row.get(0))?
        };
        all.push((lane, calls));
    }
    if is_new {
        count_lanes(connection, run)?;
    }
    Ok(all)
}

/// Keeps with a run how many lanes count.
fn count_lanes(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    const COUNT: &str = "(SELECT count(*) FROM lanes WHERE run = ?1 AND retired = 0)";
    let sql =
        format!("UPDATE runs SET lane_count = {COUNT} WHERE id = ?1 AND lane_count IS NOT {COUNT}");
    match connection.execute(&sql, [run])? {
        0 => Ok(()),
        _ => RUNS.renew(connection, run),
    }
}

/// The row of a new run.
fn insert_run(connection: &Connection, run: &NewRun) -> rusqlite::Result<i64> {
    connection.execute(
        "INSERT INTO runs (run_id, suite, started_ms, status, info) VALUES (?, ?, ?, ?, ?)",
        params![
            run.run_id,
            run.suite,
            run.started_ms,
            RunStatus::Running.as_str(),
            json(&run.info),
        ],
    )?;
    let row = connection.last_insert_rowid();
    RUNS.renew(connection, row)?;
    Ok(row)
}

/// Begins to write. Others that write are waited for here, and never halfway.
fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::Write)
}

#[cfg(test)]
mod tests;
