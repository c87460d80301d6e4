//! Runs as reports see them.

use std::io;

use probity_core::{
    case_outcome::{self, CaseOutcome, Changes},
    classification::Verdict,
    metrics::{Fold, Metrics, ResultFacts},
    record::{CaseRecord, Judging, Lane, LaneStatus},
    view::{Cases, Found, LaneReport, RunView, Wanted},
};

use crate::{
    LaneView, Reader, RunRow, StoreError,
    result::{
        facts::{self, FactsRows, Opinions},
        not_as_written,
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
            let mut metrics = self.checked_metrics(&view)?;
            metrics.add_spent(self.cut_off(&view)?);
            let aborted = self.aborted(&view)?;
            let error = match metrics.errors.is_empty() {
                true => None,
                false => self.last_error(&view)?,
            };
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
        self.read_facts(lane, opinions_of(lane), |facts| fold.add(facts))?;
        Ok(fold.finish())
    }

    /// The same, if the index of the results says so as well: lists of cases are read from it.
    fn checked_metrics(&self, lane: &LaneView) -> Result<Metrics, StoreError> {
        // Both are of the same moment, even if the run goes on.
        let moment = self.connection.unchecked_transaction().map_err(StoreError::of_reading)?;
        let (metrics, standing) = (self.metrics(lane)?, self.standing(lane)?);
        drop(moment);
        if standing.classes != metrics.all.classes {
            let name = lane.lane.key().to_string();
            let what = "its results are not where they are looked for";
            return Err(StoreError::of_reading(not_as_written("lane", &name, &what)));
        }
        Ok(metrics)
    }

    /// How each case of a lane stands, one after the other in the order of their ids, for as long as `take` wants to know.
    pub fn outcomes<T, E: From<StoreError>>(
        &self,
        lane: &LaneView,
        take: impl FnOnce(case_outcome::Cases<'_, StoreError>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut statement = facts::of_lane(&self.connection).map_err(StoreError::of_reading)?;
        let what = (Opinions::LeftOut, lane.row);
        let rows = FactsRows::new(&self.connection, &mut statement, what);
        let judging = &lane.lane.judging;
        let mut read =
            OutcomeRows { rows: rows.map_err(StoreError::of_reading)?, judging, open: None };
        take(case_outcome::Cases { min_pass: judging.min_pass, read: &mut read })
    }

    /// What has changed between two lanes.
    pub fn changes(&self, lanes: [&LaneView; 2]) -> Result<Changes, StoreError> {
        self.changes_seeing(lanes, |_, _| {})
    }

    /// The same. Cases that both have and that have not flipped are told of, with what they come to now.
    pub fn changes_seeing(
        &self,
        [before, now]: [&LaneView; 2],
        unchanged: impl FnMut(String, Verdict),
    ) -> Result<Changes, StoreError> {
        self.outcomes(before, |before| {
            self.outcomes(now, |now| Changes::between_seeing(before, now, unchanged))
        })
    }

    /// Ids of the cases of a lane that have a result with this verdict, in their order.
    fn each_id(
        &self,
        lane: &LaneView,
        verdict: Verdict,
        mut each: impl FnMut(&str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        /// So many are sorted sooner than all results of the lane are looked at.
        const FEW: u64 = 10_000;
        let what = (lane.row, verdict.as_str());
        let are_few = || {
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM results INDEXED BY results_by_outcome
                 WHERE lane = ? AND verdict = ? AND stale = 0 LIMIT {FEW} + 1)"
            );
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.query_row(what, |row| Ok(row.get::<_, u64>(0)? <= FEW))
        };
        let index = match are_few().map_err(StoreError::of_reading)? {
            true => "INDEXED BY results_by_outcome",
            false => "",
        };
        let sql = format!(
            "SELECT DISTINCT case_id FROM results {index} WHERE lane = ? AND verdict = ? AND stale = 0
             ORDER BY case_id"
        );
        let mut statement = self.connection.prepare_cached(&sql).map_err(StoreError::of_reading)?;
        let mut rows = statement.query(what).map_err(StoreError::of_reading)?;
        while let Some(row) = rows.next().map_err(StoreError::of_reading)? {
            let id: String = row.get(0).map_err(StoreError::of_reading)?;
            each(&id)?;
        }
        Ok(())
    }

    /// The results of a lane without their texts, in the order of their ids.
    pub fn facts(&self, lane: &LaneView, each: impl FnMut(ResultFacts)) -> Result<(), StoreError> {
        self.read_facts(lane, opinions_of(lane), each)
    }

    fn read_facts(
        &self,
        lane: &LaneView,
        opinions: Opinions,
        mut each: impl FnMut(ResultFacts),
    ) -> Result<(), StoreError> {
        let mut read = || {
            let mut statement = facts::of_lane(&self.connection)?;
            let what = (opinions, lane.row);
            let mut rows = FactsRows::new(&self.connection, &mut statement, what)?;
            while let Some(facts) = rows.next()? {
                each(facts);
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)
    }
}

/// Opinions are read of a lane that has a judge.
fn opinions_of(lane: &LaneView) -> Opinions {
    if lane.lane.judge.is_some() { Opinions::Read } else { Opinions::LeftOut }
}

/// What the cases of a lane came to, of which one repeat follows the other.
struct OutcomeRows<'c, 's> {
    rows: FactsRows<'c, 's>,
    judging: &'c Judging,
    /// The case whose repeats are coming in.
    open: Option<(String, CaseOutcome)>,
}

impl Iterator for OutcomeRows<'_, '_> {
    type Item = case_outcome::Read<StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let facts = match self.rows.next() {
                Ok(Some(facts)) => facts,
                Ok(None) => return self.open.take().map(Ok),
                Err(error) => return Some(Err(StoreError::Read(error))),
            };
            let ResultFacts { case_id, verdict, category, .. } = facts;
            let verdict = self.judging.counted(verdict);
            if let Some((id, outcome)) = &mut self.open
                && *id == case_id
            {
                outcome.verdicts.add(verdict);
                outcome.category = category;
                continue;
            }
            let mut outcome = CaseOutcome { category, ..CaseOutcome::default() };
            outcome.verdicts.add(verdict);
            if let Some(whole) = self.open.replace((case_id, outcome)) {
                return Some(Ok(whole));
            }
        }
    }
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
        let mut found = Found::default();
        let read = reader.each_id(lane, wanted.verdict, |id| {
            if wanted.known.contains(id) {
                found.known += 1;
            } else if found.first.len() == wanted.most {
                found.more += 1;
            } else {
                let records = reader.case(lane, id)?;
                let record = records.into_iter().find(|it| it.verdict == wanted.verdict);
                let what = "it is not where it is looked for";
                let lost = || StoreError::of_reading(not_as_written("result", id, &what));
                found.first.push(record.ok_or_else(lost)?);
            }
            Ok(())
        });
        read.map_err(io::Error::other)?;
        Ok(found)
    }
}
