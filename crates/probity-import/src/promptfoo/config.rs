//! The configuration as a whole: every key of it is used, or noted as lost.

use probity_core::located::{Node, NodeValue};

use super::{Context, assemble, key_span, prompts, providers, tests};
use crate::{
    ImportError,
    cases::{Ids, text},
    draft::Draft,
    note::Notes,
    source::Source,
};

/// Keys that say nothing about what is asked or judged.
const SILENT: &[&str] =
    &["$schema", "description", "sharing", "outputPath", "writeLatestResults", "metadata", "tags"];
/// Keys that are read.
const USED: &[&str] = &[
    "prompts",
    "providers",
    "targets",
    "tests",
    "defaultTest",
    "scenarios",
    "env",
    "evaluateOptions",
];

pub(crate) fn import(
    root: Node,
    name: &str,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    let mut context = Context { source, notes, draft: Draft::default(), ids: Ids::default() };
    let root = match root.value {
        // Tests alone.
        NodeValue::Array(_) => tests_alone(root),
        NodeValue::Object(_) => root,
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            return Err(ImportError::shape("it is no configuration: there is no table in it"));
        }
    };
    context.draft.comments.push(format!("From {name}, by `probity import`."));
    context.draft.comments.extend(text(&root, "description"));
    note_keys(&root, &mut context);
    let prompts = prompts::read(&root, &mut context);
    let providers = providers::read(&root, &mut context);
    let tests = tests::read(&root, &prompts, &mut context);
    assemble::assemble(&root, prompts, providers, tests, &mut context)?;
    Ok(context.draft)
}

/// A configuration of nothing but tests.
fn tests_alone(tests: Node) -> Node {
    let span = tests.span.clone();
    let entry = probity_core::located::Entry {
        key: "tests".to_owned(),
        key_span: span.clone(),
        node: tests,
    };
    Node { span, value: NodeValue::Object(vec![entry]) }
}

fn note_keys(root: &Node, context: &mut Context<'_>) {
    for entry in root.entries() {
        let key = entry.key.as_str();
        if SILENT.contains(&key) || USED.contains(&key) {
            continue;
        }
        let at = context.source.at(&key_span(root, key));
        let what = format!("`{key}` of the configuration has no counterpart");
        context.notes.lost(at, what, "leave it out if it does not matter");
    }
}
