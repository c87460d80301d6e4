//! A conversation as people read it, and as others may continue it.

use std::borrow::Cow;

use crate::{
    record::{Asked, CaseRecord},
    request::{Message, Part, Role, ToolCall},
};

/// What somebody said in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance<'a> {
    /// Who said what.
    pub message: Cow<'a, Message>,
    /// What the model thought before it.
    pub reasoning: Option<&'a str>,
}

impl Asked {
    /// The reply as a message of the conversation.
    pub fn message(&self) -> Option<Message> {
        let reply = self.reply.as_deref()?;
        let is_calls = !self.tool_calls.is_empty() && reply == ToolCall::to_json(&self.tool_calls);
        let text = (!is_calls).then(|| Part::Text(reply.into()));
        let calls = self.tool_calls.iter().cloned().map(Part::ToolCall);
        Some(Message { role: Role::Assistant, content: text.into_iter().chain(calls).collect() })
    }
}

impl CaseRecord {
    /// Whether it is the record of a conversation, and not of one question.
    pub fn is_conversation(&self) -> bool {
        let mut replies = self.asked.iter().filter(|it| it.turn.is_some());
        let first = replies.next();
        replies.next().is_some() || first.is_some_and(|it| !it.tool_calls.is_empty())
    }

    /// The conversation from its beginning to the last reply; empty where it is one question.
    ///
    /// Each question holds all that was said before it, so that the last one holds everything.
    pub fn utterances(&self) -> Vec<Utterance<'_>> {
        let replies = || self.asked.iter().filter(|it| it.turn.is_some());
        let Some(last) = replies().next_back() else { return Vec::new() };
        let reasoning = |at: usize| {
            let reply = replies().find(|it| it.request.messages.len() == at)?;
            reply.reasoning.as_deref()
        };
        let said = last.request.messages.iter().map(Cow::Borrowed);
        let all = said.chain(last.message().map(Cow::Owned)).enumerate();
        all.map(|(at, message)| Utterance { message, reasoning: reasoning(at) }).collect()
    }
}
