//! What an id of a provider means.

use std::borrow::Cow;

use probity_load::suite::BackendKind;

use super::{
    adapted::{self, Adapted},
    hosted::Hosted,
};

/// What a provider is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Embeddings, wherever they come from.
    Embeddings,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Bedrock.
    Bedrock,
    /// Ollama.
    Ollama,
}

/// A provider that becomes a backend of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) kind: BackendKind,
    pub(super) family: Family,
    pub(super) model: String,
    /// Where it is, if that is not where the kind usually is.
    pub(super) base_url: Option<Cow<'static, str>>,
    /// The variable with the key, if that is not the usual one of the kind.
    pub(super) key: Option<&'static str>,
    /// What is not quite as in promptfoo.
    pub(super) remark: Option<&'static str>,
}

/// What an id means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Server(Server),
    Http(Option<String>),
    Webhook(String),
    Hosted(Hosted),
    Adapted(Adapted),
    Exec(String),
    Python(String),
    Script(String),
    Echo,
    /// A file with providers.
    File(String),
    /// Something that no backend can be, and why.
    Foreign(&'static str),
    Unknown,
}

/// Services with OpenAI's chat completions that Probity has no kind for: the prefix, the address, the
/// variable with the key.
const COMPATIBLE: &[(&str, &str, &str)] = &[
    ("ai21", "https://api.ai21.com/studio/v1", "AI21_API_KEY"),
    ("alibaba", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("alicloud", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("aliyun", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
    ("abliteration", "https://api.abliteration.ai/v1", "ABLIT_KEY"),
    ("atlascloud", "https://api.atlascloud.ai/v1", "ATLASCLOUD_API_KEY"),
    ("novita", "https://api.novita.ai/openai/v1", "NOVITA_API_KEY"),
    ("docker", "http://localhost:12434/engines/v1", ""),
    ("helicone", "http://localhost:8080/ai", ""),
    ("hyperbolic", "https://api.hyperbolic.xyz/v1", "HYPERBOLIC_API_KEY"),
    ("litellm", "http://0.0.0.0:4000", "LITELLM_API_KEY"),
    ("localai", "http://localhost:8080/v1", ""),
    ("meta", "https://api.meta.ai/v1", "META_API_KEY"),
    ("minimax", "https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    ("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    ("nscale", "https://inference.api.nscale.com/v1", "NSCALE_SERVICE_TOKEN"),
    ("orcarouter", "https://api.orcarouter.ai/v1", "ORCAROUTER_API_KEY"),
    ("truefoundry", "https://llm-gateway.truefoundry.com", "TRUEFOUNDRY_API_KEY"),
    ("llamaapi", "https://api.llama.com/compat/v1", "LLAMA_API_KEY"),
    ("aimlapi", "https://api.aimlapi.com/v1", "AIML_API_KEY"),
    ("cometapi", "https://api.cometapi.com/v1", "COMETAPI_KEY"),
    ("voyage", "https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
    ("vercel", "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY"),
    ("cohere", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY"),
    ("databricks", "", "DATABRICKS_TOKEN"),
    ("envoy", "", ""),
    ("f5", "", ""),
    ("mlflow-gateway", "", ""),
];

/// Cloudflare's own models, and its gateway to those of others.
const WORKERS: &str =
    "https://api.cloudflare.com/client/v4/accounts/{{ env.CLOUDFLARE_ACCOUNT_ID }}/ai/v1";
const GATEWAY: &str = "https://gateway.ai.cloudflare.com/v1/{{ env.CLOUDFLARE_ACCOUNT_ID }}/{{ env.CLOUDFLARE_GATEWAY_ID }}";
/// Services with OpenAI's chat completions behind that gateway, and the variables with their keys.
const BEHIND_GATEWAY: &[(&str, &str)] = &[
    ("groq", "GROQ_API_KEY"),
    ("perplexity-ai", "PERPLEXITY_API_KEY"),
    ("mistral", "MISTRAL_API_KEY"),
    ("grok", "XAI_API_KEY"),
];

/// Services that Probity has a kind for, by promptfoo's prefix.
const KINDS: &[(&str, BackendKind)] = &[
    ("openrouter", BackendKind::Openrouter),
    ("groq", BackendKind::Groq),
    ("mistral", BackendKind::Mistral),
    ("deepseek", BackendKind::Deepseek),
    ("togetherai", BackendKind::Together),
    ("fireworks", BackendKind::Fireworks),
    ("xai", BackendKind::Xai),
    ("cerebras", BackendKind::Cerebras),
    ("perplexity", BackendKind::Perplexity),
    ("nvidia", BackendKind::Nvidia),
    ("github", BackendKind::GithubModels),
];

/// Prefixes of what no backend can be.
const FOREIGN: &[(&str, &str)] = &[
    ("anthropic:claude-agent-sdk", "an agent SDK"),
    ("anthropic:claude-code", "an agent SDK"),
    ("openai:codex", "an agent SDK"),
    ("openai:agents", "an agent SDK"),
    ("openai:chatkit", "an agent SDK"),
    ("openai:assistant", "OpenAI's assistants"),
    ("openai:image", "images"),
    ("openai:video", "video"),
    ("openai:realtime", "speech"),
    ("openai:transcription", "speech"),
    ("openai:tts", "speech"),
    ("openai:speech", "speech"),
    ("openai:moderation", "moderation"),
    ("azure:foundry-agent", "an agent of Azure"),
    ("azure:image", "images"),
    ("azure:video", "video"),
    ("azure:realtime", "speech"),
    ("azure:moderation", "moderation"),
    ("google:image", "images"),
    ("google:video", "video"),
    ("google:live", "a stream of speech and video"),
    ("vertex:video", "video"),
    ("bedrock:video", "video"),
    ("bedrock:image", "images"),
    ("bedrock:agents", "an agent of Bedrock"),
    ("bedrock:kb", "a knowledge base of Bedrock"),
    ("bedrock-agent", "an agent of Bedrock"),
    ("sagemaker:embedding", "embeddings in a language of their own"),
    ("replicate:image", "images"),
    ("replicate:moderation", "moderation"),
    ("nscale:image", "images"),
    ("snowflake", "Snowflake"),
    ("transformers", "models within the process"),
    ("elevenlabs", "speech"),
    ("fal", "images"),
    ("quiverai", "images"),
    ("modelslab", "images"),
    ("hyperbolic:image", "images"),
    ("hyperbolic:audio", "speech"),
    ("xai:image", "images"),
    ("xai:video", "video"),
    ("xai:voice", "speech"),
    ("opencode", "an agent SDK"),
    ("openinterpreter", "an agent"),
    ("openclaw", "an agent"),
    ("a2a", "an agent protocol"),
    ("promptfoo:", "a service of promptfoo"),
    ("agentic:", "a service of promptfoo"),
    ("sequence", "a sequence of prompts"),
    ("golang:", "a program in Go"),
    ("ruby:", "a program in Ruby"),
    ("bam:", "a service that has ended"),
    ("palm:", "a service that has ended"),
    ("cloudflare-ai:completion", "completions in a language of their own"),
    ("cloudflare-ai:embedding", "embeddings in a language of their own"),
    ("cloudera", "an address of your own account"),
    ("portkey", "a gateway that needs headers of its own"),
    ("jfrog", "an address of your own account"),
    ("qwak", "an address of your own account"),
];

/// What an id means.
pub(super) fn meaning(id: &str) -> Meaning {
    let id = id.trim();
    if let Some(found) = of_code(id) {
        return found;
    }
    if let Some(adapted) = adapted::meant(id) {
        return Meaning::Adapted(adapted);
    }
    let (first, rest) = id.split_once(':').unwrap_or((id, ""));
    let is_prefix = |prefix: &str| {
        id.strip_prefix(prefix).is_some_and(|rest| {
            prefix.ends_with(':') || rest.is_empty() || rest.starts_with([':', '-'])
        })
    };
    if let Some((_, why)) = FOREIGN.iter().find(|(prefix, _)| is_prefix(prefix)) {
        return Meaning::Foreign(why);
    }
    let server = match first {
        "openai" => openai(rest),
        "azure" | "azureopenai" => azure(rest),
        "anthropic" => of(BackendKind::Anthropic, Family::Anthropic, without(rest, &["messages"])),
        "google" if rest.contains("-image") => return Meaning::Foreign("images"),
        "google" => google(rest),
        "vertex" => vertex(rest),
        "bedrock" => bedrock(rest),
        "ollama" => ollama(rest),
        "replicate" => return Meaning::Hosted(Hosted::Replicate(rest.to_owned())),
        "n8n" => {
            let url = Some(rest.to_owned()).filter(|it| !it.is_empty());
            return Meaning::Hosted(Hosted::N8n(url));
        }
        "sagemaker" => return Meaning::Hosted(Hosted::SageMaker(rest.to_owned())),
        "cloudflare-ai" => Server {
            base_url: Some(Cow::Borrowed(WORKERS)),
            key: Some("CLOUDFLARE_API_KEY"),
            ..of(BackendKind::Openai, Family::Chat, without(rest, &["chat"]))
        },
        "cloudflare-gateway" => match gateway(rest) {
            Some(server) => server,
            None => return Meaning::Foreign("a service behind a gateway with another language"),
        },
        "llama" => Server {
            remark: Some("the model is asked through the chat API of llama.cpp"),
            ..of(BackendKind::Llamacpp, Family::Chat, rest)
        },
        "huggingface" | "hf" => match rest.strip_prefix("chat:") {
            Some(model) => compatible("https://router.huggingface.co/v1", "HF_TOKEN", model),
            None if rest.starts_with("text-generation:") => {
                let model = without(rest, &["text-generation"]).to_owned();
                return Meaning::Hosted(Hosted::TextGeneration(model));
            }
            None => return Meaning::Foreign("a task of Hugging Face that is no chat"),
        },
        "voyage" => {
            let known = service(first, rest).map(|it| Server { family: Family::Embeddings, ..it });
            known.unwrap_or_else(|| of(BackendKind::Openai, Family::Embeddings, rest))
        }
        _ => match service(first, rest) {
            Some(server) => server,
            None => return Meaning::Unknown,
        },
    };
    Meaning::Server(server)
}

/// Functions, programs and servers of the user's own.
fn of_code(id: &str) -> Option<Meaning> {
    if id == "echo" {
        return Some(Meaning::Echo);
    }
    if let Some(command) = id.strip_prefix("exec:") {
        return Some(Meaning::Exec(command.trim().to_owned()));
    }
    if let Some(file) = id.strip_prefix("python:") {
        return Some(Meaning::Python(file.strip_prefix("file://").unwrap_or(file).to_owned()));
    }
    if let Some(url) = id.strip_prefix("webhook:") {
        return Some(Meaning::Webhook(url.to_owned()));
    }
    if matches!(id, "http" | "https") {
        return Some(Meaning::Http(None));
    }
    if id.starts_with("http:") || id.starts_with("https:") {
        return Some(Meaning::Http(Some(id.to_owned())));
    }
    let path = id.strip_prefix("file://").unwrap_or(id);
    let (file, _) = probity_load::function::split_name(path);
    let suffix = file.rsplit_once('.').map_or("", |it| it.1);
    match suffix {
        "py" => Some(Meaning::Python(path.to_owned())),
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => Some(Meaning::Script(path.to_owned())),
        "yaml" | "yml" | "json" if id.starts_with("file://") => {
            Some(Meaning::File(path.to_owned()))
        }
        "go" if id.starts_with("file://") => Some(Meaning::Foreign("a program in Go")),
        "rb" if id.starts_with("file://") => Some(Meaning::Foreign("a program in Ruby")),
        _ => None,
    }
}

fn of(kind: BackendKind, family: Family, model: &str) -> Server {
    Server { kind, family, model: model.to_owned(), base_url: None, key: None, remark: None }
}

fn compatible(base_url: &'static str, key: &'static str, model: &str) -> Server {
    let some = |text: &'static str| (!text.is_empty()).then_some(text);
    Server {
        base_url: some(base_url).map(Cow::Borrowed),
        key: some(key),
        ..of(BackendKind::Openai, Family::Chat, model)
    }
}

/// A model without the name of the interface before it.
fn without<'m>(model: &'m str, names: &[&str]) -> &'m str {
    let stripped = names.iter().find_map(|name| model.strip_prefix(name)?.strip_prefix(':'));
    stripped.unwrap_or(model)
}

/// The model of embeddings.
fn embedded(rest: &str) -> Option<&str> {
    rest.strip_prefix("embedding:").or_else(|| rest.strip_prefix("embeddings:"))
}

fn openai(rest: &str) -> Server {
    if let Some(model) = embedded(rest) {
        return of(BackendKind::Openai, Family::Embeddings, model);
    }
    if let Some(model) = rest.strip_prefix("responses:") {
        return of(BackendKind::OpenaiResponses, Family::Responses, model);
    }
    match rest.strip_prefix("completion:") {
        Some(model) => Server {
            remark: Some("the model is asked through chat completions, not through completions"),
            ..of(BackendKind::Openai, Family::Chat, model)
        },
        None if rest == "chat" || rest.is_empty() => {
            of(BackendKind::Openai, Family::Chat, "gpt-4.1-2025-04-14")
        }
        None => of(BackendKind::Openai, Family::Chat, without(rest, &["chat"])),
    }
}

fn azure(rest: &str) -> Server {
    if let Some(model) = embedded(rest) {
        return of(BackendKind::Azure, Family::Embeddings, model);
    }
    let model = without(rest, &["chat", "completion", "responses"]);
    let remark =
        (!rest.starts_with("chat:")).then_some("the deployment is asked through chat completions");
    Server { remark, ..of(BackendKind::Azure, Family::Chat, model) }
}

fn google(rest: &str) -> Server {
    match embedded(rest) {
        Some(model) => of(BackendKind::Gemini, Family::Embeddings, model),
        None => of(BackendKind::Gemini, Family::Gemini, rest),
    }
}

fn vertex(rest: &str) -> Server {
    let model = without(rest, &["chat"]);
    match (embedded(rest), model.starts_with("claude")) {
        (Some(model), _) => of(BackendKind::Vertex, Family::Embeddings, model),
        (None, true) => of(BackendKind::VertexAnthropic, Family::Anthropic, model),
        (None, false) => of(BackendKind::Vertex, Family::Gemini, model),
    }
}

fn bedrock(rest: &str) -> Server {
    match embedded(rest) {
        Some(model) => of(BackendKind::Bedrock, Family::Embeddings, model),
        None => {
            of(BackendKind::Bedrock, Family::Bedrock, without(rest, &["converse", "completion"]))
        }
    }
}

fn ollama(rest: &str) -> Server {
    match embedded(rest) {
        Some(model) => of(BackendKind::Ollama, Family::Embeddings, model),
        None => of(BackendKind::Ollama, Family::Ollama, without(rest, &["chat", "completion"])),
    }
}

/// A service behind Cloudflare's gateway.
fn gateway(rest: &str) -> Option<Server> {
    let (service, model) = rest.split_once(':')?;
    let server = match service {
        "anthropic" => of(BackendKind::Anthropic, Family::Anthropic, model),
        "openai" => of(BackendKind::Openai, Family::Chat, model),
        _ => {
            let (_, key) = BEHIND_GATEWAY.iter().find(|(name, _)| *name == service)?;
            compatible("", key, model)
        }
    };
    let usual = if service == "anthropic" { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
    let key = server.key.unwrap_or(usual);
    let base_url = Some(Cow::Owned(format!("{GATEWAY}/{service}")));
    Some(Server { base_url, key: Some(key), ..server })
}

/// A service that speaks OpenAI's chat completions.
fn service(first: &str, rest: &str) -> Option<Server> {
    let model = without(rest, &["chat", "completion", "responses"]);
    let remark =
        rest.starts_with("responses:").then_some("the model is asked through chat completions");
    let known = KINDS.iter().find(|(prefix, _)| *prefix == first);
    let server = match known {
        Some((_, kind)) => of(*kind, Family::Chat, model),
        None => {
            let (_, base_url, key) = COMPATIBLE.iter().find(|(prefix, ..)| *prefix == first)?;
            compatible(base_url, key, model)
        }
    };
    match embedded(rest) {
        Some(model) => {
            Some(Server { family: Family::Embeddings, model: model.to_owned(), ..server })
        }
        None => Some(Server { remark, ..server }),
    }
}

/// Whether a model reasons before it answers, so that promptfoo sends neither temperature nor `max_tokens`.
pub(in crate::promptfoo) fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    ["o1", "o3", "o4", "gpt-5"].iter().any(|it| name.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_say_who_is_meant() {
        let shown = |id: &str| match meaning(id) {
            Meaning::Server(Server { kind, model, base_url, .. }) => {
                format!("{} {model} {}", kind.as_str(), base_url.unwrap_or(Cow::Borrowed("-")))
            }
            Meaning::Http(_)
            | Meaning::Webhook(_)
            | Meaning::Hosted(_)
            | Meaning::Adapted(_)
            | Meaning::Exec(_)
            | Meaning::Python(_)
            | Meaning::Script(_)
            | Meaning::Echo
            | Meaning::File(_)
            | Meaning::Foreign(_)
            | Meaning::Unknown => format!("{:?}", meaning(id)),
        };
        let told: Vec<String> = [
            "openai:gpt-4o",
            "openai:chat:ft:gpt-4o:org",
            "openai:responses:gpt-5",
            "openai:codex-sdk",
            "azure:chat:mine",
            "anthropic:messages:claude-sonnet-4-5",
            "anthropic:claude-agent-sdk",
            "vertex:claude-3-5-sonnet@20240620",
            "bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0",
            "bedrock:converse:amazon.nova-lite-v1:0",
            "ollama:chat:llama3.2:1b",
            "moonshot:kimi-k2",
            "groq:llama-3.3-70b",
            "http",
            "https://app.example/chat",
            "file://provider.py:call",
            "provider.mjs",
            "file://providers.yaml",
            "exec:./run.sh a",
            "nobody:model",
            "ws://a",
            "replicate:meta/llama-4",
            "replicate:image:x/y",
            "sagemaker:llama:mine",
            "n8n:https://flow.example/webhook/1",
            "huggingface:text-generation:gpt2",
            "cloudflare-ai:chat:@cf/meta/llama-3",
            "cloudflare-gateway:groq:llama-3",
            "voyage:voyage-3",
        ]
        .into_iter()
        .map(|id| format!("{id} = {}", shown(id)))
        .collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        openai:gpt-4o = openai gpt-4o -
        openai:chat:ft:gpt-4o:org = openai ft:gpt-4o:org -
        openai:responses:gpt-5 = openai-responses gpt-5 -
        openai:codex-sdk = Foreign("an agent SDK")
        azure:chat:mine = azure mine -
        anthropic:messages:claude-sonnet-4-5 = anthropic claude-sonnet-4-5 -
        anthropic:claude-agent-sdk = Foreign("an agent SDK")
        vertex:claude-3-5-sonnet@20240620 = vertex-anthropic claude-3-5-sonnet@20240620 -
        bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0 = bedrock us.anthropic.claude-sonnet-4-20250514-v1:0 -
        bedrock:converse:amazon.nova-lite-v1:0 = bedrock amazon.nova-lite-v1:0 -
        ollama:chat:llama3.2:1b = ollama llama3.2:1b -
        moonshot:kimi-k2 = openai kimi-k2 https://api.moonshot.ai/v1
        groq:llama-3.3-70b = groq llama-3.3-70b -
        http = Http(None)
        https://app.example/chat = Http(Some("https://app.example/chat"))
        file://provider.py:call = Python("provider.py:call")
        provider.mjs = Script("provider.mjs")
        file://providers.yaml = File("providers.yaml")
        exec:./run.sh a = Exec("./run.sh a")
        nobody:model = Unknown
        ws://a = Adapted(Adapted { adapter: "websocket.mjs", fields: [("url", "ws://a")], env: [] })
        replicate:meta/llama-4 = Hosted(Replicate("meta/llama-4"))
        replicate:image:x/y = Foreign("images")
        sagemaker:llama:mine = Hosted(SageMaker("llama:mine"))
        n8n:https://flow.example/webhook/1 = Hosted(N8n(Some("https://flow.example/webhook/1")))
        huggingface:text-generation:gpt2 = Hosted(TextGeneration("gpt2"))
        cloudflare-ai:chat:@cf/meta/llama-3 = openai @cf/meta/llama-3 https://api.cloudflare.com/client/v4/accounts/{{ env.CLOUDFLARE_ACCOUNT_ID }}/ai/v1
        cloudflare-gateway:groq:llama-3 = openai llama-3 https://gateway.ai.cloudflare.com/v1/{{ env.CLOUDFLARE_ACCOUNT_ID }}/{{ env.CLOUDFLARE_GATEWAY_ID }}/groq
        voyage:voyage-3 = openai voyage-3 https://api.voyageai.com/v1
        "#);
    }
}
