//! OTLP in protobuf, which every collector takes and some alone.
//!
//! The numbers of fields are those of `opentelemetry/proto/trace/v1/trace.proto` and its neighbours. There are few, so that they
//! are written by hand; `scripts/otlp-test` reads the result with the decoder that is made of these files.

use super::{
    SCHEMA, Source,
    span::{Any, Attributes, Event, Span, Status, nanos},
};

/// How a field is written.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Delimited = 2,
}

/// A message of protobuf while it is written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn tag(&mut self, field: u32, wire: Wire) {
        varint(u64::from(field << 3 | wire as u32), &mut self.0);
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.tag(field, Wire::Delimited);
        varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u32, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn number(mut self, field: u32, number: u64) -> Self {
        self.tag(field, Wire::Varint);
        varint(number, &mut self.0);
        self
    }

    fn fixed(mut self, field: u32, number: u64) -> Self {
        self.tag(field, Wire::Fixed64);
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn attributes(self, field: u32, attributes: &Attributes) -> Self {
        attributes.0.iter().fold(self, |out, (key, value)| {
            out.message(field, &Self::default().text(1, key).message(2, &any(value)))
        })
    }
}

/// Seven bits in each byte, the lowest first; the highest bit says that more follow.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// A span.
pub(super) fn span(span: &Span) -> Vec<u8> {
    let mut out = Message::default().bytes(1, &span.ids.trace).bytes(2, &span.ids.span);
    if let Some(parent) = &span.parent {
        out = out.bytes(4, parent);
    }
    out = out
        .text(5, &span.name)
        .number(6, span.kind.number().into())
        .fixed(7, nanos(span.time.0))
        .fixed(8, nanos(span.time.1))
        .attributes(9, &span.attributes);
    out = span.events.iter().fold(out, |out, it| out.message(11, &event(it)));
    if let Some(link) = &span.link {
        out = out.message(13, &Message::default().bytes(1, &link.trace).bytes(2, &link.span));
    }
    if let Status::Error(message) = &span.status {
        let said = message.iter().fold(Message::default(), |out, it| out.text(2, it));
        out = out.message(15, &said.number(3, Status::ERROR.into()));
    }
    out.0
}

/// A message of spans that are already written.
pub(super) fn message(source: &Source, spans: &[Vec<u8>]) -> Vec<u8> {
    let resource = Message::default().attributes(1, &source.attributes);
    let scope = Message::default().text(1, source.name).text(2, &source.version);
    let of_scope = Message::default().message(1, &scope);
    let of_scope = spans.iter().fold(of_scope, |out, it| out.bytes(2, it)).text(3, SCHEMA);
    let of_resource = Message::default().message(1, &resource).message(2, &of_scope);
    Message::default().message(1, &of_resource.text(3, SCHEMA)).0
}

fn event(event: &Event) -> Message {
    let out = Message::default().fixed(1, nanos(event.at_ms)).text(2, event.name);
    out.attributes(3, &event.attributes)
}

fn any(value: &Any) -> Message {
    let out = Message::default();
    match value {
        Any::Text(text) => out.text(1, text),
        Any::Count(count) => out.number(3, *count),
        Any::Number(number) => out.fixed(4, number.to_bits()),
        Any::List(texts) => {
            let value = |text: &String| Message::default().text(1, text);
            let values =
                texts.iter().fold(Message::default(), |out, it| out.message(1, &value(it)));
            out.message(5, &values)
        }
    }
}
