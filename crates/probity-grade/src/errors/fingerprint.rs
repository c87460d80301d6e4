//! Makes "the same error again" comparable: what changes from call to call is taken out.

use std::sync::LazyLock;

use probity_core::failure::ErrorKind;
use regex::{Captures, Regex};

/// Characters of a fingerprint's text.
const LENGTH: usize = 200;
/// Bytes of a message that are looked at; more than enough for [`LENGTH`] characters to remain.
const LONGEST: usize = 16 << 10;

/// The class of an error and its text without ids, numbers, times, durations and paths.
pub fn fingerprint(kind: ErrorKind, message: &str) -> String {
    // One pass: the first alternative that fits at a place wins, so the order matters.
    static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
        let alternatives = [
            r"(?P<ansi>\x1b\[[0-?]*[ -/]*[@-~]|\x1b.)",
            r"(?P<url>[a-z][a-z0-9+.-]*://[^\s'\x22<>)]+)",
            r"(?P<uuid>(?-u:\b)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?-u:\b))",
            r"(?P<time>(?-u:\b)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[t ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?)?|(?-u:\b)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[ap]m)?(?-u:\b))",
            r"(?P<id>(?-u:\b)(?:req|request|org|proj|run|sess|session|msg|chatcmpl|resp|call|thread|item|trace|user|key|id)[_-][a-z0-9_-]*[0-9][a-z0-9_-]*)",
            r"(?P<path>(?:[a-z]:)?(?:[/\\][a-z0-9_.@+~-]+){2,}[/\\]?|~/[^\s'\x22]+)",
            r"(?P<hex>(?-u:\b)(?:0x[0-9a-f]+|[0-9a-f]*[0-9][0-9a-f]*[a-f][0-9a-f]*|[0-9a-f]*[a-f][0-9a-f]*[0-9][0-9a-f]*)(?-u:\b))",
            r"(?P<duration>(?-u:\b)[0-9]+(?:[.,][0-9]+)? ?(?:ns|µs|us|ms|msecs?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?-u:\b))",
            r"(?P<number>[0-9]+(?:[.,][0-9]+)*)",
        ];
        Regex::new(&alternatives.join("|")).expect("a constant pattern")
    });
    let end = message.floor_char_boundary(LONGEST);
    let lower = message[..end].to_lowercase();
    let replaced = CHANGING.replace_all(&lower, |found: &Captures<'_>| {
        let is = |name: &str| found.name(name).is_some();
        let stands_for = match () {
            () if is("ansi") => "",
            () if is("url") => "<url>",
            () if is("uuid") || is("id") => "<id>",
            () if is("time") => "<time>",
            () if is("path") => "<path>",
            () if is("hex") && short(&found[0]) => return found[0].to_owned(),
            () if is("hex") => "<hex>",
            () if is("duration") => "<duration>",
            () => "<n>",
        };
        stands_for.to_owned()
    });
    let words: Vec<&str> = replaced.split_whitespace().collect();
    let folded = words.join(" ");
    let cut = folded.char_indices().nth(LENGTH).map_or(folded.len(), |(at, _)| at);
    format!("{kind}: {}", &folded[..cut])
}

/// `a1` and `b2` are words; a hash is longer.
fn short(hex: &str) -> bool {
    hex.len() < 6 && !hex.starts_with("0x")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(message: &str) -> String {
        fingerprint(ErrorKind::Server, message)
    }

    #[test]
    fn what_changes_from_call_to_call_is_taken_out() {
        insta::assert_snapshot!(of("HTTP 529 after 14000 ms: Overloaded (request req_011CTest) at 2026-01-02T03:04:05Z"), @"server: http <n> after <duration>: overloaded (request <id>) at <time>");
        insta::assert_snapshot!(of("\u{1b}[31mfailed\u{1b}[0m to open /home/me/x/y.json:  port 8080, 0xdeadbeef"), @"server: failed to open <path>: port <n>, <hex>");
        assert_eq!(
            of("request 3f2b8c1e-aaaa-4bbb-8ccc-0123456789ab failed"),
            of("request 00000000-aaaa-4bbb-8ccc-ffffffffffff failed")
        );
        assert_eq!(of("commit 9fceb02d0ae5"), of("commit 0ae59fceb02d"));
        assert_eq!(of("took 1.5s"), of("took  230 ms"));
    }

    #[test]
    fn different_errors_stay_different() {
        assert_ne!(of("model not found"), of("key not found"));
        assert_ne!(fingerprint(ErrorKind::Auth, "x"), fingerprint(ErrorKind::Quota, "x"));
    }

    #[test]
    fn blanks_are_folded_before_the_text_is_cut() {
        let spaced = format!("a{}b", " ".repeat(500));
        assert_eq!(of(&spaced), "server: a b");
        assert_eq!(of(&"ä ".repeat(300)).chars().count(), "server: ".len() + LENGTH);
    }

    proptest! {
        #[test]
        fn a_fingerprint_is_bounded_and_the_same_each_time(message in "\\PC{0,300}") {
            let once = of(&message);
            prop_assert!(once.chars().count() <= "server: ".len() + LENGTH);
            prop_assert_eq!(&once, &of(&message));
        }
    }
}
