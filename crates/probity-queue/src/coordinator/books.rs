//! What is known of calls and workers: plain values, without a way to anybody.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use probity_core::{
    crew::{Crew, CrewMember},
    event::CaseKey,
};
use probity_run::carrier::{CallId, CallResult, Carried, Lost, Order, Who};
use tokio::sync::{oneshot, watch};

use super::is_error;
use crate::wire::{Outcome, WorkerNote};

/// How long a worker may be silent before it counts as gone.
pub(super) const SILENT: Duration = Duration::from_secs(8);

/// A call that somebody waits for.
#[derive(Debug)]
pub(super) struct Waiter {
    case: CaseKey,
    who: Who,
    tell: Option<oneshot::Sender<Carried>>,
    /// Its number in the stream of calls, once it is there.
    pub(super) seq: Option<u64>,
    pub(super) has_object: bool,
    /// Whether an earlier session of the run had handed it over.
    taken_over: bool,
    since: Instant,
    /// Who began it, by delivery.
    holders: BTreeMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    worker: String,
    since: Instant,
    handed_back: bool,
}

/// A result that was handed on, and is not on the disk yet.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// What it is acknowledged with; none where there is no message of it.
    pub(super) reply: Option<String>,
    /// The objects that were its way.
    pub(super) objects: Vec<Object>,
}

/// An object that is not needed when a result is on the disk.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Call(CallId),
    Result(CallId),
}

/// What has come of a call.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) outcome: Outcome,
    pub(super) kept: Kept,
}

/// What is known when somebody wants to have a call made.
pub(super) enum Expected {
    /// Its result is there already.
    Here(Box<Carried>),
    /// It was handed over before, and is being made or waits.
    Underway,
    /// It has to be handed over.
    New,
}

#[derive(Debug)]
pub(super) struct Books {
    waiting: BTreeMap<CallId, Waiter>,
    /// Results of an earlier session that nobody has asked for yet.
    found: BTreeMap<CallId, Arrived>,
    /// Calls of an earlier session that have no result yet.
    adopted: BTreeSet<CallId>,
    /// Results that were handed on, by the case that they are for.
    held: BTreeMap<CaseKey, BTreeMap<CallId, Kept>>,
    /// Where each of these is.
    held_by: BTreeMap<CallId, CaseKey>,
    workers: BTreeMap<String, (WorkerNote, Instant)>,
    /// How many calls of the run each worker has made.
    made: BTreeMap<String, u64>,
    /// Calls that another worker was given after the first was lost.
    redelivered: u64,
    retries_errors: bool,
    /// Whether all that an earlier session left has been found.
    pub(super) is_open: bool,
    changed: watch::Sender<u64>,
}

impl Books {
    pub(super) fn new(retries_errors: bool) -> Self {
        Self {
            waiting: BTreeMap::new(),
            found: BTreeMap::new(),
            adopted: BTreeSet::new(),
            held: BTreeMap::new(),
            held_by: BTreeMap::new(),
            workers: BTreeMap::new(),
            made: BTreeMap::new(),
            redelivered: 0,
            retries_errors,
            is_open: false,
            changed: watch::Sender::new(0),
        }
    }

    /// Tells of every result that comes.
    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Calls that an earlier session handed over, and that are not done.
    pub(super) fn adopt(&mut self, calls: BTreeSet<CallId>) {
        self.adopted = calls;
    }

    /// Whether anything is known of a result.
    pub(super) fn knows(&self, id: CallId) -> bool {
        self.found.contains_key(&id) || self.held_by.contains_key(&id)
    }

    /// Takes out the errors that an earlier session left, if cases that ended in errors are asked again.
    pub(super) fn take_errors(&mut self) -> Vec<CallId> {
        if !self.retries_errors {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.found);
        let (errors, found): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(_, it)| is_error(&it.outcome.result));
        self.found = found;
        errors.into_keys().collect()
    }

    /// Somebody wants a call to be made.
    pub(super) fn expect(&mut self, order: &Order, tell: oneshot::Sender<Carried>) -> Expected {
        let id = order.id;
        if let Some(Arrived { outcome, kept }) = self.found.remove(&id) {
            self.hold(&order.case, id, kept);
            let lost = lost(&BTreeMap::new(), outcome.delivery, Instant::now());
            return Expected::Here(Box::new(carried(outcome, lost, true)));
        }
        let taken_over = self.adopted.remove(&id);
        let waiter = Waiter {
            case: order.case.clone(),
            who: order.who,
            tell: Some(tell),
            seq: None,
            has_object: false,
            taken_over,
            since: Instant::now(),
            holders: BTreeMap::new(),
        };
        self.waiting.insert(id, waiter);
        if taken_over { Expected::Underway } else { Expected::New }
    }

    pub(super) fn has_object(&mut self, id: CallId) {
        if let Some(waiter) = self.waiting.get_mut(&id) {
            waiter.has_object = true;
        }
    }

    pub(super) fn handed_over(&mut self, id: CallId, seq: Option<u64>) {
        if let Some(waiter) = self.waiting.get_mut(&id) {
            waiter.seq = seq;
        }
    }

    /// Nobody waits for a call any more; none if its result has come.
    pub(super) fn give_up(&mut self, id: CallId) -> Option<Waiter> {
        self.waiting.remove(&id)
    }

    /// A worker has begun a call, or handed it back.
    pub(super) fn begun(&mut self, id: CallId, worker: String, delivery: u64, handed_back: bool) {
        if let Some(waiter) = self.waiting.get_mut(&id) {
            let was_lost = |it: &Holder| !it.handed_back;
            if !handed_back && waiter.holders.range(..delivery).any(|(_, it)| was_lost(it)) {
                self.redelivered += 1;
            }
            waiter.holders.insert(delivery, Holder { worker, since: Instant::now(), handed_back });
        }
    }

    /// A result has come. What is given back is not needed, and is to be forgotten.
    pub(super) fn arrived(&mut self, id: CallId, arrived: Arrived) -> Option<Kept> {
        let unneeded = self.take_in(id, arrived);
        self.changed.send_modify(|it| *it += 1);
        unneeded
    }

    fn take_in(&mut self, id: CallId, arrived: Arrived) -> Option<Kept> {
        if let Some(case) = self.held_by.get(&id) {
            // It came again after the connection was lost: only what it is acknowledged with is new.
            let held = self.held.get_mut(case).and_then(|it| it.get_mut(&id));
            if let Some(held) = held {
                held.reply = arrived.kept.reply;
            }
            return None;
        }
        let Some(waiter) = self.waiting.remove(&id) else {
            return match !self.is_open || self.adopted.remove(&id) || self.found.contains_key(&id) {
                true => {
                    self.found.insert(id, arrived);
                    None
                }
                // A second result of a call whose first one is on the disk.
                false => Some(arrived.kept),
            };
        };
        let Arrived { outcome, mut kept } = arrived;
        *self.made.entry(outcome.worker.clone()).or_default() += 1;
        if waiter.has_object {
            kept.objects.push(Object::Call(id));
        }
        self.hold(&waiter.case, id, kept);
        let lost = lost(&waiter.holders, outcome.delivery, waiter.since);
        let carried = carried(outcome, lost, waiter.taken_over);
        if let Some(tell) = waiter.tell {
            // Whoever stopped waiting has no use for it; the case says when it is done with.
            let _ = tell.send(carried);
        }
        None
    }

    /// A call was delivered as often as may be, and nobody brought it to an end.
    pub(super) fn poisoned(&mut self, id: CallId, deliveries: u64) {
        let now = Instant::now();
        let names = |holders: &BTreeMap<u64, Holder>| {
            let names: Vec<String> =
                holders.values().map(|it| format!("`{}`", it.worker)).collect();
            match names.is_empty() {
                true => String::new(),
                false => format!(": {}", names.join(", ")),
            }
        };
        let why = |workers: String| {
            format!(
                "the call was given to a worker {deliveries} times, and each was lost with it{workers}"
            )
        };
        let outcome = |result| Outcome {
            wire: crate::wire::WIRE,
            worker: String::new(),
            delivery: deliveries,
            took: Duration::ZERO,
            result,
        };
        let kept = Kept { reply: None, objects: Vec::new() };
        match self.waiting.remove(&id) {
            Some(waiter) => {
                let outcome = outcome(Err(why(names(&waiter.holders))));
                self.hold(&waiter.case, id, kept);
                // The last one counts as the call itself.
                let lost = lost(&waiter.holders, deliveries, now);
                let worker = waiter.holders.get(&deliveries).map(|it| it.worker.clone());
                let carried = Carried { worker, ..carried(outcome, lost, waiter.taken_over) };
                if let Some(tell) = waiter.tell {
                    let _ = tell.send(carried);
                }
            }
            None if self.adopted.remove(&id) => {
                let outcome = outcome(Err(why(String::new())));
                self.found.insert(id, Arrived { outcome, kept });
            }
            None => {}
        }
        self.changed.send_modify(|it| *it += 1);
    }

    /// Calls whose last delivery was to a worker that is gone. The server says so only when somebody asks for calls.
    pub(super) fn exhausted(
        &self,
        max_deliver: u64,
        ack_wait: Duration,
        now: Instant,
    ) -> Vec<(CallId, Option<u64>)> {
        let is_gone = |holder: &Holder| {
            now.saturating_duration_since(holder.since) >= ack_wait
                && !self.workers.contains_key(&holder.worker)
        };
        let is_exhausted =
            |it: &Waiter| it.holders.range(max_deliver..).any(|(_, holder)| is_gone(holder));
        let found = self.waiting.iter().filter(|(_, it)| is_exhausted(it));
        found.map(|(id, it)| (*id, it.seq)).collect()
    }

    fn hold(&mut self, case: &CaseKey, id: CallId, kept: Kept) {
        self.held.entry(case.clone()).or_default().insert(id, kept);
        self.held_by.insert(id, case.clone());
    }

    /// A case is on the disk: its results may go.
    pub(super) fn recorded(&mut self, case: &CaseKey) -> Vec<Kept> {
        let kept = self.held.remove(case).unwrap_or_default();
        kept.keys().for_each(|id| {
            self.held_by.remove(id);
        });
        kept.into_values().collect()
    }

    /// A worker says what it does.
    pub(super) fn heard(&mut self, note: WorkerNote, at: Instant) {
        self.workers.insert(note.name.clone(), (note, at));
    }

    /// Counts all workers as heard of now.
    pub(super) fn all_heard(&mut self, now: Instant) {
        self.workers.values_mut().for_each(|(_, at)| *at = now);
    }

    /// Forgets workers that have been silent for long.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        self.workers.retain(|_, (_, at)| now.saturating_duration_since(*at) < SILENT);
    }

    /// Whether a worker does this.
    pub(super) fn is_served(&self, offer: &str, now: Instant) -> bool {
        self.workers.values().any(|(note, at)| {
            now.saturating_duration_since(*at) < SILENT
                && !note.leaving
                && note.offers.iter().any(|it| it.digest == offer)
        })
    }

    /// How the workers stand that do something for the run.
    pub(super) fn crew(&self, offers: &BTreeSet<&str>) -> Crew {
        let mut crew = Crew { redelivered: self.redelivered, ..Crew::default() };
        let mut in_flight: BTreeMap<&str, u64> = BTreeMap::new();
        for waiter in self.waiting.values() {
            match waiter.holders.last_key_value().filter(|(_, it)| !it.handed_back) {
                Some((_, holder)) => *in_flight.entry(&holder.worker).or_default() += 1,
                None => crew.backlog += 1,
            }
        }
        let serves =
            |note: &WorkerNote| note.offers.iter().any(|it| offers.contains(it.digest.as_str()));
        let notes = self.workers.values().map(|(note, _)| note);
        crew.workers = notes
            .filter(|note| serves(note) || in_flight.contains_key(note.name.as_str()))
            .map(|note| CrewMember {
                name: note.name.clone(),
                slots: note.slots,
                in_flight: in_flight.get(note.name.as_str()).copied().unwrap_or(0),
                done: self.made.get(&note.name).copied().unwrap_or(0),
                rate: note.rate,
            })
            .collect();
        crew
    }

    /// Whether any call has no result yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.adopted.is_empty()
    }

    /// Who has calls waiting, since when the oldest does.
    pub(super) fn waiting(&self) -> BTreeMap<Who, Instant> {
        let mut all: BTreeMap<Who, Instant> = BTreeMap::new();
        for waiter in self.waiting.values() {
            let oldest = all.entry(waiter.who).or_insert(waiter.since);
            *oldest = (*oldest).min(waiter.since);
        }
        all
    }

    /// How many workers there are, and why some of them do not do something.
    pub(super) fn refusals(&self, what: &str) -> (usize, Vec<String>) {
        let why = self.workers.values().flat_map(|(note, _)| {
            let own = note.refused.iter().filter(move |it| it.what == what || it.what.is_empty());
            own.map(move |it| format!("worker `{}`: {}", note.name, it.reason))
        });
        let mut why: Vec<String> = why.collect();
        why.dedup();
        (self.workers.len(), why)
    }
}

/// The workers that were lost before a delivery.
fn lost(holders: &BTreeMap<u64, Holder>, delivery: u64, since: Instant) -> Vec<Lost> {
    let now = Instant::now();
    let begin = |at: u64| holders.get(&at).map(|it| it.since);
    (1..delivery)
        .filter(|at| !holders.get(at).is_some_and(|it| it.handed_back))
        .map(|at| Lost {
            worker: holders.get(&at).map(|it| it.worker.clone()),
            held: begin(at + 1)
                .unwrap_or(now)
                .saturating_duration_since(begin(at).unwrap_or(since)),
        })
        .collect()
}

fn carried(outcome: Outcome, lost: Vec<Lost>, taken_over: bool) -> Carried {
    let Outcome { worker, took, result, .. } = outcome;
    let worker = Some(worker).filter(|it| !it.is_empty());
    Carried { worker, took, taken_over, lost, result }
}

/// What comes of a call that could not be handed over.
pub(super) fn undone(why: String) -> Carried {
    let result: Result<CallResult, String> = Err(why);
    Carried { worker: None, took: Duration::ZERO, taken_over: false, lost: Vec::new(), result }
}
