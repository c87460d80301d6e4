//! When a service says to come back, in seconds.

use std::sync::LazyLock;

use jiff::{Timestamp, fmt::rfc2822};
use regex::Regex;

/// The wait that the headers ask for.
///
/// A date is counted from the answer's own `date`, since nothing here reads a clock.
pub(super) fn after_header(headers: &[(&str, &str)]) -> Option<f64> {
    let header = |name: &str| {
        headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    };
    let millis = header("retry-after-ms").or_else(|| header("x-ms-retry-after-ms"));
    if let Some(seconds) = millis.and_then(|it| it.parse::<f64>().ok()).map(|it| it / 1000.0) {
        return sane(seconds);
    }
    wait_until(header("retry-after")?, header("date"))
}

/// The wait that a header's value asks for: seconds, a duration with its units, a time, or
/// seconds or milliseconds since 1970.
///
/// A time is counted from the answer's own date, since nothing here reads a clock. One that
/// is over asks for no wait.
pub(super) fn wait_until(value: &str, date: Option<&str>) -> Option<f64> {
    // The second of September 2001, and the same as a number of milliseconds: no service
    // has a window of thirty years.
    const SECONDS: f64 = 1e9;
    const MILLISECONDS: f64 = 1e12;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
    let now = || Some(date.and_then(http_date)?.as_millisecond() as f64 / 1000.0);
    let seconds = match value.parse::<f64>() {
        Ok(number) if number >= MILLISECONDS => number / 1000.0 - now()?,
        Ok(number) if number >= SECONDS => number - now()?,
        Ok(seconds) if seconds < 0.0 => return None,
        Ok(seconds) => seconds,
        Err(_) => match value.parse::<Timestamp>().ok().or_else(|| http_date(value)) {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53 milliseconds")]
            Some(until) => until.as_millisecond() as f64 / 1000.0 - now()?,
            None => duration(value, false)?,
        },
    };
    sane(seconds.max(0.0))
}

/// A time as HTTP writes it; a wrong day of the week does not make it another time.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}

/// The wait that a normalised text asks for.
///
/// A program that says it is "retrying in 2 s" tells of its own plans, not of the service's.
pub(super) fn after_text(text: &str) -> Option<f64> {
    static ASKING: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?:(?-u:\b)(?:try|retry|wait|available|resets?)(?-u:\b)[a-z ]{0,24}(?-u:\b)(?:in|after|for)(?-u:\b)",
            r#"|retrydelay|retry[_-]after)[ "':=~]{0,4}[0-9]"#,
        ))
        .expect("a constant pattern")
    });
    let hints = ["try", "wait", "available", "reset"];
    if !hints.iter().any(|hint| text.contains(hint)) {
        return None;
    }
    let asked = ASKING.find_iter(text).find_map(|asking| {
        let is_header =
            asking.as_str().starts_with("retry_") || asking.as_str().starts_with("retry-");
        duration(&text[asking.end() - 1..], is_header)
    });
    asked.and_then(sane)
}

/// The seconds of `1m30s`, `2 hours and 5 minutes` or, where the unit may be missing, `20`.
pub(super) fn duration(text: &str, unit_may_miss: bool) -> Option<f64> {
    let mut rest = text;
    let mut total = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].trim_end_matches('.').parse::<f64>() else {
            return total;
        };
        let after = rest[digits..].trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let Some(unit) = unit(&after[..letters]) else {
            return total.or((unit_may_miss && letters == 0).then_some(number));
        };
        total = Some(total.unwrap_or(0.0) + number * unit);
        let after = after[letters..].trim_start_matches([' ', ',']);
        rest = after.strip_prefix("and ").unwrap_or(after);
    }
}

fn unit(name: &str) -> Option<f64> {
    match name {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(0.001),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3600.0),
        "d" | "day" | "days" => Some(86_400.0),
        _ => None,
    }
}

/// Rounded to milliseconds; what is not a time to wait is none.
pub(super) fn sane(seconds: f64) -> Option<f64> {
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_ask_in_seconds_milliseconds_and_dates() {
        assert_eq!(after_header(&[("Retry-After", "20")]), Some(20.0));
        assert_eq!(after_header(&[("retry-after", "1"), ("retry-after-ms", "350")]), Some(0.35));
        let dated = [
            ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"),
            ("date", "Wed, 21 Oct 2026 07:28:00 GMT"),
        ];
        assert_eq!(after_header(&dated), Some(30.0));
        assert_eq!(after_header(&dated[..1]), None);
        assert_eq!(after_header(&[("retry-after", "soon")]), None);
        assert_eq!(after_header(&[("retry-after", "-3")]), None);
        assert_eq!(after_header(&[("retry-after", "1m30s")]), Some(90.0));
        let since_1970 = |value| after_header(&[("retry-after", value), dated[1]]);
        assert_eq!(since_1970("1792567710"), Some(30.0));
        assert_eq!(since_1970("1792567710500"), Some(30.5));
        assert_eq!(since_1970("1792567600"), Some(0.0));
    }

    #[test]
    fn texts_ask_in_words() {
        for (text, expected) in [
            ("please try again in 3.89s. visit", Some(3.89)),
            ("please try again in 6ms.", Some(0.006)),
            ("retry after 60 seconds", Some(60.0)),
            ("try again in 1m30s", Some(90.0)),
            ("try again in 2 hours and 5 minutes", Some(7500.0)),
            ("\"retrydelay\": \"34s\"", Some(34.0)),
            ("retry_after: 2.5 s", Some(2.5)),
            ("try again in 13m25.5s. need more?", Some(805.5)),
            ("'retry-after': '20', 'x'", Some(20.0)),
            ("retry_after=7", Some(7.0)),
            ("resets in 2 days", Some(172_800.0)),
            ("try again in 3 sessions", None),
            ("retrying in 0.2s", None),
            ("retried 5 times (total retry wait time: 52.78 seconds)", None),
            ("try again later", None),
            ("in 3 seconds", None),
        ] {
            assert_eq!(after_text(text), expected, "{text}");
        }
    }
}
