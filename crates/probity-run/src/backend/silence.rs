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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use probity_core::{
        record::Usage,
        request::{Message, Part, ToolResult},
    };

    use super::*;

    #[test]
    fn a_model_that_has_been_told_what_its_tools_did_may_say_nothing() {
        let (silent, asked) = (Reply::default(), Request::new(None, "hi"));
        assert!(is_silent_about(&silent, &asked));
        let result = ToolResult { id: None, name: "f".to_owned(), content: Arc::from("2") };
        let content = vec![Part::ToolResult(result)];
        let mut told = asked.clone();
        told.messages.push(Message { role: Role::Tool, content });
        assert!(!is_silent_about(&silent, &told));
        let said = Reply { text: "yes".to_owned(), ..Reply::default() };
        assert!(!is_silent_about(&said, &asked));
    }

    #[test]
    fn silence_is_an_error_that_was_paid_for() {
        let usage = Usage { input_tokens: Some(3), ..Usage::default() };
        let stop_reason = Some("stop".to_owned());
        let reply = Reply { usage, stop_reason, cost_usd: Some(0.5), ..Reply::default() };
        let failed = silence(&reply);
        assert_eq!((failed.usage, failed.cost_usd, failed.is_call), (usage, Some(0.5), true));
        let CallError { kind, status, message, .. } = *failed.error;
        assert_eq!((kind, status), (ErrorKind::Empty, Some(200)));
        assert_eq!(message, "the reply is empty (stop reason: stop)");
        assert!(silence(&Reply::default()).error.message.ends_with("(stop reason: none)"));
    }
}
