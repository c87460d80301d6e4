//! Which runs there are.

use std::{collections::BTreeMap, ops::ControlFlow};

use probity_core::{
    metrics::Verdicts,
    record::{Imported, RunInfo, RunStatus},
};
use rusqlite::{OptionalExtension as _, Row, params};
use serde::Deserialize;

use crate::{
    Reader, StoreError, id,
    lock::is_busy,
    result::{Json, Name},
    sealed::RUNS,
};

/// One run, without its results.
#[derive(Clone, Debug)]
pub struct RunRow {
    pub(crate) row: i64,
    /// Its name.
    pub run_id: String,
    /// What the suite is called.
    pub suite: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended; none while it runs, and when it was killed.
    pub finished_ms: Option<i64>,
    /// How far it came.
    pub status: RunStatus,
    /// What else is known of it.
    pub info: RunInfo,
}

impl RunRow {
    /// The part of the name that is enough for people.
    pub fn short(&self) -> &str {
        id::short(&self.run_id)
    }

    /// Whether it judges another run again and is not whole: it is nothing to go on with.
    pub fn is_half_judged(&self) -> bool {
        let has_ended = !matches!(self.status, RunStatus::Running | RunStatus::Killed);
        self.info.rescored_from.is_some() && !has_ended
    }

    /// Its place in the order in which runs began.
    pub(crate) fn place(&self) -> i64 {
        self.row
    }
}

/// A run in a list of all of them.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// Its name.
    pub run_id: String,
    /// What the suite is called.
    pub suite: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended; none while it runs, and when it was killed.
    pub finished_ms: Option<i64>,
    /// How far it came.
    pub status: RunStatus,
    /// The file of another tool that its replies were read from.
    pub imported: Option<Imported>,
    /// How its results came out.
    pub verdicts: Verdicts,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
}

impl ListedRun {
    /// The part of the name that is enough for people.
    pub fn short(&self) -> &str {
        id::short(&self.run_id)
    }
}

/// What a list shows of all that is known of a run. The settings are most of that, and are not read for it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shown {
    imported: Option<Imported>,
}

/// How the results of a run came out.
#[derive(Default)]
struct Outcome {
    verdicts: Verdicts,
    cost_usd: f64,
}

impl Reader {
    /// All runs, the latest first: in the order in which they began, whatever the clock said then.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.select_runs("ORDER BY id DESC", params![])
    }

    /// The runs of suites with one of two names, the latest first, for as long as they are wanted.
    pub fn runs_of(
        &self,
        names: [&str; 2],
        each: impl FnMut(RunRow) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        self.each_run("WHERE suite IN (?, ?) ORDER BY id DESC", params![names[0], names[1]], each)
    }

    /// The latest runs, with how their results came out; so many at most.
    pub fn listed(&self, most: Option<usize>) -> Result<Vec<ListedRun>, StoreError> {
        let most = most.map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX));
        let read = || {
            let sql = format!("SELECT {} FROM runs ORDER BY id DESC LIMIT ?", RUNS.select());
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map([most], |row| {
                RUNS.check(row)?;
                let Name(status) = row.get(5)?;
                let Json(Shown { imported }) = row.get(6)?;
                let run = ListedRun {
                    run_id: row.get(1)?,
                    suite: row.get(2)?,
                    started_ms: row.get(3)?,
                    finished_ms: row.get(4)?,
                    status,
                    imported,
                    verdicts: Verdicts::default(),
                    cost_usd: 0.0,
                };
                Ok((row.get(0)?, run))
            })?;
            let mut runs = rows.collect::<Result<Vec<(i64, ListedRun)>, _>>()?;
            let oldest = runs.last().map_or(0, |(place, _)| *place);
            let mut outcomes = self.outcomes_since(oldest)?;
            for (place, run) in &mut runs {
                let Outcome { verdicts, cost_usd } = outcomes.remove(place).unwrap_or_default();
                (run.verdicts, run.cost_usd) = (verdicts, cost_usd);
            }
            Ok(runs)
        };
        let runs = read().map_err(StoreError::of_reading)?.into_iter();
        Ok(runs
            .map(|(_, run)| ListedRun { status: self.now(run.status, &run.run_id), ..run })
            .collect())
    }

    /// How the results of the runs from a place on came out, in one pass over the index that has all of it.
    fn outcomes_since(&self, oldest: i64) -> rusqlite::Result<BTreeMap<i64, Outcome>> {
        let mut outcomes: BTreeMap<i64, Outcome> = BTreeMap::new();
        let mut statement = self.connection.prepare(
            "SELECT l.run, r.verdict, count(*), sum(coalesce(r.cost_usd, 0.0))
             FROM lanes l CROSS JOIN results r INDEXED BY results_by_outcome ON r.lane = l.id
             WHERE l.run >= ? AND l.retired = 0 AND r.stale = 0 GROUP BY l.id, r.verdict",
        )?;
        let mut rows = statement.query([oldest])?;
        while let Some(row) = rows.next()? {
            let outcome = outcomes.entry(row.get(0)?).or_default();
            let Name(verdict) = row.get(1)?;
            outcome.verdicts.add_many(verdict, row.get(2)?);
            outcome.cost_usd += row.get::<_, f64>(3)?;
        }
        Ok(outcomes)
    }

    /// The run of a name, the beginning or the short form of a name, or `latest`.
    pub fn find(&self, name: &str) -> Result<RunRow, StoreError> {
        let unknown = || StoreError::UnknownRun(name.to_owned());
        if name == "latest" {
            return self.latest()?.ok_or_else(unknown);
        }
        let run_id = self.full_name(name)?;
        let runs = self.select_runs("WHERE run_id = ?", params![run_id])?;
        runs.into_iter().next().ok_or_else(unknown)
    }

    /// The whole name of a run, of its beginning, its short form, or `latest`. Nothing else is read of a run with a name.
    pub fn full_name(&self, name: &str) -> Result<String, StoreError> {
        if name == "latest" {
            return self.find(name).map(|run| run.run_id);
        }
        let exact = "SELECT run_id FROM runs WHERE run_id = ?";
        let exact = self.connection.query_row(exact, [name], |row| row.get(0)).optional();
        if let Some(exact) = exact.map_err(StoreError::of_reading)? {
            return Ok(exact);
        }
        let is_it = |run: &str| run.starts_with(name) || id::short(run).starts_with(name);
        let mut found = match name {
            "" => Vec::new(),
            _ => self.full_names()?,
        };
        found.retain(|it| is_it(it));
        match found.len() {
            0 | 1 => found.pop().ok_or_else(|| StoreError::UnknownRun(name.to_owned())),
            _ => Err(StoreError::AmbiguousRun { name: name.to_owned(), candidates: found }),
        }
    }

    /// The names of all runs, the latest first.
    pub fn full_names(&self) -> Result<Vec<String>, StoreError> {
        self.names("SELECT run_id FROM runs ORDER BY id DESC")
    }

    /// The run that began last. One that judges another again counts once it is whole.
    fn latest(&self) -> Result<Option<RunRow>, StoreError> {
        self.first_run(|run| !run.is_half_judged())
    }

    /// The run that was read from a file of another tool with this digest, the latest first. A run
    /// that judges its replies again is another one.
    pub fn find_imported(&self, digest: &str) -> Result<Option<RunRow>, StoreError> {
        self.first_run(|run| {
            let RunInfo { imported, rescored_from, .. } = &run.info;
            rescored_from.is_none() && imported.as_ref().is_some_and(|it| it.digest == digest)
        })
    }

    /// The latest run of which something is true.
    pub fn first_run(&self, is_it: impl Fn(&RunRow) -> bool) -> Result<Option<RunRow>, StoreError> {
        let mut found = None;
        self.each_run("ORDER BY id DESC", params![], |run| {
            if !is_it(&run) {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(run);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    pub(crate) fn select_runs(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<RunRow>, StoreError> {
        let mut runs = Vec::new();
        self.each_run(rest, values, |run| {
            runs.push(run);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(runs)
    }

    fn each_run(
        &self,
        rest: &str,
        values: impl rusqlite::Params,
        mut each: impl FnMut(RunRow) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT {} FROM runs {rest}", RUNS.select());
        let mut statement = self.connection.prepare(&sql).map_err(StoreError::of_reading)?;
        let mut rows = statement.query(values).map_err(StoreError::of_reading)?;
        while let Some(row) = rows.next().map_err(StoreError::of_reading)? {
            let run = read(row).map_err(StoreError::of_reading)?;
            let status = self.now(run.status, &run.run_id);
            if each(RunRow { status, ..run })?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// How far a run is: one that nobody works on was killed.
    fn now(&self, status: RunStatus, run_id: &str) -> RunStatus {
        let is_left = status == RunStatus::Running && !is_busy(&self.path, run_id);
        if is_left { RunStatus::Killed } else { status }
    }
}

/// Reads a row of [`RUNS`].
fn read(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    RUNS.check(row)?;
    let Name(status) = row.get(5)?;
    let Json(info) = row.get(6)?;
    Ok(RunRow {
        row: row.get(0)?,
        run_id: row.get(1)?,
        suite: row.get(2)?,
        started_ms: row.get(3)?,
        finished_ms: row.get(4)?,
        status,
        info,
    })
}
