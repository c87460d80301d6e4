//! Whether a failed call is tried again, and when.

use std::time::Duration;

use probity_core::{failure::ErrorKind, record::CallError, span::Span};
use probity_load::settings::Retry;

/// What is known when a call has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) error: &'a CallError,
    /// Calls that were made for the case, this one included.
    pub(crate) attempts: u64,
    /// What is left of the time for the case.
    pub(crate) left: Duration,
    /// The longest pause that a service may ask for.
    pub(crate) max_pause: Duration,
    /// From 0 to 1: where in the range of a wait this one falls.
    pub(crate) chance: f64,
}

/// The wait before the next try; none if there is to be none.
///
/// A service that says when to come back is believed, as long as that is no longer than the
/// longest pause and leaves time for another call.
pub(crate) fn wait(retry: &Retry, situation: Situation<'_>) -> Option<Duration> {
    let Situation { error, attempts, left, max_pause, chance } = situation;
    if error.permanent || attempts > retry.max_retries || asked(error) > max_pause {
        return None;
    }
    let doublings = i32::try_from(attempts.saturating_sub(1).min(32)).unwrap_or(32);
    let backoff = retry.backoff_base * 2_f64.powi(doublings);
    let backoff = backoff.min(retry.backoff_max.as_secs_f64());
    let spread = backoff * (1.0 + retry.backoff_jitter * chance);
    let backoff = Duration::try_from_secs_f64(spread).unwrap_or(Duration::MAX);
    let wait = backoff.max(asked(error));
    (wait < left).then_some(wait)
}

/// How long the service asks to wait.
pub(crate) fn asked(error: &CallError) -> Duration {
    let seconds = error.retry_after.unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// The error with why the wait that the service asks for is not begun.
pub(crate) fn explained(error: CallError, left: Duration, max_pause: Duration) -> CallError {
    let asked = asked(&error);
    let message = match &error.message {
        message if asked > max_pause => {
            let (asked, most) = (long(asked), Span(max_pause));
            format!("{message}; it asks to wait {asked}, longer than `pace.max_pause` ({most})")
        }
        message if !error.permanent && !asked.is_zero() && asked >= left => {
            let asked = long(asked);
            format!("{message}; it asks to wait {asked}, longer than the time left for the case")
        }
        _ => return error,
    };
    let kind = if error.permanent { error.kind } else { ErrorKind::RateLimit };
    CallError { kind, message, ..error }
}

/// A wait as people say it, however long it is.
fn long(wait: Duration) -> String {
    const DAY: u64 = 86_400;
    match wait.as_secs() {
        seconds @ ..DAY => Span(Duration::from_secs(seconds.max(1))).to_string(),
        seconds => format!("{} days", seconds / DAY),
    }
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
        let max_pause = Duration::from_mins(5);
        let wait = |attempts| wait(&RETRY, Situation { error, attempts, left, max_pause, chance });
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
        error.retry_after = Some(301.0);
        assert_eq!(waits(&error, 0.0)[0], None);
    }

    #[test]
    fn there_is_no_wait_beyond_the_end_of_the_case() {
        let error = CallError::new(ErrorKind::Server, "broken");
        let situation = Situation {
            error: &error,
            attempts: 1,
            left: Duration::from_secs(2),
            max_pause: Duration::from_mins(5),
            chance: 0.0,
        };
        assert_eq!(wait(&RETRY, situation), None);
    }

    #[test]
    fn a_pause_without_measure_is_an_error_that_names_it() {
        let check = |retry_after: f64, left: u64, expected: &str| {
            let error = CallError {
                retry_after: Some(retry_after),
                ..CallError::new(ErrorKind::Overloaded, "later")
            };
            let (left, most) = (Duration::from_secs(left), Duration::from_mins(5));
            assert_eq!(explained(error, left, most).to_string(), expected);
        };
        check(20.0, 600, "overloaded: later");
        let most = "longer than `pace.max_pause` (5m)";
        check(301.0, 600, &format!("rate_limit: later; it asks to wait 5m1s, {most}"));
        check(1.8e12, 600, &format!("rate_limit: later; it asks to wait 20833333 days, {most}"));
        let left = "longer than the time left for the case";
        check(20.0, 10, &format!("rate_limit: later; it asks to wait 20s, {left}"));
    }
}
