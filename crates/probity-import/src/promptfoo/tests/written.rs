//! One test as it is written.

use probity_core::{
    criteria::Assertion,
    located::{Node, NodeValue},
};

use super::{USED, Vars, either, found::FoundTest};
use crate::{
    cases::text,
    draft::BackendDraft,
    promptfoo::{
        Context, Table, assertions, expected, list,
        options::{Helpers, Options},
        providers::{self, OwnProvider},
        vars::{self, Unasked},
    },
};

/// One test as it is written, in YAML or as a CSV record.
#[derive(Clone, Debug, Default)]
pub(in crate::promptfoo) struct Written {
    pub(in crate::promptfoo) description: Option<String>,
    pub(in crate::promptfoo) vars: Vars,
    pub(in crate::promptfoo) assertions: Vec<Assertion>,
    /// Who is to judge the assertions, as they say themselves.
    pub(in crate::promptfoo) helpers: Helpers,
    pub(in crate::promptfoo) threshold: Option<f64>,
    pub(in crate::promptfoo) tags: Vec<String>,
    pub(in crate::promptfoo) options: Options,
    pub(in crate::promptfoo) prompts: Vec<String>,
    pub(in crate::promptfoo) providers: Vec<String>,
    /// The provider that it names for itself.
    pub(in crate::promptfoo) provider: Option<OwnProvider>,
    /// The reply, where it is not asked for.
    pub(in crate::promptfoo) output: Option<String>,
}

impl Written {
    pub(super) fn of(found: &FoundTest, context: &mut Context<'_>) -> Result<Self, Unasked> {
        let FoundTest { node, folder, is_record } = found;
        if *is_record {
            return Ok(expected::test(node, context));
        }
        let vars = written_vars(node, folder, context)?;
        Ok(Self { vars, ..Self::without_vars(node, context) })
    }

    /// All of it but its variables.
    pub(super) fn without_vars(node: &Node, context: &mut Context<'_>) -> Self {
        context.unused_keys(node, Table::Test, USED);
        let read = node.get("assert").map(|it| assertions::read(it, context));
        let assertions::Read { assertions, helpers } = read.unwrap_or_default();
        let provider = node.get("provider").and_then(|it| providers::of_test(it, context));
        Self {
            description: text(node, "description"),
            vars: Vars::new(),
            assertions,
            helpers,
            threshold: context.number(node, "threshold"),
            tags: node.get("metadata").map(tags).unwrap_or_default(),
            options: options(node, provider.as_ref(), context),
            prompts: crate::cases::texts(node, "prompts"),
            providers: crate::cases::texts(node, "providers"),
            provider,
            output: node.get("providerOutput").map(|it| match it.as_str() {
                Some(text) => text.to_owned(),
                None => it.to_json().to_string(),
            }),
        }
    }

    /// A test of a scenario with one of its configurations.
    pub(super) fn with(mut self, config: &Self) -> Self {
        for (name, value) in &config.vars {
            self.vars.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self.assertions.splice(0..0, config.assertions.iter().cloned());
        self.helpers = self.helpers.or(&config.helpers);
        self.options = self.options.or(&config.options);
        self.threshold = self.threshold.or(config.threshold);
        self.tags.extend(config.tags.iter().cloned());
        self.description = self.description.or_else(|| config.description.clone());
        self.prompts = either(&self.prompts, &config.prompts);
        self.providers = either(&self.providers, &config.providers);
        self.provider = self.provider.or_else(|| config.provider.clone());
        self
    }
}

/// The options of a test. What they say of how to answer is for whoever is asked it.
fn options(node: &Node, provider: Option<&OwnProvider>, context: &mut Context<'_>) -> Options {
    let Some(options) = node.get("options") else { return Options::default() };
    let Some(Ok(own)) = provider else { return Options::read(options, context) };
    let is_own = |it: &&BackendDraft| it.name == own.backend;
    let asked = context.draft.backends.iter().filter(is_own).cloned().collect();
    let everybody = std::mem::replace(&mut context.asked, asked);
    let options = Options::read(options, context);
    context.asked = everybody;
    options
}

/// The variables of a test that is no record.
pub(super) fn written_vars(
    node: &Node,
    folder: &str,
    context: &mut Context<'_>,
) -> Result<Vars, Unasked> {
    node.get("vars").map_or(Ok(Vars::new()), |it| vars::read(it, folder, context))
}

/// Metadata as tags.
fn tags(metadata: &Node) -> Vec<String> {
    let tag = |key: &str, node: &Node| match &node.value {
        NodeValue::String(text) | NodeValue::Number(text) => Some(format!("{key}:{text}")),
        NodeValue::Bool(value) => Some(format!("{key}:{value}")),
        NodeValue::Null | NodeValue::Array(_) | NodeValue::Object(_) => None,
    };
    let of = |key: &str, node: &Node| -> Vec<String> {
        list(node).iter().filter_map(|it| tag(key, it)).collect()
    };
    metadata.entries().iter().flat_map(|it| of(&it.key, &it.node)).collect()
}
