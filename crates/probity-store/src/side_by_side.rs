//! The results of several lanes, case by case.

use probity_core::{
    classification::{Classification, Verdict},
    consistency::{Answer, Asked},
    metrics::Verdicts,
    record::Judging,
};
use rusqlite::{Row, Rows, Statement};

use crate::{
    LaneView, Reader, StoreError,
    result::{Json, Name},
};

impl Reader {
    /// What each of several lanes made of each case, in the order of the cases' ids.
    ///
    /// The lanes are read along with each other, so that no more than a result of each is in memory. All are
    /// seen as they are at the same moment, even if the run goes on: SQLite ends a connection's transaction with the
    /// last of its statements.
    pub fn side_by_side(
        &self,
        lanes: &[&LaneView],
        mut each: impl FnMut(&Asked<'_>),
    ) -> Result<(), StoreError> {
        let mut read = || {
            let mut statements = Vec::with_capacity(lanes.len());
            for _ in lanes {
                statements.push(self.connection.prepare(
                    "SELECT case_id, repeat, verdict, classification FROM results
                     WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat",
                )?);
            }
            let mut cursors = Vec::with_capacity(lanes.len());
            for (statement, lane) in statements.iter_mut().zip(lanes) {
                cursors.push(Cursor::open(statement, lane)?);
            }
            while let Some((case_id, repeat)) = least(&cursors) {
                let mut answers = Vec::with_capacity(cursors.len());
                for cursor in &mut cursors {
                    answers.push(cursor.take(&case_id, repeat)?);
                }
                each(&Asked { case_id: &case_id, repeat, answers: &answers });
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)
    }
}

impl Reader {
    /// What two lanes made of each case that both have, in the order of the cases' ids: the verdicts of its repeats. No
    /// more than a case of each is in memory.
    pub fn paired_verdicts(
        &self,
        lanes: [&LaneView; 2],
        mut each: impl FnMut(&str, [Verdicts; 2]),
    ) -> Result<(), StoreError> {
        const SQL: &str = "SELECT case_id, verdict FROM results
            WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat";
        let mut read = || {
            let (mut first, mut second) =
                (self.connection.prepare(SQL)?, self.connection.prepare(SQL)?);
            let mut first = Cases::open(&mut first, lanes[0])?;
            let mut second = Cases::open(&mut second, lanes[1])?;
            let (mut before, mut after) = (first.next_case()?, second.next_case()?);
            while let (Some((id, was)), Some((other, is))) = (&before, &after) {
                let order = id.cmp(other);
                if order.is_eq() {
                    each(id, [*was, *is]);
                }
                if order.is_le() {
                    before = first.next_case()?;
                }
                if order.is_ge() {
                    after = second.next_case()?;
                }
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)
    }
}

/// The cases of a lane that is being read.
struct Cases<'s> {
    rows: Rows<'s>,
    next: Option<(String, Verdict)>,
    judging: &'s Judging,
}

impl<'s> Cases<'s> {
    fn open(statement: &'s mut Statement<'_>, lane: &'s LaneView) -> rusqlite::Result<Self> {
        let rows = statement.query([lane.row])?;
        let mut cases = Self { rows, next: None, judging: &lane.lane.judging };
        cases.next = cases.next_result()?;
        Ok(cases)
    }

    fn next_result(&mut self) -> rusqlite::Result<Option<(String, Verdict)>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let Name(verdict) = row.get(1)?;
        Ok(Some((row.get(0)?, self.judging.counted(verdict))))
    }

    fn next_case(&mut self) -> rusqlite::Result<Option<(String, Verdicts)>> {
        let Some((case_id, verdict)) = self.next.take() else { return Ok(None) };
        let mut verdicts = Verdicts::default();
        verdicts.add(verdict);
        self.next = self.next_result()?;
        while let Some((_, verdict)) = self.next.take_if(|(id, _)| *id == case_id) {
            verdicts.add(verdict);
            self.next = self.next_result()?;
        }
        Ok(Some((case_id, verdicts)))
    }
}

/// A lane that is being read.
struct Cursor<'s> {
    rows: Rows<'s>,
    /// The result that comes next.
    next: Option<Found>,
}

struct Found {
    case_id: String,
    repeat: u32,
    answer: Answer,
}

impl<'s> Cursor<'s> {
    fn open(statement: &'s mut Statement<'_>, lane: &LaneView) -> rusqlite::Result<Self> {
        let mut rows = statement.query([lane.row])?;
        let next = rows.next()?.map(found).transpose()?;
        Ok(Self { rows, next })
    }

    /// The answer to a case, if it is the one that comes next.
    fn take(&mut self, case_id: &str, repeat: u32) -> rusqlite::Result<Option<Answer>> {
        let is_asked = |it: &mut Found| it.case_id == case_id && it.repeat == repeat;
        let Some(taken) = self.next.take_if(is_asked) else { return Ok(None) };
        self.next = self.rows.next()?.map(found).transpose()?;
        Ok(Some(taken.answer))
    }
}

/// The first case that any lane has left. SQLite and Rust both order texts by their bytes.
fn least(cursors: &[Cursor<'_>]) -> Option<(String, u32)> {
    let keys = cursors.iter().filter_map(|it| it.next.as_ref());
    let (case_id, repeat) = keys.map(|it| (it.case_id.as_str(), it.repeat)).min()?;
    Some((case_id.to_owned(), repeat))
}

fn found(row: &Row<'_>) -> rusqlite::Result<Found> {
    let Name(verdict) = row.get(2)?;
    let Json::<Classification>(classification) = row.get(3)?;
    let command = classification.details.command.and_then(|it| it.command);
    Ok(Found { case_id: row.get(0)?, repeat: row.get(1)?, answer: Answer { verdict, command } })
}
