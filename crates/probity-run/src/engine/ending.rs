//! How cases, lanes and the run come to an end.

use std::time::Duration;

use probity_core::{
    event::Event,
    failure::ErrorKind,
    record::{Aborted, CaseRecord, LaneStatus},
};
use tokio::{task::JoinError, time::Instant};

use super::{Ended, Engine, Halt, Live, NO_FILES};
use crate::{budget::Left, decide::Seen, tracker::Breach};

/// How long no call could be made for want of files.
#[derive(Debug, Default)]
pub(super) struct Cramped {
    /// The first and the last call that could not, if no other was made since.
    span: Option<(Instant, Instant)>,
}

impl Cramped {
    /// How long the run waits for files to be closed, by others or by itself.
    const LIMIT: Duration = Duration::from_secs(30);
    /// Where nobody tried for so long, nobody knows whether there were files.
    const SILENCE: Duration = Duration::from_secs(5);

    /// A call was made.
    pub(super) fn relieve(&mut self) {
        self.span = None;
    }

    /// A call could not be made. Says whether that has been so for too long.
    pub(super) fn is_hopeless(&mut self, now: Instant) -> bool {
        let known = self.span.filter(|(_, last)| now.duration_since(*last) <= Self::SILENCE);
        let first = known.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
        now.duration_since(first) >= Self::LIMIT
    }
}

impl Engine {
    /// A case came to an end, or gave itself up.
    pub(super) async fn ended(
        &mut self,
        serial: u64,
        result: Result<Ended, Aborted>,
    ) -> Result<(), Halt> {
        let Some(live) = self.release(serial) else { return Ok(()) };
        let at = live.key.lane;
        let outcome = self.take_in(serial, live, result).await;
        if !self.lanes[at].wants_cases() {
            self.turns.one_wants_no_more();
        }
        outcome
    }

    /// Counts what came of a case, and stops its lane if that is due.
    async fn take_in(
        &mut self,
        serial: u64,
        live: Live,
        result: Result<Ended, Aborted>,
    ) -> Result<(), Halt> {
        let at = live.key.lane;
        match result {
            Err(reason) => {
                self.lanes[at].tracker.forget(live.key.repeat, serial);
                if reason == Aborted::Broken {
                    self.lanes[at].broke(NO_FILES.to_owned());
                }
                if let Left::Nothing(why) = self.budget_left(at) {
                    self.lanes[at].stop(LaneStatus::Budget { reason: why });
                }
                self.emit(Event::CaseAborted { case: live.key, reason, used: live.used }).await
            }
            Ok(Ended { record, at_fault, ends_lane }) => {
                let breach = self.lanes[at].judge(serial, &record);
                if record.error.as_ref().is_some_and(|it| it.kind != ErrorKind::ContentFilter) {
                    let at_fault = at_fault.unwrap_or(self.lanes[at].backend);
                    self.backends[at_fault].pacer.doubt();
                }
                let Live { place, category, .. } = live;
                let CaseRecord { class, verdict, .. } = *record;
                self.lanes[at].count(Seen { place, category, class, verdict });
                self.emit(Event::CaseFinished { lane: at, record }).await?;
                let breach = breach.map(|it| (it, at_fault.unwrap_or(self.lanes[at].backend)));
                match (breach, ends_lane) {
                    (Some((breach, backend)), _) => self.give_up(at, backend, breach).await,
                    (None, Some(LaneStatus::FailFast { reason, permanent })) => {
                        let backend = self.lanes[at].backend;
                        self.give_up(
                            at,
                            backend,
                            Breach { error: reason.clone(), reason, permanent },
                        )
                        .await
                    }
                    (None, Some(status)) => {
                        self.lanes[at].stop(status);
                        Ok(())
                    }
                    (None, None) => Ok(()),
                }
            }
        }
    }

    /// A task was cancelled, or panicked.
    pub(super) async fn broken(&mut self, error: &JoinError) -> Result<(), Halt> {
        let serial =
            self.live.iter().find(|(_, live)| live.task.id() == error.id()).map(|it| *it.0);
        let Some(live) = serial.and_then(|serial| self.release(serial)) else { return Ok(()) };
        let reason = live.aborted.unwrap_or(Aborted::Broken);
        if live.aborted.is_none() {
            let reason = format!("case `{}` broke the program: {error}", live.key.case_id);
            self.lanes[live.key.lane].broke(reason);
        }
        self.emit(Event::CaseAborted { case: live.key, reason, used: live.used }).await
    }

    /// Takes a case off the books.
    pub(super) fn release(&mut self, serial: u64) -> Option<Live> {
        let live = self.live.remove(&serial)?;
        self.lanes[live.key.lane].live -= 1;
        if let Some(backend) = live.calling {
            // It had a permit for a call, and never made it.
            self.backends[backend].pacer.dropped();
            self.forgo(live.key.lane, backend);
        }
        if let Some(backend) = live.backing_off {
            self.backends[backend].pacer.back();
        }
        if !live.is_parked {
            self.live_bytes -= live.bytes;
            for backend in self.parties(live.key.lane) {
                self.backends[backend].pacer.end_case();
            }
        }
        if live.is_compared {
            self.groups.end(self.group_key(&live.key), live.key.lane);
        }
        Some(live)
    }

    /// A backend fails the same way again and again: the lane ends, and if the error is permanent,
    /// every other that asks it.
    pub(super) async fn give_up(
        &mut self,
        at: usize,
        backend: usize,
        breach: Breach,
    ) -> Result<(), Halt> {
        let Breach { reason, error, permanent } = breach;
        let state = &mut self.backends[backend];
        let name = state.backend.name.clone();
        let mut ending = vec![at];
        if permanent {
            state.given_up = Some(reason.clone());
            let asks = |lane: &usize| {
                *lane != at
                    && self.lanes[*lane].wants_cases()
                    && self.parties(*lane).any(|it| it == backend)
            };
            ending.extend((0..self.lanes.len()).filter(asks));
        }
        for lane in ending {
            let (backend, reason, error) = (name.clone(), reason.clone(), error.clone());
            self.lanes[lane].stop(LaneStatus::FailFast { reason: reason.clone(), permanent });
            self.abort(Aborted::FailFast, |live| live.key.lane == lane);
            self.emit(Event::BackendTripped { lane, backend, reason, error, permanent }).await?;
        }
        Ok(())
    }

    /// No call can be made for want of files, whatever is waited for.
    pub(super) fn end_cramped(&mut self) {
        for lane in &mut self.lanes {
            lane.stop(LaneStatus::Broken { reason: NO_FILES.to_owned() });
        }
        self.abort(Aborted::Broken, |_| true);
    }

    /// Ends lanes that have taken too long.
    pub(super) fn end_late_lanes(&mut self) {
        let now = Instant::now();
        for at in 0..self.lanes.len() {
            let lane = &mut self.lanes[at];
            if lane.due().is_some_and(|due| due <= now) {
                lane.deadline = None;
                let status = lane.timed_out();
                lane.stop(status);
                self.abort(Aborted::TimedOut, |live| live.key.lane == at);
            }
        }
    }

    /// Somebody stops the run: nothing more begins, and what is in flight is given up.
    pub(super) async fn interrupt(&mut self) -> Result<(), Halt> {
        self.interrupted = true;
        self.lanes.iter_mut().for_each(|lane| lane.stop(LaneStatus::Interrupted));
        self.abort(Aborted::Interrupted, |_| true);
        self.emit(Event::CancelStarted { reason: "interrupted".to_owned() }).await
    }

    /// Gives cases up. Each is taken off the books when its task has ended.
    pub(super) fn abort(&mut self, reason: Aborted, which: impl Fn(&Live) -> bool) {
        for live in self.live.values_mut().filter(|live| which(live)) {
            live.aborted = Some(reason);
            live.task.abort();
        }
        let live = &self.live;
        let is_wanted = |serial: &u64| live.get(serial).is_none_or(|it| it.aborted.is_none());
        for state in &mut self.backends {
            state.waiting.retain(|it| is_wanted(&it.serial));
        }
    }
}
