//! What the server remembers, and what it decides from that.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    answer::Answer,
    question::{self, Question},
    script::{Latency, Limits, Rate, Script, When},
    seen::{Received, Seen, count},
};

/// What the server's thread and the tests share.
pub(crate) struct Shared {
    pub(crate) script: Script,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    seen: Seen,
    /// How many requests of `seen.in_flight` were let in by the limiter.
    admitted: u32,
    /// How often each rule was used.
    used: Vec<u32>,
    /// How often each prompt was sent, by its hash: kept even if prompts are not.
    sent: BTreeMap<u64, u32>,
    bucket: Bucket,
    /// Threads that wait for a change; waking nobody would cost a system call a request.
    waiting: u32,
}

/// What a request gets.
pub(crate) enum Decision<'a> {
    /// The limiter turns it away.
    Limited,
    /// This, after so long.
    Answer { answer: &'a Answer, after: Duration },
}

/// A request in flight. Dropped without [`Ticket::answered`], the client went away.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    /// Which request for an answer it is, from 1; 0 for any other request.
    number: u64,
    admitted: bool,
    answered: bool,
}

impl Shared {
    pub(crate) fn new(script: Script) -> Self {
        let state = Mutex::new(State::new(&script));
        Self { script, state, changed: Condvar::new() }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.lock().seen.clone()
    }

    /// Forgets everything but what is in flight.
    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        let fresh = State::new(&self.script);
        let old = std::mem::replace(&mut *state, fresh);
        state.seen.in_flight = old.seen.in_flight;
        state.seen.peak_in_flight = old.seen.in_flight;
        state.admitted = old.admitted;
        state.waiting = old.waiting;
        self.notify(&state);
    }

    pub(crate) fn wait_until(
        &self,
        mut holds: impl FnMut(&Seen) -> bool,
        timeout: Duration,
    ) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        let (mut state, result) = self
            .changed
            .wait_timeout_while(state, timeout, |state| !holds(&state.seen))
            .unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        !result.timed_out()
    }

    pub(crate) fn connected(&self) {
        let mut state = self.lock();
        state.seen.connections += 1;
        self.notify(&state);
    }

    /// A request has begun.
    pub(crate) fn enter(self: &Arc<Self>, path: &str) -> Ticket {
        let mut state = self.lock();
        let seen = &mut state.seen;
        seen.requests += 1;
        seen.in_flight += 1;
        seen.peak_in_flight = seen.peak_in_flight.max(seen.in_flight);
        count(&mut seen.paths, path);
        self.notify(&state);
        Ticket { shared: Arc::clone(self), number: 0, admitted: false, answered: false }
    }

    /// A request is here in full.
    pub(crate) fn received(&self, request: Received) {
        let mut state = self.lock();
        if let Some(key) = question::key(&request.headers) {
            count(&mut state.seen.keys, key);
        }
        if self.script.record.requests > 0 {
            if state.seen.last.len() >= self.script.record.requests {
                state.seen.last.pop_front();
            }
            state.seen.last.push_back(request);
        }
        self.notify(&state);
    }

    pub(crate) fn outcome(&self, name: &str) {
        let mut state = self.lock();
        count(&mut state.seen.outcomes, name);
        self.notify(&state);
    }

    /// Decides on a request and counts what it gets.
    pub(crate) fn decide(&self, question: &Question, ticket: &mut Ticket) -> Decision<'_> {
        let script = &self.script;
        let mut state = self.lock();
        count(&mut state.seen.models, &question.model);
        if script.record.prompts {
            count(&mut state.seen.prompts, &question.prompt);
        }
        let prompt_hash = hash(script.seed, question.prompt.as_bytes());
        let sent = state.sent.entry(prompt_hash).or_default();
        *sent += 1;
        let draw = mix(prompt_hash ^ u64::from(*sent));

        if !state.admits(&script.limits, Instant::now()) {
            count(&mut state.seen.outcomes, "limited");
            self.notify(&state);
            return Decision::Limited;
        }
        ticket.admitted = true;
        state.admitted += 1;

        let rule = script.rules.iter().zip(&mut state.used).enumerate().find_map(
            |(place, (rule, used))| {
                let draw = mix(draw ^ place as u64);
                let is_left = rule.times.is_none_or(|times| *used < times);
                let matches = is_left && holds(&rule.when, question, ticket.number, draw);
                matches.then(|| {
                    *used += 1;
                    rule
                })
            },
        );
        let answer = rule.map_or(&script.otherwise, |rule| &rule.then);
        let latency = rule.and_then(|rule| rule.latency).unwrap_or(script.latency);
        count(&mut state.seen.outcomes, answer.name());
        self.notify(&state);
        Decision::Answer { answer, after: duration(latency, mix(script.seed ^ ticket.number)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test's closure may have panicked under the lock; it had no way to spoil anything.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, state: &State) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl State {
    fn new(script: &Script) -> Self {
        Self {
            seen: Seen::default(),
            admitted: 0,
            used: vec![0; script.rules.len()],
            sent: BTreeMap::new(),
            bucket: Bucket {
                level: script.limits.rate.map(|rate| f64::from(rate.burst)),
                at: None,
            },
            waiting: 0,
        }
    }

    fn admits(&mut self, limits: &Limits, now: Instant) -> bool {
        let is_full = limits.max_concurrent.is_some_and(|max| self.admitted >= max);
        !is_full && limits.rate.is_none_or(|rate| self.bucket.take(rate, now))
    }
}

impl Ticket {
    /// Counts the request among those that want an answer.
    pub(crate) fn take_number(&mut self) {
        let mut state = self.shared.lock();
        state.seen.asked += 1;
        self.number = state.seen.asked;
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The answer is out, or was never meant to be.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.seen.in_flight -= 1;
        state.seen.aborted += u64::from(!self.answered);
        state.admitted -= u32::from(self.admitted);
        self.shared.notify(&state);
    }
}

/// A token bucket; full until it is first used.
struct Bucket {
    level: Option<f64>,
    at: Option<Instant>,
}

impl Bucket {
    fn take(&mut self, rate: Rate, now: Instant) -> bool {
        let burst = f64::from(rate.burst);
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64());
        let level = (self.level.unwrap_or(burst) + passed * rate.per_second).min(burst);
        self.at = Some(now);
        let is_enough = level >= 1.0;
        self.level = Some(if is_enough { level - 1.0 } else { level });
        is_enough
    }
}

fn holds(when: &When, question: &Question, number: u64, draw: u64) -> bool {
    match when {
        When::Any => true,
        When::PromptContains(text) => question.prompt.contains(text),
        When::SystemContains(text) => question.system.contains(text),
        When::ModelIs(model) => question.model == *model,
        When::KeyIs(key) => question.key.as_ref() == Some(key),
        When::Every(every) => number.is_multiple_of(*every),
        When::Requests(numbers) => numbers.contains(&number),
        When::Share(share) => unit(draw) < *share,
        When::All(all) => all.iter().all(|when| holds(when, question, number, draw)),
        When::Not(when) => !holds(when, question, number, draw),
    }
}

fn duration(latency: Latency, draw: u64) -> Duration {
    latency.fixed + latency.jitter.mul_f64(unit(draw))
}

/// A number from 0 to less than 1.
fn unit(draw: u64) -> f64 {
    let high = u32::try_from(draw >> 32).expect("32 bits are left");
    f64::from(high) / 4_294_967_296.0
}

/// FNV-1a: the draws must be the same in every build, which std's hashers do not promise.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let start = mix(seed) ^ 0xcbf2_9ce4_8422_2325;
    bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The finalizer of splitmix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
