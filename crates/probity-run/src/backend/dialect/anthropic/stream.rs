//! Messages in pieces.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Block, TokenUsage, reply};
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

/// What has come of a message.
#[derive(Default)]
struct Pieces {
    blocks: Vec<PartialBlock>,
    /// Which of them an index means: the last that has it.
    places: BTreeMap<u64, usize>,
    model: Option<String>,
    stop_reason: Option<String>,
    usage: Option<TokenUsage>,
    is_done: bool,
}

struct PartialBlock {
    block: Block,
    /// The input of a tool, as text.
    input: String,
}

/// Every kind of event; which of its fields there are depends on the type.
#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    index: u64,
    message: Option<Answer>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: Option<TokenUsage>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

impl Pieces {
    fn add(&mut self, index: u64, delta: Delta) -> Heard {
        let Delta { text, thinking, partial_json, signature, stop_reason: _ } = delta;
        let pieces = [&text, &thinking, &partial_json];
        let is_token = pieces.into_iter().flatten().any(|it| !it.is_empty());
        let place = self.places.get(&index);
        if let Some(PartialBlock { block, input }) = place.map(|at| &mut self.blocks[*at]) {
            append(&mut block.text, text);
            append(&mut block.thinking, thinking);
            // The block begins with an empty one.
            block.signature = signature.map(Value::String).or(block.signature.take());
            input.extend(partial_json);
        }
        Heard::any(is_token)
    }

    /// Later counts replace earlier ones.
    fn count(&mut self, usage: Option<TokenUsage>) {
        let Some(new) = usage else { return };
        let old = self.usage.take();
        self.usage = Some(match old {
            None => new,
            Some(old) => TokenUsage {
                input_tokens: new.input_tokens.or(old.input_tokens),
                output_tokens: new.output_tokens.or(old.output_tokens),
                cache_read_input_tokens: new
                    .cache_read_input_tokens
                    .or(old.cache_read_input_tokens),
                cache_creation_input_tokens: new
                    .cache_creation_input_tokens
                    .or(old.cache_creation_input_tokens),
            },
        });
    }
}

fn append(text: &mut Option<String>, more: Option<String>) {
    if let Some(more) = more {
        text.get_or_insert_default().push_str(&more);
    }
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        let Piece { r#type, index, message, content_block, delta, usage } =
            serde_json::from_str(&event.data)
                .map_err(|_| Undecoded::Shape("an event is not a piece of a message"))?;
        match (r#type.as_str(), delta, content_block) {
            ("error", _, _) => return Err(Undecoded::Error),
            ("message_start", _, _) => {
                let Some(Answer { model, usage, .. }) = message else { return Ok(Heard::Other) };
                self.model = model;
                self.count(usage);
            }
            ("content_block_start", _, Some(block)) => {
                let is_token = block.r#type == "tool_use";
                self.places.insert(index, self.blocks.len());
                self.blocks.push(PartialBlock { block, input: String::new() });
                return Ok(Heard::any(is_token));
            }
            ("content_block_delta", Some(delta), _) => return Ok(self.add(index, delta)),
            ("message_delta", delta, _) => {
                self.stop_reason = delta.and_then(|it| it.stop_reason).or(self.stop_reason.take());
                self.count(usage);
            }
            ("message_stop", _, _) => {
                self.is_done = true;
                return Ok(Heard::End);
            }
            // Pings, ends of blocks, and what there may be one day.
            (_, _, _) => {}
        }
        Ok(Heard::Other)
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        if !self.is_done {
            return Err(Undecoded::Cut);
        }
        let whole = |PartialBlock { block, input }: PartialBlock| {
            let read = || serde_json::from_str(&input).unwrap_or(Value::String(input.clone()));
            let input = if input.is_empty() { block.input } else { Some(read()) };
            Block { input, ..block }
        };
        reply(Answer {
            content: self.blocks.into_iter().map(whole).collect(),
            model: self.model,
            stop_reason: self.stop_reason,
            usage: self.usage,
            error: None,
        })
    }
}
