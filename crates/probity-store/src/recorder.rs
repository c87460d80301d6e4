//! The one writer of a run.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use probity_core::{
    crew::Crew,
    event::{CaseKey, Event, Stamped},
    record::{
        Aborted, Asked, CaseRecord, FailedAttempt, InputDigest, Lane, LaneStatus, RunInfo,
        RunStatus, Spent,
    },
    score::Score,
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::{
    Reader, StoreError, browse,
    lock::{Ledger, Lock},
    make_store, open,
    result::{
        Column, NewResult, json,
        parts::{AskedColumn, ScoreColumn, bind_asked, bind_score, insert_part},
    },
    schema::PATIENCE,
};

/// Bytes of a name that the key of a text begins with.
const KEY_PREFIX: usize = 16;

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
    /// Begins a run.
    pub fn create(path: &Path, run: &NewRun) -> Result<Self, StoreError> {
        make_store(path)?;
        let connection = open_for_run(path)?;
        let lock = Lock::take(path, &run.run_id)?;
        let row = insert_run(&connection, run).map_err(StoreError::Write)?;
        Ok(Self::new((connection, path), row, lock))
    }

    /// Goes on with a run.
    pub fn resume(path: &Path, run_id: &str) -> Result<Self, StoreError> {
        let connection = open_for_run(path)?;
        let lock = Lock::take(path, run_id)?;
        let row: Option<i64> = connection
            .query_row("SELECT id FROM runs WHERE run_id = ?", [run_id], |row| row.get(0))
            .optional()
            .map_err(StoreError::Read)?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.to_owned()))?;
        connection
            .execute(
                "UPDATE runs SET status = ?, finished_ms = NULL WHERE id = ?",
                params![RunStatus::Running.as_str(), row],
            )
            .map_err(StoreError::Write)?;
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
        self.connection.query_row(sql, [row], |row| row.get(0)).map_err(StoreError::Read)
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

    /// Says how many calls a lane has made in all earlier sessions.
    pub fn set_calls(&mut self, lane: &Lane, calls: u64) -> Result<(), StoreError> {
        self.connection
            .execute(
                &format!("UPDATE lanes SET calls = ?5 WHERE {IS_LANE}"),
                params![self.run, lane.runner, variant(lane), lane.backend, calls],
            )
            .map_err(StoreError::Write)?;
        Ok(())
    }

    /// Where the calls of lanes are written down before they are made. What an earlier process
    /// wrote there is gone with this: `set_calls` keeps it. Every lane is in the store from now
    /// on, so that the calls of a process that is killed before its first event count as well.
    pub fn ledger<'a>(
        &mut self,
        lanes: impl IntoIterator<Item = &'a Lane>,
    ) -> Result<Ledger, StoreError> {
        let transaction = begin(&mut self.connection)?;
        let before = |lane: &'a Lane| {
            transaction.execute(
                "INSERT INTO lanes (run, runner, variant, backend, info) VALUES (?, ?, ?, ?, ?)
                 ON CONFLICT (run, runner, variant, backend) DO NOTHING",
                params![self.run, lane.runner, variant(lane), lane.backend, json(lane)],
            )?;
            let calls = transaction.query_row(
                &format!("SELECT calls FROM lanes WHERE {IS_LANE}"),
                params![self.run, lane.runner, variant(lane), lane.backend],
                |row| row.get(0),
            )?;
            Ok((lane, calls))
        };
        let lanes = lanes.into_iter().map(before).collect::<rusqlite::Result<Vec<_>>>();
        let lanes = lanes.map_err(StoreError::Write)?;
        transaction.commit().map_err(StoreError::Write)?;
        self.lock.ledger(&lanes)
    }

    /// Says how many results a lane is to have, where that is known only at its end.
    pub fn set_planned(&mut self, lane: usize, planned: u64) -> Result<(), StoreError> {
        let row = self.lanes[lane];
        let update = || {
            let info: String =
                self.connection
                    .query_row("SELECT info FROM lanes WHERE id = ?", [row], |it| it.get(0))?;
            if let Ok(info) = serde_json::from_str::<Lane>(&info) {
                let info = json(&Lane { planned, ..info });
                self.connection
                    .execute("UPDATE lanes SET info = ? WHERE id = ?", params![info, row])?;
            }
            Ok(())
        };
        update().map_err(StoreError::Write)
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
    let mut connection = open(path)?;
    let transaction = begin(&mut connection)?;
    let write = || {
        let row = insert_run(&transaction, run)?;
        let (mut lanes, mut last_system) = (Vec::new(), None);
        let mut writer = Writer {
            transaction: &transaction,
            run: row,
            lanes: &mut lanes,
            last_system: &mut last_system,
        };
        events.iter().try_for_each(|Stamped { at_ms, event }| writer.write(*at_ms, event))
    };
    write().and_then(|()| transaction.commit()).map_err(StoreError::Write)
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
    Ok(connection.last_insert_rowid())
}

/// Begins to write. Others that write are waited for here, and never halfway.
fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::Write)
}

/// Writes events within one transaction.
struct Writer<'a> {
    transaction: &'a Transaction<'a>,
    run: i64,
    lanes: &'a mut Vec<i64>,
    last_system: &'a mut Option<(Arc<str>, i64)>,
}

impl Writer<'_> {
    fn write(&mut self, at_ms: i64, event: &Event) -> rusqlite::Result<()> {
        match event {
            Event::RunStarted { lanes, .. } => {
                *self.lanes = lanes.iter().map(|lane| self.lane(lane)).collect::<Result<_, _>>()?;
                // Lanes that the suite no longer has.
                self.transaction.execute(
                    "UPDATE lanes SET retired = 1
                     WHERE run = ? AND retired = 0 AND id NOT IN (SELECT value FROM json_each(?))",
                    params![self.run, json(&*self.lanes)],
                )?;
                Ok(())
            }
            Event::CaseFinished { lane, record } => self.case(self.lanes[*lane], record),
            Event::CaseAborted { case, reason, used } => self.aborted(case, *reason, *used, at_ms),
            Event::LaneFinished { lane, status, calls } => {
                self.lane_status(self.lanes[*lane], status, *calls)
            }
            Event::RunFinished { complete } => {
                let status = match (*complete, self.any_decided()?) {
                    (true, false) => RunStatus::Complete,
                    (true, true) => RunStatus::Decided,
                    (false, _) => RunStatus::Incomplete,
                };
                self.transaction.execute(
                    "UPDATE runs SET status = ?, finished_ms = ? WHERE id = ?",
                    params![status.as_str(), at_ms, self.run],
                )?;
                Ok(())
            }
            Event::WorkersSeen(crew) => self.crew(at_ms, crew),
            Event::CaseStarted(_)
            | Event::AttemptFailed { .. }
            | Event::BackendPaused { .. }
            | Event::BackendTripped { .. }
            | Event::WorkersPaused { .. }
            | Event::WorkersResumed { .. }
            | Event::CancelStarted { .. } => Ok(()),
        }
    }

    /// How the workers stand, for those who look at the run meanwhile.
    fn crew(&self, at_ms: i64, crew: &Crew) -> rusqlite::Result<()> {
        self.transaction.execute(
            "INSERT INTO crews (run, at_ms, crew) VALUES (?1, ?2, ?3)
             ON CONFLICT (run) DO UPDATE SET at_ms = ?2, crew = ?3",
            params![self.run, at_ms, json(crew)],
        )?;
        Ok(())
    }

    /// Whether the gates of any lane were decided early.
    fn any_decided(&self) -> rusqlite::Result<bool> {
        let mut statement =
            self.transaction.prepare("SELECT status FROM lanes WHERE run = ? AND retired = 0")?;
        let mut rows = statement.query([self.run])?;
        while let Some(row) = rows.next()? {
            let status: Option<String> = row.get(0)?;
            let status = status.and_then(|it| serde_json::from_str::<LaneStatus>(&it).ok());
            if matches!(status, Some(LaneStatus::Decided { .. })) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The row of a lane; what is known of it may have changed since an earlier session.
    fn lane(&self, lane: &Lane) -> rusqlite::Result<i64> {
        let info = json(lane);
        // Mostly it is there as it is to be, and nothing has to reach the disk.
        let ready = self
            .transaction
            .prepare_cached(&format!(
                "SELECT id FROM lanes WHERE {IS_LANE} AND info = ?5 AND status IS NULL AND retired = 0"
            ))?
            .query_row(
                params![self.run, lane.runner, variant(lane), lane.backend, info],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(row) = ready {
            return Ok(row);
        }
        self.transaction.query_row(
            "INSERT INTO lanes (run, runner, variant, backend, info) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (run, runner, variant, backend)
             DO UPDATE SET info = ?5, status = NULL, retired = 0 RETURNING id",
            params![self.run, lane.runner, variant(lane), lane.backend, info],
            |row| row.get(0),
        )
    }

    fn lane_status(&self, lane: i64, status: &LaneStatus, calls: u64) -> rusqlite::Result<()> {
        let status = json(status);
        self.transaction.execute(
            "UPDATE lanes SET status = ?, calls = calls + ? WHERE id = ?",
            params![status, calls, lane],
        )?;
        Ok(())
    }

    fn case(&mut self, lane: i64, record: &CaseRecord) -> rusqlite::Result<()> {
        // What may replace something keeps copies of the pages that it changes, so it is only tried where there is something.
        static INSERT: LazyLock<String> = LazyLock::new(|| insert_result("INSERT OR IGNORE"));
        static REPLACE: LazyLock<String> = LazyLock::new(|| insert_result("INSERT OR REPLACE"));
        let definition = record.case.to_json();
        let row = self.text(&record.case_id, &definition)?;
        let system = self.system(record.request.shared_system())?;
        let new = |failures| NewResult::new(record, (row, &definition), system, failures);
        if !self.put(&INSERT, lane, &new(failures(None, record))?)? {
            let earlier = self.earlier(lane, record)?;
            self.put(&REPLACE, lane, &new(failures(earlier, record))?)?;
        }
        let result = self.transaction.last_insert_rowid();
        self.scores(result, &record.classification.scores)?;
        self.asked(result, &record.asked)?;
        self.tags(lane, &record.case.tags)
    }

    /// Whether the result is there now.
    fn put(&self, sql: &str, lane: i64, new: &NewResult<'_>) -> rusqlite::Result<bool> {
        let mut statement = self.transaction.prepare_cached(sql)?;
        new.bind(lane, &mut statement)?;
        Ok(statement.raw_execute()? > 0)
    }

    /// A case that was cut off. What its calls used stays counted when it is asked again.
    fn aborted(
        &self,
        case: &CaseKey,
        reason: Aborted,
        used: Spent,
        at_ms: i64,
    ) -> rusqlite::Result<()> {
        let CaseKey { lane, case_id, repeat } = case;
        let Spent { calls, usage, cost_usd } = used;
        self.transaction
            .prepare_cached(
                "INSERT INTO aborted (lane, case_id, repeat, reason, at_ms, calls, input_tokens,
                    output_tokens, cost_usd) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT DO UPDATE SET reason = ?4, at_ms = ?5, calls = calls + ?6,
                    input_tokens = input_tokens + ?7, output_tokens = output_tokens + ?8,
                    cost_usd = cost_usd + ?9",
            )?
            .execute(params![
                self.lanes[*lane],
                case_id,
                repeat,
                reason.as_str(),
                at_ms,
                calls,
                usage.input_tokens.unwrap_or(0),
                usage.output_tokens.unwrap_or(0),
                cost_usd,
            ])?;
        Ok(())
    }

    /// Every check of a case. Those of the result that it replaces went with that.
    fn scores(&self, result: i64, scores: &[Score]) -> rusqlite::Result<()> {
        static INSERT: LazyLock<String> =
            LazyLock::new(|| insert_part("scores", ScoreColumn::ALL.map(ScoreColumn::as_str)));
        for (place, score) in scores.iter().enumerate() {
            let mut statement = self.transaction.prepare_cached(&INSERT)?;
            statement.raw_bind_parameter(1, result)?;
            statement.raw_bind_parameter(2, place)?;
            bind_score(score, &mut statement)?;
            statement.raw_execute()?;
        }
        Ok(())
    }

    /// Every question of a case, likewise.
    fn asked(&mut self, result: i64, asked: &[Asked]) -> rusqlite::Result<()> {
        static INSERT: LazyLock<String> =
            LazyLock::new(|| insert_part("asked", AskedColumn::ALL.map(AskedColumn::as_str)));
        for (place, it) in asked.iter().enumerate() {
            let system = self.system(it.request.shared_system())?;
            let mut statement = self.transaction.prepare_cached(&INSERT)?;
            statement.raw_bind_parameter(1, result)?;
            statement.raw_bind_parameter(2, place)?;
            bind_asked(it, system, &mut statement)?;
            statement.raw_execute()?;
        }
        Ok(())
    }

    /// What the lane has a table of.
    fn tags(&self, lane: i64, tags: &[String]) -> rusqlite::Result<()> {
        for tag in tags {
            self.transaction
                .prepare_cached("INSERT OR IGNORE INTO lane_tags (lane, tag) VALUES (?, ?)")?
                .execute(params![lane, tag])?;
        }
        Ok(())
    }

    /// The tries that failed of the result that this one replaces.
    fn earlier(&self, lane: i64, record: &CaseRecord) -> rusqlite::Result<Option<String>> {
        let earlier = self
            .transaction
            .prepare_cached(
                "SELECT failures FROM results WHERE lane = ? AND case_id = ? AND repeat = ?",
            )?
            .query_row(params![lane, record.case_id, record.repeat], |row| row.get(0))
            .optional()?;
        Ok(earlier.flatten())
    }

    /// The row of instructions; most cases of a run share them.
    fn system(&mut self, text: Option<Arc<str>>) -> rusqlite::Result<Option<i64>> {
        let Some(text) = text else { return Ok(None) };
        if let Some((last, row)) = self.last_system.as_ref()
            && *last == text
        {
            return Ok(Some(*row));
        }
        let row = self.text("", &text)?;
        *self.last_system = Some((text, row));
        Ok(Some(row))
    }

    /// The row of a text that may be there already.
    ///
    /// Its key begins as the name of what it belongs to. Cases that are recorded one after the other have names that
    /// are alike, so their keys stand on a few pages of the index; hashes alone would stand on a page each, and a commit writes whole
    /// pages.
    fn text(&self, name: &str, text: &str) -> rusqlite::Result<i64> {
        let mut key = name.as_bytes()[..name.len().min(KEY_PREFIX)].to_vec();
        key.extend_from_slice(&InputDigest::of([text.as_bytes()]).0);
        let made = self
            .transaction
            .prepare_cached("INSERT OR IGNORE INTO texts (hash, text) VALUES (?, ?)")?
            .execute(params![key, text])?;
        match made {
            0 => self
                .transaction
                .prepare_cached("SELECT id FROM texts WHERE hash = ?")?
                .query_row([key], |row| row.get(0)),
            _ => Ok(self.transaction.last_insert_rowid()),
        }
    }
}

fn insert_result(verb: &str) -> String {
    let places = ", ?".repeat(Column::ALL.len());
    format!("{verb} INTO results (lane, {}) VALUES (?{places})", Column::names())
}

/// The tries that failed, with those of before.
fn failures(earlier: Option<String>, record: &CaseRecord) -> Option<String> {
    let mut all: Vec<FailedAttempt> = match earlier {
        None if record.failures.is_empty() => return None,
        None => Vec::new(),
        Some(text) => serde_json::from_str(&text).unwrap_or_default(),
    };
    all.extend_from_slice(&record.failures);
    (!all.is_empty()).then(|| json(&all))
}

#[cfg(test)]
mod tests;
