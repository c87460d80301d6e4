//! Runs as reports see them.

use std::io;

use probity_core::{
    case_outcome::CaseOutcomes,
    metrics::{Fold, Metrics, ResultFacts},
    record::{CaseRecord, Lane, LaneStatus},
    score::Score,
    view::{Cases, Found, LaneReport, RunView, Wanted},
};
use rusqlite::Rows;

use crate::{
    LaneView, Reader, RunRow, StoreError,
    result::{
        fact_columns,
        parts::{ScoreColumn, read_score},
        read_facts,
    },
};

impl Reader {
    /// A run with all its figures.
    pub fn view(&self, run: &RunRow, max_error_rate: f64) -> Result<RunView, StoreError> {
        self.view_judged(run, max_error_rate, |_| {})
    }

    /// The same, judged in another way than when it was run.
    pub fn view_judged(
        &self,
        run: &RunRow,
        max_error_rate: f64,
        rejudge: impl Fn(&mut Lane),
    ) -> Result<RunView, StoreError> {
        let lanes = self.lanes(run)?.into_iter().map(|mut view| {
            rejudge(&mut view.lane);
            let mut metrics = self.metrics(&view)?;
            metrics.add_spent(self.cut_off(&view)?);
            let aborted = self.aborted(&view)?;
            let error = self.last_error(&view)?;
            let LaneView { lane, status, .. } = view;
            let (present, planned) = (metrics.results(), lane.planned);
            if status == Some(LaneStatus::Complete) && present < planned {
                let lane = lane.key().to_string();
                return Err(StoreError::Incomplete { lane, present, planned });
            }
            let gates = lane.judging.gates.iter().map(|gate| gate.judge(&metrics)).collect();
            Ok(LaneReport { lane, status, aborted, error, metrics, gates })
        });
        Ok(RunView {
            run_id: run.run_id.clone(),
            short: run.short().to_owned(),
            suite: run.suite.clone(),
            started_ms: run.started_ms,
            finished_ms: run.finished_ms,
            status: run.status,
            probity_version: run.info.probity_version.clone(),
            imported: run.info.imported.clone(),
            max_error_rate,
            lanes: lanes.collect::<Result<_, StoreError>>()?,
            against: None,
            consistency: Vec::new(),
        })
    }

    /// The figures of a lane.
    pub fn metrics(&self, lane: &LaneView) -> Result<Metrics, StoreError> {
        let mut fold = Fold::new(&lane.lane.judging);
        self.read_facts(lane, Opinions::of(lane), |facts| fold.add(facts))?;
        Ok(fold.finish())
    }

    /// How each case of a lane stands.
    pub fn case_outcomes(&self, lane: &LaneView) -> Result<CaseOutcomes, StoreError> {
        let min_pass = lane.lane.judging.min_pass;
        let mut outcomes = CaseOutcomes { min_pass, ..CaseOutcomes::default() };
        self.read_facts(lane, Opinions::LeftOut, |mut facts| {
            facts.verdict = lane.lane.judging.counted(facts.verdict);
            outcomes.add(facts);
        })?;
        Ok(outcomes)
    }

    /// The results of a lane without their texts, in the order of their ids.
    pub fn facts(&self, lane: &LaneView, each: impl FnMut(ResultFacts)) -> Result<(), StoreError> {
        self.read_facts(lane, Opinions::of(lane), each)
    }

    fn read_facts(
        &self,
        lane: &LaneView,
        opinions: Opinions,
        mut each: impl FnMut(ResultFacts),
    ) -> Result<(), StoreError> {
        let mut read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {}, CASE WHEN ? THEN json_extract(classification, '$.details.judged') END
                 FROM results WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat",
                fact_columns()
            ))?;
            let names = ScoreColumn::ALL.map(|it| format!("s.{it}")).join(", ");
            let mut of_scores = self.connection.prepare_cached(&format!(
                "SELECT s.result, {names} FROM results r JOIN scores s ON s.result = r.id
                 WHERE r.lane = ? AND r.stale = 0 ORDER BY r.case_id, r.repeat, s.place"
            ))?;
            let mut rows = statement.query((opinions == Opinions::Read, lane.row))?;
            // Both come in the same order.
            let mut scores = of_scores.query([lane.row])?;
            let mut next = next_score(&mut scores)?;
            while let Some(row) = rows.next()? {
                let mut facts = read_facts(row)?;
                while let Some((_, score)) = next.take_if(|(of, _)| *of == facts.row) {
                    facts.add(score)?;
                    next = next_score(&mut scores)?;
                }
                each(facts.finish()?);
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)
    }
}

/// Whether the opinions of judges are read along with results. They stand in large texts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opinions {
    Read,
    LeftOut,
}

impl Opinions {
    /// Those of a lane that has a judge.
    fn of(lane: &LaneView) -> Self {
        if lane.lane.judge.is_some() { Self::Read } else { Self::LeftOut }
    }
}

/// The next score and the row of its result.
fn next_score(rows: &mut Rows<'_>) -> rusqlite::Result<Option<(i64, Score)>> {
    rows.next()?.map(|row| Ok((row.get(0)?, read_score(row, 1)?))).transpose()
}

/// The cases of a run, for reports.
#[derive(Debug)]
pub struct StoredCases<'r> {
    reader: &'r Reader,
    lanes: Vec<LaneView>,
}

impl<'r> StoredCases<'r> {
    /// Those of a run.
    pub fn of(reader: &'r Reader, run: &RunRow) -> Result<Self, StoreError> {
        Ok(Self { reader, lanes: reader.lanes(run)? })
    }
}

impl Cases for StoredCases<'_> {
    fn each(
        &self,
        lane: usize,
        take: &mut dyn FnMut(&CaseRecord) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut refused = None;
        let read = self.reader.cases(&self.lanes[lane], |case| {
            take(&case).map_err(|error| {
                refused = Some(error);
                // Nobody sees it: it ends the reading.
                StoreError::Content("whoever reads wants no more".to_owned())
            })
        });
        match refused {
            Some(error) => Err(error),
            None => read.map_err(io::Error::other),
        }
    }

    fn find(&self, lane: usize, wanted: &Wanted<'_>) -> io::Result<Found> {
        let Self { reader, lanes } = self;
        let lane = &lanes[lane];
        let ids = reader.ids_of_lane(lane, wanted.verdict).map_err(io::Error::other)?;
        let mut found = Found::default();
        for id in ids {
            if wanted.known.contains(&id) {
                found.known += 1;
            } else if found.first.len() == wanted.most {
                found.more += 1;
            } else {
                let records = reader.case(lane, &id).map_err(io::Error::other)?;
                let is_wanted = |it: &CaseRecord| it.verdict == wanted.verdict;
                found.first.extend(records.into_iter().find(is_wanted));
            }
        }
        Ok(found)
    }
}
