//! Whether a failed call is tried again, and when.

use std::time::Duration;

use probity_core::record::CallError;
use probity_load::settings::Retry;

/// What is known when a call has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) error: &'a CallError,
    /// Calls that were made for the case, this one included.
    pub(crate) attempts: u64,
    /// What is left of the time for the case.
    pub(crate) left: Duration,
    /// From 0 to 1: where in the range of a wait this one falls.
    pub(crate) chance: f64,
}

/// The wait before the next try; none if there is to be none.
///
/// A service that says when to come back is believed, however long that is, as long as
/// there is time for another call after it.
pub(crate) fn wait(retry: &Retry, situation: Situation<'_>) -> Option<Duration> {
    let Situation { error, attempts, left, chance } = situation;
    if error.permanent || attempts > retry.max_retries {
        return None;
    }
    let doublings = i32::try_from(attempts.saturating_sub(1).min(32)).unwrap_or(32);
    let backoff = retry.backoff_base * 2_f64.powi(doublings);
    let backoff = backoff.min(retry.backoff_max.as_secs_f64());
    let spread = backoff * (1.0 + retry.backoff_jitter * chance);
    let asked = error.retry_after.unwrap_or(0.0);
    let wait = Duration::try_from_secs_f64(spread.max(asked)).unwrap_or(Duration::MAX);
    (wait < left).then_some(wait)
}

#[cfg(test)]
mod tests {
    use probity_core::failure::ErrorKind;

    use super::*;

    const RETRY: Retry = Retry {
        max_retries: 3,
        backoff_base: 2.0,
        backoff_jitter: 0.5,
        backoff_max: Duration::from_mins(1),
    };

    fn waits(error: &CallError, chance: f64) -> Vec<Option<u64>> {
        let left = Duration::from_mins(10);
        let wait = |attempts| wait(&RETRY, Situation { error, attempts, left, chance });
        (1..=5).map(|attempts| wait(attempts).map(|it| it.as_secs())).collect()
    }

    #[test]
    fn waits_double_and_end() {
        let error = CallError::new(ErrorKind::Server, "broken");
        assert_eq!(waits(&error, 0.0), [Some(2), Some(4), Some(8), None, None]);
        assert_eq!(waits(&error, 1.0), [Some(3), Some(6), Some(12), None, None]);
    }

    #[test]
    fn a_permanent_error_is_not_tried_again() {
        let error = CallError::new(ErrorKind::Auth, "no");
        assert_eq!(waits(&error, 0.0), [None; 5]);
    }

    #[test]
    fn the_service_is_believed_when_it_says_when_to_come_back() {
        let mut error = CallError::new(ErrorKind::RateLimit, "slow down");
        error.retry_after = Some(90.0);
        assert_eq!(waits(&error, 0.0)[0], Some(90));
        error.retry_after = Some(0.5);
        assert_eq!(waits(&error, 0.0)[0], Some(2));
    }

    #[test]
    fn there_is_no_wait_beyond_the_end_of_the_case() {
        let error = CallError::new(ErrorKind::Server, "broken");
        let situation =
            Situation { error: &error, attempts: 1, left: Duration::from_secs(2), chance: 0.0 };
        assert_eq!(wait(&RETRY, situation), None);
    }
}
