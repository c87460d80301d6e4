//! What is known of a run while it goes on.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use probity_core::{
    classification::{Class, Counts, Verdict},
    crew::Crew,
    event::{CaseKey, Event},
    metrics::Verdicts,
    record::LaneStatus,
    visible::safe,
};
use probity_report::{palette::shown_class, text::lane_label};
use probity_run::plan::Plan;

use super::drawing::span;
use crate::terminal::{counted, one_line};

/// A shorter pause is worth no line of its own.
const WORTH_A_LINE: Duration = Duration::from_secs(10);

/// What is known of the run.
#[derive(Debug)]
pub(in crate::commands::run) struct Board {
    /// When the first call may have begun; none before that.
    pub(super) begun: Option<Instant>,
    pub(super) lanes: Vec<LaneBoard>,
    /// Cases in the works, since when.
    pub(super) live: BTreeMap<CaseKey, Instant>,
    /// Cases that wait for their next try.
    pub(super) backing_off: BTreeMap<CaseKey, Wait>,
    /// Backends that get no calls for a while.
    pub(super) paused: BTreeMap<String, Wait>,
    /// How the workers stood last; none if there are none.
    pub(super) crew: Option<Crew>,
    /// Of all sessions.
    pub(super) cost_usd: f64,
    pub(super) tokens: u64,
}

/// What is known of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneBoard {
    pub(super) name: String,
    pub(super) backend: String,
    pub(super) planned: u64,
    /// Cases that an earlier session brought to an end.
    pub(super) done_before: u64,
    /// Those of this session.
    pub(super) done: u64,
    /// How all of them came out.
    pub(super) verdicts: Verdicts,
    /// The classes whose colours they have; what is undecided has none.
    pub(super) classes: Counts,
    /// When its first case began.
    pub(super) begun: Option<Instant>,
    /// How it ended, in a word.
    pub(super) ended: Option<&'static str>,
}

/// Something that is waited for.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) until: Instant,
    pub(super) reason: String,
}

impl Wait {
    /// How long it still takes; none if it is over.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        self.until.checked_duration_since(now).filter(|it| !it.is_zero())
    }
}

impl LaneBoard {
    pub(super) fn all_done(&self) -> u64 {
        self.done + self.done_before
    }

    pub(super) fn left(&self) -> u64 {
        self.planned.saturating_sub(self.all_done())
    }

    fn add(&mut self, verdict: Verdict, class: Option<Class>) {
        self.verdicts.add(verdict);
        if let Some(class) = class {
            self.classes.add(class);
        }
    }
}

impl Board {
    /// What is known before the first call.
    pub(in crate::commands::run) fn before(plan: &Plan) -> Self {
        let lanes = plan.lanes.iter().map(|lane| {
            let mut board = LaneBoard::default();
            // Which class it was is not read again.
            let verdicts = lane.done.verdicts();
            verdicts.for_each(|verdict| board.add(verdict, shown_class(verdict, Class::Fail)));
            board
        });
        Self::new(lanes.collect(), plan.carried.cost_usd, plan.carried.tokens)
    }

    pub(super) fn new(lanes: Vec<LaneBoard>, cost_usd: f64, tokens: u64) -> Self {
        Self {
            begun: None,
            lanes,
            live: BTreeMap::new(),
            backing_off: BTreeMap::new(),
            paused: BTreeMap::new(),
            crew: None,
            cost_usd,
            tokens,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.begun.is_some()
    }

    /// Takes an event in. What everybody should read comes back as a line.
    pub(super) fn take(&mut self, event: &Event, now: Instant) -> Option<String> {
        match event {
            Event::RunStarted { lanes, done_before, .. } => {
                self.begun = Some(now);
                self.lanes.resize_with(lanes.len(), LaneBoard::default);
                for (at, (board, lane)) in self.lanes.iter_mut().zip(lanes).enumerate() {
                    board.name = lane_label(lane, lanes);
                    board.backend.clone_from(&lane.backend);
                    board.planned = lane.planned;
                    board.done_before = done_before.get(at).copied().unwrap_or(0);
                }
            }
            Event::CaseStarted(key) => {
                self.live.insert(key.clone(), now);
                if let Some(lane) = self.lanes.get_mut(key.lane) {
                    lane.begun.get_or_insert(now);
                }
            }
            Event::AttemptFailed { case, error, retry_in_ms, .. } => {
                if let Some(wait) = retry_in_ms {
                    let until = now + Duration::from_millis(*wait);
                    let wait = Wait { until, reason: error.to_string() };
                    self.backing_off.insert(case.clone(), wait);
                }
            }
            Event::BackendPaused { backend, for_ms, limit: _, reason } => {
                return self.pause(backend, Duration::from_millis(*for_ms), reason, now);
            }
            Event::WorkersPaused { reason } | Event::WorkersResumed { reason } => {
                return Some(one_line(reason, 400));
            }
            Event::WorkersSeen(crew) => self.crew = Some(crew.clone()),
            Event::CaseFinished { lane, record } => {
                let case_id = record.case_id.clone();
                let key = CaseKey { lane: *lane, case_id, repeat: record.repeat };
                self.live.remove(&key);
                self.backing_off.remove(&key);
                self.cost_usd += record.cost_usd.unwrap_or(0.0);
                self.tokens += record.usage.total();
                if let Some(lane) = self.lanes.get_mut(*lane) {
                    lane.done += 1;
                    lane.add(record.verdict, shown_class(record.verdict, record.class));
                }
            }
            Event::CaseAborted { case, .. } => {
                self.live.remove(case);
                self.backing_off.remove(case);
            }
            Event::BackendTripped { backend, error, permanent, .. } => {
                let hope = if *permanent { "permanent" } else { "transient" };
                return Some(format!(
                    "backend `{}` is given up: the same {hope} error repeatedly: {}",
                    safe(backend),
                    one_line(error, 200)
                ));
            }
            Event::CancelStarted { reason } => {
                return Some(format!("{reason}: cancelling {}", counted(self.live.len(), "case")));
            }
            Event::LaneFinished { lane, status, .. } => {
                if let Some(lane) = self.lanes.get_mut(*lane) {
                    lane.ended = Some(ended(status));
                }
            }
            Event::RunFinished { .. } => {}
        }
        None
    }

    fn pause(
        &mut self,
        backend: &str,
        length: Duration,
        reason: &str,
        now: Instant,
    ) -> Option<String> {
        let wait = Wait { until: now + length, reason: reason.to_owned() };
        self.paused.insert(backend.to_owned(), wait);
        (length >= WORTH_A_LINE).then(|| {
            let (backend, reason) = (safe(backend), one_line(reason, 200));
            format!("backend `{backend}` is paused for {}: {reason}", span(length))
        })
    }
}

/// How a lane ended, in a word.
fn ended(status: &LaneStatus) -> &'static str {
    match status {
        LaneStatus::Complete => "done",
        LaneStatus::FailFast { .. } | LaneStatus::GaveUp { .. } => "given up",
        LaneStatus::Skipped { .. } => "skipped",
        LaneStatus::Budget { .. } => "budget",
        LaneStatus::Decided { .. } => "decided",
        LaneStatus::Interrupted => "stopped",
        LaneStatus::TimedOut { .. } => "timed out",
        LaneStatus::Broken { .. } => "broken",
    }
}
