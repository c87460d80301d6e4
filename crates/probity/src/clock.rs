//! The clock on the wall, and how its times are shown.

use jiff::Timestamp;

pub(crate) use probity_run::clock::now_ms;

/// A time in UTC, to the second.
pub(crate) fn shown(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
