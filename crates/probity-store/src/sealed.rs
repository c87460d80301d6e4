//! What tells whether what is stored of a run or of a lane is as it was written.
//!
//! A row has a sum over all of its values, renewed in the transaction that changes the row. Rows that older versions wrote have none.

use rusqlite::{Connection, Row};

use crate::result::{
    not_as_written,
    sums::{Summed, Values as _},
};

/// A table whose rows have sums.
#[derive(Debug)]
pub(crate) struct Sealed {
    table: &'static str,
    /// What a sum is over.
    columns: &'static [&'static str],
    /// What a row is called in messages.
    thing: &'static str,
    /// The columns of its name, by their places.
    name: &'static [usize],
}

/// Runs.
pub(crate) const RUNS: Sealed = Sealed {
    table: "runs",
    columns: &["run_id", "suite", "started_ms", "finished_ms", "status", "info", "lane_count"],
    thing: "run",
    name: &[0],
};

/// Lanes.
pub(crate) const LANES: Sealed = Sealed {
    table: "lanes",
    columns: &["run", "runner", "variant", "backend", "info", "status", "calls", "retired"],
    thing: "lane",
    name: &[1, 3],
};

impl Sealed {
    /// The columns to read for [`Sealed::check`]: the row, what its sum is over, and the sum.
    pub(crate) fn select(&self) -> String {
        format!("id, {}, sum", self.columns.join(", "))
    }

    /// The place of a column in a row of [`Sealed::select`].
    pub(crate) fn place(&self, column: &str) -> usize {
        let place = self.columns.iter().position(|it| *it == column);
        1 + place.expect("only columns of the table are asked for")
    }

    fn sum(&self, row: &Row<'_>) -> rusqlite::Result<i64> {
        let mut summed = Summed::new();
        for at in 1..=self.columns.len() {
            summed.push(row.get_ref(at)?);
        }
        Ok(summed.sum())
    }

    /// Says so if a row of [`Sealed::select`] is not what was written.
    pub(crate) fn check(&self, row: &Row<'_>) -> rusqlite::Result<()> {
        let stored: Option<i64> = row.get(1 + self.columns.len())?;
        if stored.is_none_or(|it| self.sum(row).is_ok_and(|sum| sum == it)) {
            return Ok(());
        }
        let text = |at: &usize| row.get_ref(1 + at).ok().and_then(|it| it.as_str().ok());
        let name: Vec<&str> = self.name.iter().filter_map(text).collect();
        let name = name.join(" on ");
        Err(not_as_written(self.thing, &name, &"what is stored of it is not what was written"))
    }

    /// Makes the sum of a row anew, after a change and before its transaction ends.
    pub(crate) fn renew(&self, connection: &Connection, row: i64) -> rusqlite::Result<()> {
        let Self { table, .. } = self;
        let sql = format!("SELECT {} FROM {table} WHERE id = ?", self.select());
        let sum = connection.prepare_cached(&sql)?.query_row([row], |it| self.sum(it))?;
        let sql = format!("UPDATE {table} SET sum = ?2 WHERE id = ?1");
        connection.prepare_cached(&sql)?.execute([row, sum])?;
        Ok(())
    }
}
