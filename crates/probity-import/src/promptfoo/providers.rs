//! Providers: who is asked, who judges, who embeds texts.

mod adapted;
mod code;
mod env;
mod hosted;
mod http;
mod keys;
mod path;
mod settings;
mod vendors;

use std::collections::BTreeSet;

use probity_core::located::{Node, NodeValue};
use probity_load::suite::BackendKind;
use serde_json::Value;

use super::{
    Context, Table,
    env::{Env, Told},
    list, transform,
    vars::Unasked,
};
use crate::{
    cases::{text, texts},
    draft::{BackendDraft, Setup},
};
pub(super) use code::{note_typescript, seen_by_function, words};
pub(super) use env::names_in as variables_in;
pub(crate) use env::python_files;
use hosted::Hosted;
pub(super) use keys::{Place, holds_key, shown, without_keys};
pub(super) use settings::{READ, is_setting};
pub(super) use vendors::reasons;
use vendors::{Family, Meaning, meaning};

/// How deep files of providers may name each other.
const DEEPEST: usize = 4;

/// A provider as prompts and tests name it.
#[derive(Clone, Debug)]
pub(super) struct Provider {
    /// The backend that it became.
    pub(super) backend: String,
    /// Its id.
    pub(super) id: String,
    /// What it is called in filters: its label and its id.
    pub(super) names: Vec<String>,
    /// The prompts that it is asked; empty for all.
    pub(super) prompts: Vec<String>,
    /// JavaScript that makes the output out of a reply, before that of a test.
    pub(super) transform: Option<String>,
    /// Tools that are sent with each case.
    pub(super) tools: Option<Value>,
    /// Which of them has to be called.
    pub(super) tool_choice: Option<Value>,
    /// What it can be told.
    pub(super) takes: Takes,
    /// The backend that asks it what is a conversation, if there is one.
    pub(super) for_chats: Option<String>,
}

/// What a provider can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Conversations, too.
    Conversations,
    /// A text, or messages in its place.
    TextOrMessages,
    /// One text.
    Text,
}

impl Provider {
    /// A backend that nothing is known of.
    pub(super) fn of_backend(name: &str) -> Self {
        Self {
            backend: name.to_owned(),
            id: name.to_owned(),
            names: vec![name.to_owned()],
            prompts: Vec::new(),
            transform: None,
            tools: None,
            tool_choice: None,
            takes: Takes::Conversations,
            for_chats: None,
        }
    }

    /// Whether a filter means it.
    pub(super) fn is_among(&self, filter: &[String]) -> bool {
        super::is_meant(&self.names, filter, |name, wanted| name == wanted)
    }

    /// What a runner says about its cases if it asks this provider.
    pub(super) fn completed(&self, setup: &Setup) -> Setup {
        let Self { transform, tools, tool_choice, .. } = self;
        let both = match (transform, &setup.transform) {
            // Of two that cannot be one, that of the test counts: it is made for what the test asserts.
            (Some(first), Some(second)) => {
                Some(transform::composed(first, second).unwrap_or_else(|| second.clone()))
            }
            (first, second) => second.clone().or_else(|| first.clone()),
        };
        Setup {
            transform: both,
            tools: setup.tools.clone().or_else(|| tools.clone()),
            tool_choice: setup.tool_choice.clone().or_else(|| tool_choice.clone()),
            ..setup.clone()
        }
    }
}

/// A provider as it is written.
#[derive(Clone)]
struct Described<'n> {
    id: String,
    label: Option<String>,
    config: Option<&'n Node>,
    prompts: Vec<String>,
    transform: Option<String>,
    env: Env,
    node: &'n Node,
}

/// All providers of a configuration, each as a backend of the draft.
pub(super) fn read(root: &Node, context: &mut Context<'_>) -> Vec<Provider> {
    let mut providers = Vec::new();
    if let Some(node) = root.get("providers").or_else(|| root.get("targets")) {
        for item in list(node) {
            let first = providers.len();
            read_item(item, &mut Vec::new(), context, &mut providers);
            if let [only] = &providers[first..] {
                context.providers.insert(item.to_json().to_string(), Ok(alone(only)));
            }
        }
    }
    providers
}

/// Whether providers of a configuration have the same id, so that only their labels tell them apart.
pub(super) fn repeats_ids(root: &Node) -> bool {
    let Some(node) = root.get("providers").or_else(|| root.get("targets")) else { return false };
    let id = |it: &Node| it.as_str().map(ToOwned::to_owned).or_else(|| text(it, "id"));
    let mut seen = BTreeSet::new();
    list(node).iter().filter_map(id).any(|it| !seen.insert(it))
}

/// The provider that a test names for itself, or that nobody can be asked it. Why not is noted.
pub(super) type OwnProvider = Result<Provider, Unasked>;

/// The provider that a test names for itself. It is added to the draft once.
pub(super) fn of_test(node: &Node, context: &mut Context<'_>) -> Option<OwnProvider> {
    if matches!(node.value, NodeValue::Null) {
        return None;
    }
    if node.as_str().is_none() && text(node, "id").is_none() {
        let advice = "name the provider with its `id`".to_owned();
        context.ignored_key(context.at(node), "provider", Table::Test, advice);
        return None;
    }
    let key = node.to_json().to_string();
    if let Some(known) = context.providers.get(&key) {
        return Some(known.clone());
    }
    let mut found = Vec::new();
    read_item(node, &mut Vec::new(), context, &mut found);
    let own = found.first().map(alone).ok_or(Unasked);
    context.providers.insert(key, own.clone());
    Some(own)
}

/// A provider that is asked whatever a test asks.
fn alone(provider: &Provider) -> Provider {
    Provider { prompts: Vec::new(), ..provider.clone() }
}

/// Reads an item of the list of providers. `files` are those that led to it.
fn read_item(
    item: &Node,
    files: &mut Vec<String>,
    context: &mut Context<'_>,
    providers: &mut Vec<Provider>,
) {
    for described in described(item, context) {
        let id = match context.told_here(&described.id) {
            Ok(id) => id,
            Err(name) => {
                let what = format!("provider `{}`: nobody knows what `{name}` is", described.id);
                let advice = format!("set {name} and import again, or write the id out");
                context.lost(item, what, advice);
                continue;
            }
        };
        if !matches!(context.env.told(&described.id), Told::Text(_)) {
            let what = format!("provider `{}` is `{id}` by the environment", described.id);
            context.assumed(item, what, "import again if another is to be asked");
        }
        if let Meaning::File(name) = meaning(&id) {
            if files.contains(&name) || files.len() >= DEEPEST {
                context.lost(item, format!("`{name}` names itself"), "name each file once");
                continue;
            }
            let Some(root) = context.tree(item, &name) else { continue };
            files.push(name);
            for inner in list(&root) {
                read_item(inner, files, context, providers);
            }
            files.pop();
            continue;
        }
        let described = Described { id, ..described };
        providers.extend(made(&described, Use::Asked, context));
    }
}

/// What a provider is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Asked,
    Helper(Help),
}

/// The providers that an item of the list describes: one, or one for each key of a table.
fn described<'n>(item: &'n Node, context: &mut Context<'_>) -> Vec<Described<'n>> {
    const KEYS: &[&str] = &["id", "label", "config", "prompts", "transform", "delay", "env"];
    let plain = |id: &str, node: &'n Node| Described {
        id: id.to_owned(),
        label: None,
        config: None,
        prompts: Vec::new(),
        transform: None,
        env: Env::default(),
        node,
    };
    let of_table = |id: String, table: &'n Node, context: &mut Context<'_>| {
        context.unused_keys(table, Table::Provider, KEYS);
        if let Some(delay) = table.get("delay") {
            let advice = "limit the calls in flight with `max_concurrency`";
            context.assumed(delay, "`delay` between calls", advice);
        }
        let env = context.env.with(&Env::of(table.get("env")));
        Described {
            label: text(table, "label"),
            config: table.get("config"),
            prompts: texts(table, "prompts"),
            transform: table
                .get("transform")
                .and_then(|it| transform::read(it, "the transform of a provider", context)),
            env,
            ..plain(&id, table)
        }
    };
    match &item.value {
        NodeValue::String(id) => {
            vec![Described { env: context.env.clone(), ..plain(id, item) }]
        }
        NodeValue::Object(entries) => match text(item, "id") {
            Some(id) => vec![of_table(id, item, context)],
            None => entries
                .iter()
                .filter(|it| !KEYS.contains(&it.key.as_str()))
                .map(|it| {
                    let id = text(&it.node, "id").unwrap_or_else(|| it.key.clone());
                    of_table(id, &it.node, context)
                })
                .collect(),
        },
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::Array(_) => {
            let what = format!("a provider that is {}", item.kind());
            context.lost(item, what, "name it with its `id`");
            Vec::new()
        }
    }
}

/// The provider that a description means, with its backend in the draft.
fn made(described: &Described<'_>, used: Use, context: &mut Context<'_>) -> Option<Provider> {
    let at = context.at(described.node);
    let name = backend_name(described, context);
    let mut provider = Provider {
        id: keys::shown(&described.id),
        names: described.label.iter().cloned().chain([described.id.clone()]).collect(),
        prompts: described.prompts.clone(),
        transform: described.transform.clone(),
        ..Provider::of_backend(&name)
    };
    let mut backend = BackendDraft::new(name, BackendKind::Echo, at);
    if described.label.is_some() {
        backend.comments.push(provider.id.clone());
    }
    let advice = "describe another backend, see docs/backends.md";
    let is_server = matches!(meaning(&described.id), Meaning::Server(_));
    if used == Use::Helper(Help::Embed) && !is_server {
        let what = format!("provider `{}` cannot embed texts", provider.id);
        context.lost(described.node, what, advice);
        return None;
    }
    let backend = match of_settings(described) {
        Meaning::Server(server) => {
            let embeds = used == Use::Helper(Help::Embed);
            let is_embedder = server.family == Family::Embeddings && server.kind.embeds();
            if is_embedder != embeds && (embeds || used == Use::Asked) {
                let what = format!("provider `{}` does not fit what it is named for", provider.id);
                context.lost(described.node, what, advice);
                return None;
            }
            settings::apply(&server, described, &mut backend, &mut provider, context);
            Some(backend)
        }
        Meaning::Http(url) if adapted::needs_adapter(described) => {
            adapted::http(url, described, backend, context)
        }
        Meaning::Http(url) => {
            let made = http::read(url, described, backend, context)?;
            provider.takes = Takes::TextOrMessages;
            provider.transform = both(made.transform, described, context);
            Some(made.backend)
        }
        Meaning::Hosted(service) => {
            let (made, takes) = hosted::read(&service, described, backend, context)?;
            provider.takes = takes;
            provider.transform = both(made.transform, described, context);
            Some(made.backend)
        }
        Meaning::Adapted(adapted) => adapted::read(&adapted, described, backend, context),
        Meaning::Webhook(url) => {
            provider.takes = Takes::TextOrMessages;
            Some(http::webhook(&url, described, backend, context))
        }
        Meaning::Exec(command) => {
            provider.takes = Takes::TextOrMessages;
            code::program(&command, described, backend, context)
        }
        Meaning::Python(file) => {
            code::function(BackendKind::Python, &file, described, backend, context)
        }
        Meaning::Script(file) => {
            code::function(BackendKind::Node, &file, described, backend, context)
        }
        Meaning::Echo => Some(backend),
        Meaning::Foreign(what) => {
            let what = format!("provider `{}` is {what}, which no backend is", provider.id);
            context.lost(described.node, what, advice);
            None
        }
        Meaning::File(_) | Meaning::Unknown => {
            let what = format!("provider `{}` is not known", provider.id);
            context.lost(described.node, what, advice);
            None
        }
    }?;
    context.add_backend(backend);
    Some(provider)
}

/// What a provider means. Some of its settings are known to one version of an API alone.
fn of_settings(described: &Described<'_>) -> Meaning {
    let is_old = described.config.is_some_and(hosted::needs_first_version);
    match (described.id.strip_prefix("cohere:"), is_old) {
        (Some(model), true) => Meaning::Hosted(Hosted::Cohere(model.to_owned())),
        (_, _) => meaning(&described.id),
    }
}

/// The transforms of a server's replies and of its provider as one. Of two that cannot be one, that of the
/// replies counts: the other is made for what it makes.
fn both(
    of_replies: Option<String>,
    described: &Described<'_>,
    context: &mut Context<'_>,
) -> Option<String> {
    match (of_replies, described.transform.clone()) {
        (Some(first), Some(second)) => {
            let both = transform::composed(&first, &second);
            if both.is_none() {
                let what = format!("`transform: {second}` after that of the replies");
                context.lost(described.node, what, "write both as one `transform`");
            }
            Some(both.unwrap_or(first))
        }
        (first, second) => first.or(second),
    }
}

/// A name for a backend: its label, or the last part of its id.
fn backend_name(described: &Described<'_>, context: &mut Context<'_>) -> String {
    let id = &described.id;
    let short = match meaning(id) {
        Meaning::Server(server) if !server.model.is_empty() => server.model,
        Meaning::Python(file) | Meaning::Script(file) => {
            let (path, _) = probity_load::function::split_name(&file);
            path.rsplit('/').next().unwrap_or(path).to_owned()
        }
        Meaning::Http(_) | Meaning::Webhook(_) | Meaning::Hosted(Hosted::N8n(_)) => {
            "http".to_owned()
        }
        Meaning::Hosted(
            Hosted::Replicate(model) | Hosted::TextGeneration(model) | Hosted::Cohere(model),
        ) => model.split(':').next().unwrap_or(&model).to_owned(),
        Meaning::Hosted(Hosted::SageMaker(named)) => {
            named.rsplit(':').next().unwrap_or(&named).to_owned()
        }
        Meaning::Exec(_) => "program".to_owned(),
        Meaning::Adapted(adapted) => match id.split_once("://") {
            Some(_) => adapted.adapter.trim_end_matches(".mjs").to_owned(),
            None => id.rsplit(':').next().unwrap_or(id).to_owned(),
        },
        Meaning::Server(_)
        | Meaning::Echo
        | Meaning::File(_)
        | Meaning::Foreign(_)
        | Meaning::Unknown => id.clone(),
    };
    let wanted = match context.are_named_by_id {
        true => id.clone(),
        false => described.label.clone().unwrap_or(short),
    };
    let wanted: String = wanted
        .chars()
        .map(|c| if c == ',' || c.is_control() || c == '@' { '-' } else { c })
        .collect();
    let wanted =
        if wanted.trim().is_empty() { "model".to_owned() } else { wanted.trim().to_owned() };
    context.names.free(&wanted)
}

/// A setting in the place where a provider is to be named.
fn setting_without_id(node: &Node) -> Option<&str> {
    let has_id = node.get("id").is_some();
    let keys = node.entries().iter().map(|it| it.key.as_str());
    keys.filter(|it| !has_id && is_setting(it)).find(|it| matches!(meaning(it), Meaning::Unknown))
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
    let parts = ["text", "embedding", "classification", "moderation"];
    let is_divided = text(node, "id").is_none() && parts.iter().any(|it| node.get(it).is_some());
    if is_divided {
        let part = match help {
            Help::Judge => "text",
            Help::Embed => "embedding",
        };
        return helper(node.get(part)?, help, context);
    }
    if let Some(key) = setting_without_id(node) {
        let what = format!("a provider with `{key}` and without `id`");
        // Whether anybody has to judge is known when all tests are read.
        context.unnamed.push((context.at(node), what));
        return None;
    }
    let written = described(node, context).into_iter().next()?;
    // The same provider is asked for the same reason more than once.
    let key = format!("{help:?} {} {}", written.id, node.to_json());
    if let Some(known) = context.helpers.get(&key) {
        return known.clone();
    }
    let made = made(&written, Use::Helper(help), context).map(|it| it.backend);
    context.helpers.insert(key, made.clone());
    made
}
