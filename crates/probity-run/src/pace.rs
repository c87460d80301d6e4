//! How many calls a backend may have in flight.
//!
//! The limit begins low, grows by a few with each success until the first sign of too
//! much (which makes 32 times of it each round), and grows gently after that. A burst of refusals
//! cuts it once: calls that were begun before the last cut say nothing about the limit
//! that holds now. Until its first success, and after a case that ended in an error until the
//! next one, a backend gets no more cases than it takes to find out that it is hopeless, and
//! then one at a time.

use std::time::Duration;

use probity_core::{failure::ErrorKind, record::CallError};
use tokio::time::Instant;

use crate::retry;

/// Calls in flight to begin with, unless fewer are enough to give the backend up.
const FIRST: u64 = 8;
/// A limit that was found again and again is tried out this many times more rarely.
const MOST_PATIENT: f64 = 64.0;
/// By how much the limit grows with each success until it is cut: it is 32 times as high after a round. Doubling takes
/// nine rounds to a thousand calls in flight, which is longer than many runs take; this takes two.
const RISE: f64 = 31.0;
/// What is left of the limit after a burst of refusals.
const CUT: f64 = 0.7;
/// By how much the limit grows in a round once it has been cut.
const GROWTH: f64 = 0.05;

/// The pace of one backend.
#[derive(Debug)]
pub(crate) struct Pacer {
    most: u64,
    limit: f64,
    in_flight: u64,
    /// Cases that have begun and not ended.
    cases: u64,
    /// Cases that are waiting for their next try.
    backing_off: u64,
    /// Whether any call has succeeded.
    proven: bool,
    /// Cases that may still begin together before one has to succeed.
    probation: u64,
    /// How many those are to begin with; none where the backend is never given up.
    probation_length: Option<u64>,
    /// Rounds that the limit takes to grow by one step; each cut doubles them.
    patience: f64,
    /// Whether any call has been refused for being too many.
    cut_at: Option<Instant>,
    paused_until: Option<Instant>,
    /// No pause is longer.
    max_pause: Duration,
}

/// A backend that gets no calls for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) length: Duration,
    pub(crate) limit: u64,
}

impl Pacer {
    /// At most `most` calls in flight. With a `probation`, no more than so many cases begin
    /// before one succeeds, or all have failed.
    pub(crate) fn new(most: u64, probation: Option<u64>, max_pause: Duration) -> Self {
        let most = most.max(1);
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let limit = probation.unwrap_or(FIRST).clamp(1, FIRST).min(most) as f64;
        Self {
            most,
            limit,
            in_flight: 0,
            cases: 0,
            backing_off: 0,
            proven: probation.is_none(),
            probation: probation.unwrap_or(0),
            probation_length: probation,
            patience: 1.0,
            cut_at: None,
            paused_until: None,
            max_pause,
        }
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Cases that are being asked, or wait to be asked again.
    pub(crate) fn busy(&self) -> u64 {
        self.in_flight + self.backing_off
    }

    /// Calls that may be in flight now.
    pub(crate) fn limit(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and `most`"
        )]
        let limit = self.limit as u64;
        limit.clamp(1, self.most)
    }

    /// Whether another call may begin.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.in_flight < self.limit() && self.paused_until.is_none_or(|until| until <= now)
    }

    /// Whether another case may begin: there is room, and not too much is left undone.
    pub(crate) fn may_begin(&self, now: Instant) -> bool {
        self.has_room(now) && self.may_enter()
    }

    /// Whether another case may count on it, now or later.
    pub(crate) fn may_enter(&self) -> bool {
        match self.proven {
            true => self.backing_off < self.limit(),
            false => self.probation > 0 || self.cases == 0,
        }
    }

    /// When calls may begin again.
    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    pub(crate) fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// A case begins with its first call.
    pub(crate) fn begin_case(&mut self) {
        self.enter();
        self.begin();
    }

    /// A case begins that is going to ask it later.
    pub(crate) fn enter(&mut self) {
        self.probation = self.probation.saturating_sub(1);
        self.cases += 1;
    }

    /// A case ended in an error: until a call succeeds, no more cases begin than it takes to
    /// find out that the backend is hopeless.
    pub(crate) fn doubt(&mut self) {
        if let Some(length) = self.probation_length.filter(|_| self.proven) {
            self.proven = false;
            self.probation = length.saturating_sub(1);
        }
    }

    pub(crate) fn end_case(&mut self) {
        self.cases = self.cases.saturating_sub(1);
    }

    /// A case waits for its next try, or has stopped waiting.
    pub(crate) fn back_off(&mut self) {
        self.backing_off += 1;
    }

    pub(crate) fn back(&mut self) {
        self.backing_off = self.backing_off.saturating_sub(1);
    }

    /// A call ended that says nothing about the backend: it was given up.
    pub(crate) fn dropped(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A call succeeded; `exhausted_for` is how long the backend says it has nothing left.
    pub(crate) fn succeeded(
        &mut self,
        now: Instant,
        exhausted_for: Option<Duration>,
    ) -> Option<Pause> {
        self.dropped();
        self.proven = true;
        self.limit += match self.cut_at {
            None => RISE,
            Some(_) => (self.limit * GROWTH).max(1.0) / (self.limit * self.patience),
        };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let most = self.most as f64;
        self.limit = self.limit.min(most);
        self.pause(now, exhausted_for?)
    }

    /// A call that began at `began` failed.
    pub(crate) fn failed(
        &mut self,
        began: Instant,
        now: Instant,
        error: &CallError,
    ) -> Option<Pause> {
        self.dropped();
        self.proven |= error.kind == ErrorKind::ContentFilter;
        let too_much = matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Overloaded);
        if !too_much {
            return None;
        }
        self.cut(began, now);
        self.pause(now, retry::asked(error))
    }

    /// A call that was to begin at `began` could not be made, for want of means of our own.
    pub(crate) fn cramped(&mut self, began: Instant, now: Instant) {
        self.dropped();
        self.cut(began, now);
    }

    fn cut(&mut self, began: Instant, now: Instant) {
        let same_burst = self.cut_at.is_some_and(|cut| began <= cut);
        if !same_burst {
            self.limit = (self.limit * CUT).max(1.0);
            self.patience = match self.cut_at {
                None => 1.0,
                Some(_) => (self.patience * 2.0).min(MOST_PATIENT),
            };
            self.cut_at = Some(now);
        }
    }

    /// Pauses, unless it is paused for longer already. What asks for too long a pause gets
    /// none: the next call finds out whether it was meant.
    fn pause(&mut self, now: Instant, length: Duration) -> Option<Pause> {
        let until = now.checked_add(length)?;
        if length > self.max_pause {
            return None;
        }
        if length.is_zero() || self.paused_until.is_some_and(|already| already >= until) {
            return None;
        }
        self.paused_until = Some(until);
        Some(Pause { length, limit: self.limit() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_mins(5);

    fn refused(retry_after: Option<f64>) -> CallError {
        CallError { retry_after, ..CallError::new(ErrorKind::RateLimit, "slow down") }
    }

    fn round(pacer: &mut Pacer, now: Instant) {
        let limit = pacer.limit();
        while pacer.has_room(now) {
            pacer.begin();
        }
        for _ in 0..limit {
            pacer.succeeded(now, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_rises_steeply_until_it_reaches_the_most() {
        let now = Instant::now();
        let mut pacer = Pacer::new(1000, Some(3), MOST);
        let mut limits = vec![pacer.limit()];
        for _ in 0..4 {
            round(&mut pacer, now);
            limits.push(pacer.limit());
        }
        assert_eq!(limits, [3, 96, 1000, 1000, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_refusals_cuts_once_and_growth_is_gentle_after_it() {
        let began = Instant::now();
        let mut pacer = Pacer::new(100, Some(8), MOST);
        for _ in 0..2 {
            round(&mut pacer, began);
        }
        assert_eq!(pacer.limit(), 100);
        for _ in 0..100 {
            pacer.begin();
        }
        for _ in 0..100 {
            pacer.failed(began, began, &refused(None));
        }
        assert_eq!((pacer.limit(), pacer.in_flight()), (70, 0));
        round(&mut pacer, began);
        assert_eq!(pacer.limit(), 73);
        tokio::time::advance(Duration::from_secs(2)).await;
        pacer.begin();
        pacer.failed(Instant::now(), Instant::now(), &refused(None));
        assert_eq!(pacer.limit(), 51);
        // What was too much twice is tried out more rarely.
        round(&mut pacer, Instant::now());
        assert_eq!(pacer.limit(), 52);
    }

    #[tokio::test(start_paused = true)]
    async fn a_backend_that_asks_for_time_gets_it() {
        let now = Instant::now();
        let mut pacer = Pacer::new(4, Some(4), MOST);
        pacer.begin();
        let pause = pacer.failed(now, now, &refused(Some(30.0))).unwrap();
        assert_eq!(pause, Pause { length: Duration::from_secs(30), limit: 2 });
        assert!(!pacer.has_room(now));
        pacer.begin();
        assert_eq!(pacer.failed(now, now, &refused(Some(10.0))), None);
        assert!(pacer.has_room(now + Duration::from_secs(30)));
        // Nobody is left alone for ever.
        pacer.begin();
        assert_eq!(pacer.failed(now, now, &refused(Some(1.8e12))), None);
        assert_eq!(pacer.succeeded(now, Some(Duration::from_secs(301))), None);
        assert!(pacer.has_room(now + Duration::from_secs(30)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unproven_backend_gets_no_more_cases_than_it_takes_to_give_it_up() {
        let now = Instant::now();
        let mut pacer = Pacer::new(64, Some(3), MOST);
        let error = CallError::new(ErrorKind::Server, "broken");
        for _ in 0..3 {
            assert!(pacer.may_begin(now));
            pacer.begin_case();
        }
        pacer.failed(now, now, &error);
        assert!(!pacer.may_begin(now) && pacer.has_room(now));
        pacer.failed(now, now, &error);
        pacer.failed(now, now, &error);
        assert!(!pacer.may_begin(now));
        for _ in 0..3 {
            pacer.end_case();
        }
        assert!(pacer.may_begin(now));
        pacer.begin_case();
        assert!(!pacer.may_begin(now));
        pacer.succeeded(now, None);
        assert!(pacer.may_begin(now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_error_leaves_the_limit_alone() {
        let now = Instant::now();
        let mut pacer = Pacer::new(64, None, MOST);
        pacer.begin();
        pacer.failed(now, now, &CallError::new(ErrorKind::Server, "broken"));
        assert_eq!(pacer.limit(), 8);
    }
}
