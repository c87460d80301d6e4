//! Providers: who is asked, who judges, who embeds texts.

use probity_core::located::Node;
use probity_load::suite::BackendKind;

use super::{Context, list};
use crate::{
    At,
    draft::{BackendDraft, Setup},
};

/// A provider as prompts and tests name it.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    /// The backend that it became.
    pub(super) backend: String,
    /// What it is called in filters: its label and its id.
    pub(super) names: Vec<String>,
    /// The prompts that it is asked; empty for all.
    pub(super) prompts: Vec<String>,
    /// JavaScript that makes the output out of a reply, before that of a test.
    pub(super) transform: Option<String>,
}

impl Provider {
    /// A backend that nothing is known of.
    pub(super) fn of_backend(name: &str, _at: At) -> Self {
        Self {
            backend: name.to_owned(),
            names: vec![name.to_owned()],
            prompts: Vec::new(),
            transform: None,
        }
    }

    /// Whether a filter means it. An empty one means all.
    pub(super) fn is_among(&self, filter: &[String]) -> bool {
        filter.is_empty() || filter.iter().any(|it| self.names.contains(it))
    }

    /// What a runner says about its cases if it asks this provider.
    pub(super) fn completed(&self, setup: &Setup) -> Setup {
        Setup {
            transform: setup.transform.clone().or_else(|| self.transform.clone()),
            ..setup.clone()
        }
    }
}

/// All providers of a configuration, each as a backend of the draft.
pub(super) fn read(root: &Node, context: &mut Context<'_>) -> Vec<Provider> {
    let mut providers = Vec::new();
    let Some(node) = root.get("providers").or_else(|| root.get("targets")) else {
        return providers;
    };
    for item in list(node) {
        match item.as_str() {
            Some("echo") => {
                let at = context.at(item);
                context.draft.backends.push(BackendDraft::new(
                    "echo",
                    BackendKind::Echo,
                    at.clone(),
                ));
                providers.push(Provider::of_backend("echo", at));
            }
            Some(id) => {
                let what = format!("provider `{id}` has no counterpart");
                context.lost(item, what, "describe it under [backends]");
            }
            None => {
                context.lost(item, "a provider that is no text", "describe it under [backends]")
            }
        }
    }
    providers
}

/// What a provider is needed for beside being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Help {
    /// It judges.
    Judge,
    /// It embeds texts.
    Embed,
}

/// The backend of a provider that helps (`options.provider`, `provider` of an assertion): an id, a table
/// with `id` and `config`, or a table with `text` and `embedding`. It is added to the draft once.
pub(super) fn helper(node: &Node, help: Help, context: &mut Context<'_>) -> Option<String> {
    let what = match help {
        Help::Judge => "a judge of its own",
        Help::Embed => "a provider of embeddings",
    };
    context.lost(node, what, "name it with `judge` or `embeddings` in the suite");
    None
}
