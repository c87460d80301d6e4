//! `$ref`: what stands elsewhere in the configuration, or in another file.

use std::{collections::BTreeMap, rc::Rc};

use probity_core::located::{Entry, Node, NodeValue};

use super::Context;

/// How deep references may lead to references.
const DEEPEST: usize = 32;
/// How many values they may stand for in all: a few lines can otherwise mean terabytes.
pub(super) const MOST_VALUES: usize = 1_000_000;

/// The tree with every reference replaced by what it means.
pub(super) fn resolved(root: Node, context: &mut Context<'_>) -> Node {
    if !has_reference(&root) {
        return root;
    }
    let mut following = Following { left: MOST_VALUES, trees: BTreeMap::new(), context };
    following.replaced(&root, &root, 0)
}

fn has_reference(node: &Node) -> bool {
    node.get("$ref").is_some()
        || node.entries().iter().any(|it| has_reference(&it.node))
        || node.items().iter().any(has_reference)
}

struct Following<'f, 'c> {
    /// How many values references may still stand for.
    left: usize,
    /// The files that were read; none for those that cannot be.
    trees: BTreeMap<String, Option<Rc<Node>>>,
    context: &'f mut Context<'c>,
}

impl Following<'_, '_> {
    fn replaced(&mut self, node: &Node, root: &Node, depth: usize) -> Node {
        self.left = self.left.saturating_sub(1);
        if let Some(reference) = node.get("$ref").and_then(Node::as_str) {
            return self.meant(node, reference, root, depth);
        }
        let value = match &node.value {
            NodeValue::Array(items) => {
                NodeValue::Array(items.iter().map(|it| self.replaced(it, root, depth)).collect())
            }
            NodeValue::Object(entries) => {
                let inner = |it: &Entry| Entry {
                    key: it.key.clone(),
                    key_span: it.key_span.clone(),
                    node: self.replaced(&it.node, root, depth),
                };
                NodeValue::Object(entries.iter().map(inner).collect())
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
                node.value.clone()
            }
        };
        Node { span: node.span.clone(), value }
    }

    fn meant(&mut self, node: &Node, reference: &str, root: &Node, depth: usize) -> Node {
        let (file, path) = reference.split_once('#').unwrap_or((reference, ""));
        // The schema of a tool has references of its own.
        let is_own = file.is_empty() && !path.is_empty() && found(root, path).is_none();
        if is_own || file.contains("://") && !file.starts_with("file://") {
            if !is_schema(reference) {
                self.lost(node, reference, "nowhere");
            }
            return node.clone();
        }
        let nothing = Node { span: node.span.clone(), value: NodeValue::Null };
        if depth >= DEEPEST || self.left == 0 {
            self.lost(node, reference, "too far");
            return nothing;
        }
        let name = file.strip_prefix("file://").unwrap_or(file);
        if name.is_empty() {
            return match found(root, path) {
                Some(target) => self.replaced(target, root, depth + 1),
                None => nothing,
            };
        }
        let tree = self.tree(node, name);
        match tree.as_deref().and_then(|tree| Some((found(tree, path)?, tree))) {
            Some((target, tree)) => self.replaced(target, tree, depth + 1),
            None => {
                self.lost(node, reference, "nowhere");
                nothing
            }
        }
    }

    /// The tree of a file, which is read once.
    fn tree(&mut self, node: &Node, name: &str) -> Option<Rc<Node>> {
        if let Some(known) = self.trees.get(name) {
            return known.clone();
        }
        let tree = self.context.tree(node, name).map(Rc::new);
        self.trees.insert(name.to_owned(), tree.clone());
        tree
    }

    fn lost(&mut self, node: &Node, reference: &str, whither: &str) {
        let what = format!("`$ref: {reference}` leads {whither}");
        self.context.lost(node, what, "write out what it means");
    }
}

/// Whether a reference is one of a JSON Schema.
fn is_schema(reference: &str) -> bool {
    ["#/$defs/", "#/definitions/", "#/components/"].iter().any(|it| reference.starts_with(it))
}

/// What a JSON Pointer leads to.
fn found<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    let mut node = root;
    for part in path.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        node = match crate::is_list(node) {
            true => node.items().get(part.parse::<usize>().ok()?)?,
            false => node.get(&part)?,
        };
    }
    Some(node)
}

#[cfg(test)]
mod tests;
