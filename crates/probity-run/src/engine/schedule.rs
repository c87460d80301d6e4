//! Who may begin, and who may go on.

use probity_core::event::CaseKey;
use tokio::{sync::oneshot, time::Instant};

use super::{
    BackendState, Duty, Engine, Entries, Halt, Waiting,
    groups::{self, GroupKey},
    lane::LaneState,
    task::{Called, Grant},
};
use crate::budget::Left;

/// What the texts of the cases may take that are being worked on, in bytes. With more, no other case begins: long texts would
/// take as much memory as there are calls in flight. A case that waits for other lanes does not count, since these may have to
/// begin it first; and beside one that is larger than this, no other begins.
pub(super) const MOST_LIVE_BYTES: usize = if cfg!(test) { 20 << 10 } else { 20 << 20 };

impl Engine {
    /// The backends that a lane asks.
    pub(super) fn parties(&self, lane: usize) -> impl Iterator<Item = usize> + use<> {
        let LaneState { backend, judges, embedder, reranker, users, .. } = &self.lanes[lane];
        let (backend, embedder, reranker) = (*backend, *embedder, *reranker);
        // One that judges itself, or plays the user as well, is there once. One that embeds or ranks
        // texts has a place of its own.
        let users = users.iter().copied().filter(|it| !judges.contains(it));
        let others: Vec<usize> = judges.iter().copied().chain(users).collect();
        let others = others.into_iter().filter(move |it| *it != backend);
        std::iter::once(backend).chain(others).chain(embedder).chain(reranker)
    }

    /// The lanes that may begin a case now, the one whose backend has least to do first.
    ///
    /// The fewest in flight first is what keeps a slow backend from taking all slots.
    pub(super) fn open_lanes(&self) -> Vec<usize> {
        let now = Instant::now();
        let room = self.has_room() && self.live_bytes < MOST_LIVE_BYTES;
        let may_begin = |at: &usize| {
            let lane = &self.lanes[*at];
            let asked = &self.backends[lane.backend];
            // A judge that is slow, or not proven, must not be flooded with answers to judge.
            let judges = || lane.judges.iter().map(|it| &self.backends[*it]);
            let is_ready = |it: &BackendState| {
                let most = usize::try_from(it.pacer.limit()).unwrap_or(usize::MAX);
                it.pacer.may_enter() && it.waiting.len() < most
            };
            // Cases that ask several times are brought to their end before others begin, so that
            // a budget is not used up by many that are half done.
            let limit = asked.pacer.limit();
            let most = match judges().map(|it| it.pacer.limit()).min() {
                Some(slowest) => (limit + slowest).min(self.shared.settings.max_concurrency),
                // Nor must a scorer that is slower than the backend: its queue would have no bound.
                None => limit + asked.pacer.busy(),
            };
            let has_room = room
                && (lane.live as u64) < most
                && asked.pacer.may_begin(now)
                && judges().all(is_ready);
            lane.wants_cases()
                && asked.waiting.is_empty()
                && match self.budget_left(*at) {
                    Left::Enough => has_room,
                    Left::Pending => false,
                    // Only a case that is really there is kept from being asked.
                    Left::Nothing(_) => true,
                }
        };
        let active = self.turns.active();
        let mut open: Vec<usize> = active.iter().copied().filter(may_begin).collect();
        // Lanes of one backend take turns.
        let load = |at: &usize| {
            let lane = &self.lanes[*at];
            (self.backends[lane.backend].pacer.in_flight(), lane.live)
        };
        open.sort_by_key(load);
        open
    }

    pub(super) fn has_room(&self) -> bool {
        let in_flight: u64 = self.backends.iter().map(|it| it.pacer.in_flight()).sum();
        in_flight < self.shared.settings.max_concurrency
    }

    /// What is left for a lane, of the run's budget and of its runner's own.
    pub(super) fn budget_left(&self, lane: usize) -> Left {
        let LaneState { runner, info, .. } = &self.lanes[lane];
        match (self.meter.left(), self.runner_meters[*runner].left()) {
            (Left::Nothing(reason), _) => Left::Nothing(reason),
            (_, Left::Nothing(reason)) => {
                Left::Nothing(format!("{reason} for runner `{}`", info.runner))
            }
            (Left::Pending, _) | (_, Left::Pending) => Left::Pending,
            (Left::Enough, Left::Enough) => Left::Enough,
        }
    }

    /// When the first paused backend that has something to do may be asked again.
    pub(super) fn next_resume(&self) -> Option<Instant> {
        let now = Instant::now();
        self.backends.iter().filter_map(|it| it.pacer.paused_until()).filter(|at| *at > now).min()
    }

    /// A case wants to make another call.
    pub(super) fn wants(&mut self, backend: usize, waiting: Waiting) {
        let Some(live) = self.live.get_mut(&waiting.serial) else { return };
        if let Some(again) = live.backing_off.take() {
            self.backends[again].pacer.back();
        }
        // It had a permit to ask another one, and did not need it.
        self.idles(waiting.serial);
        self.backends[backend].waiting.push_back(waiting);
    }

    /// A case has a permit for a call that it does not make now, which goes back.
    pub(super) fn idles(&mut self, serial: u64) {
        let Some(live) = self.live.get_mut(&serial) else { return };
        let Some(backend) = live.calling.take() else { return };
        let lane = live.key.lane;
        self.backends[backend].pacer.dropped();
        self.forgo(lane, backend);
    }

    /// A case of a runner, whatever lane asks it.
    pub(super) fn group_key(&self, key: &CaseKey) -> GroupKey {
        let runner = self.lanes[key.lane].runner;
        GroupKey { runner, case_id: key.case_id.clone(), repeat: key.repeat }
    }

    /// A case waits for the answers of other lanes. It counts for no backend meanwhile: whoever is
    /// not proven gets other cases, which this one may be waiting for.
    pub(super) fn park(&mut self, waiting: groups::Waiting) {
        let Some(live) = self.live.get_mut(&waiting.serial) else { return };
        let was_parked = std::mem::replace(&mut live.is_parked, true);
        self.live_bytes -= if was_parked { 0 } else { live.bytes };
        let unused = live.calling.take();
        let key = live.key.clone();
        if let Some(backend) = unused {
            self.backends[backend].pacer.dropped();
            self.forgo(key.lane, backend);
        }
        if !was_parked {
            for backend in self.parties(key.lane) {
                self.backends[backend].pacer.end_case();
            }
        }
        self.groups.join(self.group_key(&key), key.lane, waiting);
    }

    /// Has cases go on for which the answers of all lanes are there: the first of them leads.
    pub(super) fn seat_groups(&mut self) {
        if self.groups.is_empty() {
            return;
        }
        let lanes = &self.lanes;
        let of_runner = |runner: usize| {
            (0..lanes.len()).filter(|at| lanes[*at].runner == runner).collect::<Vec<_>>()
        };
        let wanting = (0..lanes.len()).filter(|at| lanes[*at].wants_cases()).collect();
        for group in self.groups.take_complete(of_runner, wanting) {
            self.seat(group);
        }
    }

    /// Has the first cases go on that wait, if nothing else can: lanes that do not have the same cases
    /// would wait for each other for ever.
    pub(super) fn unblock_groups(&mut self) {
        let is_blocked = !self.live.is_empty()
            && self.live.values().all(|it| it.is_parked && it.aborted.is_none())
            && self.groups.waiting() == self.live.len()
            && self.next_resume().is_none()
            && self.open_lanes().is_empty();
        if let Some(group) = is_blocked.then(|| self.groups.take_first()).flatten() {
            self.seat(group);
        }
    }

    /// The first of some cases leads, the others follow.
    fn seat(&mut self, group: Vec<groups::Waiting>) {
        let entries: Vec<Entries> = group.iter().map(|it| it.entries.clone()).collect();
        let mut others = Vec::with_capacity(group.len());
        let mut group = group.into_iter();
        let Some(leader) = group.next() else { return };
        for follower in group {
            let (decision, decided) = oneshot::channel();
            others.push(decision);
            // One that is gone waits for nothing.
            let _ = follower.duty.send(Duty::Follow(decided));
        }
        // If it is gone, the others come together again.
        if leader.duty.send(Duty::Lead { entries, others }).is_ok() {
            self.unpark(leader.serial);
        }
    }

    /// A case goes on that is going to ask again.
    fn unpark(&mut self, serial: u64) {
        let Some(live) = self.live.get_mut(&serial) else { return };
        live.is_parked = false;
        self.live_bytes += live.bytes;
        let lane = live.key.lane;
        for backend in self.parties(lane) {
            self.backends[backend].pacer.enter();
        }
    }

    /// Gives permits to cases that wait for their next call. They go before new cases.
    pub(super) fn grant_waiting(&mut self) -> Result<(), Halt> {
        let now = Instant::now();
        for backend in 0..self.backends.len() {
            self.backends[backend].refuse_late(now);
            while let Some(Waiting { serial, .. }) = self.backends[backend].waiting.front() {
                let lane = self.live.get(serial).map(|live| live.key.lane);
                let answer = match lane.map(|at| self.budget_left(at)) {
                    // A task that is gone wants nothing.
                    Some(Left::Nothing(_)) | None => Grant::NoBudget,
                    Some(Left::Enough)
                        if self.has_room() && self.backends[backend].pacer.has_room(now) =>
                    {
                        Grant::Go
                    }
                    Some(Left::Pending | Left::Enough) => break,
                };
                let waiting = self.backends[backend].waiting.pop_front();
                let Some(Waiting { serial, grant, .. }) = waiting else { break };
                let Some(lane) = lane.filter(|_| matches!(answer, Grant::Go)) else {
                    // A task that is gone wants nothing.
                    let _ = grant.send(answer);
                    continue;
                };
                self.permit(lane, backend)?;
                if grant.send(answer).is_err() {
                    self.forgo(lane, backend);
                    continue;
                }
                self.backends[backend].pacer.begin();
                if let Some(live) = self.live.get_mut(&serial) {
                    live.calling = Some(backend);
                }
            }
        }
        Ok(())
    }

    /// Counts a call of a lane before it is made: a run that is killed then knows of it later.
    pub(super) fn permit(&mut self, lane: usize, backend: usize) -> Result<(), Halt> {
        self.meter.begin();
        self.runner_meters[self.lanes[lane].runner].begin();
        if self.backends[backend].backend.is_replay() {
            return Ok(());
        }
        self.lanes[lane].permits += 1;
        self.write_down(lane).map_err(Halt::Uncounted)
    }

    /// A call that had a permit was not made.
    pub(super) fn forgo(&mut self, lane: usize, backend: usize) {
        self.meter.forgo();
        self.runner_meters[self.lanes[lane].runner].forgo();
        if !self.backends[backend].backend.is_replay() {
            self.end_permit(lane, 0);
        }
    }

    /// A call came back, or something that made several.
    pub(super) fn settle(&mut self, called: &Called) {
        let Called { serial, backend, calls, usage, cost_usd, .. } = *called;
        let Some(lane) = self.live.get(&serial).map(|live| live.key.lane) else { return };
        if self.backends[backend].backend.is_replay() {
            return self.forgo(lane, backend);
        }
        self.meter.end(calls, usage, cost_usd);
        self.runner_meters[self.lanes[lane].runner].end(calls, usage, cost_usd);
        self.end_permit(lane, calls);
    }

    fn end_permit(&mut self, lane: usize, calls: u64) {
        let state = &mut self.lanes[lane];
        state.permits = state.permits.saturating_sub(1);
        state.calls = state.calls.saturating_add(calls);
        if calls != 1 {
            // What cannot be written down now is written down with the next call.
            let _ = self.write_down(lane);
        }
    }

    /// Writes down how many calls of a lane have begun.
    fn write_down(&mut self, lane: usize) -> std::io::Result<()> {
        let LaneState { calls, permits, .. } = self.lanes[lane];
        match &mut self.ledger {
            Some(ledger) => ledger.begun(lane, calls.saturating_add(permits)),
            None => Ok(()),
        }
    }
}

impl BackendState {
    /// Sends away those whose time is over before a pause is: such a wait is not begun.
    fn refuse_late(&mut self, now: Instant) {
        let Some(until) = self.pacer.paused_until().filter(|until| *until > now) else { return };
        let (late, waiting): (Vec<Waiting>, Vec<Waiting>) =
            self.waiting.drain(..).partition(|it| it.deadline <= until);
        self.waiting.extend(waiting);
        for Waiting { grant, .. } in late {
            // A task that is gone wants nothing.
            let _ = grant.send(Grant::Paused(until - now));
        }
    }
}
