//! Values in the JSON of OTLP: numbers of 64 bits are texts.

use serde_json::{Value, json};

/// Attributes, in the order in which they are added.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    fn add(mut self, key: &str, value: &Value) -> Self {
        self.0.push(json!({ "key": key, "value": value }));
        self
    }

    pub(super) fn text(self, key: &str, text: &str) -> Self {
        self.add(key, &json!({ "stringValue": text }))
    }

    pub(super) fn count(self, key: &str, count: u64) -> Self {
        self.add(key, &json!({ "intValue": count.to_string() }))
    }

    pub(super) fn maybe_count(self, key: &str, count: Option<u64>) -> Self {
        match count {
            Some(count) => self.count(key, count),
            None => self,
        }
    }

    /// A text or a number, if there is one.
    pub(super) fn maybe(self, key: &str, value: Option<Value>) -> Self {
        match value {
            Some(Value::String(text)) => self.text(key, &text),
            Some(Value::Number(number)) => match number.as_u64() {
                Some(count) => self.count(key, count),
                None => self.add(key, &json!({ "doubleValue": number })),
            },
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => self,
        }
    }

    /// A list of texts, unless it is empty.
    pub(super) fn list<'a>(self, key: &str, texts: impl Iterator<Item = &'a str>) -> Self {
        let values: Vec<Value> = texts.map(|it| json!({ "stringValue": it })).collect();
        match values.is_empty() {
            true => self,
            false => self.add(key, &json!({ "arrayValue": { "values": values } })),
        }
    }

    pub(super) fn finish(self) -> Value {
        Value::Array(self.0)
    }
}

/// A time in nanoseconds since 1970.
pub(super) fn nanos(milliseconds: i64) -> String {
    (u128::from(u64::try_from(milliseconds).unwrap_or(0)) * 1_000_000).to_string()
}
