//! Values that name files with more of them.

use std::{collections::BTreeMap, path::Path, rc::Rc};

use probity_core::located::{Node, NodeValue};
use probity_load::dataset::Format;
use serde_json::Value;

use super::{Context, refs::MOST_VALUES};

/// How deep files may name files.
const DEEPEST: usize = 4;
/// Bytes of text that count as one value.
const VALUE_BYTES: usize = 64;

/// Files that values name, each of which is read once.
#[derive(Debug)]
pub(super) struct Files {
    /// How many values may still be made of them: a few small files can otherwise mean terabytes.
    left: usize,
    read: BTreeMap<String, Option<Content>>,
}

#[derive(Clone, Debug)]
enum Content {
    Tree(Rc<Node>),
    Text(Rc<str>),
}

impl Default for Files {
    fn default() -> Self {
        Self { left: MOST_VALUES, read: BTreeMap::new() }
    }
}

/// The value of a tree, with the files that it names put in their places. It is nothing if they mean too much,
/// which is noted.
pub(super) fn with_files(node: &Node, context: &mut Context<'_>) -> Value {
    let mut filling = Filling { is_cut: false, context };
    let value = filling.value(node, 0);
    if filling.is_cut { Value::Null } else { value }
}

struct Filling<'f, 'c> {
    /// Whether there were more values than may be.
    is_cut: bool,
    context: &'f mut Context<'c>,
}

impl Filling<'_, '_> {
    fn value(&mut self, node: &Node, depth: usize) -> Value {
        if depth > 0 {
            self.spend(1);
        }
        match &node.value {
            NodeValue::String(text) => match text.strip_prefix("file://") {
                Some(name) if depth < DEEPEST => self.file(node, name, depth),
                Some(_) | None => {
                    if depth > 0 {
                        self.spend(text.len() / VALUE_BYTES);
                    }
                    node.to_json()
                }
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
        if self.context.files.left == 0 {
            if !self.is_cut {
                let what = "the files that values name mean too many values";
                self.context.lost(node, what, "name each file once");
            }
            self.is_cut = true;
            return Value::Null;
        }
        match self.content(node, name) {
            Some(Content::Tree(root)) => self.value(&root, depth + 1),
            Some(Content::Text(text)) => {
                self.spend(1 + text.len() / VALUE_BYTES);
                Value::from(&*text)
            }
            None => Value::Null,
        }
    }

    /// What is in a file; a file that cannot be read is noted once.
    fn content(&mut self, node: &Node, name: &str) -> Option<Content> {
        if let Some(known) = self.context.files.read.get(name) {
            return known.clone();
        }
        let content = match Format::of_path(Path::new(name)) {
            Some(Format::Json | Format::Yaml) => {
                self.context.tree(node, name).map(|it| Content::Tree(Rc::new(it)))
            }
            Some(_) | None => match self.context.source.text(name) {
                Ok(read) => Some(Content::Text(read.text.into())),
                Err(error) => {
                    self.context.unreadable(node, &error);
                    None
                }
            },
        };
        self.context.files.read.insert(name.to_owned(), content.clone());
        content
    }

    fn spend(&mut self, values: usize) {
        let files = &mut self.context.files;
        files.left = files.left.saturating_sub(values);
    }
}
