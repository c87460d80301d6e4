//! Makes one run of several that asked parts of the same datasets.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use probity_core::record::{Lane, LaneStatus, RunStatus};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::{
    NewRun, Reader, RunRow, StoreError, browse, make_store, open,
    people::RemarkColumn,
    recorder::variant,
    result::{
        Column, json,
        parts::{AskedColumn, ScoreColumn},
    },
    sealed::{LANES, RUNS},
};

/// A run in a store.
#[derive(Debug)]
pub struct MergeSource {
    /// The store's file.
    pub store: PathBuf,
    /// The run.
    pub run: RunRow,
}

/// Why runs do not make one.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They are not parts of the same whole.
    #[error("run `{0}` is of another suite or dataset than `{1}`")]
    Unlike(String, String),
    /// A case is in two of them.
    #[error("case `{case_id}` of runner `{runner}` is in more than one of the runs")]
    Overlap {
        /// The runner.
        runner: String,
        /// The case.
        case_id: String,
    },
}

/// Copies the results of runs into a new run of a store.
///
/// `missing` says which parts are not there: the new run is then no whole one.
pub fn merge(
    target: &Path,
    run: &NewRun,
    sources: &[MergeSource],
    missing: Option<&str>,
) -> Result<(), MergeError> {
    let lanes = merged_lanes(sources, missing)?;
    make_store(target)?;
    let mut connection = open(target)?;
    let schemas = attach(&connection, target, sources).map_err(StoreError::Write)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::Write)?;
    let copied =
        copy_all(&transaction, run, sources, &schemas, &lanes).map_err(StoreError::Write)?;
    if let Some((runner, case_id)) = copied {
        return Err(MergeError::Overlap { runner, case_id });
    }
    transaction.commit().map_err(StoreError::Write)?;
    Ok(())
}

/// Makes the stores of the sources readable, each once, and says by which names.
///
/// A file that is opened twice by one connection would wait for itself.
fn attach(
    connection: &Connection,
    target: &Path,
    sources: &[MergeSource],
) -> rusqlite::Result<Vec<String>> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut known = vec![(real(target), "main".to_owned())];
    let mut schemas = Vec::with_capacity(sources.len());
    for source in sources {
        let path = real(&source.store);
        if let Some((_, schema)) = known.iter().find(|(it, _)| *it == path) {
            schemas.push(schema.clone());
            continue;
        }
        let schema = format!("part{}", known.len());
        let sql = format!("ATTACH DATABASE ? AS {schema}");
        connection.execute(&sql, [path.display().to_string()])?;
        known.push((path, schema.clone()));
        schemas.push(schema);
    }
    Ok(schemas)
}

/// The runner, the variant and the backend of a lane.
type LaneNames = (String, Option<String>, String);

/// A lane of the new run.
struct Merged {
    lane: Lane,
    status: LaneStatus,
    calls: u64,
}

fn merged_lanes(sources: &[MergeSource], missing: Option<&str>) -> Result<Vec<Merged>, MergeError> {
    let mut lanes: BTreeMap<LaneNames, Merged> = BTreeMap::new();
    for source in sources {
        let first = &sources[0].run;
        let unlike = || MergeError::Unlike(source.run.run_id.clone(), first.run_id.clone());
        if source.run.suite != first.suite {
            return Err(unlike());
        }
        let reader = Reader::open(&source.store)?;
        for view in reader.lanes(&source.run)? {
            let Lane { runner, variant, backend, .. } = view.lane.clone();
            let key = (runner, variant, backend);
            let status = view.status.unwrap_or(LaneStatus::Interrupted);
            match lanes.get_mut(&key) {
                None => {
                    lanes.insert(key, Merged { lane: view.lane, status, calls: view.calls });
                }
                Some(known) if known.lane.dataset_digest == view.lane.dataset_digest => {
                    known.lane.planned += view.lane.planned;
                    known.calls += view.calls;
                    if known.status.is_complete() {
                        known.status = status;
                    }
                }
                Some(_) => return Err(unlike()),
            }
        }
    }
    if let Some(missing) = missing {
        for merged in lanes.values_mut().filter(|it| it.status.is_complete()) {
            merged.status = LaneStatus::Broken { reason: missing.to_owned() };
        }
    }
    Ok(lanes.into_values().collect())
}

/// Copies everything, or says which case is there twice.
fn copy_all(
    transaction: &Transaction<'_>,
    run: &NewRun,
    sources: &[MergeSource],
    schemas: &[String],
    lanes: &[Merged],
) -> rusqlite::Result<Option<(String, String)>> {
    let complete = lanes.iter().all(|merged| merged.status.is_complete());
    let status = if complete { RunStatus::Complete } else { RunStatus::Incomplete };
    transaction.execute(
        "INSERT INTO runs (run_id, suite, started_ms, finished_ms, status, info, lane_count)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            run.run_id,
            run.suite,
            run.started_ms,
            run.started_ms,
            status.as_str(),
            json(&run.info),
            lanes.len(),
        ],
    )?;
    let row = transaction.last_insert_rowid();
    RUNS.renew(transaction, row)?;
    for Merged { lane: planned, status, calls } in lanes {
        let Lane { runner, backend, .. } = planned;
        let (info, status) = (json(planned), json(status));
        transaction.execute(
            "INSERT INTO lanes (run, runner, variant, backend, info, status, calls)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![row, runner, variant(planned), backend, info, status, calls],
        )?;
        let lane = transaction.last_insert_rowid();
        LANES.renew(transaction, lane)?;
        for (source, schema) in sources.iter().zip(schemas) {
            let part = Part { connection: transaction, schema };
            if let Some(case_id) = part.copy(&source.run.run_id, planned, lane)? {
                return Ok(Some((runner.clone(), case_id)));
            }
        }
    }
    Ok(None)
}

/// One of the stores that are merged.
struct Part<'a> {
    connection: &'a Connection,
    schema: &'a str,
}

impl Part<'_> {
    /// Copies a lane of a run into another lane. Returns a case that is there already.
    fn copy(&self, run_id: &str, planned: &Lane, into: i64) -> rusqlite::Result<Option<String>> {
        let Self { connection, schema } = self;
        let find = format!(
            "SELECT lanes.id FROM {schema}.lanes JOIN {schema}.runs ON runs.id = run
             WHERE run_id = ? AND runner = ? AND variant = ? AND backend = ?"
        );
        let Lane { runner, backend, .. } = planned;
        let lane: Option<i64> = connection
            .query_row(&find, params![run_id, runner, variant(planned), backend], |row| row.get(0))
            .optional()?;
        let Some(lane) = lane else { return Ok(None) };
        let twice = format!(
            "SELECT case_id FROM {schema}.results AS theirs WHERE lane = ? AND stale = 0 AND EXISTS (
                SELECT 1 FROM main.results AS ours WHERE ours.lane = ?
                AND ours.case_id = theirs.case_id AND ours.repeat = theirs.repeat) LIMIT 1"
        );
        let twice: Option<String> =
            connection.query_row(&twice, params![lane, into], |row| row.get(0)).optional()?;
        if twice.is_some() {
            return Ok(twice);
        }
        connection.execute(
            &format!(
                "INSERT OR IGNORE INTO main.texts (hash, text)
                 SELECT hash, text FROM {schema}.texts WHERE id IN (
                    SELECT definition FROM {schema}.results WHERE lane = ?1
                    UNION SELECT system FROM {schema}.results WHERE lane = ?1
                    UNION SELECT a.system FROM {schema}.asked AS a
                    JOIN {schema}.results AS r ON r.id = a.result WHERE r.lane = ?1)"
            ),
            [lane],
        )?;
        // Rows of shared texts have other numbers here.
        let text_row = |column: &str| {
            format!(
                "(SELECT ours.id FROM main.texts AS ours JOIN {schema}.texts AS theirs
                  ON ours.hash = theirs.hash WHERE theirs.id = {column})"
            )
        };
        let columns = Column::ALL.map(|it| match it.is_shared_text() {
            true => text_row(it.as_str()),
            false => it.as_str().to_owned(),
        });
        connection.execute(
            &format!(
                "INSERT INTO main.results (lane, {}) SELECT ?2, {}
                 FROM {schema}.results WHERE lane = ?1 AND stale = 0",
                Column::names(),
                columns.join(", ")
            ),
            params![lane, into],
        )?;
        browse::collect(connection, Some(into))?;
        let asked = AskedColumn::ALL.map(|it| match it == AskedColumn::System {
            true => text_row("part.system"),
            false => format!("part.{it}"),
        });
        self.copy_parts("asked", &AskedColumn::ALL.map(AskedColumn::as_str), &asked, (lane, into))?;
        connection.execute(
            &format!(
                "INSERT OR IGNORE INTO main.aborted SELECT ?2, case_id, repeat, reason, at_ms,
                    calls, input_tokens, output_tokens, cost_usd
                 FROM {schema}.aborted WHERE lane = ?1"
            ),
            params![lane, into],
        )?;
        let scores = ScoreColumn::ALL.map(|it| format!("part.{it}"));
        self.copy_parts(
            "scores",
            &ScoreColumn::ALL.map(ScoreColumn::as_str),
            &scores,
            (lane, into),
        )?;
        self.copy_remarks(lane, into)?;
        Ok(None)
    }

    /// Copies what people said of the results of a lane.
    fn copy_remarks(&self, lane: i64, into: i64) -> rusqlite::Result<()> {
        let Self { connection, schema } = self;
        let columns = RemarkColumn::names();
        connection.execute(
            &format!(
                "INSERT INTO main.remarks (lane, {columns}) SELECT ?2, {columns}
                 FROM {schema}.remarks AS said WHERE lane = ?1 AND EXISTS (
                    SELECT 1 FROM main.results AS ours WHERE ours.lane = ?2
                    AND ours.case_id = said.case_id AND ours.repeat = said.repeat)
                 ORDER BY id"
            ),
            params![lane, into],
        )?;
        Ok(())
    }

    /// Copies what belongs to the results of a lane.
    fn copy_parts(
        &self,
        table: &str,
        names: &[&str],
        values: &[String],
        (lane, into): (i64, i64),
    ) -> rusqlite::Result<()> {
        let Self { connection, schema } = self;
        let (names, values) = (names.join(", "), values.join(", "));
        connection.execute(
            &format!(
                "INSERT INTO main.{table} (result, place, {names}) SELECT ours.id, part.place, {values}
                 FROM {schema}.{table} AS part JOIN {schema}.results AS r ON r.id = part.result
                 JOIN main.results AS ours ON ours.lane = ?2 AND ours.case_id = r.case_id
                    AND ours.repeat = r.repeat
                 WHERE r.lane = ?1 AND r.stale = 0"
            ),
            params![lane, into],
        )?;
        Ok(())
    }
}
