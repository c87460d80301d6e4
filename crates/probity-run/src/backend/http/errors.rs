//! What went wrong with a call, for people and for whoever tries again.

use std::io;

use probity_core::{failure::ErrorKind, record::CallError};
use probity_grade::errors::{ErrorInput, exhausted_for};
use probity_http::{
    Error, StatusCode,
    header::{HeaderMap, LOCATION},
};
use serde_json::Value;

use super::{BodyError, Http, LARGEST_ERROR, with_headers};
use crate::backend::address::{self, shown_target};

impl Http {
    /// The server answered, and the answer is an error.
    pub(super) fn refused(&self, status: StatusCode, headers: &HeaderMap, text: &str) -> CallError {
        let text = match self.language.error_kind(headers) {
            Some(kind) => &with_kind(text, kind),
            None => text,
        };
        let verdict = with_headers(headers, |headers| {
            let input = ErrorInput {
                backend: Some(self.kind),
                status: Some(status.as_u16()),
                text,
                headers,
                ..ErrorInput::default()
            };
            let verdict = self.rules.errors().classify(&input);
            let window = verdict.retry_after.or_else(|| exhausted_for(headers));
            (verdict.kind, verdict.permanent, window)
        });
        let (kind, permanent, retry_after) = verdict;
        let target = headers.get(LOCATION).filter(|_| status.is_redirection());
        let said = match (target, text.trim()) {
            (Some(target), _) => {
                let target = String::from_utf8_lossy(target.as_bytes());
                let target = self.redactor.error_text(&shown_target(&target));
                format!("it redirects to `{target}`, which is not followed")
            }
            (None, "") => status.canonical_reason().unwrap_or("no explanation").to_owned(),
            (None, text) => {
                let said = self.language.error_in(text).unwrap_or_else(|| message_of(text));
                self.redactor.error_text(&said)
            }
        };
        CallError {
            permanent,
            retry_after,
            status: Some(status.as_u16()),
            ..CallError::new(kind, format!("HTTP {}: {said}", status.as_u16()))
        }
    }

    /// There was no answer. A server of this machine that does not listen is not going to, and
    /// everything else is transient.
    pub(super) fn unreachable(&self, error: &Error) -> CallError {
        let is_refused =
            error.io_error().is_some_and(|it| it.kind() == io::ErrorKind::ConnectionRefused);
        let is_local = address::parse(self.url()).is_some_and(|it| address::is_loopback(&it));
        if is_refused && is_local {
            let message = format!(
                "the connection was refused: nothing listens at {}; is the server running? \
                 `probity doctor` looks",
                self.shown_url()
            );
            let error = CallError::new(ErrorKind::Network, message);
            return CallError { permanent: true, ..error };
        }
        let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Network };
        let mut message = match error {
            Error::Connect(_) => "failed to connect".to_owned(),
            Error::Exchange(_) => "the connection failed".to_owned(),
            Error::Tls(_)
            | Error::Address(_)
            | Error::Body(_)
            | Error::Packed(_)
            | Error::Silence => "the request failed".to_owned(),
            #[cfg(feature = "simulated")]
            Error::Simulated(_) => "the request failed".to_owned(),
        };
        for cause in error.causes() {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
        }
        CallError::new(kind, self.redactor.error_text(&message))
    }

    /// The answer began and did not end.
    pub(super) fn broken_off(&self, error: BodyError, most: usize) -> CallError {
        match error {
            BodyError::TooLarge => {
                let message = format!("the answer is larger than {} MiB", most >> 20);
                CallError::new(ErrorKind::Server, message)
            }
            BodyError::Broken(error) => self.unreachable(&error),
        }
    }

    /// The server answered 200, with something that no such server sends.
    pub(super) fn not_understood(&self, what: &str, body: &[u8]) -> CallError {
        // Cut last: a key that is cut in two is not recognised.
        let text = String::from_utf8_lossy(&body[..body.len().min(LARGEST_ERROR)]);
        let mut shown = self.redactor.error_text(text.trim());
        shown.truncate(shown.floor_char_boundary(200));
        let error = match shown.is_empty() {
            true => CallError::new(ErrorKind::Empty, "the answer is empty: it has no body"),
            false => {
                let message = format!("the answer is not understood: {what}; it begins `{shown}`");
                CallError::new(ErrorKind::Server, message)
            }
        };
        CallError { status: Some(200), ..error }
    }
}

/// The body of an error, with the kind of it that the headers name.
fn with_kind(text: &str, kind: &str) -> String {
    match serde_json::from_str::<serde_json::Map<String, Value>>(text) {
        Ok(mut body) => {
            body.insert("type".to_owned(), kind.into());
            Value::Object(body).to_string()
        }
        Err(_) => format!("{kind}: {text}"),
    }
}

/// The sentence in an error's body, or all of it.
fn message_of(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    // An event of a stream may have the answer within it.
    let has_error = |it: &&Value| it.get("error").is_some_and(|it| !it.is_null());
    let value = value.get("response").filter(has_error).unwrap_or(&value);
    let error = value.get("error").unwrap_or(value);
    let said = |value: &Value| {
        let text = value.as_str().or_else(|| value.get("message")?.as_str());
        text.map(ToOwned::to_owned)
    };
    let kind = ["type", "code", "status"].iter().find_map(|key| error.get(key)?.as_str());
    match (said(error).or_else(|| said(value.get("detail")?)), kind) {
        (Some(message), Some(kind)) => format!("{message} ({kind})"),
        (Some(message), None) => message,
        (None, _) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_of_an_error_is_found() {
        let cases = [
            (r#"{"error":{"message":"bad key","type":"auth"}}"#, "bad key (auth)"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded (overloaded_error)",
            ),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"response":"","error":"model not loaded"}"#, "model not loaded"),
            (r#"{"response":{"error":{"message":"no","code":"bad"}}}"#, "no (bad)"),
            (&with_kind(r#"{"message":"slow down"}"#, "Throttling"), "slow down (Throttling)"),
            (&with_kind("slow down", "Throttling"), "Throttling: slow down"),
            ("<html>Bad gateway</html>", "<html>Bad gateway</html>"),
            ("[1]", "[1]"),
        ];
        for (body, expected) in cases {
            assert_eq!(message_of(body), expected);
        }
    }
}
