//! The one writer of a run.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use probity_core::{
    event::{CaseKey, Event, Stamped},
    record::{Asked, CaseRecord, InputDigest, Lane, LaneStatus, Usage},
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::{StoreError, make_folder, open};

/// A run that is about to begin.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name.
    pub run_id: String,
    /// What the suite is called.
    pub suite: String,
    /// When it begins, in milliseconds since 1970.
    pub started_ms: i64,
    /// Whatever else is to be known of it, a JSON object.
    pub info: serde_json::Value,
}

/// Writes the events of one run. Whoever has it is the only one at work on the run.
#[derive(Debug)]
pub struct Recorder {
    connection: Connection,
    run: i64,
    /// Rows of the lanes, by their place in `run-started`.
    lanes: Vec<i64>,
    /// The last instructions and their row; most cases of a run share them.
    last_system: Option<(std::sync::Arc<str>, i64)>,
    lock: Lock,
}

impl Recorder {
    /// Begins a run.
    pub fn create(path: &Path, run: &NewRun) -> Result<Self, StoreError> {
        make_folder(path)?;
        let connection = open(path)?;
        let lock = Lock::take(path, &run.run_id)?;
        connection
            .execute(
                "INSERT INTO runs (run_id, suite, started_ms, status, info) VALUES (?, ?, ?, 'running', ?)",
                params![run.run_id, run.suite, run.started_ms, run.info.to_string()],
            )
            .map_err(StoreError::Write)?;
        let row = connection.last_insert_rowid();
        Ok(Self::new(connection, row, lock))
    }

    /// Goes on with a run.
    pub fn resume(path: &Path, run_id: &str) -> Result<Self, StoreError> {
        let connection = open(path)?;
        let lock = Lock::take(path, run_id)?;
        let row: Option<i64> = connection
            .query_row("SELECT id FROM runs WHERE run_id = ?", [run_id], |row| row.get(0))
            .optional()
            .map_err(StoreError::Read)?;
        let row = row.ok_or_else(|| StoreError::UnknownRun(run_id.to_owned()))?;
        connection
            .execute("UPDATE runs SET status = 'running', finished_ms = NULL WHERE id = ?", [row])
            .map_err(StoreError::Write)?;
        Ok(Self::new(connection, row, lock))
    }

    fn new(connection: Connection, run: i64, lock: Lock) -> Self {
        connection.set_prepared_statement_cache_capacity(64);
        Self { connection, run, lanes: Vec::new(), last_system: None, lock }
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
            let mut all =
                transaction.prepare("SELECT id, case_id, repeat FROM results WHERE lane = ?")?;
            let mut update = transaction.prepare("UPDATE results SET stale = ? WHERE id = ?")?;
            let mut rows = all.query([row])?;
            while let Some(row) = rows.next()? {
                let (id, case_id, repeat): (i64, String, u32) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                let stale = !is_current(&case_id, repeat);
                marked += u64::from(stale);
                update.execute(params![stale, id])?;
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
        let mut writer = Writer { transaction: &transaction, run: *run, lanes, last_system };
        for Stamped { at_ms, event } in events {
            writer.write(*at_ms, event).map_err(StoreError::Write)?;
        }
        transaction.commit().map_err(StoreError::Write)
    }

    fn find_lane(&self, lane: &Lane) -> rusqlite::Result<Option<i64>> {
        self.connection
            .query_row(
                "SELECT id FROM lanes WHERE run = ? AND runner = ? AND backend = ?",
                params![self.run, lane.runner, lane.backend],
                |row| row.get(0),
            )
            .optional()
    }

    /// Ends the work on the run.
    pub fn close(self) {
        let Self { connection, lock, .. } = self;
        // A write-ahead log that could not be folded in is read by the next who opens it.
        let _ = connection.close();
        lock.release();
    }
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
    last_system: &'a mut Option<(std::sync::Arc<str>, i64)>,
}

impl Writer<'_> {
    fn write(&mut self, at_ms: i64, event: &Event) -> rusqlite::Result<()> {
        match event {
            Event::RunStarted { lanes, .. } => {
                self.transaction
                    .execute("UPDATE lanes SET retired = 1 WHERE run = ?", [self.run])?;
                *self.lanes = lanes.iter().map(|lane| self.lane(lane)).collect::<Result<_, _>>()?;
                Ok(())
            }
            Event::CaseFinished { lane, record } => self.case(self.lanes[*lane], record),
            Event::CaseAborted { case: CaseKey { lane, case_id, repeat }, reason } => {
                self.transaction
                    .prepare_cached("INSERT OR REPLACE INTO aborted VALUES (?, ?, ?, ?, ?)")?
                    .execute(params![self.lanes[*lane], case_id, repeat, reason.as_str(), at_ms])?;
                Ok(())
            }
            Event::LaneFinished { lane, status, calls } => {
                self.lane_status(self.lanes[*lane], status, *calls)
            }
            Event::RunFinished { complete } => {
                let decided: u64 = self.transaction.query_row(
                    "SELECT count(*) FROM lanes WHERE run = ? AND retired = 0
                     AND status LIKE '{\"decided\"%'",
                    [self.run],
                    |row| row.get(0),
                )?;
                let status = match (*complete, decided) {
                    (true, 0) => "complete",
                    (true, _) => "decided",
                    (false, _) => "incomplete",
                };
                self.transaction.execute(
                    "UPDATE runs SET status = ?, finished_ms = ? WHERE id = ?",
                    params![status, at_ms, self.run],
                )?;
                Ok(())
            }
            Event::CaseStarted(_)
            | Event::AttemptFailed { .. }
            | Event::BackendPaused { .. }
            | Event::BackendTripped { .. }
            | Event::CancelStarted { .. } => Ok(()),
        }
    }

    /// The row of a lane; what is known of it may have changed since an earlier sitting.
    fn lane(&self, lane: &Lane) -> rusqlite::Result<i64> {
        let info = serde_json::to_string(lane).unwrap_or_default();
        self.transaction.query_row(
            "INSERT INTO lanes (run, runner, backend, info) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (run, runner, backend) DO UPDATE SET info = ?4, status = NULL, retired = 0
             RETURNING id",
            params![self.run, lane.runner, lane.backend, info],
            |row| row.get(0),
        )
    }

    fn lane_status(&self, lane: i64, status: &LaneStatus, calls: u64) -> rusqlite::Result<()> {
        let status = serde_json::to_string(status).unwrap_or_default();
        self.transaction.execute(
            "UPDATE lanes SET status = ?, calls = calls + ? WHERE id = ?",
            params![status, calls, lane],
        )?;
        Ok(())
    }

    fn case(&mut self, lane: i64, record: &CaseRecord) -> rusqlite::Result<()> {
        let definition = self.text(&record.case)?;
        let system = match &record.system {
            None => None,
            Some(system) => Some(self.system(system)?),
        };
        let failures = self.failures(lane, record)?;
        let error = record.error.as_ref().and_then(|error| serde_json::to_string(error).ok());
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO results (
                    lane, case_id, repeat, input, definition, system, prompt, reply, error,
                    stop_reason, model, source, latency_ms, input_tokens, output_tokens,
                    cached_tokens, cost_usd, calls, failures, started_ms, elapsed_ms, class,
                    verdict, classification)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                lane,
                record.case_id,
                record.repeat,
                record.input.0,
                definition,
                system,
                record.prompt,
                record.reply,
                error,
                record.stop_reason,
                record.model,
                record.source.as_str(),
                record.latency_ms,
                record.usage.input_tokens,
                record.usage.output_tokens,
                record.usage.cached_tokens,
                record.cost_usd,
                record.calls,
                failures,
                record.started_ms,
                record.elapsed_ms,
                record.primary.as_str(),
                record.verdict.as_str(),
                record.classification.get(),
            ])?;
        if !record.asked.is_empty() {
            self.asked(self.transaction.last_insert_rowid(), &record.asked)?;
        }
        self.transaction
            .prepare_cached("DELETE FROM aborted WHERE lane = ? AND case_id = ? AND repeat = ?")?
            .execute(params![lane, record.case_id, record.repeat])?;
        Ok(())
    }

    /// Every question of a case. Those of the result that it replaces went with that.
    fn asked(&mut self, result: i64, asked: &[Asked]) -> rusqlite::Result<()> {
        for (place, it) in asked.iter().enumerate() {
            let system = match &it.system {
                None => None,
                Some(system) => Some(self.system(system)?),
            };
            let Usage { input_tokens, output_tokens, cached_tokens, estimated: _ } = it.usage;
            self.transaction
                .prepare_cached(
                    "INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    result,
                    place,
                    it.role,
                    it.backend,
                    system,
                    it.prompt,
                    it.reply,
                    it.error,
                    it.model,
                    it.source.as_str(),
                    it.latency_ms,
                    input_tokens,
                    output_tokens,
                    cached_tokens,
                    it.cost_usd,
                    it.calls,
                ])?;
        }
        Ok(())
    }

    /// The tries that failed, with those of the result that this one replaces before them.
    fn failures(&self, lane: i64, record: &CaseRecord) -> rusqlite::Result<Option<String>> {
        let earlier: Option<Option<String>> = self
            .transaction
            .prepare_cached(
                "SELECT failures FROM results WHERE lane = ? AND case_id = ? AND repeat = ?",
            )?
            .query_row(params![lane, record.case_id, record.repeat], |row| row.get(0))
            .optional()?;
        let mut all: Vec<serde_json::Value> =
            earlier.flatten().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        all.extend(record.failures.iter().filter_map(|it| serde_json::to_value(it).ok()));
        Ok((!all.is_empty()).then(|| serde_json::Value::from(all).to_string()))
    }

    fn system(&mut self, text: &std::sync::Arc<str>) -> rusqlite::Result<i64> {
        if let Some((last, row)) = self.last_system.as_ref()
            && last == text
        {
            return Ok(*row);
        }
        let row = self.text(text)?;
        *self.last_system = Some((text.clone(), row));
        Ok(row)
    }

    /// The row of a text that may be there already.
    fn text(&self, text: &str) -> rusqlite::Result<i64> {
        let hash = InputDigest::of([text.as_bytes()]).0;
        let known: Option<i64> = self
            .transaction
            .prepare_cached("SELECT id FROM texts WHERE hash = ?")?
            .query_row([hash], |row| row.get(0))
            .optional()?;
        match known {
            Some(row) => Ok(row),
            None => self
                .transaction
                .prepare_cached("INSERT INTO texts (hash, text) VALUES (?, ?)")?
                .insert(params![hash, text]),
        }
    }
}

/// Keeps other processes from working on the same run. It goes with the process,
/// however that ends.
#[derive(Debug)]
struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    fn take(store: &Path, run_id: &str) -> Result<Self, StoreError> {
        let mut name = store.as_os_str().to_owned();
        name.push(format!(".{run_id}.lock"));
        let path = PathBuf::from(name);
        let failed = |source| StoreError::Lock { path: path.clone(), source };
        let file = File::create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, path }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy(run_id.to_owned())),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    fn release(self) {
        // The name first: whoever finds the file locks it, and one without a name is found
        // by nobody.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Whether a process is at work on a run.
pub(crate) fn is_busy(store: &Path, run_id: &str) -> bool {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".{run_id}.lock"));
    match File::open(PathBuf::from(name)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}
