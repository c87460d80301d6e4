//! Our backends as promptfoo's providers.

use probity_core::request::Sampling;
use probity_load::suite::{BackendConfig, BackendKind};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A provider.
#[derive(Debug, Serialize)]
pub(super) struct Provider {
    pub(super) id: String,
    pub(super) label: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) config: Map<String, Value>,
}

/// The provider that asks the same model; none if promptfoo has none that does.
pub(super) fn of(backend: &BackendConfig) -> Option<Provider> {
    let prefix = prefix(backend.kind)?;
    let model = backend.model.as_deref().unwrap_or_default();
    let id = match prefix.ends_with(':') {
        true => format!("{prefix}{model}"),
        false => prefix.to_owned(),
    };
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            config.insert(name.to_owned(), value);
        }
    };
    let base_url = backend.base_url.as_deref().or_else(|| usual_address(backend.kind));
    set("apiBaseUrl", json!(base_url));
    set("apiKeyEnvar", json!(backend.api_key_env));
    let Sampling { temperature, top_p, max_tokens, seed, stop, .. } = &backend.sampling;
    let Sampling { presence_penalty, frequency_penalty, .. } = &backend.sampling;
    set("temperature", json!(temperature));
    set("top_p", json!(top_p));
    set("max_tokens", json!(max_tokens));
    set("seed", json!(seed));
    set("presence_penalty", json!(presence_penalty));
    set("frequency_penalty", json!(frequency_penalty));
    if !stop.is_empty() {
        set("stop", json!(stop));
    }
    Some(Provider { id, label: backend.name.clone(), config })
}

/// What ids of providers begin with that are of a kind.
const fn prefix(kind: BackendKind) -> Option<&'static str> {
    match kind {
        BackendKind::Openai
        | BackendKind::Vllm
        | BackendKind::Mlx
        | BackendKind::Lmstudio
        | BackendKind::Llamacpp
        | BackendKind::Nvidia => Some("openai:chat:"),
        BackendKind::OpenaiResponses => Some("openai:responses:"),
        BackendKind::Azure => Some("azure:chat:"),
        BackendKind::Anthropic => Some("anthropic:messages:"),
        BackendKind::Gemini => Some("google:"),
        BackendKind::Vertex | BackendKind::VertexAnthropic => Some("vertex:"),
        BackendKind::Bedrock => Some("bedrock:converse:"),
        BackendKind::Ollama => Some("ollama:chat:"),
        BackendKind::Openrouter => Some("openrouter:"),
        BackendKind::Groq => Some("groq:"),
        BackendKind::Mistral => Some("mistral:"),
        BackendKind::Deepseek => Some("deepseek:"),
        BackendKind::Together => Some("togetherai:"),
        BackendKind::Fireworks => Some("fireworks:"),
        BackendKind::Xai => Some("xai:"),
        BackendKind::Cerebras => Some("cerebras:"),
        BackendKind::Perplexity => Some("perplexity:"),
        BackendKind::GithubModels => Some("github:"),
        BackendKind::Echo => Some("echo"),
        BackendKind::Http
        | BackendKind::Claude
        | BackendKind::Codex
        | BackendKind::Copilot
        | BackendKind::Command
        | BackendKind::Python
        | BackendKind::Node
        | BackendKind::Embedded
        | BackendKind::Replay => None,
    }
}

/// Where servers are that promptfoo does not know by itself.
const ADDRESSES: [(BackendKind, &str); 5] = [
    (BackendKind::Vllm, "http://127.0.0.1:8000/v1"),
    (BackendKind::Mlx, "http://127.0.0.1:8080/v1"),
    (BackendKind::Llamacpp, "http://127.0.0.1:8080/v1"),
    (BackendKind::Lmstudio, "http://127.0.0.1:1234/v1"),
    (BackendKind::Nvidia, "https://integrate.api.nvidia.com/v1"),
];

fn usual_address(kind: BackendKind) -> Option<&'static str> {
    ADDRESSES.iter().find(|(it, _)| *it == kind).map(|(_, address)| *address)
}
