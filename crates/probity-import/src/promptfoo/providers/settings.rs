//! `config` of a provider that becomes a server: every key of it is used, or noted as lost.

mod defaults;
mod names;
mod tools;

use std::{ops::Range, str::FromStr, sync::Arc};

use probity_core::{
    located::{Node, NodeValue},
    request::ResponseFormat,
};
use probity_load::{suite::BackendKind, template};
use serde_json::{Value, json};

use super::{
    Described, Provider, Told,
    keys::{Place, variable},
    vendors::{Family, Server},
};
use crate::{
    cases::text,
    draft::BackendDraft,
    promptfoo::{
        Context, Table,
        env::{Env, names_key},
        files::with_files,
    },
};
pub(in crate::promptfoo) use names::READ;
use names::{SENT, SILENT};
use tools::tool_choice;

/// Parts of an address that a provider of Cloudflare names, and the variables that hold them otherwise.
const ACCOUNT: &[(&str, &str, &str)] = &[
    ("accountId", "accountIdEnvar", "CLOUDFLARE_ACCOUNT_ID"),
    ("gatewayId", "gatewayIdEnvar", "CLOUDFLARE_GATEWAY_ID"),
];

/// Keys that say where the server is.
const ADDRESSES: &[&str] =
    &["apiHost", "apiBaseUrl", "baseUrl", "baseURL", "base_url", "workspaceUrl"];

/// Whether a server's provider of promptfoo's reads a key of its `config` to ask something else.
pub(in crate::promptfoo) fn is_setting(key: &str) -> bool {
    const OTHERS: &[&str] = &[
        "temperature",
        "top_p",
        "topP",
        "topK",
        "max_tokens",
        "maxTokens",
        "max_output_tokens",
        "maxOutputTokens",
        "max_completion_tokens",
        "seed",
        "stop",
        "stop_sequences",
        "stopSequences",
        "logprobs",
        "response_format",
        "responseSchema",
        "response_schema",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "generationConfig",
        "passthrough",
        "model",
        "apiKey",
        "headers",
    ];
    OTHERS.contains(&key) || SENT.contains(&key) || READ.contains(&key)
}

/// Fills a backend with what its provider says. None if it says something that no backend can do.
pub(super) fn apply(
    server: &Server,
    described: &Described<'_>,
    backend: &mut BackendDraft,
    provider: &mut Provider,
    context: &mut Context<'_>,
) {
    backend.kind = server.kind;
    backend.model = Some(server.model.clone()).filter(|it| !it.is_empty());
    backend.base_url = server.base_url.as_deref().map(ToOwned::to_owned);
    backend.api_key_env = server.key.map(ToOwned::to_owned);
    if let Some(remark) = server.remark {
        context.assumed(described.node, remark, "");
    }
    let mut filling = Filling { server, env: described.env.clone(), backend, provider, context };
    let entries = described.config.map(Node::entries).unwrap_or_default();
    for entry in entries {
        if !matches!(entry.node.value, NodeValue::Null) {
            filling.key(&entry.key, &entry.node, described.config.unwrap_or(&entry.node));
        }
    }
    filling.address(described.config, described.node);
    filling.defaults(described.config);
}

/// Whether an address is one of this machine.
fn is_here(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |it| it.1);
    ["localhost", "127.", "[::1]", "0.0.0.0", "host.docker.internal"]
        .iter()
        .any(|it| host.starts_with(it))
}

/// Whether a key can only be one that a program insists on and nobody looks at: a short word.
fn is_placeholder(key: &str) -> bool {
    let digits = key.chars().filter(char::is_ascii_digit).count();
    key.len() <= 16 && digits <= 4 && !key.contains("{{")
}

struct Filling<'f, 'c> {
    server: &'f Server,
    env: Env,
    backend: &'f mut BackendDraft,
    provider: &'f mut Provider,
    context: &'f mut Context<'c>,
}

impl Filling<'_, '_> {
    fn key(&mut self, key: &str, node: &Node, config: &Node) {
        match key {
            "apiKey" => self.literal_key(node, config),
            "apiKeyEnvar" => self.backend.api_key_env = node.as_str().map(ToOwned::to_owned),
            "headers" => self.headers(node),
            "tools" => self.tools(node),
            "functions" => self.functions(node),
            "usageContext" => self.extra("usage_context", node),
            "tool_choice" | "toolChoice" | "function_call" => {
                self.provider.tool_choice = tool_choice(node);
            }
            "response_format" | "responseFormat" => self.response_format(node),
            "generationConfig" | "inferenceConfig" | "interfaceConfig" => self.inner(key, node),
            "reasoningConfig" | "thinkingConfig" => self.reasoning(key, node),
            "passthrough" | "additionalModelRequestFields" => self.passthrough(key, node),
            "model" | "modelId" | "deploymentName" => self.backend.model = text(config, key),
            "responseSchema" | "response_schema" | "responseJsonSchema" | "output_format"
            | "format" => {
                self.schema(node);
            }
            "responseMimeType" | "response_mime_type" => {
                if node.as_str() == Some("application/json")
                    && self.backend.response_format.is_none()
                {
                    self.backend.response_format = Some(ResponseFormat::Json);
                }
            }
            "timeout" | "timeoutMs" => {
                let milliseconds: Option<u64> = self.number(config, key);
                self.backend.timeout =
                    milliseconds.map(|it| format!("{}s", it.div_ceil(1000).max(1)));
            }
            "topK" => self.extra("top_k", node),
            "organization" if self.server.kind == BackendKind::Openai => {
                let value = text(config, key).unwrap_or_default();
                self.header("OpenAI-Organization", &value, &node.span);
            }
            // promptfoo sends it to nobody else.
            "provider" if self.server.kind == BackendKind::Openrouter => self.extra(key, node),
            "cfAigToken" | "cfAigTokenEnvar" => self.gateway_token(key, node),
            "effort" if self.server.family == Family::Anthropic => {
                self.output_config("effort", node.to_json());
            }
            "region" | "projectId" | "provider" => {}
            _ if ACCOUNT.iter().any(|(id, envar, _)| key == *id || key == *envar) => {}
            _ if ADDRESSES.contains(&key) => {}
            _ if self.sampling(key, node, config) || SILENT.contains(&key) => {}
            _ if SENT.contains(&key) => self.extra(key, node),
            _ if self.server.family == Family::Ollama => {
                let options = self.backend.extra_body.entry("options").or_insert_with(|| json!({}));
                options[key] = node.to_json();
            }
            _ if READ.contains(&key) => {
                let what =
                    format!("`{key}` of the provider `{}` has no counterpart", self.provider.id);
                self.context.lost(node, what, "put it into `extra_body` if the server takes it");
            }
            _ => self.context.unused_key(self.context.at(node), key, Table::ServerConfig),
        }
    }

    fn number<T: FromStr>(&mut self, config: &Node, key: &str) -> Option<T> {
        self.context.number_within(&self.env, config, key)
    }

    /// Whether a key is about how words are chosen.
    fn sampling(&mut self, key: &str, node: &Node, config: &Node) -> bool {
        match key {
            "temperature" => self.backend.sampling.temperature = self.number(config, key),
            "top_p" | "topP" => self.backend.sampling.top_p = self.number(config, key),
            "max_tokens"
            | "maxTokens"
            | "max_output_tokens"
            | "maxOutputTokens"
            | "max_completion_tokens"
            | "num_predict"
            | "max_new_tokens"
            | "max_gen_len"
            | "max_tokens_to_sample" => {
                self.backend.sampling.max_tokens = self.number(config, key);
            }
            // What is set for one prompt or one test goes over what is set here.
            "presence_penalty" if self.server.family == Family::Chat => {
                self.backend.sampling.presence_penalty = self.number(config, key);
            }
            "frequency_penalty" if self.server.family == Family::Chat => {
                self.backend.sampling.frequency_penalty = self.number(config, key);
            }
            "seed" | "random_seed" => self.backend.sampling.seed = self.number(config, key),
            "logprobs" => {
                let is_wanted = text(config, key).as_deref() != Some("false");
                self.backend.sampling.logprobs = Some(is_wanted);
            }
            "stop" | "stop_sequences" | "stopSequences" => {
                self.backend.sampling.stop = match node.as_str() {
                    Some(one) => serde_json::from_str(one).unwrap_or_else(|_| vec![one.to_owned()]),
                    None => node
                        .items()
                        .iter()
                        .filter_map(|it| it.as_str().map(ToOwned::to_owned))
                        .collect(),
                };
            }
            _ => return false,
        }
        true
    }

    /// Settings in a table of their own.
    fn inner(&mut self, key: &str, node: &Node) {
        const KNOWN: &[&str] = &[
            "responseSchema",
            "response_schema",
            "responseJsonSchema",
            "responseMimeType",
            "response_mime_type",
            "thinkingConfig",
        ];
        for entry in node.entries() {
            if KNOWN.contains(&entry.key.as_str()) {
                self.key(&entry.key, &entry.node, node);
            } else if !self.sampling(&entry.key, &entry.node, node) {
                let fields = self.backend.extra_body.entry(key).or_insert_with(|| json!({}));
                fields[entry.key.as_str()] = entry.node.to_json();
            }
        }
    }

    /// How long a model reasons, where the server looks for it.
    fn reasoning(&mut self, key: &str, node: &Node) {
        let outer = match self.server.family {
            Family::Gemini => "generationConfig",
            Family::Bedrock => "additionalModelRequestFields",
            Family::Chat
            | Family::Responses
            | Family::Embeddings
            | Family::Anthropic
            | Family::Ollama => return self.extra(key, node),
        };
        let fields = self.backend.extra_body.entry(outer).or_insert_with(|| json!({}));
        fields[key] = node.to_json();
    }

    /// A key has no place in a suite.
    fn literal_key(&mut self, node: &Node, config: &Node) {
        let Some(written) = node.as_str() else { return };
        match self.env.told(written) {
            Told::Variable(name) => self.backend.api_key_env = Some(name),
            Told::Unknown(name) => {
                let what = format!("`apiKey` with `{name}` and something else in it");
                self.context.lost(
                    node,
                    what,
                    "put the whole key into a variable, and name it with `api_key_env`",
                );
            }
            Told::Text(key) => {
                let address = ADDRESSES.iter().find_map(|it| text(config, it));
                if is_placeholder(&key) && address.as_deref().is_some_and(is_here) {
                    let what = "`apiKey` of a server on this machine is left out: it is no secret";
                    self.context.assumed(node, what, "name a variable with `api_key_env` if it is");
                    return;
                }
                // A vendor's usual variable is for the vendor's own servers.
                let usual = self.server.key.filter(|_| address.is_none()).map(ToOwned::to_owned);
                let name = usual.unwrap_or_else(|| {
                    // What is meant for one server is not sent to another.
                    let own = || variable(&self.backend.name, "api_key");
                    let place = (address.unwrap_or_default(), key.into_owned());
                    self.context.keys.entry(place).or_insert_with(own).clone()
                });
                let what = "the key of `apiKey` is not copied into the suite";
                self.context.assumed(node, what, format!("put it into the variable `{name}`"));
                self.backend.api_key_env = Some(name);
            }
        }
    }

    fn headers(&mut self, node: &Node) {
        for entry in node.entries() {
            let value = text(node, &entry.key).unwrap_or_default();
            self.header(&entry.key, &value, &entry.key_span);
        }
    }

    fn header(&mut self, header: &str, value: &str, span: &Range<usize>) {
        let name = match self.env.told(value) {
            Told::Variable(name) => name,
            Told::Text(_) | Told::Unknown(_) => {
                let name = variable(&self.backend.name, header);
                let at = self.context.source.at(span);
                let what = format!("the header `{header}` takes its value from a variable");
                let shown = match names_key(header) {
                    true => String::new(),
                    false => format!(" with the value `{value}`"),
                };
                let advice = format!("set the variable `{name}`{shown}");
                self.context.notes.assumed(at, what, advice);
                name
            }
        };
        self.backend.headers_env.insert(header.to_owned(), name);
    }

    /// The token of Cloudflare's gateway, which a header carries.
    fn gateway_token(&mut self, key: &str, node: &Node) {
        let written = node.as_str().unwrap_or_default();
        let name = match (key, self.env.told(written)) {
            ("cfAigTokenEnvar", _) => written.to_owned(),
            (_, Told::Variable(name)) => name,
            (_, Told::Text(_) | Told::Unknown(_)) => "CF_AIG_TOKEN".to_owned(),
        };
        let what = "the token of the gateway takes the whole value of its header from a variable";
        self.context.assumed(node, what, format!("put `Bearer TOKEN` into `{name}`"));
        self.backend.headers_env.insert("cf-aig-authorization".to_owned(), name);
    }

    fn extra(&mut self, key: &str, node: &Node) {
        let Some(value) = self.loaded(node) else { return };
        self.backend.extra_body.insert(key.to_owned(), value);
    }

    /// Fields that are put into requests as they are.
    fn passthrough(&mut self, key: &str, node: &Node) {
        for entry in node.entries() {
            let is_model = entry.key == "model";
            if is_model {
                self.backend.model = text(node, "model");
            } else if !self.sampling(&entry.key, &entry.node, node) {
                match key {
                    "passthrough" => self.extra(&entry.key, &entry.node),
                    outer => {
                        let fields =
                            self.backend.extra_body.entry(outer).or_insert_with(|| json!({}));
                        fields[entry.key.as_str()] = entry.node.to_json();
                    }
                }
            }
        }
    }

    /// A value, or that of the file that it names. Nothing fills in templates there.
    fn loaded(&mut self, node: &Node) -> Option<Value> {
        let value = self.read(node)?;
        let mut is_whole = true;
        let value = self.filled(value, &mut is_whole);
        if !is_whole {
            let what = format!("a variable in the `config` of the provider `{}`", self.provider.id);
            self.context.lost(node, what, "write the value out");
            return None;
        }
        Some(value)
    }

    fn filled(&self, value: Value, is_whole: &mut bool) -> Value {
        match value {
            Value::String(text) => match self.env.told(&text) {
                Told::Text(told) => {
                    *is_whole &= !told.contains("{{");
                    Value::from(told.into_owned())
                }
                Told::Variable(_) | Told::Unknown(_) => {
                    *is_whole = false;
                    Value::Null
                }
            },
            Value::Array(items) => items.into_iter().map(|it| self.filled(it, is_whole)).collect(),
            Value::Object(map) => {
                let pairs = map.into_iter().map(|(key, it)| (key, self.filled(it, is_whole)));
                Value::Object(pairs.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn read(&mut self, node: &Node) -> Option<Value> {
        let name = node.as_str().and_then(|it| it.strip_prefix("file://"));
        match name {
            None => Some(with_files(node, self.context)),
            Some(name) if probity_load::function::is_code(name) => {
                let what = format!("`{name}` is code, which an import does not run");
                self.context.lost(node, what, "write what it makes into a file of JSON");
                None
            }
            Some(_) => Some(with_files(node, self.context)).filter(|it| !it.is_null()),
        }
    }

    fn response_format(&mut self, node: &Node) {
        // promptfoo does not send it there.
        if self.server.family == Family::Anthropic {
            return;
        }
        let Some(value) = self.loaded(node) else { return };
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        self.backend.response_format = match (kind, self.server.family) {
            ("json_object", _) => Some(ResponseFormat::Json),
            ("text", _) => None,
            ("json_schema", Family::Chat) => Some(ResponseFormat::Schema(Arc::new(value))),
            ("json_schema", _) => {
                let inner = value.pointer("/json_schema/schema").or_else(|| value.get("schema"));
                let inner = inner.cloned().unwrap_or_else(|| json!({}));
                Some(ResponseFormat::Schema(Arc::new(inner)))
            }
            (_, _) => ResponseFormat::from_value(value),
        };
    }

    /// A setting of answers that Anthropic has in a table of its own.
    fn output_config(&mut self, key: &str, value: Value) {
        let fields = self.backend.extra_body.entry("output_config").or_insert_with(|| json!({}));
        fields[key] = value;
    }

    fn schema(&mut self, node: &Node) {
        let Some(value) = self.loaded(node) else { return };
        if self.server.family == Family::Anthropic {
            return self.output_config("format", value);
        }
        let inner = value.get("schema").cloned().unwrap_or(value);
        // As text, it is JSON that is written out.
        let read = inner.as_str().and_then(|text| serde_json::from_str(text).ok());
        let inner = read.unwrap_or(inner);
        match ResponseFormat::from_value(inner) {
            Some(format) => self.backend.response_format = Some(format),
            None => self.context.lost(
                node,
                "a form of answers that is no JSON Schema",
                "write it as `response_format`",
            ),
        }
    }

    /// Where the server is.
    fn address(&mut self, config: Option<&Node>, node: &Node) {
        let Some(config) = config else { return };
        for (id, envar, usual) in ACCOUNT {
            let stated = text(config, id);
            let stated = stated.or_else(|| Some(format!("{{{{ env.{} }}}}", text(config, envar)?)));
            if let (Some(stated), Some(url)) = (stated, &mut self.backend.base_url) {
                *url = url.replace(&format!("{{{{ env.{usual} }}}}"), &stated);
            }
        }
        for key in ADDRESSES.iter().copied() {
            let Some(written) = text(config, key) else { continue };
            let value = match self.env.told(&written) {
                Told::Text(value) => value,
                Told::Variable(name) => format!("{{{{ env.{name} }}}}").into(),
                Told::Unknown(_) if template::names_only_env(&written) => written.as_str().into(),
                Told::Unknown(_) => {
                    let what = format!("`{key}: {written}` of the provider `{}`", self.provider.id);
                    let at = config.get(key).unwrap_or(node);
                    self.context.lost(at, what, "write the address as `base_url`");
                    continue;
                }
            };
            let is_host = key == "apiHost" && !value.contains("://");
            let base = match (is_host, self.server.kind) {
                (true, BackendKind::Azure) => format!("https://{value}"),
                (true, BackendKind::Anthropic | BackendKind::Gemini | BackendKind::Vertex) => {
                    format!("https://{value}")
                }
                (true, _) => format!("https://{value}/v1"),
                (false, _) if key == "workspaceUrl" => {
                    format!("{}/serving-endpoints", value.trim_end_matches('/'))
                }
                (false, _) => value.into_owned(),
            };
            let place = Place { backend: &self.backend.name, what: "the address under" };
            let base = place.url(&base, &config.span, self.context);
            let version =
                text(config, "apiVersion").filter(|_| self.server.kind == BackendKind::Azure);
            self.backend.base_url = Some(match version {
                Some(version) => format!("{base}?api-version={version}"),
                None => base,
            });
        }
        let region = text(config, "region").filter(|it| !it.contains("{{"));
        match (self.server.kind, region, text(config, "projectId")) {
            (BackendKind::Bedrock, Some(region), _) if self.backend.base_url.is_none() => {
                self.backend.base_url =
                    Some(format!("https://bedrock-runtime.{region}.amazonaws.com"));
            }
            (BackendKind::Vertex | BackendKind::VertexAnthropic, region, Some(project))
                if !project.contains("{{") =>
            {
                let region = region.unwrap_or_else(|| "us-central1".to_owned());
                let host = if region == "global" { String::new() } else { format!("{region}-") };
                self.backend.base_url = Some(format!(
                    "https://{host}aiplatform.googleapis.com/v1/projects/{project}/locations/{region}"
                ));
            }
            (BackendKind::Vertex | BackendKind::VertexAnthropic, Some(region), None) => {
                let advice = format!("set GOOGLE_CLOUD_LOCATION={region}");
                self.context.assumed(
                    config,
                    "the region of Vertex AI comes from a variable",
                    advice,
                );
            }
            (_, _, _) => {}
        }
    }
}
