//! Chat answers in lines: each has the next part of the message, and the last has the counts.

use super::{Answer, Message, is_error, reply};
use crate::backend::{
    dialect::{Assembly, Heard, StreamSpec, Undecoded},
    stream::{Event, Framing},
};
use probity_core::reply::Reply;

pub(super) const STREAM: StreamSpec = StreamSpec {
    framing: Framing::Lines,
    endpoint: str::to_owned,
    ask: StreamSpec::by_field,
    open: || Box::<Pieces>::default(),
};

/// What has come of a message.
#[derive(Default)]
struct Pieces {
    message: Message,
    last: Option<Answer>,
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        let mut line: Answer = serde_json::from_str(&event.data)
            .map_err(|_| Undecoded::Shape("a line is not a part of a chat answer"))?;
        if line.error.as_ref().is_some_and(is_error) {
            return Err(Undecoded::Error);
        }
        let Message { content, thinking, tool_calls } = line.message.take().unwrap_or_default();
        let thinking = thinking.unwrap_or_default();
        let is_token = !content.is_empty() || !thinking.is_empty() || !tool_calls.is_empty();
        self.message.content.push_str(&content);
        self.message.thinking.get_or_insert_default().push_str(&thinking);
        self.message.tool_calls.extend(tool_calls);
        if line.done == Some(true) {
            self.last = Some(line);
            return Ok(Heard::End);
        }
        Ok(Heard::any(is_token))
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        let last = self.last.ok_or(Undecoded::Cut)?;
        reply(Answer { message: Some(self.message), ..last })
    }
}
