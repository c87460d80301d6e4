//! Views of what is kept.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use probity_core::{
    case_outcome::Changes,
    classification::{Counts, Verdict},
    metrics::Verdicts,
    record::{Asked, CallError, CaseRecord, Lane, LaneStatus, Source, Spent, Usage},
    score::Score,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::{
    ReadOnly, RunRow, StoreError,
    lock::is_busy,
    open, open_to_read,
    result::{
        self, Json, Name, not_as_written,
        parts::{ScoreColumn, read_asked, read_score, select_asked},
        sums::Summed,
    },
    sealed::LANES,
};

/// Reads a store.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    is_immutable: bool,
}

/// One lane of a run.
#[derive(Clone, Debug)]
pub struct LaneView {
    pub(crate) row: i64,
    /// What was run on what.
    pub lane: Lane,
    /// How it ended; none while it runs.
    pub status: Option<LaneStatus>,
    /// Calls that were made, in all sessions.
    pub calls: u64,
}

impl LaneView {
    /// Whether everything that was planned came to an end.
    pub fn is_complete(&self) -> bool {
        self.status.as_ref().is_some_and(LaneStatus::is_complete)
    }
}

/// Counts of a lane, made from its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many results each of the eight classes has.
    pub classes: Counts,
    /// How many results each verdict has.
    pub verdicts: Verdicts,
    /// Answered by the cache.
    pub cached: u64,
    /// Answered from a recording.
    pub replayed: u64,
    /// Calls that were made for these results.
    pub calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Results that have a price.
    pub priced: u64,
}

impl Tally {
    /// All results.
    pub fn total(&self) -> u64 {
        self.classes.total()
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        let Self {
            classes,
            verdicts,
            cached,
            replayed,
            calls,
            input_tokens,
            output_tokens,
            cost_usd,
            priced,
        } = other;
        self.classes.merge(classes);
        self.verdicts.merge(*verdicts);
        self.cached += cached;
        self.replayed += replayed;
        self.calls += calls;
        self.input_tokens += input_tokens;
        self.output_tokens += output_tokens;
        self.cost_usd += cost_usd;
        self.priced += priced;
    }
}

impl Reader {
    /// Opens a store that is there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        Ok(Self::of(open(path)?, path.to_owned()))
    }

    /// Reads what a connection is to.
    pub(crate) fn of(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path, is_immutable: false }
    }

    /// Opens a store that is there for looking at it: nothing is written, and nobody who writes waits.
    pub fn open_to_look(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        let read_only = || {
            let ReadOnly { connection, is_immutable } = open_to_read(path)?;
            Some(Self { connection, path: path.to_owned(), is_immutable })
        };
        if let Some(reader) = read_only() {
            return Ok(reader);
        }
        // Of an older format, perhaps: it is brought to the newest once.
        let opened = Self::open(path)?;
        Ok(read_only().unwrap_or(opened))
    }

    /// Whether it takes the file for one that nobody changes, and does not see what others write.
    pub fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    /// Gives up what is read after this time.
    pub fn stop_at(&mut self, deadline: Instant) -> Result<(), StoreError> {
        /// Steps of SQLite between two looks at the clock.
        const STEPS: i32 = 10_000;
        let is_over = move || Instant::now() >= deadline;
        self.connection.progress_handler(STEPS, Some(is_over)).map_err(StoreError::of_reading)
    }

    /// The lanes of a run, in the order they were planned.
    pub fn lanes(&self, run: &RunRow) -> Result<Vec<LaneView>, StoreError> {
        let read = || {
            // Lanes that do not count are read as well: whether they do not is what may be damaged.
            let sql = format!("SELECT {} FROM lanes WHERE run = ? ORDER BY id", LANES.select());
            let mut statement = self.connection.prepare_cached(&sql)?;
            let rows = statement.query_map([run.row], |row| {
                LANES.check(row)?;
                let is_retired: bool = row.get(LANES.place("retired"))?;
                let lane = (
                    row.get(0)?,
                    row.get(LANES.place("info"))?,
                    row.get(LANES.place("status"))?,
                    row.get(LANES.place("calls"))?,
                );
                Ok((!is_retired).then_some(lane))
            })?;
            rows.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()
        };
        let rows: Vec<(i64, String, Option<String>, u64)> =
            read().map_err(StoreError::of_reading)?;
        self.check_lane_count(run).map_err(StoreError::of_reading)?;
        let unexpected = |error: serde_json::Error| StoreError::Content(format!("a lane: {error}"));
        rows.into_iter()
            .map(|(row, info, status, calls)| {
                let lane = serde_json::from_str(&info).map_err(unexpected)?;
                let status = status.map(|status| serde_json::from_str(&status)).transpose();
                Ok(LaneView { row, lane, status: status.map_err(unexpected)?, calls })
            })
            .collect()
    }

    /// Says so if lanes of a run are gone. Runs of older versions do not know how many they have.
    fn check_lane_count(&self, run: &RunRow) -> rusqlite::Result<()> {
        // In one statement: a run that is taken up may have more lanes a moment later.
        let mut statement = self.connection.prepare_cached(
            "SELECT lane_count, (SELECT count(*) FROM lanes WHERE run = runs.id AND retired = 0)
             FROM runs WHERE id = ?",
        )?;
        let counts = statement.query_row([run.row], |row| Ok((row.get(0)?, row.get(1)?)));
        let (had, has): (Option<u64>, u64) = counts.optional()?.unwrap_or_default();
        match had {
            Some(had) if had != has => {
                let what = format!("{has} of its {had} lanes are there");
                Err(not_as_written("run", &run.run_id, &what))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The counts of a lane.
    pub fn tally(&self, lane: &LaneView) -> Result<Tally, StoreError> {
        let mut tally = Tally::default();
        let mut read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT class, verdict, source, count(*), sum(calls), sum(coalesce(input_tokens, 0)),
                        sum(coalesce(output_tokens, 0)), sum(coalesce(cost_usd, 0.0)), count(cost_usd)
                 FROM results WHERE lane = ? AND stale = 0 GROUP BY class, verdict, source
                 ORDER BY class, verdict, source",
            )?;
            let mut rows = statement.query([lane.row])?;
            while let Some(row) = rows.next()? {
                let (Name(class), Name(verdict), Name(source)) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                let count: u64 = row.get(3)?;
                tally.classes.add_many(class, count);
                tally.verdicts.add_many(verdict, count);
                match source {
                    Source::Backend | Source::Imported => {}
                    Source::Cache => tally.cached += count,
                    Source::Replay => tally.replayed += count,
                }
                tally.calls += row.get::<_, u64>(4)?;
                tally.input_tokens += row.get::<_, u64>(5)?;
                tally.output_tokens += row.get::<_, u64>(6)?;
                tally.cost_usd += row.get::<_, f64>(7)?;
                tally.priced += row.get::<_, u64>(8)?;
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)?;
        Ok(tally)
    }

    /// The counts of all lanes of a run together.
    pub fn run_tally(&self, run: &RunRow) -> Result<Tally, StoreError> {
        let mut total = Tally::default();
        for lane in self.lanes(run)? {
            total.add(&self.tally(&lane)?);
        }
        Ok(total)
    }

    /// The results of a lane one by one, in the order of their ids: the order in which they
    /// came to an end is chance.
    pub fn cases(
        &self,
        lane: &LaneView,
        mut each: impl FnMut(CaseRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql =
            format!("{} WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat", result::select());
        let mut statement = self.connection.prepare_cached(&sql).map_err(StoreError::of_reading)?;
        let mut rows = statement.query([lane.row]).map_err(StoreError::of_reading)?;
        while let Some(row) = rows.next().map_err(StoreError::of_reading)? {
            each(self.record(row)?)?;
        }
        Ok(())
    }

    /// The results of one case of a lane, a repeat each.
    pub fn case(&self, lane: &LaneView, case_id: &str) -> Result<Vec<CaseRecord>, StoreError> {
        let sql = format!("{} WHERE lane = ? AND case_id = ? ORDER BY repeat", result::select());
        let mut statement = self.connection.prepare_cached(&sql).map_err(StoreError::of_reading)?;
        let mut rows =
            statement.query(params![lane.row, case_id]).map_err(StoreError::of_reading)?;
        let mut cases = Vec::new();
        while let Some(row) = rows.next().map_err(StoreError::of_reading)? {
            cases.push(self.record(row)?);
        }
        Ok(cases)
    }

    /// Why cases of a lane did not pass.
    pub fn reasons(
        &self,
        lane: &LaneView,
        ids: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        /// More than anybody reads, and few enough to look up one by one.
        const MOST: usize = 1000;
        let mut reasons = BTreeMap::new();
        for id in ids.iter().take(MOST) {
            let cases = self.case(lane, id)?;
            let failed = cases.iter().find(|case| case.verdict != Verdict::Pass);
            if let Some(case) = failed {
                reasons.insert(id.clone(), format!("{}: {}", case.class, case.why()));
            }
        }
        Ok(reasons)
    }

    /// Why cases that flipped between two lanes did not pass, in the lane where they did not.
    pub fn reasons_of_flips(
        &self,
        [before, now]: [&LaneView; 2],
        changes: &Changes,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut reasons = self.reasons(now, &changes.regressions)?;
        reasons.extend(self.reasons(now, &changes.lost)?);
        reasons.extend(self.reasons(before, &changes.fixes)?);
        Ok(reasons)
    }

    /// The record in a row, with its scores and its questions.
    pub(crate) fn record(&self, row: &Row<'_>) -> Result<CaseRecord, StoreError> {
        let read = || {
            let mut record = result::read(row)?;
            let result = result::row_id(row)?;
            record.classification.scores = self.scores(result)?;
            result::check_facts(row, &record)?;
            if result::may_have_asked(row)? {
                let mut summed = Summed::default();
                record.asked = self.asked(result, &mut summed)?;
                result::check_asked(row, &summed, &record)?;
            }
            Ok(record)
        };
        read().map_err(StoreError::of_reading)
    }

    fn scores(&self, result: i64) -> rusqlite::Result<Vec<Score>> {
        let columns = ScoreColumn::ALL.map(ScoreColumn::as_str).join(", ");
        let sql = format!("SELECT {columns} FROM scores WHERE result = ? ORDER BY place");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement.query_map([result], |row| read_score(row, 0))?.collect()
    }

    fn asked(&self, result: i64, summed: &mut Summed) -> rusqlite::Result<Vec<Asked>> {
        let mut statement = self.connection.prepare_cached(&select_asked())?;
        statement.query_map([result], |row| read_asked(row, summed))?.collect()
    }

    /// Ids of the cases of a run whose verdict is one of these, sorted.
    pub fn ids_by_verdict(
        &self,
        run: &RunRow,
        verdicts: &[Verdict],
    ) -> Result<Vec<String>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT DISTINCT case_id, verdict FROM results JOIN lanes ON lanes.id = lane
                 WHERE run = ? AND stale = 0 AND retired = 0 ORDER BY case_id",
            )?;
            let rows = statement.query_map([run.row], |row| {
                let Name(verdict) = row.get(1)?;
                Ok((row.get::<_, String>(0)?, verdict))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = read().map_err(StoreError::of_reading)?;
        let wanted = |verdict: &Verdict| verdicts.contains(verdict);
        let mut ids: Vec<String> =
            rows.into_iter().filter(|(_, verdict)| wanted(verdict)).map(|(id, _)| id).collect();
        ids.dedup();
        Ok(ids)
    }

    /// How many cases of a lane had begun, were given up and have no result.
    pub fn aborted(&self, lane: &LaneView) -> Result<u64, StoreError> {
        self.connection
            .query_row(
                "SELECT count(*) FROM aborted a WHERE lane = ? AND NOT EXISTS (
                    SELECT 1 FROM results r WHERE r.lane = a.lane AND r.case_id = a.case_id
                    AND r.repeat = a.repeat)",
                [lane.row],
                |row| row.get(0),
            )
            .map_err(StoreError::of_reading)
    }

    /// The last error of a call that a case of a lane ended in.
    pub fn last_error(&self, lane: &LaneView) -> Result<Option<CallError>, StoreError> {
        let found = self
            .connection
            .query_row(
                "SELECT error FROM results WHERE lane = ? AND error IS NOT NULL AND stale = 0
                 ORDER BY started_ms DESC, id DESC LIMIT 1",
                [lane.row],
                |row| row.get::<_, Json<CallError>>(0),
            )
            .optional();
        Ok(found.map_err(StoreError::of_reading)?.map(|it| it.0))
    }

    /// What calls of a lane used whose cases were cut off.
    pub fn cut_off(&self, lane: &LaneView) -> Result<Spent, StoreError> {
        self.connection
            .query_row(
                "SELECT coalesce(sum(calls), 0), coalesce(sum(input_tokens), 0),
                    coalesce(sum(output_tokens), 0), coalesce(sum(cost_usd), 0.0)
                 FROM aborted WHERE lane = ?",
                [lane.row],
                |row| {
                    let usage = Usage {
                        input_tokens: Some(row.get(1)?),
                        output_tokens: Some(row.get(2)?),
                        ..Usage::default()
                    };
                    Ok(Spent { calls: row.get(0)?, usage, cost_usd: row.get(3)? })
                },
            )
            .map_err(StoreError::of_reading)
    }

    /// Removes a run with all that belongs to it, damaged or not.
    pub fn remove(&self, run_id: &str) -> Result<(), StoreError> {
        if self.is_busy(run_id) {
            return Err(StoreError::Busy(run_id.to_owned()));
        }
        let removed = self.connection.execute("DELETE FROM runs WHERE run_id = ?", [run_id]);
        removed.map(|_| ()).map_err(StoreError::Write)
    }

    /// Whether a process is at work on a run.
    pub fn is_busy(&self, run_id: &str) -> bool {
        is_busy(&self.path, run_id)
    }

    /// Removes texts that no record needs, and gives the space back. Returns how many.
    pub fn compact(&self) -> Result<usize, StoreError> {
        let removed = self
            .connection
            .execute(
                "DELETE FROM texts WHERE id NOT IN (
                    SELECT definition FROM results
                    UNION SELECT system FROM results WHERE system IS NOT NULL
                    UNION SELECT system FROM asked WHERE system IS NOT NULL)",
                [],
            )
            .map_err(StoreError::Write)?;
        self.connection.execute_batch("VACUUM").map_err(StoreError::Write)?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_at_its_deadline() {
        let connection = Connection::open_in_memory().unwrap();
        let mut reader = Reader { connection, path: PathBuf::new(), is_immutable: false };
        reader.stop_at(Instant::now()).unwrap();
        let sql =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)
                   SELECT count(*) FROM n";
        let read = reader.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert!(read.map_err(StoreError::of_reading).unwrap_err().is_interrupted());
    }
}
