//! A run as reports see it: figures that are reckoned once, and cases that are read one by one.

use std::{collections::BTreeSet, io};

use probity_stats::spread::Moments;

use crate::{
    classification::Verdict,
    consistency::Consistency,
    gate::{GateOutcome, GateStatus},
    kind::{Figures, OwnCases},
    metrics::{Metrics, Verdicts},
    record::{CallError, CaseRecord, Imported, Lane, LaneStatus, RunStatus},
};

/// One run.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Its whole name.
    pub run_id: String,
    /// The part of the name that is enough for people.
    pub short: String,
    /// What the suite is called.
    pub suite: String,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended; none while it runs, and when it was killed.
    pub finished_ms: Option<i64>,
    /// How far it came.
    pub status: RunStatus,
    /// The version that ran it.
    pub probity_version: String,
    /// The file of another tool that its replies were read from.
    pub imported: Option<Imported>,
    /// The share of errors above which the results of a run are not usable.
    pub max_error_rate: f64,
    /// What was run on what, in the order of the plan.
    pub lanes: Vec<LaneReport>,
    /// What it comes to against a baseline, if it was held against one.
    pub against: Option<Against>,
    /// How far the backends of each runner agree, where that was worked out.
    pub consistency: Vec<Consistency>,
}

/// What a run comes to against a baseline.
#[derive(Clone, Debug)]
pub struct Against {
    /// The baseline's name.
    pub name: String,
    /// Why the run is worse; empty if it is not.
    pub reasons: Vec<String>,
    /// All that has changed, for people.
    pub text: String,
}

/// One lane.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// What was run on what.
    pub lane: Lane,
    /// How it ended; none while it runs, and when it was killed.
    pub status: Option<LaneStatus>,
    /// Cases that had begun and were given up.
    pub aborted: u64,
    /// The last error of a call.
    pub error: Option<CallError>,
    /// The figures.
    pub metrics: Metrics,
    /// What was asked of them.
    pub gates: Vec<GateOutcome>,
}

impl RunView {
    /// How long it took from its beginning to its end, in milliseconds. A clock that was set back
    /// between two sessions makes it shorter, and never negative.
    pub fn elapsed_ms(&self) -> Option<u64> {
        let elapsed = self.finished_ms?.saturating_sub(self.started_ms);
        Some(u64::try_from(elapsed).unwrap_or(0))
    }

    /// The worst that a gate came to; none without gates.
    pub fn gate_status(&self) -> Option<GateStatus> {
        self.lanes.iter().flat_map(|lane| &lane.gates).map(|gate| gate.status).max()
    }

    /// Whether everything that was planned came to an end.
    pub fn is_complete(&self) -> bool {
        self.lanes.iter().all(LaneReport::is_complete)
    }

    /// Whether its results say all that was asked of them.
    pub fn is_sound(&self) -> bool {
        let sound = |lane: &LaneReport| lane.status.as_ref().is_some_and(LaneStatus::is_sound);
        self.lanes.iter().all(sound)
    }

    /// Whether any answer came from a recording.
    pub fn is_replayed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.lane.replayed || lane.metrics.replayed > 0)
    }

    /// Results that could not be judged, and all of them.
    pub fn errors(&self) -> (u64, u64) {
        let metrics = || self.lanes.iter().map(|lane| &lane.metrics);
        (metrics().map(|it| it.all.unjudged).sum(), metrics().map(Metrics::results).sum())
    }

    /// Results that passed or failed, over all lanes.
    pub fn judged(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.metrics.all.verdicts.judged()).sum()
    }

    /// Results that nothing decides, over all lanes.
    pub fn undecided(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.metrics.all.verdicts.undecided).sum()
    }

    /// Whether there are results, and nothing decides any of them.
    pub fn decides_nothing(&self) -> bool {
        self.judged() == 0 && self.undecided() > 0
    }

    /// The pass rate over all results: every result counts the same.
    pub fn micro_mean(&self) -> Option<f64> {
        let mut all = Verdicts::default();
        self.lanes.iter().for_each(|lane| all.merge(lane.metrics.all.verdicts));
        all.rate()
    }

    /// The mean of the lanes' pass rates: every lane counts the same.
    pub fn macro_mean(&self) -> Option<f64> {
        let rates: Moments =
            self.lanes.iter().filter_map(|lane| lane.metrics.all.verdicts.rate()).collect();
        rates.mean()
    }

    /// Whether too many cases could not be judged.
    pub fn is_degraded(&self) -> bool {
        let (errors, _) = self.errors();
        // A lane that was stopped because it was decided is measured by all it would have asked.
        let whole = |lane: &LaneReport| match lane.status {
            Some(LaneStatus::Decided { .. }) => lane.lane.planned,
            Some(_) | None => lane.metrics.results(),
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 results")]
        let (errors, results) = (errors as f64, self.lanes.iter().map(whole).sum::<u64>() as f64);
        errors > results * self.max_error_rate
    }

    /// Errors that are about the key or the account.
    pub fn locked_out(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.metrics.locked_out()).sum()
    }
}

impl LaneReport {
    /// What people call it: `RUNNER on BACKEND`, or `RUNNER/VARIANT on BACKEND`.
    pub fn title(&self) -> String {
        self.lane.key().to_string()
    }

    /// Results that there are; of an external runner, those that it says it has.
    pub fn cases(&self) -> u64 {
        self.own_cases().map_or_else(|| self.metrics.results(), |it| it.finished)
    }

    /// Results that were planned, likewise.
    pub fn planned(&self) -> u64 {
        self.own_cases().map_or(self.lane.planned, |it| it.planned)
    }

    fn own_cases(&self) -> Option<OwnCases> {
        self.metrics.figures.as_ref().and_then(Figures::own_cases)
    }

    /// Whether everything that was planned came to an end.
    pub fn is_complete(&self) -> bool {
        self.status.as_ref().is_some_and(LaneStatus::is_complete)
    }
}

/// Where reports get their cases from.
pub trait Cases {
    /// The results of a lane one by one, in the order of their ids.
    fn each(
        &self,
        lane: usize,
        take: &mut dyn FnMut(&CaseRecord) -> io::Result<()>,
    ) -> io::Result<()>;

    /// The cases of a lane that have a result with a verdict, but for those that are known to.
    fn find(&self, lane: usize, wanted: &Wanted<'_>) -> io::Result<Found> {
        let mut found = Found::default();
        let mut last: Option<String> = None;
        self.each(lane, &mut |case| {
            if case.verdict == wanted.verdict && last.as_ref() != Some(&case.case_id) {
                last = Some(case.case_id.clone());
                match wanted.known.contains(&case.case_id) {
                    true => found.known += 1,
                    false if found.first.len() < wanted.most => found.first.push(case.clone()),
                    false => found.more += 1,
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Which cases are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Those that have a result with this verdict.
    pub verdict: Verdict,
    /// Those that are only counted.
    pub known: &'a BTreeSet<String>,
    /// How many are returned.
    pub most: usize,
}

/// Cases that were found, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The first few: of each case the first such result.
    pub first: Vec<CaseRecord>,
    /// How many others there are.
    pub more: u64,
    /// How many are known.
    pub known: u64,
}

impl Found {
    /// All but the known ones.
    pub fn count(&self) -> u64 {
        self.first.len() as u64 + self.more
    }
}
