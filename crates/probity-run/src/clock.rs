//! The one place that looks at the clock on the wall.

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "when something happened is part of the record")]
pub fn now_ms() -> i64 {
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now());
    now.unwrap_or_default().as_millisecond()
}
