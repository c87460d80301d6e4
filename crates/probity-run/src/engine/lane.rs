//! One runner on one backend, while it runs.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use probity_core::{
    failure::ErrorKind,
    record::{CaseRecord, Lane, LaneStatus, Source},
    span::Span,
};
use probity_load::settings::Settings;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    decide::{Certainty, Decider, Seen},
    plan::PlannedLane,
    source::{Cases, Done, Fed},
    tracker::{Breach, Tracker},
};

/// What the loop knows of a lane.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) info: Lane,
    /// Its name, and what it is called within its runner.
    pub(super) name: Arc<str>,
    pub(super) name_within: Arc<str>,
    /// Places in the lists of backends and of runners.
    pub(super) backend: usize,
    pub(super) judges: Vec<usize>,
    pub(super) embedder: Option<usize>,
    pub(super) reranker: Option<usize>,
    pub(super) users: Vec<usize>,
    pub(super) runner: usize,
    timeout: Option<Duration>,
    /// When it has to be over.
    pub(super) deadline: Option<Instant>,
    /// Cases that have begun and not ended.
    pub(super) live: usize,
    /// Calls that were made, and permits for calls that have not come back.
    pub(super) calls: u64,
    pub(super) permits: u64,
    pub(super) tracker: Tracker,
    decider: Option<Decider>,
    certainty: Option<Certainty>,
    /// Results that there are.
    ended: u64,
    stage: Stage,
    /// How it ended in an earlier session that left nothing to ask.
    before: Option<LaneStatus>,
    /// What to say at the end instead of "complete".
    flaw: Option<String>,
}

#[derive(Debug)]
enum Stage {
    /// Its turn has not come.
    Waiting(Box<(Cases, Done)>),
    Open(mpsc::Receiver<Fed>),
    /// There are no more cases, or nobody wants them.
    Ending(LaneStatus),
    Over(LaneStatus),
}

impl LaneState {
    pub(super) fn new(lane: PlannedLane, settings: &Settings) -> Self {
        let PlannedLane {
            info,
            backend,
            judges,
            embedder,
            reranker,
            users,
            runner,
            calls: _,
            prompt_bytes: _,
            timeout,
            cases,
            done,
            ended: before,
            planned,
            certainty,
        } = lane;
        Self {
            decider: certainty.and_then(|it| Decider::new(&info, &planned, it)),
            certainty,
            ended: if cases.tells_known { 0 } else { done.len() as u64 },
            name: info.key().to_string().into(),
            name_within: info.key().within_runner().into(),
            info,
            backend,
            judges,
            embedder,
            reranker,
            users,
            runner,
            timeout,
            deadline: None,
            live: 0,
            calls: 0,
            permits: 0,
            tracker: Tracker::new(settings.fail_fast),
            stage: Stage::Waiting(Box::new((cases, done))),
            before,
            flaw: None,
        }
    }

    /// The cases that it waits to be opened with.
    pub(super) fn take_waiting(&mut self) -> Option<(Cases, Done)> {
        let Stage::Waiting(waiting) = &mut self.stage else { return None };
        Some(std::mem::take(&mut **waiting))
    }

    /// Whether all its cases came to an end in earlier sessions, and nobody wants to hear of them.
    pub(super) fn has_all(&self, cases: &Cases, done: &Done) -> bool {
        !done.is_empty() && done.len() as u64 >= self.info.planned && !cases.tells_known
    }

    /// Begins to ask the cases that are read for it.
    pub(super) fn open(&mut self, cases: mpsc::Receiver<Fed>) {
        self.deadline = self.timeout.and_then(|it| Instant::now().checked_add(it));
        self.stage = Stage::Open(cases);
    }

    /// Wants no more cases, for a reason. The first reason stays.
    pub(super) fn stop(&mut self, status: LaneStatus) {
        match self.stage {
            Stage::Waiting(_) | Stage::Open(_) | Stage::Ending(LaneStatus::Complete) => {
                self.stage = Stage::Ending(status);
            }
            Stage::Ending(_) | Stage::Over(_) => {}
        }
    }

    /// The moment by which it has to be over, as long as it is not.
    pub(super) fn due(&self) -> Option<Instant> {
        self.deadline.filter(|_| !self.is_over())
    }

    /// How it ends for taking too long.
    pub(super) fn timed_out(&self) -> LaneStatus {
        let limit = Span(self.timeout.unwrap_or_default());
        LaneStatus::TimedOut { reason: format!("it took longer than {limit}") }
    }

    /// There are no more cases.
    pub(super) fn exhausted(&mut self) {
        if matches!(self.stage, Stage::Open(_)) {
            // The same records are the same end.
            self.stage = Stage::Ending(self.before.take().unwrap_or(LaneStatus::Complete));
        }
    }

    /// Something went wrong that must not be hidden behind "complete".
    pub(super) fn broke(&mut self, reason: String) {
        self.flaw.get_or_insert(reason);
    }

    pub(super) fn wants_cases(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// The next case; none when there is none left.
    pub(super) fn poll_case(&mut self, context: &mut Context<'_>) -> Poll<Option<Fed>> {
        match &mut self.stage {
            Stage::Open(cases) => cases.poll_recv(context),
            Stage::Waiting(_) | Stage::Ending(_) | Stage::Over(_) => Poll::Pending,
        }
    }

    /// How the lane ended, once: when it wants no more and nothing is left to wait for.
    pub(super) fn finish(&mut self) -> Option<LaneStatus> {
        let Stage::Ending(status) = &mut self.stage else { return None };
        if self.live > 0 {
            return None;
        }
        let status = match (std::mem::replace(status, LaneStatus::Complete), self.flaw.take()) {
            (LaneStatus::Complete, Some(reason)) => LaneStatus::Broken { reason },
            (status, _) => status,
        };
        self.stage = Stage::Over(status.clone());
        Some(status)
    }

    /// How the lane ended.
    pub(super) fn outcome(&self) -> LaneStatus {
        match &self.stage {
            Stage::Over(status) | Stage::Ending(status) => status.clone(),
            Stage::Waiting(_) | Stage::Open(_) => LaneStatus::Interrupted,
        }
    }

    /// Takes a result into account. With it the gates may be decided, and then nothing more
    /// begins.
    pub(super) fn count(&mut self, seen: Seen) {
        self.ended += 1;
        let Some(decider) = &mut self.decider else { return };
        let Some(gates) = decider.observe(seen) else { return };
        if self.ended >= self.info.planned || !matches!(self.stage, Stage::Open(_)) {
            return;
        }
        let reason = match self.certainty {
            Some(Certainty::Alpha(alpha)) => {
                format!("and the probability that this is wrong is at most {} %", alpha * 100.0)
            }
            Some(Certainty::Exact) | None => "and no remaining case can change that".to_owned(),
        };
        self.stop(LaneStatus::Decided { gates, reason });
    }

    /// Whether a case that came to an end is one too many of its kind.
    ///
    /// What the cache answered says nothing about the backend, and a block for what a
    /// prompt says is an answer.
    pub(super) fn judge(&mut self, serial: u64, record: &CaseRecord) -> Option<Breach> {
        let ending = !matches!(self.stage, Stage::Open(_) | Stage::Ending(LaneStatus::Complete));
        match &record.error {
            _ if ending => None,
            None if record.source == Source::Cache => {
                self.tracker.forget(record.repeat, serial);
                None
            }
            Some(error) if error.kind != ErrorKind::ContentFilter => {
                self.tracker.failure(record.repeat, serial, error)
            }
            Some(_) | None => {
                self.tracker.success(record.repeat, serial);
                None
            }
        }
    }
}
