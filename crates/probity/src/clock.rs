//! The clock on the wall, and how its times are shown.

use jiff::Timestamp;

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "when a run began is part of its record")]
pub(crate) fn now_ms() -> i64 {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default().as_millisecond()
}

/// A time in UTC, to the second.
pub(crate) fn shown(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
