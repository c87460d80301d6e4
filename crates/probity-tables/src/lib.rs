//! Runs as tables that query engines read: Parquet and Arrow.
//!
//! A run becomes rows of four tables in one pass over its cases. What is in memory is bounded by bytes, however many cases
//! there are and however long their texts. Nothing here opens a file: whoever calls says where a part is written to, and
//! gives it its name when all parts are complete.

mod column;
mod part;
mod rows;
mod schema;

use std::{fmt, io};

use part::Writer;
use probity_core::{
    record::{Imported, Lane, LaneStatus, RunStatus},
    view::Cases,
};
use rows::Tally;

pub use schema::{Column, Kind};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// A row for each run.
    Runs,
    /// A row for each result.
    Cases,
    /// A row for each check of a result.
    Scores,
    /// A row for each question of a result.
    Calls,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Runs, Self::Cases, Self::Scores, Self::Calls];

    /// Its name, which is the name of its folder.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Cases => "cases",
            Self::Scores => "scores",
            Self::Calls => "calls",
        }
    }

    /// Its columns, in their order.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Runs => &schema::RUNS,
            Self::Cases => &schema::CASES,
            Self::Scores => &schema::SCORES,
            Self::Calls => &schema::CALLS,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Parquet, compressed with Snappy.
    Parquet,
    /// The file format of Arrow, which can be mapped into memory.
    Arrow,
}

impl Form {
    /// The ending of its files.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

/// When something is written, so that it does not stay in memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Rows of a batch.
    pub batch_rows: usize,
    /// Bytes of a batch.
    pub batch_bytes: usize,
    /// Rows of a row group of Parquet.
    pub group_rows: usize,
    /// Bytes of a row group of Parquet, encoded.
    pub group_bytes: usize,
    /// Bytes of a file.
    pub part_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            batch_rows: 8192,
            batch_bytes: 8 << 20,
            group_rows: 128 << 10,
            group_bytes: 32 << 20,
            part_bytes: 256 << 20,
        }
    }
}

/// What is said of a run beside its cases.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// Its whole name.
    pub run_id: String,
    /// What the suite is called.
    pub suite: String,
    /// The suite file.
    pub suite_path: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended.
    pub finished_ms: Option<i64>,
    /// How far it came.
    pub status: RunStatus,
    /// The version that ran it.
    pub probity_version: String,
    /// The file of another tool that its replies were read from.
    pub imported: Option<Imported>,
    /// The run whose replies were judged again.
    pub rescored_from: Option<String>,
    /// The runs that it was merged from.
    pub merged: Vec<String>,
    /// What was run on what, in the order of the plan, and how that ended.
    pub lanes: Vec<(Lane, Option<LaneStatus>)>,
}

/// How a run is written.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// As which kind of file.
    pub form: Form,
    /// Which tables.
    pub tables: &'a [Table],
    /// What stays in memory.
    pub bounds: Bounds,
}

/// What was written of a run.
#[derive(Debug)]
pub struct Written<W> {
    /// The files, complete.
    pub parts: Vec<W>,
    /// How many rows each table got.
    pub rows: Vec<(Table, u64)>,
}

/// Why a run could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError<E> {
    /// The cases cannot be read.
    #[error("the cases cannot be read")]
    Read(#[source] io::Error),
    /// A part cannot be begun, as whoever begins it says.
    #[error("a part of the table `{0}` cannot be begun")]
    Open(Table, E),
    /// A part cannot be written.
    #[error("part {part} of the table `{table}` cannot be written")]
    Write {
        /// The table.
        table: Table,
        /// Which part, from 0.
        part: usize,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Writes the tables of a run.
///
/// `open` begins part `n` of a table, from 0. A table without rows has one part, so that its columns are known.
pub fn write<W: io::Write + Send, E>(
    plan: &Plan<'_>,
    run: &RunHead,
    cases: &dyn Cases,
    mut open: impl FnMut(Table, usize) -> Result<W, E>,
) -> Result<Written<W>, TableError<E>> {
    let wanted = |table: Table| plan.tables.contains(&table).then(|| Writer::new(table, plan, run));
    let [mut runs, mut of_cases, mut scores, mut calls] = Table::ALL.map(wanted);
    let mut tallies = vec![Tally::default(); run.lanes.len()];
    for (at, ((lane, _), tally)) in run.lanes.iter().zip(&mut tallies).enumerate() {
        let mut failed = None;
        let read = cases.each(at, &mut |case| {
            tally.add(case);
            let row = rows::CaseRow { run, lane, case };
            let mut push = || {
                if let Some(table) = &mut of_cases {
                    table.push(&row.case(), &mut open)?;
                }
                if let Some(table) = &mut scores {
                    row.scores().try_for_each(|it| table.push(&it, &mut open))?;
                }
                if let Some(table) = &mut calls {
                    row.calls(|it| table.push(it, &mut open))?;
                }
                Ok(())
            };
            push().map_err(|error| {
                failed = Some(error);
                io::Error::other("a table cannot be written")
            })
        });
        match failed {
            Some(error) => return Err(error),
            None => read.map_err(TableError::Read)?,
        }
    }
    if let Some(table) = &mut runs {
        table.push(&rows::run(run, &tallies), &mut open)?;
    }
    let mut written = Written { parts: Vec::new(), rows: Vec::new() };
    for table in [runs, of_cases, scores, calls].into_iter().flatten() {
        table.finish(&mut open, &mut written)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests;
