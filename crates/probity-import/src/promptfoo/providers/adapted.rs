//! Providers that an adapter asks: what has an interface that no backend speaks.

use probity_core::located::{Node, NodeValue};
use probity_load::{
    function::is_code,
    suite::BackendKind,
    template::{names_only_env, texts_in},
};
use serde_json::{Map, Value};

use super::{
    Described, Told,
    keys::{Place, is_address},
};
use crate::{
    draft::BackendDraft,
    promptfoo::{Context, adapters::can_fill, files::with_files, transform},
};

/// A provider that an adapter asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Adapted {
    /// The file of the adapter.
    pub(super) adapter: &'static str,
    /// What of the id it is told, and under which names.
    fields: Vec<(&'static str, String)>,
    /// Variables that it looks at.
    env: &'static [&'static str],
}

/// Keys of a connection and of how it is signed for.
const OF_HTTP: &[&str] = &[
    "url",
    "method",
    "headers",
    "body",
    "queryParams",
    "transformResponse",
    "responseParser",
    "timeout",
    "signatureAuth",
    "tls",
    // How often a call is tried is said by the suite.
    "maxRetries",
];

/// Variables that Azure's assistants and watsonx take from the environment.
const OF_AZURE: &[&str] = &["AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_API_HOST"];
const OF_WATSONX: &[&str] = &[
    "WATSONX_AI_APIKEY",
    "WATSONX_AI_AUTH_TYPE",
    "WATSONX_AI_BEARER_TOKEN",
    "WATSONX_AI_PROJECT_ID",
];

/// The provider that an id means, if an adapter asks it.
pub(super) fn meant(id: &str) -> Option<Adapted> {
    let (first, rest) = id.split_once(':').unwrap_or((id, ""));
    let of = |adapter, fields, env| Some(Adapted { adapter, fields, env });
    match first {
        "azure" | "azureopenai" => {
            let assistant = rest.strip_prefix("assistant:")?;
            of("azure-assistant.mjs", vec![("assistant", assistant.to_owned())], OF_AZURE)
        }
        "ws" | "wss" => of("websocket.mjs", vec![("url", id.to_owned())], &[]),
        "websocket" => of("websocket.mjs", vec![("url", rest.to_owned())], &[]),
        "slack" => {
            let channel = rest.strip_prefix("channel:").unwrap_or(rest).to_owned();
            of("slack.mjs", vec![("channel", channel)], &["SLACK_BOT_TOKEN"])
        }
        "watsonx" => {
            let model = rest.rsplit(':').next().unwrap_or(rest);
            of("watsonx.mjs", vec![("model", model.to_owned())], OF_WATSONX)
        }
        "package" => {
            let (package, exported) = rest.rsplit_once(':').unwrap_or((rest, "default"));
            let fields = [("package", package), ("export", exported)];
            of("package.mjs", fields.map(|(key, it)| (key, it.to_owned())).to_vec(), &[])
        }
        "browser" => of("browser.mjs", Vec::new(), &[]),
        "mcp" => of("mcp.mjs", Vec::new(), &[]),
        "transformers" => {
            let (task, model) = rest.split_once(':')?;
            let fields = [("task", task), ("model", model)];
            let is_text = task == "text-generation" || task == "text2text-generation";
            let fields = fields.map(|(key, it)| (key, it.to_owned())).to_vec();
            is_text.then_some(Adapted { adapter: "transformers.mjs", fields, env: &[] })
        }
        _ => None,
    }
}

/// The backend of such a provider.
pub(super) fn read(
    adapted: &Adapted,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<BackendDraft> {
    let mut config = match described.config {
        Some(config) => told(config, described, &backend.name, context)?,
        None => Map::new(),
    };
    if adapted.adapter == "package.mjs" {
        config = Map::from_iter([("config".to_owned(), Value::Object(config))]);
    }
    for (key, value) in &adapted.fields {
        // What the settings say counts.
        if !value.is_empty() && !config.contains_key(*key) {
            let place = Place { backend: &backend.name, what: "the address under" };
            let value = match value.contains("://") {
                true => place.url(value, &described.node.span, context),
                false => value.clone(),
            };
            config.insert((*key).to_owned(), Value::from(value));
        }
    }
    for key in filled_by(adapted.adapter) {
        let texts = config.get(*key).map(texts_in).unwrap_or_default();
        if let Some(text) = texts.iter().find(|it| !can_fill(it)) {
            let what = format!("the template `{text}` in `{key}` of a provider");
            context.lost(described.node, what, "write it with variables alone");
            return None;
        }
    }
    backend.kind = BackendKind::Node;
    backend.adapter = Some(context.adapter(adapted.adapter));
    backend.config = config;
    backend.env = adapted.env.iter().map(|it| (*it).to_owned()).collect();
    Some(backend)
}

/// The settings whose templates an adapter fills in.
fn filled_by(adapter: &str) -> &'static [&'static str] {
    match adapter {
        "websocket.mjs" => &["url", "messageTemplate", "headers"],
        "browser.mjs" => &["steps"],
        _ => &[],
    }
}

/// Whether a provider of the user's own needs more of its connection than a backend of kind `http` has.
pub(super) fn needs_adapter(described: &Described<'_>) -> bool {
    let has = |key| described.config.is_some_and(|it| it.get(key).is_some());
    has("signatureAuth") || has("tls")
}

/// The backend of a server that wants signatures or certificates.
pub(super) fn http(
    url: Option<String>,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<BackendDraft> {
    let node = described.config?;
    context.lost_keys(node, "an `http` provider with signatures or certificates", OF_HTTP);
    let mut config = told(node, described, &backend.name, context)?;
    if let Some(url) = url.filter(|_| !config.contains_key("url")) {
        let place = Place { backend: &backend.name, what: "the address under" };
        let url = place.url(&url, &described.node.span, context);
        config.insert("url".to_owned(), Value::from(url));
    }
    for key in ["url", "headers", "body", "queryParams"] {
        let texts = config.get(key).map(texts_in).unwrap_or_default();
        if let Some(text) = texts.iter().find(|it| !can_fill(it)) {
            let what = format!("the template `{text}` in `{key}` of an `http` provider");
            context.lost(node, what, "write it with variables alone");
            return None;
        }
    }
    backend.kind = BackendKind::Node;
    backend.adapter = Some(context.adapter("http.mjs"));
    backend.env = vec!["PROMPTFOO_JKS_PASSWORD".to_owned(), "PROMPTFOO_PFX_PASSWORD".to_owned()];
    backend.config = config;
    Some(backend)
}

/// What an adapter is told of the settings of a provider: code and files by their paths from the suite, other
/// files by what is in them, and no keys.
fn told(
    config: &Node,
    described: &Described<'_>,
    backend: &str,
    context: &mut Context<'_>,
) -> Option<Map<String, Value>> {
    let mut telling = Telling { described, backend, context };
    match telling.value("", config)? {
        Value::Object(map) => Some(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            telling.context.lost(config, "a `config` that is no table", "write a table");
            None
        }
    }
}

struct Telling<'t, 'c> {
    described: &'t Described<'t>,
    backend: &'t str,
    context: &'t mut Context<'c>,
}

impl Telling<'_, '_> {
    fn value(&mut self, key: &str, node: &Node) -> Option<Value> {
        match &node.value {
            NodeValue::String(text) => self.text(key, text, node),
            NodeValue::Array(items) => items.iter().map(|it| self.value(key, it)).collect(),
            NodeValue::Object(entries) => {
                let mut map = Map::new();
                for entry in entries {
                    map.insert(entry.key.clone(), self.value(&entry.key, &entry.node)?);
                }
                Some(Value::Object(map))
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => Some(node.to_json()),
        }
    }

    fn text(&mut self, key: &str, text: &str, node: &Node) -> Option<Value> {
        if let Some(named) = text.strip_prefix("file://") {
            return match is_code(named) {
                false => Some(with_files(node, self.context)),
                true => match transform::reference(named, self.context) {
                    Ok(named) => Some(Value::from(format!("file://{named}"))),
                    Err(error) => {
                        self.context.unreadable(node, &error);
                        None
                    }
                },
            };
        }
        if names_path(key) {
            return match self.context.source.reference_later(text) {
                Ok(path) => Some(Value::from(path)),
                Err(error) => {
                    self.context.unreadable(node, &error);
                    None
                }
            };
        }
        let text = match self.described.env.told(text) {
            Told::Text(text) => text.into_owned(),
            Told::Variable(name) => format!("{{{{ env.{name} }}}}"),
            Told::Unknown(_) if names_only_env(text) => text.to_owned(),
            // The adapter fills in the rest, and sees no variable that is not named.
            Told::Unknown(name) => {
                let what = format!("`{name}` within a text of the `config` of a provider");
                self.context.lost(node, what, "put the whole value into a variable");
                return None;
            }
        };
        let place = Place { backend: self.backend, what: "the field" };
        let is_name = key.ends_with("Alias");
        if is_name {
            return Some(Value::from(text));
        }
        let text = place.text(key, text, &node.span, self.context);
        Some(Value::from(match is_address(&text) {
            true => place.url(&text, &node.span, self.context),
            false => text,
        }))
    }
}

/// Whether a setting is the path of a file.
fn names_path(key: &str) -> bool {
    key == "path" || key.ends_with("Path") && key != "basePath"
}
