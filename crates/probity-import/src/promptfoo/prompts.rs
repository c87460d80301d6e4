//! Prompts: written out, in files, as conversations, or made by functions.

use probity_core::{located::Node, request::Sampling};

use super::{Context, list};
use crate::{
    cases::text,
    draft::{Asks, VariantDraft},
};

/// A prompt as providers and tests name it.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// What it is called in filters: its label, its id and its text.
    pub(super) names: Vec<String>,
    /// How cases are asked.
    pub(super) variant: VariantDraft,
}

impl Prompt {
    /// Whether a filter means it. An empty one means all; a name that ends in `*` means all that begin so.
    pub(super) fn is_among(&self, filter: &[String]) -> bool {
        let means = |wanted: &String| match wanted.strip_suffix('*') {
            Some(start) => self.names.iter().any(|it| it.starts_with(start)),
            // A group is meant with all its members.
            None => self.names.iter().any(|it| {
                it == wanted
                    || it.strip_prefix(wanted.as_str()).is_some_and(|it| it.starts_with(':'))
            }),
        };
        filter.is_empty() || filter.iter().any(means)
    }
}

/// All prompts of a configuration. Without any, the variable `prompt` is asked.
pub(super) fn read(root: &Node, context: &mut Context<'_>) -> Vec<Prompt> {
    let mut prompts = Vec::new();
    let Some(node) = root.get("prompts") else {
        let at = context.at(root);
        prompts.push(named("prompt", "{{ prompt }}".to_owned(), at));
        return prompts;
    };
    for item in list(node) {
        let written = item.as_str().map(ToOwned::to_owned).or_else(|| text(item, "raw"));
        match written {
            Some(written) => {
                let at = context.at(item);
                let name = format!("prompt-{}", prompts.len() + 1);
                prompts.push(named(&name, written, at));
            }
            None => context.lost(item, "a prompt that is no text", "write it as a text"),
        }
    }
    prompts
}

fn named(name: &str, template: String, at: crate::At) -> Prompt {
    Prompt {
        names: vec![template.clone(), name.to_owned()],
        variant: VariantDraft {
            name: name.to_owned(),
            at,
            comments: Vec::new(),
            asks: Asks::Template(template),
            sampling: Sampling::default(),
        },
    }
}
