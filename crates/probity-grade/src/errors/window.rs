//! The vendors' own headers about how much of a limit is left.

use super::retry;

/// Seconds until a window opens again in which nothing is left, by the headers of an answer.
///
/// OpenAI and its kin write a duration, Anthropic a time, the draft standard seconds. A
/// time is counted from the answer's own `date`, since nothing here reads a clock.
pub fn exhausted_for(headers: &[(&str, &str)]) -> Option<f64> {
    let header = |name: &str| {
        headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    };
    let windows = [
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("ratelimit-remaining", "ratelimit-reset"),
    ];
    let waits = windows.into_iter().filter_map(|(remaining, reset)| {
        let left: f64 = header(remaining)?.parse().ok()?;
        (left <= 0.0).then(|| retry::wait_until(header(reset)?, header("date")))?
    });
    waits.max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendor_says_it_in_its_own_way() {
        let date = ("date", "Sun, 15 Nov 2026 10:00:00 GMT");
        let check = |headers: &[(&str, &str)], expected| {
            let headers: Vec<_> = headers.iter().copied().chain([date]).collect();
            assert_eq!(exhausted_for(&headers), expected, "{headers:?}");
        };
        let (remaining, reset) = ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests");
        check(&[(remaining, "0"), (reset, "6m0s")], Some(360.0));
        check(&[(remaining, "0"), (reset, "20ms")], Some(0.02));
        check(&[(remaining, "1"), (reset, "6m0s")], None);
        check(&[(remaining, "0")], None);
        let anthropic = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-15T10:00:30Z"),
        ];
        check(&anthropic, Some(30.0));
        check(&[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")], Some(12.0));
        check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1794736805")], Some(5.0));
        // Milliseconds since 1970, and a time that is over.
        check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1794736805000")], Some(5.0));
        check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1794736000")], Some(0.0));
    }
}
