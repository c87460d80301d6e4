//! Runs as reports see them.

use std::io;

use probity_core::{
    case::Category,
    classification::{Class, Verdict},
    evidence::Evidence,
    metrics::{Fold, Metrics, Outcome},
    record::{Lane, StoredCase},
    runner::RunnerKind,
    standing::Standings,
    view::{Cases, LaneReport, RunView},
};
use rusqlite::Row;

use crate::{
    LaneView, Reader, RunRow, StoreError,
    reader::{read_usage, source_of, verdict_of},
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
            let metrics = self.metrics(&view)?;
            let aborted = self.aborted(&view)?;
            let LaneView { lane, status, .. } = view;
            let gates = lane.judging.gates.iter().map(|gate| gate.judge(&metrics)).collect();
            Ok(LaneReport { lane, status, aborted, metrics, gates })
        });
        let version = run.info.get("probity_version").and_then(|it| it.as_str());
        Ok(RunView {
            run_id: run.run_id.clone(),
            short: run.short().to_owned(),
            suite: run.suite.clone(),
            started_ms: run.started_ms,
            finished_ms: run.finished_ms,
            status: run.status.clone(),
            probity_version: version.unwrap_or_default().to_owned(),
            max_error_rate,
            lanes: lanes.collect::<Result<_, StoreError>>()?,
            against: None,
            consistency: Vec::new(),
        })
    }

    /// The figures of a lane.
    pub fn metrics(&self, lane: &LaneView) -> Result<Metrics, StoreError> {
        let mut fold = Fold::new(&lane.lane.judging);
        self.outcomes(lane, |outcome| fold.add(outcome))?;
        Ok(fold.finish())
    }

    /// How each case of a lane stands.
    pub fn standings(&self, lane: &LaneView) -> Result<Standings, StoreError> {
        let min_pass = lane.lane.judging.min_pass;
        let mut standings = Standings { min_pass, ..Standings::default() };
        let errors_as_failures = lane.lane.judging.errors_as_failures;
        self.outcomes(lane, |mut outcome| {
            if errors_as_failures && outcome.verdict == Verdict::Error {
                outcome.verdict = Verdict::Fail;
            }
            standings.add(outcome);
        })?;
        Ok(standings)
    }

    /// The results of a lane without their texts, in the order of their ids.
    pub fn outcomes(
        &self,
        lane: &LaneView,
        mut each: impl FnMut(Outcome),
    ) -> Result<(), StoreError> {
        // Only some runners have evidence, and reading JSON takes its time.
        let evidence = match lane.lane.kind {
            RunnerKind::Respond | RunnerKind::Command => "NULL",
            RunnerKind::Activation
            | RunnerKind::Confusion
            | RunnerKind::Effectiveness
            | RunnerKind::SizeImpact
            | RunnerKind::Program => "classification -> '$.details.evidence'",
        };
        let sql = format!(
            "SELECT case_id, repeat, d.text ->> 'category', d.text -> 'tags', d.text ->> 'group',
                    class, verdict, instr(classification, '\"policy_violation\"') > 0,
                    error ->> 'kind', source, latency_ms, input_tokens, output_tokens,
                    cached_tokens, cost_usd, calls, started_ms, elapsed_ms, {evidence}
             FROM results r JOIN texts d ON d.id = r.definition
             WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat"
        );
        let mut read = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([lane.row])?;
            while let Some(row) = rows.next()? {
                each(read_outcome(row)?);
            }
            Ok(())
        };
        read().map_err(StoreError::Read)
    }
}

fn read_outcome(row: &Row<'_>) -> rusqlite::Result<Outcome> {
    let category: Option<String> = row.get(2)?;
    let tags: Option<String> = row.get(3)?;
    let (class, verdict): (String, String) = (row.get(5)?, row.get(6)?);
    let error: Option<String> = row.get(8)?;
    let source: String = row.get(9)?;
    let evidence: Option<String> = row.get(18)?;
    let kind = |name: String| serde_json::from_value(serde_json::Value::String(name)).ok();
    Ok(Outcome {
        case_id: row.get(0)?,
        repeat: row.get(1)?,
        category: category.and_then(|name| name.parse::<Category>().ok()),
        tags: tags.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        group: row.get(4)?,
        class: class.parse().unwrap_or(Class::Error),
        verdict: verdict_of(&verdict),
        breaks_policy: row.get(7)?,
        error: error.and_then(kind),
        source: source_of(&source),
        latency_ms: row.get(10)?,
        usage: read_usage(row, 11)?,
        cost_usd: row.get(14)?,
        calls: row.get(15)?,
        started_ms: row.get(16)?,
        elapsed_ms: row.get(17)?,
        evidence: evidence.and_then(|text| Evidence::parse(&text)).map(Box::new),
    })
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
        take: &mut dyn FnMut(&StoredCase) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut taken = Ok(());
        let read = self.reader.cases(&self.lanes[lane], |case| {
            if taken.is_ok() {
                taken = take(&case);
            }
            Ok(())
        });
        read.map_err(io::Error::other)?;
        taken
    }
}
