//! A task as its file and the files that it includes say.

use std::collections::BTreeMap;

use probity_core::located::{Entry, Node, NodeValue};
use probity_load::dataset::Format;
use serde_json::Value;

use crate::{
    note::{At, Notes},
    note_unreadable,
    source::{Source, Text},
};

/// How deep files may include each other.
const DEEPEST: usize = 16;
/// The name of what stands for a function of Python.
const FUNCTION: &str = "!function";

/// A table without what it includes from elsewhere, for a first look.
pub(super) fn peek(name: &str, source: &mut Source) -> Option<Node> {
    let text = source.text(name).ok()?;
    let (node, _) = source.parse(&text, Format::Yaml).ok()?;
    matches!(node.value, NodeValue::Object(_)).then_some(node)
}

/// Reads tasks. What they include is kept, because many include the same.
pub(super) struct Reader<'a> {
    source: &'a mut Source,
    notes: &'a mut Notes,
    kept: &'a mut Kept,
}

/// Files that were included, with all that they include.
#[derive(Debug, Default)]
pub(super) struct Kept(BTreeMap<String, Node>);

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a mut Source, notes: &'a mut Notes, kept: &'a mut Kept) -> Self {
        Self { source, notes, kept }
    }

    /// Reads a file with all that it includes. None if it says nothing that can be read.
    pub(super) fn load(&mut self, name: &str) -> Option<Node> {
        self.file(name, &Node { span: 0..0, value: NodeValue::Null }, 0)
    }

    /// A table in a file, with what it includes.
    pub(super) fn table(&mut self, root: Node, name: &str) -> Option<Node> {
        self.complete(root, name, 0)
    }

    /// A file that is named in a place.
    fn file(&mut self, name: &str, place: &Node, depth: usize) -> Option<Node> {
        let text = match self.source.text(name) {
            Ok(text) => text,
            Err(error) => {
                note_unreadable(self.source, place, &error, self.notes);
                return None;
            }
        };
        let mut root = match self.source.parse(&text, Format::Yaml) {
            Ok((root, _)) => root,
            Err(error) => {
                let nowhere = Node { span: text.span(), value: NodeValue::Null };
                note_unreadable(self.source, &nowhere, &error, self.notes);
                return None;
            }
        };
        mark_functions(&mut root, &text);
        self.complete(root, name, depth)
    }

    /// A table with what it includes. What it says itself counts.
    fn complete(&mut self, mut root: Node, name: &str, depth: usize) -> Option<Node> {
        let NodeValue::Object(own) = &mut root.value else {
            let at = self.source.at(&root.span);
            self.notes.lost(at, "a task is a table, which this is not", "correct the file");
            return None;
        };
        let mut all: Vec<Entry> = Vec::new();
        let files: Vec<Entry> = own.extract_if(.., |it| it.key == "include").collect();
        for file in files.iter().flat_map(|it| one_or_many(&it.node)) {
            let Some(wanted) = file.as_str().filter(|_| depth < DEEPEST) else {
                let at = self.source.at(&file.span);
                let what = "`include` names no file, or files include each other";
                self.notes.lost(at, what, "correct it");
                return None;
            };
            all.extend(self.included(&beside(name, wanted), file, depth + 1)?);
        }
        all.append(own);
        root.value = NodeValue::Object(merged(all));
        Some(root)
    }

    /// What a file says that is included in a place.
    fn included(&mut self, name: &str, place: &Node, depth: usize) -> Option<Vec<Entry>> {
        if let Some(kept) = self.kept.0.get(name) {
            let entries = kept.entries();
            let bytes = entries.iter().map(|it| it.key_span.len() + it.node.span.len()).sum();
            if let Err(error) = self.source.spend(name, bytes) {
                note_unreadable(self.source, place, &error, self.notes);
                return None;
            }
            return Some(entries.to_vec());
        }
        let root = self.file(name, place, depth)?;
        self.kept.0.insert(name.to_owned(), root.clone());
        Some(entries_of(root))
    }
}

fn entries_of(node: Node) -> Vec<Entry> {
    match node.value {
        NodeValue::Object(entries) => entries,
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_) => Vec::new(),
    }
}

/// Several tables in one. What is said later counts.
pub(super) fn merged(all: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut merged: Vec<Entry> = Vec::new();
    for entry in all {
        match places.get(&entry.key) {
            Some(at) => merged[*at] = entry,
            None => {
                places.insert(entry.key.clone(), merged.len());
                merged.push(entry);
            }
        }
    }
    merged
}

/// The items of a list, or the value itself.
pub(super) fn one_or_many(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::Array(items) => items,
        NodeValue::Null => &[],
        NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) | NodeValue::Object(_) => {
            std::slice::from_ref(node)
        }
    }
}

/// The name of a file that is named in another.
fn beside(name: &str, file: &str) -> String {
    match name.rsplit_once('/') {
        Some((folder, _)) if !file.starts_with('/') => format!("{folder}/{file}"),
        Some(_) | None => file.to_owned(),
    }
}

/// Turns texts with the tag `!function` into tables that name the function.
fn mark_functions(node: &mut Node, text: &Text) {
    let span = node.span.clone();
    let is_function = || {
        let Some(start) = span.start.checked_sub(text.base) else { return false };
        let before = text.text.get(..start).unwrap_or_default();
        let own = text.text.get(start..).unwrap_or_default();
        before.trim_end_matches(' ').ends_with(FUNCTION) || own.starts_with(FUNCTION)
    };
    match &mut node.value {
        NodeValue::String(_) if is_function() => {
            let value = std::mem::replace(&mut node.value, NodeValue::Null);
            let named = Node { span: span.clone(), value };
            let entry = Entry { key: FUNCTION.to_owned(), key_span: span, node: named };
            node.value = NodeValue::Object(vec![entry]);
        }
        NodeValue::Array(items) => items.iter_mut().for_each(|it| mark_functions(it, text)),
        NodeValue::Object(entries) => {
            entries.iter_mut().for_each(|it| mark_functions(&mut it.node, text));
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
    }
}

/// The function of Python that a value names.
pub(super) fn function(node: &Node) -> Option<&str> {
    node.get(FUNCTION).and_then(Node::as_str)
}

/// What a task makes of a document.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) at: At,
    pub(super) says: Says,
}

#[derive(Clone, Debug)]
pub(super) enum Says {
    /// A template, or the name of a field of the document.
    Template(String),
    /// The same for all documents.
    Value(Value),
    /// A function of Python; documents may have what it makes of them in a field of this name.
    Function { name: String, field: &'static str },
}

impl Field {
    /// What a key of a task says; none if it says nothing.
    pub(super) fn of(task: &Node, key: &'static str, source: &Source) -> Option<Self> {
        let node = task.get(key)?;
        let says = match (&node.value, function(node)) {
            (NodeValue::Null, _) => return None,
            (_, Some(name)) => Says::Function { name: name.to_owned(), field: key },
            (NodeValue::String(text), None) => Says::Template(text.clone()),
            (
                NodeValue::Bool(_)
                | NodeValue::Number(_)
                | NodeValue::Array(_)
                | NodeValue::Object(_),
                None,
            ) => Says::Value(node.to_json()),
        };
        Some(Self { at: source.at(&node.span), says })
    }
}

/// A text under a key.
pub(super) fn text_of<'n>(task: &'n Node, key: &str) -> Option<&'n str> {
    task.get(key).and_then(Node::as_str)
}

/// A number that is not negative, under a key.
pub(super) fn count_of(task: &Node, key: &str) -> Option<usize> {
    task.get(key)?.to_json().as_u64().and_then(|it| usize::try_from(it).ok())
}
