//! The clock on the wall, and how its times are shown.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

pub(crate) use probity_run::clock::now_ms;

/// The time now, for who counts from it.
pub(crate) fn now() -> SystemTime {
    let ms = u64::try_from(now_ms()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

/// A time in UTC, to the second.
pub(crate) fn shown(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
