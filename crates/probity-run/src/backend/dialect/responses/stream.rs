//! Responses in pieces. The last event has the whole response.

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Item, reply};
use crate::backend::{
    dialect::{Assembly, Heard, StreamSpec, Undecoded},
    stream::{Event, Framing},
};
use probity_core::reply::Reply;

pub(super) const STREAM: StreamSpec = StreamSpec {
    framing: Framing::Events,
    endpoint: str::to_owned,
    ask: StreamSpec::by_field,
    open: || Box::<Pieces>::default(),
};

/// What has come of a response.
#[derive(Default)]
struct Pieces {
    /// What it consists of, for servers that leave that out of the last event.
    items: Vec<Item>,
    response: Option<Answer>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    r#type: String,
    delta: Option<Value>,
    item: Option<Item>,
    response: Option<Answer>,
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        // Some servers end with the mark of chat completions.
        if event.data.trim() == "[DONE]" {
            return Ok(Heard::End);
        }
        let Piece { r#type, delta, item, response } = serde_json::from_str(&event.data)
            .map_err(|_| Undecoded::Shape("an event is not a piece of a response"))?;
        match r#type.as_str() {
            "error" | "response.failed" => Err(Undecoded::Error),
            "response.completed" | "response.incomplete" => {
                self.response = response;
                Ok(Heard::End)
            }
            "response.output_item.done" => {
                self.items.extend(item);
                Ok(Heard::Other)
            }
            _ => {
                let is_token = delta.is_some_and(|it| it.as_str().is_some_and(|it| !it.is_empty()));
                Ok(Heard::any(is_token && r#type.rsplit('.').next() == Some("delta")))
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        let mut response = self.response.ok_or(Undecoded::Cut)?;
        if response.output.is_empty() {
            response.output = self.items;
        }
        reply(response)
    }
}
