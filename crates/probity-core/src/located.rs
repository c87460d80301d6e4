//! Data that remembers where in its file it stood.
//!
//! Every dataset format is read into this one tree, so that one decoder serves
//! them all and every problem can point at the very characters it is about.

use std::ops::Range;

/// A value and the bytes of the source text it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Byte range of the value in its source text.
    pub span: Range<usize>,
    /// What it is.
    pub value: NodeValue,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number as JSON would write it; never rounded.
    Number(String),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// Named values in file order; a name may stand there twice.
    Object(Vec<Entry>),
}

/// One named value of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name.
    pub key: String,
    /// Byte range of the name.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The entries of an object, nothing for any other value.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Object(entries) => entries,
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Array(_) => &[],
        }
    }

    /// The items of a list, nothing for any other value.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            NodeValue::Array(items) => items,
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Object(_) => &[],
        }
    }

    /// The value under `key`; the last one where the name stands twice.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().rev().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::Array(_)
            | NodeValue::Object(_) => None,
        }
    }

    /// What kind of value it is, in the words of an error message.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Array(_) => "a list",
            NodeValue::Object(_) => "a table",
        }
    }

    /// The same data without its places.
    ///
    /// Numbers that JSON cannot write (TOML's `inf` and `nan`) become strings.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(text) => serde_json::from_str::<serde_json::Number>(text)
                .map_or_else(|_| Value::String(text.clone()), Value::Number),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::Array(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            NodeValue::Object(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect(),
            ),
        }
    }

    /// The node a path of keys and list positions leads to, or the nearest one above it.
    pub fn nearest(&self, path: &[Step<'_>]) -> &Self {
        let mut node = self;
        for step in path {
            let next = match *step {
                Step::Key(key) => node.get(key),
                Step::Index(index) => node.items().get(index),
            };
            let Some(next) = next else { break };
            node = next;
        }
        node
    }
}

/// One step of a path into a [`Node`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The value under a name.
    Key(&'a str),
    /// The item at a position.
    Index(usize),
}
