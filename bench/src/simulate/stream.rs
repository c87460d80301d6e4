//! Whether the events of a session are in order.

use std::collections::BTreeSet;

use probity_core::event::{CaseKey, Event};

/// What was heard of a session.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    has_begun: bool,
    is_over: bool,
    is_cancelled: bool,
    open: BTreeSet<CaseKey>,
    seen: BTreeSet<CaseKey>,
    ended: BTreeSet<usize>,
}

impl Stream {
    /// Takes the next event in.
    pub(crate) fn hear(&mut self, event: &Event) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("events: {what}: {event:?}"));
        if self.is_over {
            return wrong("after the end");
        }
        if self.has_begun == matches!(event, Event::RunStarted { .. }) {
            return wrong("not at the beginning");
        }
        match event {
            Event::RunStarted { .. } => self.has_begun = true,
            Event::RunFinished { .. } => {
                self.is_over = true;
                if !self.open.is_empty() {
                    return Err(format!("events: {:?} never ended", self.open));
                }
            }
            Event::CaseStarted(key) => {
                if self.is_cancelled || self.ended.contains(&key.lane) {
                    return wrong("begun too late");
                }
                if !self.open.insert(key.clone()) || !self.seen.insert(key.clone()) {
                    return wrong("begun twice");
                }
            }
            Event::CaseFinished { lane, record } => {
                let case_id = record.case_id.clone();
                let key = CaseKey { lane: *lane, case_id, repeat: record.repeat };
                if !self.open.remove(&key) {
                    return Err(format!("events: {key:?} ended without having begun"));
                }
            }
            Event::CaseAborted { case, .. } => {
                if !self.open.remove(case) {
                    return wrong("given up without having begun");
                }
            }
            Event::AttemptFailed { case, .. } => {
                if !self.open.contains(case) {
                    return wrong("of a case that is not open");
                }
            }
            Event::LaneFinished { lane, .. } => {
                if !self.ended.insert(*lane) || self.open.iter().any(|it| it.lane == *lane) {
                    return wrong("too early, or twice");
                }
            }
            Event::CancelStarted { .. } => self.is_cancelled = true,
            Event::BackendPaused { .. }
            | Event::WorkersPaused { .. }
            | Event::WorkersResumed { .. }
            | Event::WorkersSeen(_)
            | Event::BackendTripped { .. } => {}
        }
        Ok(())
    }

    /// The session came to its end.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.is_over {
            true => Ok(()),
            false => Err("events: the last one is missing".to_owned()),
        }
    }
}
