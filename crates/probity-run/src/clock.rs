//! The one place that looks at the clock on the wall.

use std::{sync::LazyLock, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since 1970, by the clock on the wall when the program began and by one that nobody
/// sets since then: what happens later has the later time, and what lies between two times is
/// how long it took.
pub fn now_ms() -> i64 {
    static BEGUN: LazyLock<(i64, Duration)> = LazyLock::new(|| (wall_ms(), since_boot()));
    #[cfg(all(feature = "simulated", not(test)))]
    if let Some(now) = crate::simulated::now_ms() {
        return now;
    }
    let (wall, boot) = *BEGUN;
    let passed = since_boot().saturating_sub(boot).as_millis();
    wall.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
}

/// A time that only goes on, also while the machine sleeps.
fn since_boot() -> Duration {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Milliseconds since 1970 by the clock on the wall as it is now, to compare with what servers say.
#[expect(clippy::disallowed_methods, reason = "when something happened is part of the record")]
pub fn wall_ms() -> i64 {
    #[cfg(all(feature = "simulated", not(test)))]
    if let Some(now) = crate::simulated::now_ms() {
        return now;
    }
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now());
    now.unwrap_or_default().as_millisecond()
}
