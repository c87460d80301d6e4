//! What an error means, and whether it helps to try again.
//!
//! Everything that is known about a failed call is folded into one text and one
//! status. Then the first rule of the data files that matches decides: the
//! backend's own rules first, the common ones after them. What no rule knows is
//! `unknown` and worth another try.

mod fingerprint;
mod phrases;
mod retry;
mod rules;
mod signal;
mod status;
mod structured;
mod text;
mod window;

use std::borrow::Cow;

use probity_core::{criteria::CriteriaProblem, failure::ErrorKind};
use serde::Serialize;

use crate::excerpt::excerpt;
pub use fingerprint::fingerprint;
use rules::{Facts, Found, RuleSet};
pub(crate) use signal::named as signal_named;
pub use window::exhausted_for;

/// Seconds of waiting up to which an empty account is really a rate limit, and beyond
/// which a rate limit might as well be an empty account.
const SHORT_WAIT: f64 = 3600.0;

/// Everything that is known about a failed call.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorInput<'a> {
    /// The backend whose way of putting things the texts follow.
    pub backend: Option<&'a str>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// The exit code of the program.
    pub exit_code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<&'a str>,
    /// The body of the answer, or an error's text of unknown origin.
    pub text: &'a str,
    /// What the program wrote to standard output.
    pub stdout: &'a str,
    /// What the program wrote to standard error.
    pub stderr: &'a str,
    /// The headers of the answer.
    pub headers: &'a [(&'a str, &'a str)],
}

/// What a failed call comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorVerdict {
    /// Why it failed.
    pub kind: ErrorKind,
    /// Whether trying again is hopeless.
    pub permanent: bool,
    /// How long to wait before trying again, in seconds.
    pub retry_after: Option<f64>,
    /// What decided, for people.
    pub evidence: String,
}

/// The rules that tell errors apart, compiled.
#[derive(Debug)]
pub struct ErrorRules {
    rules: RuleSet,
}

impl ErrorRules {
    /// The built-in rules, with rules of a user's own before them.
    pub fn compile(extra: Option<&str>, problems: &mut Vec<CriteriaProblem>) -> Option<Self> {
        RuleSet::load(extra, problems).map(|rules| Self { rules })
    }

    /// Says what a failed call comes to.
    pub fn classify(&self, input: &ErrorInput<'_>) -> ErrorVerdict {
        let said = structured::gather(input, RuleSet::habits(input.backend));
        let text = text::normalized(&said.text);
        let told = self.told(input, &text, said.status, said.structured);
        let told = match (told, said.aside) {
            (None, "") => None,
            (None, aside) => self.told(input, &text::normalized(aside), None, false),
            (Some(told), _) => Some(told),
        };
        match (told, input.signal) {
            (Some((Found { own: false, .. }, _)) | None, Some(signal)) => killed(signal),
            (Some((found, verdict)), _) => weigh_waiting(&found, input.status, verdict),
            (None, None) => without_words(input),
        }
    }

    /// What the first rule that matches says of a normalised text.
    fn told(
        &self,
        input: &ErrorInput<'_>,
        text: &str,
        object_status: Option<u16>,
        structured: bool,
    ) -> Option<(Found, ErrorVerdict)> {
        // Gateways answer 200 and put the real status into the body.
        let failed = input.status.filter(|status| *status >= 300);
        let (status, status_source) = match (failed, object_status) {
            (Some(status), _) => (Some(status), "status"),
            (None, Some(status)) => (Some(status), "status in the error object"),
            (None, None) => (status::named(text), "status in the text"),
        };
        let facts = Facts { text, status, exit_code: input.exit_code, structured };
        let found = self.rules.first_match(input.backend, &facts)?;
        let evidence = match &found.place {
            Some(place) => format!("\"{}\"", excerpt(&text[place.clone()], 0)),
            None => evidence_of(&facts, status_source),
        };
        let retry_after = retry::after_header(input.headers).or_else(|| retry::after_text(text));
        let verdict =
            ErrorVerdict { kind: found.kind, permanent: found.permanent, retry_after, evidence };
        Some((found, verdict))
    }
}

/// The rule had no words to show, only a number.
fn evidence_of(facts: &Facts<'_>, status_source: &str) -> String {
    match (facts.status, facts.exit_code) {
        (Some(status), _) => format!("{status_source} {status}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => String::new(),
    }
}

/// No rule knows the error: only silence is left to tell.
fn without_words(input: &ErrorInput<'_>) -> ErrorVerdict {
    // What a program that ended well wrote to standard error is no answer.
    let silent = input.text.trim().is_empty() && input.stdout.trim().is_empty();
    let (kind, evidence) = match (input.exit_code, input.status) {
        (Some(0), None) if silent => (ErrorKind::Empty, "exit code 0 and no output"),
        // Python's word for a signal.
        (Some(-64..=-1), _) => (ErrorKind::Crash, "a negative exit code: a signal"),
        (_, Some(200..=299)) if silent => (ErrorKind::Empty, "an empty answer"),
        (Some(_) | None, Some(_) | None) => (ErrorKind::Unknown, "nothing that a rule knows"),
    };
    let retry_after = retry::after_header(input.headers);
    ErrorVerdict {
        kind,
        permanent: kind.is_permanent(),
        retry_after,
        evidence: evidence.to_owned(),
    }
}

/// What a program printed before a signal ended it did not end it.
fn killed(signal: &str) -> ErrorVerdict {
    ErrorVerdict {
        kind: ErrorKind::Crash,
        permanent: false,
        retry_after: None,
        evidence: format!("signal {}", excerpt(signal, 0)),
    }
}

/// A service that says when to come back has a rate limit, whatever it calls it, and one
/// that says tomorrow has none. An account without money stays without.
fn weigh_waiting(found: &Found, status: Option<u16>, verdict: ErrorVerdict) -> ErrorVerdict {
    let firm = found.firm || found.own || status == Some(402);
    match (verdict.kind, verdict.retry_after) {
        (ErrorKind::Quota, Some(seconds)) if seconds <= SHORT_WAIT && !firm => ErrorVerdict {
            kind: ErrorKind::RateLimit,
            permanent: false,
            evidence: format!("{}, with a wait of {seconds} s", verdict.evidence),
            ..verdict
        },
        (ErrorKind::RateLimit, Some(seconds)) if seconds > SHORT_WAIT && !firm => ErrorVerdict {
            kind: ErrorKind::Quota,
            permanent: true,
            evidence: format!("{}, with a wait of {seconds} s", verdict.evidence),
            ..verdict
        },
        (_, _) => verdict,
    }
}

/// Text that may be borrowed.
type Text<'a> = Cow<'a, str>;

#[cfg(test)]
mod tests;
