//! `$ref`: what stands elsewhere in the configuration, or in another file.

use probity_core::located::{Entry, Node, NodeValue};

use super::Context;

/// How deep references may lead to references.
const DEEPEST: usize = 32;
/// How many values they may stand for in all: a few lines can otherwise mean terabytes.
const MOST_VALUES: usize = 1_000_000;

/// The tree with every reference replaced by what it means.
pub(super) fn resolved(root: Node, context: &mut Context<'_>) -> Node {
    if !has_reference(&root) {
        return root;
    }
    let mut left = MOST_VALUES;
    replaced(&root, &root, 0, &mut left, context)
}

fn has_reference(node: &Node) -> bool {
    node.get("$ref").is_some()
        || node.entries().iter().any(|it| has_reference(&it.node))
        || node.items().iter().any(has_reference)
}

fn replaced(
    node: &Node,
    root: &Node,
    depth: usize,
    left: &mut usize,
    context: &mut Context<'_>,
) -> Node {
    *left = left.saturating_sub(1);
    if let Some(reference) = node.get("$ref").and_then(Node::as_str) {
        return meant(node, reference, root, depth, left, context);
    }
    let value = match &node.value {
        NodeValue::Array(items) => NodeValue::Array(
            items.iter().map(|it| replaced(it, root, depth, left, context)).collect(),
        ),
        NodeValue::Object(entries) => {
            let inner = |it: &Entry| Entry {
                key: it.key.clone(),
                key_span: it.key_span.clone(),
                node: replaced(&it.node, root, depth, left, context),
            };
            NodeValue::Object(entries.iter().map(inner).collect())
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            node.value.clone()
        }
    };
    Node { span: node.span.clone(), value }
}

fn meant(
    node: &Node,
    reference: &str,
    root: &Node,
    depth: usize,
    left: &mut usize,
    context: &mut Context<'_>,
) -> Node {
    let (file, path) = reference.split_once('#').unwrap_or((reference, ""));
    // The schema of a tool has references of its own.
    let is_own = file.is_empty() && !path.is_empty() && found(root, path).is_none();
    if is_own || file.contains("://") && !file.starts_with("file://") {
        let plain = Node { span: node.span.clone(), value: node.value.clone() };
        if !is_schema(reference) {
            let what = format!("`$ref: {reference}` leads nowhere");
            context.lost(node, what, "write out what it means");
        }
        return plain;
    }
    if depth >= DEEPEST || *left == 0 {
        context.lost(node, format!("`$ref: {reference}` leads too far"), "write out what it means");
        return Node { span: node.span.clone(), value: NodeValue::Null };
    }
    let target = match file.strip_prefix("file://").unwrap_or(file) {
        "" => found(root, path).cloned().map(|it| (it, None)),
        name => context.tree(node, name).and_then(|tree| {
            let inner = found(&tree, path).cloned()?;
            Some((inner, Some(tree)))
        }),
    };
    match target {
        Some((target, tree)) => {
            replaced(&target, tree.as_ref().unwrap_or(root), depth + 1, left, context)
        }
        None => Node { span: node.span.clone(), value: NodeValue::Null },
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
