//! What a run has come to lately.

use probity_core::{
    crew::Crew,
    failure::ErrorKind,
    record::{CallError, CaseRecord, FailedAttempt},
};
use rusqlite::{OptionalExtension as _, params_from_iter, types::Value};

use super::places;
use crate::{
    LaneView, Reader, RunRow, StoreError,
    result::{Json, Name},
};

/// Results that are looked through for what was waited for.
const LATEST: usize = 200;

/// A result that did not pass.
#[derive(Clone, Debug)]
pub struct Failing {
    /// The place of its lane among those that were asked for.
    pub lane: usize,
    /// The result.
    pub record: CaseRecord,
}

/// Calls that failed and were tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Waited {
    /// The place of the lane among those that were asked for.
    pub lane: usize,
    /// The last such error.
    pub error: CallError,
    /// How long was waited after it.
    pub wait_ms: u64,
    /// How many of the latest results had to wait for such an error.
    pub count: u64,
}

/// Results without a reply that have the same reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// The kind of error.
    pub kind: ErrorKind,
    /// What was said.
    pub message: String,
    /// How many.
    pub count: u64,
    /// One of the cases.
    pub case_id: String,
}

impl Reader {
    /// The last results that did not pass, the latest first.
    pub fn last_failures(
        &self,
        lanes: &[&LaneView],
        most: usize,
    ) -> Result<Vec<Failing>, StoreError> {
        let read = || {
            // The plus keeps SQLite from walking the whole table backwards.
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT id, lane FROM results WHERE lane IN {} AND verdict IN ('fail', 'error')
                 AND stale = 0 ORDER BY +id DESC LIMIT {most}",
                places(lanes.len())
            ))?;
            let rows = statement.query_map(rows_of(lanes), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<(i64, i64)>>>()
        };
        let found = read().map_err(StoreError::of_reading)?;
        let failing = found.into_iter().map(|(row, lane)| {
            Ok(Failing { lane: place_of(lanes, lane), record: self.record_at(row)? })
        });
        failing.collect()
    }

    /// What the latest results had to wait for, by lane and kind of error.
    pub fn waits(&self, lanes: &[&LaneView]) -> Result<Vec<Waited>, StoreError> {
        let mut waits: Vec<Waited> = Vec::new();
        let mut read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT lane, failures FROM (SELECT lane, failures FROM results ORDER BY id DESC LIMIT {LATEST})
                 WHERE lane IN {} AND failures IS NOT NULL",
                places(lanes.len())
            ))?;
            let mut rows = statement.query(rows_of(lanes))?;
            while let Some(row) = rows.next()? {
                let lane = place_of(lanes, row.get(0)?);
                let Json(failures): Json<Vec<FailedAttempt>> = row.get(1)?;
                let mut waited =
                    failures.into_iter().filter_map(|it| Some((it.error, it.retry_in_ms?)));
                if let Some((error, wait_ms)) = waited.next_back() {
                    let same = |it: &&mut Waited| it.lane == lane && it.error.kind == error.kind;
                    match waits.iter_mut().find(same) {
                        Some(known) => known.count += 1,
                        None => waits.push(Waited { lane, error, wait_ms, count: 1 }),
                    }
                }
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)?;
        Ok(waits)
    }

    /// How the workers of a run stood when the run last looked, and when that was; none if it has no workers.
    pub fn crew(&self, run: &RunRow) -> Result<Option<(i64, Crew)>, StoreError> {
        let read = || {
            let sql =
                "SELECT at_ms, crew FROM crews WHERE run = (SELECT id FROM runs WHERE run_id = ?)";
            let mut statement = self.connection.prepare_cached(sql)?;
            let row = statement.query_row([&run.run_id], |row| {
                let Json(crew) = row.get(1)?;
                Ok((row.get(0)?, crew))
            });
            row.optional()
        };
        read().map_err(StoreError::of_reading)
    }

    /// Results without a reply by what was said, the most frequent first.
    pub fn troubles(&self, lanes: &[&LaneView], most: usize) -> Result<Vec<Trouble>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT error_kind, json_extract(error, '$.message'), count(*), min(case_id)
                 FROM results WHERE lane IN {} AND verdict = 'error' AND stale = 0 AND error IS NOT NULL
                 GROUP BY 1, 2 ORDER BY 3 DESC, 2 LIMIT {most}",
                places(lanes.len())
            ))?;
            let rows = statement.query_map(rows_of(lanes), |row| {
                let Name(kind) = row.get(0)?;
                let (message, count, case_id) = (row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(Trouble { kind, message, count, case_id })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::of_reading)
    }
}

fn rows_of(lanes: &[&LaneView]) -> impl rusqlite::Params + use<> {
    params_from_iter(lanes.iter().map(|it| Value::from(it.row)).collect::<Vec<_>>())
}

fn place_of(lanes: &[&LaneView], row: i64) -> usize {
    lanes.iter().position(|it| it.row == row).unwrap_or(0)
}
