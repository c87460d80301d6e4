//! Finds the HTTP status that an error text names.
//!
//! Three digits count only beside a word that announces a status, before the words of
//! that status, in brackets, or at the very beginning; never inside another number, an
//! id or a path, and never as an amount.

/// Words that announce a status, where they end right before it.
const ANNOUNCING: &[&str] = &[
    "status",
    "code",
    "statuscode",
    "httpstatuscode",
    "errorcode",
    "http",
    "http/1.0",
    "http/1.1",
    "http/2",
    "http/2.0",
    "error",
    "errors",
    "returned",
    "response",
    "responded with",
    "got",
    "failed",
    "failed with",
    "failure",
    "rejected",
    "apierror",
    "servererror",
    "clienterror",
];
/// What a status is called, right after it.
const REASONS: &[&str] = &[
    "unauthori",
    "forbidden",
    "not found",
    "bad request",
    "bad gateway",
    "service unavailable",
    "service temporarily",
    "gateway time",
    "internal server",
    "payment required",
    "payload too",
    "request entity",
    "content too",
    "request timeout",
    "request timed",
    "method not",
    "conflict",
    "gone",
    "too many",
    "unprocessable",
    "client error",
    "server error",
    "overloaded",
    "not_found",
    "unavailable",
    "resource_exhausted",
    "invalid_argument",
    "permission_denied",
    "unauthenticated",
    "failed_precondition",
    "internal",
    "deadline_exceeded",
    "proxy auth",
    "error",
    "status code",
];
/// What is counted: `429 tokens` is an amount.
const UNITS: &[&str] = &[
    "ms",
    "msec",
    "milliseconds",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "min",
    "mins",
    "minutes",
    "m",
    "h",
    "hours",
    "token",
    "tokens",
    "byte",
    "bytes",
    "char",
    "chars",
    "characters",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "gib",
    "requests",
    "words",
    "word",
    "lines",
    "line",
    "items",
    "messages",
    "files",
    "times",
    "retries",
    "attempts",
    "credits",
    "usd",
    "rpm",
    "tpm",
    "of",
    "in",
    "out",
    "more",
    "pages",
    "rows",
    "samples",
    "cases",
    "steps",
];
/// Characters that may stand between the word and its number: `"code": '429'`.
const BETWEEN: &[char] = &[' ', ':', '=', '#', '(', '[', '"', '\'', ')', ']', '{'];
/// Most of them.
const MOST_BETWEEN: usize = 6;

/// The HTTP status that a normalised text names as such, the first if there are several.
pub(super) fn named(text: &str) -> Option<u16> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + step;
        let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = start + length;
        if length == 3 && matches!(bytes[start], b'4' | b'5') && is_named(text, start) {
            return text[start..at].parse().ok();
        }
    }
    None
}

fn is_named(text: &str, start: usize) -> bool {
    let (before, after) = (&text[..start], &text[start + 3..]);
    if is_inside_a_word(before, after) || is_amount(after) {
        return false;
    }
    let reason = after.trim_start_matches([' ', ':', ',', '-', '(', '\'', '"']);
    let in_brackets =
        before.ends_with(['(', '[']) && after.starts_with([' ', ':', ',', ')', ']', '-']);
    let first = !before.contains(is_word)
        && before.len() <= 4
        && (after.is_empty() || after.starts_with([' ', ':', ',', ')', ']', '-']));
    in_brackets
        || first
        || is_announced(before)
        || (reason.len() < after.len() && REASONS.iter().any(|words| reason.starts_with(words)))
        || (after.is_empty() && ends_a_failure(before))
}

/// `Failed to list models: 403`
fn ends_a_failure(before: &str) -> bool {
    let sentence = &before[before.floor_char_boundary(before.len().saturating_sub(80))..];
    before.ends_with(": ") && sentence.contains("failed to ")
}

fn is_announced(before: &str) -> bool {
    let word = before.trim_end_matches(BETWEEN);
    let distance = before.len() - word.len();
    if distance == 0 || distance > MOST_BETWEEN {
        return false;
    }
    // Classes of errors end so: `ContentTypeError: 502`.
    word.ends_with("error")
        || ANNOUNCING.iter().any(|announcing| {
            word.strip_suffix(announcing)
                .is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
        })
}

/// `req_429a`, `4.429`, `429,000`, `/404`, `:443`, `429.html`
fn is_inside_a_word(before: &str, after: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    before.ends_with(|c: char| is_word(c) || matches!(c, '/' | '\\' | '$' | '@' | '~' | '+' | '…'))
        || after.starts_with(is_word)
        || before.strip_suffix(['.', ',', '-', ':']).is_some_and(|rest| rest.ends_with(is_word))
        || after.strip_prefix(['.', ',']).is_some_and(|rest| rest.starts_with(digit))
        || after.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_word))
        || after.starts_with(['/', '%', '\\'])
}

fn is_amount(after: &str) -> bool {
    let word = after.trim_start();
    let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
    UNITS.contains(&&word[..end])
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_named_as_one() {
        for (text, expected) in [
            ("api error: 529 {", Some(529)),
            ("http/1.1 502 bad gateway", Some(502)),
            ("error code: 429 - x", Some(429)),
            ("request rejected (429) now", Some(429)),
            ("403 forbidden", Some(403)),
            ("{\"code\":503,\"message\":1}", Some(503)),
            ("'code': '401'", Some(401)),
            ("\"api_error_status\":401", Some(401)),
            ("<title>504 gateway time-out</title>", Some(504)),
            ("api error: 504 request timed out", Some(504)),
            ("failed to list models: 403", Some(403)),
            ("first job 401 of 500 failed, then http 503", Some(503)),
            ("error: 401", Some(401)),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn amounts_ids_ports_and_paths_name_none() {
        for text in [
            "after 14000 ms",
            "id 4013",
            "used 28039, requested 429 tokens",
            "error 500 ms later",
            "500 in the completion",
            "port 443",
            "exit code 137",
            "error: 429,000 tokens",
            "error: 4.429 s",
            "status req_401",
            "error at main.rs:404:5",
            "error: 500ms",
            "http://127.0.0.1:500/x",
            "got 404 of 500 right",
            "job 401 of 500 failed",
            "error code-404-page",
            "tokens used: 429",
            "error: 50% of 429% lost",
            "über 429ä",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
