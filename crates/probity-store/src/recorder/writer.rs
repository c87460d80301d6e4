//! Writes events, each as the rows that it is kept in.

use std::sync::{Arc, LazyLock};

use probity_core::{
    crew::Crew,
    event::{CaseKey, Event},
    record::{
        Aborted, Asked, CaseRecord, FailedAttempt, InputDigest, Lane, LaneStatus, RunStatus, Spent,
    },
    score::Score,
};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{IS_LANE, count_lanes, variant};
use crate::{
    result::{
        Column, NewResult, json,
        parts::{AskedColumn, ScoreColumn, bind_asked, bind_score, insert_part},
    },
    sealed::{LANES, RUNS},
};

/// Bytes of a name that the key of a text begins with.
const KEY_PREFIX: usize = 16;

/// Writes events within one transaction.
pub(super) struct Writer<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) run: i64,
    /// Rows of the lanes, by their place in `run-started`.
    pub(super) lanes: &'a mut Vec<i64>,
    pub(super) last_system: &'a mut Option<(Arc<str>, i64)>,
}

impl Writer<'_> {
    pub(super) fn write(&mut self, at_ms: i64, event: &Event) -> rusqlite::Result<()> {
        match event {
            Event::RunStarted { lanes, .. } => {
                *self.lanes = lanes.iter().map(|lane| self.lane(lane)).collect::<Result<_, _>>()?;
                // Lanes that the suite no longer has.
                let mut retire = self.transaction.prepare(
                    "UPDATE lanes SET retired = 1
                     WHERE run = ? AND retired = 0 AND id NOT IN (SELECT value FROM json_each(?)) RETURNING id",
                )?;
                let retired =
                    retire.query_map(params![self.run, json(&*self.lanes)], |row| row.get(0))?;
                for row in retired.collect::<rusqlite::Result<Vec<i64>>>()? {
                    LANES.renew(self.transaction, row)?;
                }
                count_lanes(self.transaction, self.run)
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
                RUNS.renew(self.transaction, self.run)
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
        let row = self.transaction.query_row(
            "INSERT INTO lanes (run, runner, variant, backend, info) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (run, runner, variant, backend)
             DO UPDATE SET info = ?5, status = NULL, retired = 0 RETURNING id",
            params![self.run, lane.runner, variant(lane), lane.backend, info],
            |row| row.get(0),
        )?;
        LANES.renew(self.transaction, row)?;
        Ok(row)
    }

    fn lane_status(&self, lane: i64, status: &LaneStatus, calls: u64) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("UPDATE lanes SET status = ?, calls = calls + ? WHERE id = ?")?
            .execute(params![json(status), calls, lane])?;
        LANES.renew(self.transaction, lane)
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
