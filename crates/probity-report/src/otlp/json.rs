//! OTLP in JSON: ids are hexadecimal, and numbers of 64 bits are texts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    SCHEMA, Source,
    span::{Any, Attributes, Event, Ids, Span, Status, nanos},
};

/// A span, on one line.
pub(super) fn span(span: &Span) -> Vec<u8> {
    let Span { ids, parent, name, kind, time, events, link, status, .. } = span;
    let mut out = json!({
        "traceId": hex(&ids.trace), "spanId": hex(&ids.span), "name": name, "kind": kind.number(),
        "startTimeUnixNano": nanos(time.0).to_string(), "endTimeUnixNano": nanos(time.1).to_string(),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = parent {
        out["parentSpanId"] = hex(parent).into();
    }
    if !events.is_empty() {
        out["events"] = events.iter().map(event).collect();
    }
    if let Some(Ids { trace, span }) = link {
        out["links"] = json!([{ "traceId": hex(trace), "spanId": hex(span) }]);
    }
    if let Status::Error(message) = status {
        out["status"] = json!({ "code": Status::ERROR });
        if let Some(message) = message {
            out["status"]["message"] = message.as_str().into();
        }
    }
    out.to_string().into_bytes()
}

/// A message of spans that are already written.
pub(super) fn message(source: &Source, spans: &[Vec<u8>]) -> Vec<u8> {
    let resource = json!({ "attributes": attributes(&source.attributes) });
    let scope = json!({ "name": source.name, "version": source.version });
    let mut out = format!(
        r#"{{"resourceSpans":[{{"resource":{resource},"schemaUrl":"{SCHEMA}","scopeSpans":[{{"scope":{scope},"schemaUrl":"{SCHEMA}","spans":["#
    )
    .into_bytes();
    out.extend(spans.join(&b','));
    out.extend(b"]}]}]}");
    out
}

fn event(event: &Event) -> Value {
    json!({
        "name": event.name, "timeUnixNano": nanos(event.at_ms).to_string(),
        "attributes": attributes(&event.attributes),
    })
}

fn attributes(attributes: &Attributes) -> Value {
    let one = |(key, value): &(&str, Any)| json!({ "key": key, "value": any(value) });
    attributes.0.iter().map(one).collect()
}

fn any(value: &Any) -> Value {
    match value {
        Any::Text(text) => json!({ "stringValue": text }),
        Any::Count(count) => json!({ "intValue": count.to_string() }),
        Any::Number(number) => json!({ "doubleValue": number }),
        Any::List(texts) => {
            let values: Vec<Value> = texts.iter().map(|it| json!({ "stringValue": it })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
