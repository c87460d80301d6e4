//! Replies in which nothing is said.

use probity_core::{
    failure::ErrorKind,
    record::CallError,
    reply::Reply,
    request::{Request, Role},
};

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

/// The same of the answer to a request. A model that has just been told what its tools did may have nothing to add: it is
/// done, and would say nothing again.
pub(super) fn is_silent_about(reply: &Reply, request: &Request) -> bool {
    let is_told = request.messages.last().is_some_and(|it| it.role == Role::Tool);
    !is_told && is_silent(reply)
}

/// The error that silence is. It was paid for.
pub(super) fn silence(reply: &Reply) -> Failed {
    let reason = reply.stop_reason.as_deref().unwrap_or("none");
    let message = format!("the reply is empty (stop reason: {reason})");
    let error = CallError { status: Some(200), ..CallError::new(ErrorKind::Empty, message) };
    Failed { usage: reply.usage, cost_usd: reply.cost_usd, ..error.into() }
}
