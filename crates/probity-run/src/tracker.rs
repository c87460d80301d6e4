//! Notices a backend that fails the same way again and again.
//!
//! A failure here is a case that ended in an error after all its retries. Each repeat
//! of the dataset is counted on its own.

use std::collections::BTreeMap;

use probity_core::record::CallError;
use probity_grade::errors::fingerprint;
use probity_load::settings::FailFast;

/// Counts failures in a row that are the same, in the order in which cases end.
#[derive(Debug)]
pub(crate) struct Tracker {
    limits: Option<FailFast>,
    streaks: BTreeMap<u32, Streak>,
}

#[derive(Debug)]
struct Streak {
    fingerprint: String,
    length: u64,
}

/// The same failure too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// What the failures have in common.
    pub(crate) reason: String,
    /// Whether no retry could have mended them.
    pub(crate) permanent: bool,
}

impl Tracker {
    /// A tracker that never notices anything without limits.
    pub(crate) fn new(limits: Option<FailFast>) -> Self {
        Self { limits, streaks: BTreeMap::new() }
    }

    /// A case ended without an error.
    pub(crate) fn success(&mut self, repeat: u32) {
        self.streaks.remove(&repeat);
    }

    /// A case ended in an error.
    pub(crate) fn failure(&mut self, repeat: u32, error: &CallError) -> Option<Breach> {
        let limits = self.limits?;
        let fingerprint = fingerprint(error.kind, &error.message);
        let streak = match self.streaks.remove(&repeat) {
            Some(Streak { fingerprint: last, length }) if last == fingerprint => {
                Streak { fingerprint, length: length + 1 }
            }
            Some(_) | None => Streak { fingerprint, length: 1 },
        };
        let threshold = if error.permanent { limits.permanent_threshold } else { limits.threshold };
        let breach = (streak.length >= threshold)
            .then(|| Breach { reason: streak.fingerprint.clone(), permanent: error.permanent });
        self.streaks.insert(repeat, streak);
        breach
    }
}

#[cfg(test)]
mod tests {
    use probity_core::failure::ErrorKind;

    use super::*;

    fn tracker() -> Tracker {
        Tracker::new(Some(FailFast { threshold: 3, permanent_threshold: 2 }))
    }

    fn server(message: &str) -> CallError {
        CallError::new(ErrorKind::Server, message)
    }

    #[test]
    fn the_same_failure_three_times_in_a_row_is_a_breach() {
        let mut tracker = tracker();
        assert_eq!(tracker.failure(0, &server("oops (request 17)")), None);
        assert_eq!(tracker.failure(0, &server("oops (request 18)")), None);
        let breach = tracker.failure(0, &server("oops (request 19)")).unwrap();
        assert!(!breach.permanent);
        assert!(breach.reason.contains("oops"), "{}", breach.reason);
    }

    #[test]
    fn another_failure_begins_anew() {
        let mut tracker = tracker();
        for message in ["a", "a", "b", "a", "a"] {
            assert_eq!(tracker.failure(0, &server(message)), None, "{message}");
        }
        assert!(tracker.failure(0, &server("a")).is_some());
    }

    #[test]
    fn a_success_begins_anew() {
        let mut tracker = tracker();
        for _ in 0..5 {
            assert_eq!(tracker.failure(0, &server("a")), None);
            assert_eq!(tracker.failure(0, &server("a")), None);
            tracker.success(0);
        }
    }

    #[test]
    fn repeats_are_counted_apart() {
        let mut tracker = tracker();
        for repeat in 0..9 {
            assert_eq!(tracker.failure(repeat, &server("a")), None);
            assert_eq!(tracker.failure(repeat, &server("a")), None);
        }
    }

    #[test]
    fn permanent_failures_have_a_threshold_of_their_own() {
        let mut tracker = tracker();
        let error = CallError::new(ErrorKind::Auth, "invalid key");
        assert_eq!(tracker.failure(0, &error), None);
        assert!(tracker.failure(0, &error).unwrap().permanent);
    }

    #[test]
    fn without_limits_nothing_is_a_breach() {
        let mut tracker = Tracker::new(None);
        for _ in 0..100 {
            assert_eq!(tracker.failure(0, &server("a")), None);
        }
    }
}
