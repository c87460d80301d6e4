//! Answers in pieces: `ConverseStream`.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Answer, Block, Output, Reasoning, ReasoningText, Said, TokenUsage, ToolUse, reply};
use crate::backend::{
    dialect::{Assembly, Heard, StreamSpec, Undecoded},
    stream::{Event, Framing},
};
use probity_core::reply::Reply;

pub(super) const STREAM: StreamSpec = StreamSpec {
    framing: Framing::Binary,
    endpoint: |url| {
        let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        format!("{path}-stream{query}")
    },
    ask: |_, _| {},
    open: || Box::<Pieces>::default(),
};

/// What has come of an answer.
#[derive(Default)]
struct Pieces {
    blocks: BTreeMap<u64, PartialBlock>,
    stop_reason: Option<String>,
    usage: Option<TokenUsage>,
    is_done: bool,
}

#[derive(Default)]
struct PartialBlock {
    text: String,
    thoughts: ReasoningText,
    redacted: Option<String>,
    tool_use: Option<ToolUse>,
    /// The input of a tool, as text.
    input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    content_block_index: u64,
    start: Option<Started>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Continued {
    content_block_index: u64,
    delta: Delta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolDelta>,
    reasoning_content: Option<Thought>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thought {
    text: Option<String>,
    signature: Option<String>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
struct ToolDelta {
    #[serde(default)]
    input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stop {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    usage: Option<TokenUsage>,
}

fn read<T: DeserializeOwned>(event: &Event) -> Result<T, Undecoded> {
    serde_json::from_str(&event.data)
        .map_err(|_| Undecoded::Shape("an event is not a piece of a `ConverseStream` answer"))
}

impl Pieces {
    fn add(&mut self, Continued { content_block_index, delta }: Continued) -> Heard {
        let block = self.blocks.entry(content_block_index).or_default();
        let Delta { text, tool_use, reasoning_content } = delta;
        let mut thought = None;
        if let Some(Thought { text, signature, redacted_content }) = reasoning_content {
            thought = text;
            block.thoughts.signature = signature.or(block.thoughts.signature.take());
            block.redacted = redacted_content.or(block.redacted.take());
        }
        let input = tool_use.map(|it| it.input);
        let is_token = [&text, &thought, &input].into_iter().flatten().any(|it| !it.is_empty());
        block.text.extend(text);
        block.thoughts.text.extend(thought);
        block.input.extend(input);
        Heard::any(is_token)
    }
}

impl Assembly for Pieces {
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded> {
        match event.name.as_str() {
            "contentBlockStart" => {
                let Start { content_block_index, start } = read(event)?;
                let tool_use = start.and_then(|it| it.tool_use);
                let is_token = tool_use.is_some();
                self.blocks.entry(content_block_index).or_default().tool_use = tool_use;
                Ok(Heard::any(is_token))
            }
            "contentBlockDelta" => Ok(self.add(read(event)?)),
            "messageStop" => {
                let Stop { stop_reason } = read(event)?;
                self.stop_reason = stop_reason;
                Ok(Heard::Other)
            }
            // It comes last, with the counts of tokens.
            "metadata" => {
                let Metadata { usage } = read(event)?;
                (self.usage, self.is_done) = (usage, true);
                Ok(Heard::End)
            }
            // Beginnings, ends of blocks, and what there may be one day.
            _ => read::<Value>(event).map(|_| Heard::Other),
        }
    }

    fn finish(self: Box<Self>) -> Result<Reply, Undecoded> {
        let Self { blocks, stop_reason, usage, is_done } = *self;
        if !is_done {
            return Err(Undecoded::Cut);
        }
        let content = blocks.into_values().map(whole).collect();
        let output = Some(Output { message: Some(Said { content }) });
        reply(Answer { output, stop_reason, usage })
    }
}

fn whole(PartialBlock { text, thoughts, redacted, tool_use, input }: PartialBlock) -> Block {
    let arguments = match input.is_empty() {
        true => Value::Object(serde_json::Map::new()),
        false => serde_json::from_str(&input).unwrap_or(Value::String(input)),
    };
    let reasoning_text = redacted.is_none().then_some(thoughts);
    Block {
        text: Some(text),
        tool_use: tool_use.map(|it| ToolUse { input: arguments, ..it }),
        reasoning_content: Some(Reasoning { reasoning_text, redacted_content: redacted }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::stream::{Listener, Misheard, frame};

    const EVENTS: &[(&str, &str)] = &[
        ("messageStart", r#"{"role":"assistant","p":"abc"}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}},"p":"a"}"#,
        ),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"xyz"}}}"#,
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"grüß "}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"dich"}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"c1","name":"add"}}}"#,
        ),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\":"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":" 1}"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"c2","name":"sub"}}}"#,
        ),
        ("messageStop", r#"{"stopReason":"tool_use"}"#),
        (
            "metadata",
            r#"{"metrics":{"latencyMs":9},"usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}"#,
        ),
    ];

    fn frames(events: &[(&str, &str)]) -> Vec<u8> {
        let framed = |(name, data): &(&str, &str)| {
            frame(&[(":event-type", *name), (":message-type", "event")], data)
        };
        events.iter().flat_map(framed).collect()
    }

    fn heard(bytes: &[u8]) -> Result<Reply, Misheard> {
        let mut listener = Listener::new(&STREAM);
        listener.hear(bytes)?;
        listener.finish().unwrap_or_else(|| Err(Undecoded::Cut.into()))
    }

    #[test]
    fn a_stream_comes_to_the_same_reply_as_a_whole_answer() {
        let reply = heard(&frames(EVENTS)).unwrap();
        assert_eq!((&*reply.text, reply.reasoning.as_deref()), ("grüß dich", Some("hm")));
        assert_eq!(
            reply
                .tool_calls
                .iter()
                .map(|it| (&*it.name, it.arguments.to_string()))
                .collect::<Vec<_>>(),
            [("add", r#"{"a":1}"#.to_owned()), ("sub", "{}".to_owned())]
        );
        let signed = r#"[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"xyz"}}}]"#;
        assert_eq!(
            reply.tool_calls[0].opaque.as_ref().map(Value::to_string).as_deref(),
            Some(signed)
        );
        assert_eq!(reply.stop_reason.as_deref(), Some("tool_use"));
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(5), Some(7)));
    }

    #[test]
    fn a_stream_that_is_cut_is_never_a_short_answer() {
        let stream = frames(EVENTS);
        for end in 0..stream.len() {
            let cut = heard(&stream[..end]).map_err(|it| it.why);
            assert_eq!(cut.unwrap_err(), Undecoded::Cut, "{end}");
        }
    }

    #[test]
    fn an_exception_in_a_stream_is_that_error() {
        let mut stream = frames(&EVENTS[..5]);
        let headers =
            [(":exception-type", "modelStreamErrorException"), (":message-type", "exception")];
        stream.extend(frame(&headers, r#"{"message":"oh"}"#));
        let Misheard { why, event } = heard(&stream).unwrap_err();
        assert_eq!(why, Undecoded::Error);
        assert_eq!(event, r#"{"message":"oh","type":"modelStreamErrorException"}"#);
    }

    #[test]
    fn the_address_of_streams_keeps_its_query() {
        assert_eq!(
            (STREAM.endpoint)("http://h/model/m/converse?a=b"),
            "http://h/model/m/converse-stream?a=b"
        );
    }
}
