//! Notices a backend that fails the same way again and again.
//!
//! A failure here is a case that ended in an error after all its retries. Failures are in a
//! row if their cases began one after the other: a case with retries ends long after its
//! neighbours, and a few such cases at the end of a run say nothing about the backend. Each
//! repeat of the dataset is counted on its own.

use std::collections::BTreeMap;

use probity_core::record::CallError;
use probity_grade::errors::fingerprint;
use probity_load::settings::FailFast;

/// Counts failures in a row that are the same, in the order in which cases begin.
#[derive(Debug)]
pub(crate) struct Tracker {
    limits: Option<FailFast>,
    repeats: BTreeMap<u32, Row>,
}

/// The cases of one repeat, by the numbers that they got when they began.
///
/// What cannot be part of a row any more is forgotten, so that there are hardly more than are
/// in flight.
#[derive(Debug, Default)]
struct Row(BTreeMap<u64, State>);

/// What is known of a case.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It has begun, and no call of it has failed.
    Fresh,
    /// A call of it has failed, and it tries again: no sign of life, and no failure yet.
    Retrying,
    /// It failed, with this fingerprint.
    Failed(String),
    /// It succeeded. Of several in a row one is kept.
    Succeeded,
}

/// The same failure too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// What the failures have in common.
    pub(crate) reason: String,
    /// What the last of them says.
    pub(crate) error: String,
    /// Whether no retry could have mended them.
    pub(crate) permanent: bool,
}

impl Tracker {
    /// A tracker that never notices anything without limits.
    pub(crate) fn new(limits: Option<FailFast>) -> Self {
        Self { limits, repeats: BTreeMap::new() }
    }

    /// A case began. Numbers grow with time.
    pub(crate) fn begin(&mut self, repeat: u32, number: u64) {
        if self.limits.is_some() {
            self.repeats.entry(repeat).or_default().0.insert(number, State::Fresh);
        }
    }

    /// A call of a case failed, and is going to be made again.
    pub(crate) fn retry(&mut self, repeat: u32, number: u64) {
        self.row(repeat).set(number, State::Retrying);
    }

    /// A case ended in a way that says nothing about the backend.
    pub(crate) fn forget(&mut self, repeat: u32, number: u64) {
        self.row(repeat).remove(number);
    }

    /// A case ended without an error.
    pub(crate) fn success(&mut self, repeat: u32, number: u64) {
        self.row(repeat).set(number, State::Succeeded);
        self.row(repeat).tidy(number);
    }

    /// A case ended in an error.
    pub(crate) fn failure(
        &mut self,
        repeat: u32,
        number: u64,
        error: &CallError,
    ) -> Option<Breach> {
        let limits = self.limits?;
        let reason = fingerprint(error.kind, &error.message);
        let row = self.row(repeat);
        row.set(number, State::Failed(reason.clone()));
        let threshold = if error.permanent { limits.permanent_threshold } else { limits.threshold };
        let is_breach = row.length_around(number, &reason) >= threshold;
        row.tidy(number);
        is_breach.then_some(Breach { reason, error: error.sentence(), permanent: error.permanent })
    }

    fn row(&mut self, repeat: u32) -> &mut Row {
        self.repeats.entry(repeat).or_default()
    }
}

impl Row {
    /// Only of cases that have begun, and have not been forgotten.
    fn set(&mut self, number: u64, state: State) {
        if let Some(known) = self.0.get_mut(&number) {
            *known = state;
        }
    }

    fn remove(&mut self, number: u64) {
        self.0.remove(&number);
        self.tidy(number);
    }

    /// How many cases in a row around one failed with a fingerprint. Those that try again are
    /// passed over; any other state ends the row.
    fn length_around(&self, number: u64, fingerprint: &str) -> u64 {
        let is_part = |state: &&State| match state {
            State::Failed(known) => known == fingerprint,
            State::Retrying => true,
            State::Fresh | State::Succeeded => false,
        };
        let failed = |state: &&State| matches!(state, State::Failed(_));
        let before = self.0.range(..number).rev().map(|(_, state)| state);
        let after = self.0.range(number + 1..).map(|(_, state)| state);
        let both = before.take_while(is_part).filter(failed).count()
            + after.take_while(is_part).filter(failed).count();
        both as u64 + 1
    }

    /// Forgets what can decide nothing any more.
    fn tidy(&mut self, around: u64) {
        let is_success = |(_, state): (&u64, &State)| *state == State::Succeeded;
        // Of neighbours that succeeded, the first is enough.
        for number in [around, self.next_after(around).unwrap_or(around)] {
            let before = self.0.range(..number).next_back();
            if self.0.get(&number) == Some(&State::Succeeded) && before.is_some_and(is_success) {
                self.0.remove(&number);
            }
        }
        // Before the first that is not at its end, only the last row counts.
        let open = self.0.iter().find(|(_, state)| matches!(state, State::Fresh | State::Retrying));
        let open = open.map_or(u64::MAX, |(number, _)| *number);
        let last = self.0.range(..open).rev().find(|it| is_success(*it)).map(|(number, _)| *number);
        if let Some(last) = last {
            self.0 = self.0.split_off(&last);
        }
    }

    fn next_after(&self, number: u64) -> Option<u64> {
        self.0.range(number + 1..).next().map(|(next, _)| *next)
    }
}

#[cfg(test)]
mod tests {
    use probity_core::failure::ErrorKind;
    use proptest::prelude::*;

    use super::*;

    fn tracker() -> Tracker {
        Tracker::new(Some(FailFast { threshold: 3, permanent_threshold: 2 }))
    }

    fn server(message: &str) -> CallError {
        CallError::new(ErrorKind::Server, message)
    }

    /// Cases of one repeat that begin and end one after the other.
    struct Sequence {
        tracker: Tracker,
        next: u64,
    }

    impl Sequence {
        fn new() -> Self {
            Self { tracker: tracker(), next: 0 }
        }

        fn failure(&mut self, repeat: u32, error: &CallError) -> Option<Breach> {
            self.next += 1;
            self.tracker.begin(repeat, self.next);
            self.tracker.failure(repeat, self.next, error)
        }

        fn success(&mut self, repeat: u32) {
            self.next += 1;
            self.tracker.begin(repeat, self.next);
            self.tracker.success(repeat, self.next);
        }
    }

    #[test]
    fn the_same_failure_three_times_in_a_row_is_a_breach() {
        let mut cases = Sequence::new();
        assert_eq!(cases.failure(0, &server("oops (request 17)")), None);
        assert_eq!(cases.failure(0, &server("oops (request 18)")), None);
        let breach = cases.failure(0, &server("oops (request 19)")).unwrap();
        assert!(!breach.permanent);
        assert!(breach.reason.contains("oops"), "{}", breach.reason);
    }

    #[test]
    fn another_failure_begins_anew() {
        let mut cases = Sequence::new();
        for message in ["a", "a", "b", "a", "a"] {
            assert_eq!(cases.failure(0, &server(message)), None, "{message}");
        }
        assert!(cases.failure(0, &server("a")).is_some());
    }

    #[test]
    fn a_success_begins_anew() {
        let mut cases = Sequence::new();
        for _ in 0..5 {
            assert_eq!(cases.failure(0, &server("a")), None);
            assert_eq!(cases.failure(0, &server("a")), None);
            cases.success(0);
        }
    }

    #[test]
    fn repeats_are_counted_apart() {
        let mut cases = Sequence::new();
        for repeat in 0..9 {
            assert_eq!(cases.failure(repeat, &server("a")), None);
            assert_eq!(cases.failure(repeat, &server("a")), None);
        }
    }

    #[test]
    fn permanent_failures_have_a_threshold_of_their_own() {
        let mut cases = Sequence::new();
        let error = CallError::new(ErrorKind::Auth, "invalid key");
        assert_eq!(cases.failure(0, &error), None);
        assert!(cases.failure(0, &error).unwrap().permanent);
    }

    #[test]
    fn without_limits_nothing_is_a_breach() {
        let mut tracker = Tracker::new(None);
        for number in 0..100 {
            tracker.begin(0, number);
            assert_eq!(tracker.failure(0, number, &server("a")), None);
        }
    }

    #[test]
    fn cases_that_end_in_a_row_need_not_have_begun_in_a_row() {
        let mut tracker = tracker();
        (0..20).for_each(|number| tracker.begin(0, number));
        let scattered = [3, 8, 13, 18];
        for number in (0..20).filter(|it| !scattered.contains(it)) {
            tracker.success(0, number);
        }
        for number in scattered {
            assert_eq!(tracker.failure(0, number, &server("a")), None);
        }
    }

    #[test]
    fn a_case_that_has_not_answered_yet_may_still_do_so() {
        let mut tracker = tracker();
        (0..4).for_each(|number| tracker.begin(0, number));
        for number in [0, 1, 3] {
            assert_eq!(tracker.failure(0, number, &server("a")), None);
        }
        assert!(tracker.failure(0, 2, &server("a")).is_some());
    }

    #[test]
    fn a_case_that_tries_again_hides_no_failures() {
        let mut tracker = tracker();
        (0..4).for_each(|number| tracker.begin(0, number));
        tracker.retry(0, 2);
        assert_eq!(tracker.failure(0, 0, &server("a")), None);
        assert_eq!(tracker.failure(0, 1, &server("a")), None);
        assert!(tracker.failure(0, 3, &server("a")).is_some());
    }

    #[test]
    fn a_case_that_says_nothing_is_passed_over() {
        let mut tracker = tracker();
        (0..5).for_each(|number| tracker.begin(0, number));
        assert_eq!(tracker.failure(0, 0, &server("a")), None);
        tracker.forget(0, 1);
        assert_eq!(tracker.failure(0, 2, &server("a")), None);
        tracker.forget(0, 3);
        assert!(tracker.failure(0, 4, &server("a")).is_some());
    }

    proptest! {
        /// Cases end in any order: what is forgotten changes nothing.
        #[test]
        fn a_breach_is_three_neighbours_that_failed(
            fails in prop::collection::vec(any::<bool>(), 1..60),
            order in any::<u64>(),
        ) {
            let mut tracker = tracker();
            (0..fails.len() as u64).for_each(|number| tracker.begin(0, number));
            let mut ends: Vec<usize> = (0..fails.len()).collect();
            ends.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(order | 1));
            let mut ended = vec![None; fails.len()];
            for at in ends {
                ended[at] = Some(fails[at]);
                let number = at as u64;
                let breach = match fails[at] {
                    true => tracker.failure(0, number, &server("a")).is_some(),
                    false => {
                        tracker.success(0, number);
                        false
                    }
                };
                let row = |it: &mut dyn Iterator<Item = &Option<bool>>| {
                    it.take_while(|it| **it == Some(true)).count()
                };
                let around =
                    row(&mut ended[..at].iter().rev()) + row(&mut ended[at + 1..].iter()) + 1;
                prop_assert_eq!(breach, fails[at] && around >= 3);
            }
            // All have ended: at most what follows the last success is left.
            let left = fails.iter().rev().take_while(|it| **it).count() + 1;
            prop_assert!(tracker.repeats[&0].0.len() <= left.max(1));
        }
    }
}
