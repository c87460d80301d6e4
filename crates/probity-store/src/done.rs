//! What a run that is taken up again has already.

use probity_core::{
    classification::{Class, Verdict},
    record::{InputDigest, Spent, Usage},
};

use crate::{LaneView, Reader, StoreError, result::Name};

/// A result of a lane that is taken up again.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'r> {
    /// The case's id.
    pub case_id: &'r str,
    /// Which of the repeats, from 0.
    pub repeat: u32,
    /// What it was asked.
    pub input: InputDigest,
    /// One of the eight.
    pub class: Class,
    /// What gates count.
    pub verdict: Verdict,
}

impl Reader {
    /// What each result of a lane was asked, for going on with the run. Gives what all those used that count.
    pub fn done(
        &self,
        lane: &LaneView,
        mut each: impl FnMut(Finished<'_>),
    ) -> Result<Spent, StoreError> {
        let mut read = || {
            let mut statement = self.connection.prepare_cached(
                "SELECT case_id, repeat, input, class, verdict, stale, calls, coalesce(input_tokens, 0),
                        coalesce(output_tokens, 0), coalesce(cost_usd, 0.0)
                 FROM results WHERE lane = ?",
            )?;
            let (mut calls, mut cost_usd) = (0, 0.0);
            let (mut input_tokens, mut output_tokens) = (0, 0);
            let mut rows = statement.query([lane.row])?;
            while let Some(row) = rows.next()? {
                let (Name(class), Name(verdict)) = (row.get(3)?, row.get(4)?);
                let (case_id, repeat) = (row.get_ref(0)?.as_str()?, row.get(1)?);
                let input = InputDigest(row.get(2)?);
                each(Finished { case_id, repeat, input, class, verdict });
                if row.get::<_, i64>(5)? == 0 {
                    calls += row.get::<_, u64>(6)?;
                    input_tokens += row.get::<_, u64>(7)?;
                    output_tokens += row.get::<_, u64>(8)?;
                    cost_usd += row.get::<_, f64>(9)?;
                }
            }
            let usage = Usage {
                input_tokens: Some(input_tokens),
                output_tokens: Some(output_tokens),
                ..Usage::default()
            };
            Ok(Spent { calls, usage, cost_usd })
        };
        read().map_err(StoreError::of_reading)
    }
}
