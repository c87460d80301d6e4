//! Replies in which nothing is said.

use probity_core::{failure::ErrorKind, record::CallError, reply::Reply};

use super::Failed;

/// Stop reasons with which a reply without text is a reply: somebody kept it from being
/// said, its length was used up, or a tool was called instead. Asking again would bring,
/// and cost, the same.
const SPEECHLESS: &[&str] = &[
    "content_filter",
    "refusal",
    "safety",
    "guardrail",
    "blocked",
    "blocklist",
    "prohibited_content",
    "recitation",
    "spii",
    "max_tokens",
    "max_output_tokens",
    "length",
    "context_window_exceeded",
    "tool_use",
    "tool_calls",
    "function_call",
];

/// Whether nothing was said, and nothing says why.
pub(super) fn is_silent(reply: &Reply) -> bool {
    let explained = || {
        let reason = reply.stop_reason.as_deref().unwrap_or("").to_ascii_lowercase();
        SPEECHLESS.iter().any(|word| reason.contains(word))
    };
    reply.is_empty() && !explained()
}

/// The error that silence is. It was paid for.
pub(super) fn silence(reply: &Reply) -> Failed {
    let reason = reply.stop_reason.as_deref().unwrap_or("none");
    let message = format!("the reply is empty (stop reason: {reason})");
    let error = CallError { status: Some(200), ..CallError::new(ErrorKind::Empty, message) };
    Failed { usage: reply.usage, cost_usd: reply.cost_usd, ..error.into() }
}
