//! The languages that servers speak, and the services that speak them.
//!
//! A dialect is one file with one [`DialectSpec`]. A service is one row of [`SERVICES`]: its
//! dialect, where it is, and which variable holds its key. Nothing else knows a vendor.

mod anthropic;
mod azure;
mod bedrock;
mod embeddings;
mod gemini;
mod ollama;
mod openai;
mod rerank;
mod responses;
mod vertex;

use std::borrow::Cow;

use data_encoding::BASE64;
use probity_core::{
    reply::{Reply, TokenLogprob},
    request::{
        Image, ImageFile, Message, Need, Request, ResponseFormat, Role, Sampling, ToolCall,
        ToolChoice, ToolResult,
    },
};
use probity_load::suite::BackendKind;
use serde_json::{Map, Value};

use super::stream::{Event, Framing};

pub(super) use embeddings::vector_in;

/// How a kind of server is spoken to.
#[derive(Debug)]
pub(super) struct DialectSpec {
    /// How a key is sent.
    pub(super) key_header: KeyHeader,
    /// Headers that every request has.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// A parameter that the address has unless it says something else: name and value.
    pub(super) parameter: Option<(&'static str, &'static str)>,
    /// The address that answers prompts, from an address without a query and the model.
    pub(super) endpoint: fn(&str, &str) -> String,
    /// The address of the list of models, from an address without a query.
    pub(super) models: fn(&str) -> String,
    /// The name of a model without what a server adds or leaves out.
    pub(super) bare_model: fn(&str) -> &str,
    /// A header that says which error an answer has, if the body does not.
    pub(super) error_header: Option<&'static str>,
    /// The longest reply where nothing is set, for those who want a number.
    pub(super) max_tokens: Option<u64>,
    /// The fields that are the same in every body, and the settings that have no place there.
    pub(super) fields: fn(&Wanted<'_>) -> Fields,
    /// What it has no words for.
    pub(super) lacks: &'static [Need],
    /// The body of a request.
    pub(super) encode: fn(&Map<String, Value>, &Request) -> Value,
    /// The reply in the body of an answer.
    pub(super) decode: fn(&[u8]) -> Result<Reply, Undecoded>,
    /// How a reply is read while it is written.
    pub(super) stream: StreamSpec,
}

/// How a reply is read while it is written.
#[derive(Debug)]
pub(super) struct StreamSpec {
    /// How its events are told apart.
    pub(super) framing: Framing,
    /// The address that answers in this way.
    pub(super) endpoint: fn(&str) -> String,
    /// Asks for it in a body, and for the count of tokens at the end where that has to be asked for.
    pub(super) ask: fn(&mut Map<String, Value>, bool),
    /// What puts the reply together.
    pub(super) open: fn() -> Box<dyn Assembly>,
}

impl StreamSpec {
    /// Asks with a field of its own, as most servers want it.
    fn by_field(fields: &mut Map<String, Value>, _with_usage: bool) {
        fields.insert("stream".to_owned(), Value::Bool(true));
    }
}

/// A reply that is put together from events.
pub(super) trait Assembly: Send {
    /// Takes in an event.
    fn take(&mut self, event: &Event) -> Result<Heard, Undecoded>;

    /// The reply, when the stream is at its end.
    fn finish(self: Box<Self>) -> Result<Reply, Undecoded>;
}

/// What an event of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A part of what the model writes.
    Token,
    /// Something else.
    Other,
    /// The last one.
    End,
}

impl Heard {
    /// Whether something was written.
    fn any(is_token: bool) -> Self {
        if is_token { Self::Token } else { Self::Other }
    }
}

/// How a key is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// In a header of this name.
    Named(&'static str),
}

/// What is wanted of a service, and what it calls that.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) sampling: Cow<'a, Sampling>,
    pub(super) response_format: Option<&'a ResponseFormat>,
    /// The field for the longest reply, where services of a dialect differ in it.
    pub(super) limit: &'static str,
    /// The field for the seed; none if the service has none.
    pub(super) seed: Option<&'static str>,
}

/// The fields of a body, and the settings that have no place in it.
pub(super) type Fields = (Map<String, Value>, Vec<&'static str>);

/// Why a body is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecoded {
    /// It reports an error, whatever the status says.
    Error,
    /// It is not what the server is documented to send.
    Shape(&'static str),
    /// It has nothing at this JSON Pointer.
    Nothing(String),
    /// It ends before its end.
    Cut,
}

/// A service: a dialect, and where it is spoken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) kind: BackendKind,
    pub(super) dialect: &'static DialectSpec,
    /// The same for embeddings; none if it makes none.
    pub(super) embeddings: Option<&'static DialectSpec>,
    /// The same to say how relevant texts are; none if it does not.
    pub(super) rerank: Option<&'static DialectSpec>,
    /// Where it usually is; empty where each user has an address of their own.
    pub(super) base_url: &'static str,
    /// The variables that may say where else it is, the usual one first.
    pub(super) base_variables: &'static [&'static str],
    /// The address that the values of these variables stand for.
    pub(super) address: fn(&[Option<String>]) -> Option<String>,
    /// The variables that may hold its key, the usual one first.
    pub(super) key_variables: &'static [&'static str],
    /// How requests are signed, if there is no key.
    pub(super) aws: Option<&'static str>,
    /// The hosts that are the vendor's own: only they get the key without being told so.
    /// `*.` stands for one or more labels, `.*.` for one.
    pub(super) hosts: &'static [&'static str],
    /// What the vendor itself calls the longest reply.
    pub(super) limit: &'static str,
    /// What it calls the seed.
    pub(super) seed: Option<&'static str>,
    /// Its section in the file of prices.
    pub(super) prices: &'static str,
    /// Whether it says itself what a call cost.
    pub(super) reports_cost: bool,
    /// Whether it can be asked to count tokens at the end of a stream, if it does not do so anyway.
    pub(super) stream_usage: bool,
    /// Whether it keeps to a JSON Schema that is sent along, whatever the model.
    pub(super) keeps_schemas: bool,
}

/// What services have in common that speak OpenAI's chat completions.
const COMPATIBLE: Service = Service {
    kind: BackendKind::Openai,
    dialect: &openai::SPEC,
    embeddings: Some(&embeddings::OPENAI),
    rerank: Some(&rerank::SPEC),
    base_url: "",
    base_variables: &[],
    address: with_scheme,
    key_variables: &[],
    aws: None,
    hosts: &[],
    limit: "max_tokens",
    seed: Some("seed"),
    prices: "",
    reports_cost: false,
    stream_usage: true,
    keeps_schemas: false,
};

/// What the services of Vertex AI have in common.
const VERTEX: Service = Service {
    embeddings: None,
    base_variables: &["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"],
    address: vertex::address,
    key_variables: &["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"],
    hosts: &["aiplatform.googleapis.com", "*-aiplatform.googleapis.com"],
    prices: "vertex",
    ..COMPATIBLE
};

/// Every service, by its kind.
pub(super) const SERVICES: &[Service] = &[
    Service {
        base_url: "https://api.openai.com/v1",
        base_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        hosts: &["api.openai.com"],
        // Its newer models refuse the older name, and other servers ignore the newer one.
        limit: "max_completion_tokens",
        prices: "openai",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::OpenaiResponses,
        keeps_schemas: true,
        dialect: &responses::SPEC,
        base_url: "https://api.openai.com/v1",
        base_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
        hosts: &["api.openai.com"],
        prices: "openai",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Azure,
        dialect: &azure::SPEC,
        embeddings: Some(&embeddings::AZURE),
        base_variables: &["AZURE_OPENAI_ENDPOINT"],
        key_variables: &["AZURE_OPENAI_API_KEY"],
        hosts: &["*.openai.azure.com", "*.cognitiveservices.azure.com"],
        limit: "max_completion_tokens",
        prices: "azure",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Anthropic,
        dialect: &anthropic::SPEC,
        embeddings: None,
        base_url: "https://api.anthropic.com",
        base_variables: &["ANTHROPIC_BASE_URL"],
        key_variables: &["ANTHROPIC_API_KEY"],
        hosts: &["api.anthropic.com"],
        seed: None,
        prices: "anthropic",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Gemini,
        keeps_schemas: true,
        dialect: &gemini::SPEC,
        embeddings: Some(&embeddings::GEMINI),
        rerank: None,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        base_variables: &["GOOGLE_GEMINI_BASE_URL"],
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        hosts: &["generativelanguage.googleapis.com"],
        prices: "gemini",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Vertex,
        dialect: &vertex::GEMINI,
        embeddings: Some(&embeddings::VERTEX),
        keeps_schemas: true,
        ..VERTEX
    },
    Service {
        kind: BackendKind::VertexAnthropic,
        dialect: &vertex::ANTHROPIC,
        seed: None,
        ..VERTEX
    },
    Service {
        kind: BackendKind::Bedrock,
        dialect: &bedrock::SPEC,
        embeddings: None,
        base_variables: &["AWS_REGION", "AWS_DEFAULT_REGION"],
        address: |stated| first(stated).map(bedrock::address),
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        aws: Some("bedrock"),
        hosts: &["bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com"],
        seed: None,
        prices: "bedrock",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Ollama,
        keeps_schemas: true,
        dialect: &ollama::SPEC,
        embeddings: Some(&embeddings::OLLAMA),
        base_url: "http://127.0.0.1:11434",
        base_variables: &["OLLAMA_HOST"],
        address: |stated| first(stated).map(ollama::address),
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Vllm,
        base_url: "http://127.0.0.1:8000/v1",
        keeps_schemas: true,
        ..COMPATIBLE
    },
    Service { kind: BackendKind::Mlx, base_url: "http://127.0.0.1:8080/v1", ..COMPATIBLE },
    Service { kind: BackendKind::Lmstudio, base_url: "http://127.0.0.1:1234/v1", ..COMPATIBLE },
    Service {
        kind: BackendKind::Llamacpp,
        base_url: "http://127.0.0.1:8080/v1",
        keeps_schemas: true,
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Openrouter,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
        hosts: &["openrouter.ai"],
        prices: "openrouter",
        reports_cost: true,
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Groq,
        base_url: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
        hosts: &["api.groq.com"],
        prices: "groq",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Mistral,
        base_url: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
        hosts: &["api.mistral.ai"],
        prices: "mistral",
        // It counts them in any case, and refuses fields that it does not know.
        stream_usage: false,
        seed: Some("random_seed"),
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Deepseek,
        base_url: "https://api.deepseek.com",
        key_variables: &["DEEPSEEK_API_KEY"],
        hosts: &["api.deepseek.com"],
        prices: "deepseek",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Together,
        base_url: "https://api.together.xyz/v1",
        key_variables: &["TOGETHER_API_KEY"],
        hosts: &["api.together.xyz"],
        prices: "together",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Fireworks,
        base_url: "https://api.fireworks.ai/inference/v1",
        key_variables: &["FIREWORKS_API_KEY"],
        hosts: &["api.fireworks.ai"],
        prices: "fireworks",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Xai,
        base_url: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
        hosts: &["api.x.ai"],
        prices: "xai",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Cerebras,
        base_url: "https://api.cerebras.ai/v1",
        key_variables: &["CEREBRAS_API_KEY"],
        hosts: &["api.cerebras.ai"],
        prices: "cerebras",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Perplexity,
        base_url: "https://api.perplexity.ai",
        key_variables: &["PERPLEXITY_API_KEY"],
        hosts: &["api.perplexity.ai"],
        prices: "perplexity",
        reports_cost: true,
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::Nvidia,
        base_url: "https://integrate.api.nvidia.com/v1",
        key_variables: &["NVIDIA_API_KEY"],
        hosts: &["integrate.api.nvidia.com"],
        prices: "nvidia",
        ..COMPATIBLE
    },
    Service {
        kind: BackendKind::GithubModels,
        base_url: "https://models.github.ai/inference",
        key_variables: &["GITHUB_TOKEN", "GH_TOKEN"],
        hosts: &["models.github.ai"],
        prices: "github-models",
        ..COMPATIBLE
    },
];

impl Service {
    /// The service of a kind of server.
    pub(super) fn of(kind: BackendKind) -> &'static Self {
        let found = SERVICES.iter().find(|it| it.kind == kind);
        found.expect("every kind of server has a row, as a test knows")
    }
}

/// The addresses of a server: where prompts go, and where its models are listed. A query
/// stays at the end.
pub(super) fn addresses(spec: &DialectSpec, base_url: &str, model: &str) -> (String, String) {
    let (base, query) = base_url.split_at(base_url.find('?').unwrap_or(base_url.len()));
    let mut query = query.trim_start_matches('?').to_owned();
    if let Some((name, value)) = spec.parameter
        && !query.split('&').any(|it| it.split('=').next() == Some(name))
    {
        let and = if query.is_empty() { "" } else { "&" };
        query = format!("{query}{and}{name}={value}");
    }
    let with_query = |path: String| match (query.as_str(), path.contains('?')) {
        ("", _) => path,
        (query, true) => format!("{path}&{query}"),
        (query, false) => format!("{path}?{query}"),
    };
    let base = base.trim_end_matches('/');
    (with_query((spec.endpoint)(base, model)), with_query((spec.models)(base)))
}

/// An address without its tail: people copy the whole address, too.
fn without_tail<'a>(base: &'a str, tail: &str) -> &'a str {
    base.strip_suffix(tail).unwrap_or(base)
}

/// An address as people put it into variables, with or without a scheme.
fn with_scheme(stated: &[Option<String>]) -> Option<String> {
    let value = first(stated)?;
    Some(match value.contains("://") {
        true => value.to_owned(),
        false => format!("http://{value}"),
    })
}

/// The first value that is stated.
fn first(stated: &[Option<String>]) -> Option<&str> {
    stated.iter().flatten().next().map(String::as_str)
}

/// The name of a model as it is.
fn same(name: &str) -> &str {
    name
}

/// A number of tokens. What is no such number is left out, and the reply is kept.
pub(super) fn count(value: Option<Value>) -> Option<u64> {
    const MOST: f64 = 1e12;
    let number = value?.as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    (0.0..MOST).contains(&number).then_some(number as u64)
}

/// How likely tokens were, as OpenAI and others list it. What is no such list is left out, and the
/// reply is kept.
fn tokens(list: &Value) -> Vec<TokenLogprob> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let token = |it: &Value| {
        let token = it.get("token")?.as_str()?.to_owned();
        Some(TokenLogprob { token, logprob: it.get("logprob")?.as_f64()? })
    };
    items.iter().filter_map(token).collect()
}

/// Puts what is set into a body.
fn put<T: Into<Value>>(fields: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}

/// An image as a URL that holds it, where it is sent along.
fn image_url(image: &Image) -> Cow<'_, str> {
    match image {
        Image::Url(url) => Cow::Borrowed(url),
        Image::File(file) => format!("data:{};base64,{}", file.kind, base64(file)).into(),
    }
}

/// The bytes of an image as text. Only a record that was read back has none, and is not sent.
fn base64(file: &ImageFile) -> String {
    BASE64.encode(file.data.as_deref().unwrap_or_default())
}

/// Whether tools may be called at all.
fn may_call(request: &Request) -> bool {
    !request.tools.is_empty() && request.tool_choice != Some(ToolChoice::None)
}

fn some_list(list: &[String]) -> Option<Value> {
    (!list.is_empty()).then(|| Value::from(list))
}

/// The settings that are set and cannot be told.
fn not_applied(settings: &[(&'static str, bool)]) -> Vec<&'static str> {
    settings.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect()
}

/// How OpenAI and Ollama write what their messages have in common.
struct Chat {
    /// A message without the tools that it calls.
    message: fn(&Message) -> Value,
    call: fn(&ToolCall) -> Value,
    /// The result of a tool, which is a message of its own.
    result: fn(&ToolResult) -> Value,
}

impl Chat {
    /// A body with the conversation.
    fn body(&self, fields: &Map<String, Value>, request: &Request) -> Map<String, Value> {
        let mut body = fields.clone();
        let messages = request.messages.iter().flat_map(|it| self.messages(it)).collect();
        body.insert("messages".to_owned(), Value::Array(messages));
        body
    }

    fn messages(&self, said: &Message) -> Vec<Value> {
        let results: Vec<Value> = said.tool_results().map(self.result).collect();
        if said.role == Role::Tool && !results.is_empty() {
            return results;
        }
        let mut message = (self.message)(said);
        let calls: Vec<Value> = said.tool_calls().map(self.call).collect();
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        vec![message]
    }
}

/// The conversation as OpenAI writes it, which is what most people know.
pub(super) fn chat_messages(request: &Request) -> Value {
    request.messages.iter().flat_map(|it| openai::CHAT.messages(it)).collect()
}

/// The tools in the same way; null if there are none.
pub(super) fn chat_tools(request: &Request) -> Value {
    match request.tools.is_empty() {
        true => Value::Null,
        false => openai::tools(&request.tools),
    }
}

/// Adds fields, also to the objects that are there already.
pub(super) fn merge(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            (_, _) => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Who speaks, where a vendor knows nobody but the user and the model.
const fn is_model(role: Role) -> bool {
    match role {
        Role::Assistant => true,
        Role::System | Role::User | Role::Tool => false,
    }
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
