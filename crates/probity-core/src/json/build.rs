//! What the parser makes of a text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{DuplicateKey, MAX_DUPLICATE_KEYS, number, parser::Builder};
use crate::located::{Entry, Node, NodeValue};

/// How many keys are compared one by one; hashing a key costs as much as comparing it with a few.
const FEW: usize = 16;

/// Makes a tree in which every part knows its place.
pub(super) struct Located;

impl Builder for Located {
    type Value = Node;
    type Array = Vec<Node>;
    type Object = Vec<Entry>;
    type Key = (String, Range<usize>);

    fn null(&mut self, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::Null }
    }

    fn bool(&mut self, value: bool, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::Bool(value) }
    }

    fn number(&mut self, literal: &str, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::Number(literal.to_owned()) }
    }

    fn string(&mut self, text: String, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::String(text) }
    }

    fn begin_item(&mut self, _: &Vec<Node>) {}

    fn end_item(&mut self, array: &mut Vec<Node>, value: Node) {
        array.push(value);
    }

    fn array(&mut self, array: Vec<Node>, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::Array(array) }
    }

    fn begin_member(
        &mut self,
        object: &mut Vec<Entry>,
        key: String,
        span: Range<usize>,
    ) -> Self::Key {
        if object.is_empty() {
            object.reserve(10);
        }
        (key, span)
    }

    fn end_member(&mut self, object: &mut Vec<Entry>, (key, key_span): Self::Key, node: Node) {
        object.push(Entry { key, key_span, node });
    }

    fn object(&mut self, object: Vec<Entry>, span: Range<usize>) -> Node {
        Node { span, value: NodeValue::Object(object) }
    }
}

/// Makes a value, and lists the keys that are lost in it.
#[derive(Default)]
pub(super) struct Plain {
    path: Vec<Place>,
    pub(super) duplicate_keys: Vec<DuplicateKey>,
}

enum Place {
    Key(String),
    Index(usize),
}

impl Builder for Plain {
    type Value = Value;
    type Array = Vec<Value>;
    type Object = Map<String, Value>;
    /// It is the last one of the path.
    type Key = ();

    fn null(&mut self, _: Range<usize>) -> Value {
        Value::Null
    }

    fn bool(&mut self, value: bool, _: Range<usize>) -> Value {
        Value::Bool(value)
    }

    fn number(&mut self, literal: &str, _: Range<usize>) -> Value {
        number(literal)
    }

    fn string(&mut self, text: String, _: Range<usize>) -> Value {
        Value::String(text)
    }

    fn begin_item(&mut self, array: &Vec<Value>) {
        self.path.push(Place::Index(array.len()));
    }

    fn end_item(&mut self, array: &mut Vec<Value>, value: Value) {
        self.path.pop();
        array.push(value);
    }

    fn array(&mut self, array: Vec<Value>, _: Range<usize>) -> Value {
        Value::Array(array)
    }

    fn begin_member(&mut self, object: &mut Map<String, Value>, key: String, span: Range<usize>) {
        if object.is_empty() {
            *object = Map::with_capacity(4);
        }
        let is_known = match object.len() {
            ..FEW => object.keys().any(|it| *it == key),
            _ => object.contains_key(&key),
        };
        if is_known && self.duplicate_keys.len() < MAX_DUPLICATE_KEYS {
            let pointer = self.pointer(&key);
            self.duplicate_keys.push(DuplicateKey {
                key: key.clone(),
                pointer,
                offset: span.start,
            });
        }
        self.path.push(Place::Key(key));
    }

    fn end_member(&mut self, object: &mut Map<String, Value>, (): (), value: Value) {
        if let Some(Place::Key(key)) = self.path.pop() {
            object.insert(key, value);
        }
    }

    fn object(&mut self, object: Map<String, Value>, _: Range<usize>) -> Value {
        Value::Object(object)
    }
}

impl Plain {
    /// Forgets the places of a value that was read before.
    pub(super) fn value(&mut self, node: Node) -> Value {
        match node.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(it) => Value::Bool(it),
            NodeValue::Number(literal) => number(&literal),
            NodeValue::String(it) => Value::String(it),
            NodeValue::Array(nodes) => {
                let mut array = Vec::with_capacity(nodes.len());
                for node in nodes {
                    self.begin_item(&array);
                    let value = self.value(node);
                    self.end_item(&mut array, value);
                }
                Value::Array(array)
            }
            NodeValue::Object(entries) => {
                let mut object = Map::new();
                for Entry { key, key_span, node } in entries {
                    self.begin_member(&mut object, key, key_span);
                    let value = self.value(node);
                    self.end_member(&mut object, (), value);
                }
                Value::Object(object)
            }
        }
    }

    fn pointer(&self, key: &str) -> String {
        let mut pointer = String::new();
        for place in &self.path {
            match place {
                Place::Key(key) => push_token(&mut pointer, key),
                Place::Index(index) => push_token(&mut pointer, &index.to_string()),
            }
        }
        push_token(&mut pointer, key);
        pointer
    }
}

fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}
