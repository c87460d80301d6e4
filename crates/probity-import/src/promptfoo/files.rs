//! Values that name files with more of them.

use std::path::Path;

use probity_core::located::{Node, NodeValue};
use probity_load::dataset::Format;
use serde_json::Value;

use super::{Context, refs::MOST_VALUES};

/// How deep files may name files.
const DEEPEST: usize = 4;
/// Bytes of text that count as one value.
const VALUE_BYTES: usize = 64;

/// The value of a tree, with the files that it names put in their places. It is nothing if they mean too much,
/// which is noted.
pub(super) fn with_files(node: &Node, context: &mut Context<'_>) -> Value {
    let mut filling = Filling { left: MOST_VALUES, is_cut: false, context };
    let value = filling.value(node, 0);
    if filling.is_cut { Value::Null } else { value }
}

struct Filling<'f, 'c> {
    /// How many values may still be made: a few small files can otherwise mean terabytes.
    left: usize,
    /// Whether there were more.
    is_cut: bool,
    context: &'f mut Context<'c>,
}

impl Filling<'_, '_> {
    fn value(&mut self, node: &Node, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        match &node.value {
            NodeValue::String(text) => match text.strip_prefix("file://") {
                Some(name) if depth < DEEPEST => self.file(node, name, depth),
                Some(_) | None => node.to_json(),
            },
            NodeValue::Array(items) => items.iter().map(|it| self.value(it, depth)).collect(),
            NodeValue::Object(entries) => {
                let pairs = entries.iter().map(|it| (it.key.clone(), self.value(&it.node, depth)));
                Value::Object(pairs.collect())
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => node.to_json(),
        }
    }

    fn file(&mut self, node: &Node, name: &str, depth: usize) -> Value {
        if self.left == 0 {
            let what = "files that name each other mean too many values";
            self.context.lost(node, what, "name each file once");
            self.is_cut = true;
            return Value::Null;
        }
        match Format::of_path(Path::new(name)) {
            Some(Format::Json | Format::Yaml) => match self.context.tree(node, name) {
                Some(root) => self.value(&root, depth + 1),
                None => Value::Null,
            },
            Some(_) | None => match self.context.source.text(name) {
                Ok(read) => {
                    self.left = self.left.saturating_sub(read.text.len() / VALUE_BYTES);
                    Value::from(read.text)
                }
                Err(error) => {
                    self.context.unreadable(node, &error);
                    Value::Null
                }
            },
        }
    }
}
