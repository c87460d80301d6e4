//! `file://{{ env.NAME }}/…`, `openai:{{ env.NAME }}`: paths and ids with variables of the environment in them.

use probity_core::located::{Node, NodeValue};

use super::{
    Context,
    env::{Told, names_key},
};

/// How many variables a path may have.
const MOST_VARIABLES: usize = 8;

impl Context<'_> {
    /// The tree with these variables filled in, from the `env` of the configuration or from the environment.
    pub(super) fn with_paths(&mut self, mut node: Node) -> Node {
        self.fill_paths(&mut node);
        node
    }

    fn fill_paths(&mut self, node: &mut Node) {
        let at = self.source.at(&node.span);
        match &mut node.value {
            NodeValue::String(text) if text.starts_with("file://") && text.contains("{{") => {
                match self.told_here(text) {
                    Ok(path) => *text = path,
                    Err(name) => {
                        let what = format!("the variable `{name}` in the path `{text}` is not set");
                        self.notes.assumed(at, what, format!("set {name} and import again"));
                    }
                }
            }
            NodeValue::Array(items) => items.iter_mut().for_each(|it| self.fill_paths(it)),
            NodeValue::Object(entries) => {
                entries.iter_mut().for_each(|it| self.fill_paths(&mut it.node));
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
        }
    }

    /// A path or an id with its variables filled in, or the one that has no value. Secrets are no part of it.
    pub(super) fn told_here(&self, written: &str) -> Result<String, String> {
        let mut env = self.env.clone();
        for _ in 0..MOST_VARIABLES {
            let name = match env.told(written) {
                Told::Text(path) => return Ok(path.into_owned()),
                Told::Variable(name) | Told::Unknown(name) => name,
            };
            match self.source.variable(&name).filter(|_| !names_key(&name)) {
                Some(value) => env.set(name, value),
                None => return Err(name),
            }
        }
        Ok(written.to_owned())
    }
}
