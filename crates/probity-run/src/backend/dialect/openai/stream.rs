//! Chat completions in pieces.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Call, Choice, Content, Function, Message, TokenUsage, reply, split, text_of};
use crate::backend::{
    dialect::{Assembly, Heard, StreamSpec, Undecoded},
    stream::{Event, Framing},
};
use probity_core::reply::Reply;

pub(crate) const STREAM: StreamSpec = StreamSpec {
    framing: Framing::Events,
    endpoint: str::to_owned,
    ask,
    open: || Box::<Pieces>::default(),
};

fn ask(fields: &mut Map<String, Value>, with_usage: bool) {
    StreamSpec::by_field(fields, with_usage);
    if with_usage {
        fields.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
}

/// What has come of a completion.
#[derive(Default)]
struct Pieces {
    text: String,
    refusal: String,
    reasoning: String,
    calls: Vec<PartialCall>,
    /// Which of them an index means, where the server gives them some.
    by_index: BTreeMap<u64, usize>,
    /// Which of them an id means: the last that has it.
    by_id: BTreeMap<String, usize>,
    function_call: Option<PartialCall>,
    /// How likely its tokens were.
    tokens: Vec<Value>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    is_done: bool,
}

#[derive(Default)]
struct PartialCall {
    id: Option<String>,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<ChunkChoice>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
    logprobs: Option<Value>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
    function_call: Option<FunctionDelta>,
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

impl PartialCall {
    fn add(&mut self, delta: FunctionDelta) {
        self.name.extend(delta.name);
        match delta.arguments {
            Some(Value::String(text)) => self.arguments.push_str(&text),
            // Some servers send them at once, and not as text.
            Some(arguments) if !arguments.is_null() => self.arguments = arguments.to_string(),
            Some(_) | None => {}
        }
    }

    fn whole(self) -> Call {
        let Self { id, name, arguments } = self;
        Call { id, function: Function { name, arguments: Some(Value::String(arguments)) } }
    }
}

impl Pieces {
    fn add(&mut self, delta: Delta) -> bool {
        let (text, thoughts) = split(delta.content);
        let thoughts = [delta.reasoning_content, delta.reasoning.and_then(text_of), thoughts];
        let thoughts = thoughts.into_iter().flatten().find(|it| !it.is_empty());
        let refusal = delta.refusal.unwrap_or_default();
        let is_said = !text.is_empty() || !refusal.is_empty() || thoughts.is_some();
        self.text.push_str(&text);
        self.refusal.push_str(&refusal);
        self.reasoning.extend(thoughts);
        let calls = delta.tool_calls.unwrap_or_default();
        let is_called = !calls.is_empty() || delta.function_call.is_some();
        calls.into_iter().for_each(|it| self.add_call(it));
        if let Some(function) = delta.function_call {
            self.function_call.get_or_insert_default().add(function);
        }
        is_said || is_called
    }

    /// A piece of a call belongs to the one with its index; without one, to the last, unless it
    /// brings an id of its own.
    fn add_call(&mut self, delta: CallDelta) {
        let CallDelta { index, id, function } = delta;
        let known = match (index, &id) {
            (Some(index), _) => self.by_index.get(&index).copied(),
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(PartialCall::default());
            self.calls.len() - 1
        });
        self.by_index.extend(index.map(|it| (it, at)));
        let call = &mut self.calls[at];
        if let Some(id) = id.filter(|_| call.id.is_none()) {
            self.by_id.insert(id.clone(), at);
            call.id = Some(id);
        }
        if let Some(function) = function {
            call.add(function);
        }
    }
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        if event.data.trim() == "[DONE]" {
            self.is_done = true;
            return Ok(Heard::End);
        }
        let chunk: Chunk = serde_json::from_str(&event.data)
            .map_err(|_| Undecoded::Shape("an event is not a piece of a chat completion"))?;
        if chunk.error.is_some_and(|it| !it.is_null()) {
            return Err(Undecoded::Error);
        }
        self.model = self.model.take().or(chunk.model);
        self.usage = chunk.usage.or(self.usage.take());
        let mut is_token = false;
        for choice in chunk.choices.into_iter().filter(|it| it.index.unwrap_or(0) == 0) {
            let tokens = choice.logprobs.as_ref().and_then(|it| it.get("content")?.as_array());
            self.tokens.extend(tokens.into_iter().flatten().cloned());
            is_token |= choice.delta.is_some_and(|it| self.add(it));
            self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        }
        Ok(Heard::any(is_token))
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        if !self.is_done && self.finish_reason.is_none() {
            return Err(Undecoded::Cut);
        }
        let calls: Vec<Call> = self.calls.into_iter().map(PartialCall::whole).collect();
        let message = Message {
            content: Some(Content::Text(self.text)),
            refusal: Some(self.refusal),
            tool_calls: Some(calls),
            function_call: self.function_call.map(|it| it.whole().function),
            reasoning_content: Some(self.reasoning),
            reasoning: None,
        };
        let choice = Choice {
            message: Some(message),
            finish_reason: self.finish_reason,
            logprobs: Some(json!({ "content": self.tokens })),
        };
        reply(Answer { choices: vec![choice], model: self.model, usage: self.usage, error: None })
    }
}
