//! Backends: what can be asked.

mod custom;
mod embedded;
mod keys;
mod sandboxed;

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::{
    case::{Fields, Findings},
    settings::parse_duration,
    template,
};
use probity_core::{
    located::Node,
    request::{ResponseFormat, Sampling},
};

pub use custom::{CustomBody, CustomHttp, Method, UsagePointers};
pub use embedded::EmbeddedModel;
pub(super) use keys::{KEY_IN_FILE, may_hold_key};
use keys::{is_key, refuse_keys};
pub use sandboxed::{HostPort, SandboxedProgram};

macro_rules! backend_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal, $way:ident, $needs:expr;)+) => {
        /// The kinds of backends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum BackendKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl BackendKind {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name used in files.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// How it is asked.
            pub const fn way(self) -> Way {
                match self {
                    $(Self::$variant => Way::$way,)+
                }
            }

            /// The field that it cannot do without.
            pub const fn needs(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $needs,)+
                }
            }
        }
    };
}

backend_kinds! {
    /// Any server that speaks OpenAI's chat completions.
    Openai => "openai", Server, Some("model");
    /// OpenAI's responses.
    OpenaiResponses => "openai-responses", Server, Some("model");
    /// OpenAI's chat completions at Azure. The model is the name of a deployment.
    Azure => "azure", Server, Some("model");
    /// Anthropic's messages.
    Anthropic => "anthropic", Server, Some("model");
    /// Google's Gemini.
    Gemini => "gemini", Server, Some("model");
    /// Gemini at Vertex AI.
    Vertex => "vertex", Server, Some("model");
    /// Anthropic's messages at Vertex AI.
    VertexAnthropic => "vertex-anthropic", Server, Some("model");
    /// Amazon Bedrock's `Converse`.
    Bedrock => "bedrock", Server, Some("model");
    /// Ollama's own interface.
    Ollama => "ollama", Server, Some("model");
    /// `openai`, where vLLM listens.
    Vllm => "vllm", Server, None;
    /// `openai`, where MLX's server listens.
    Mlx => "mlx", Server, None;
    /// `openai`, where LM Studio listens.
    Lmstudio => "lmstudio", Server, None;
    /// `openai`, where llama.cpp's server listens.
    Llamacpp => "llamacpp", Server, None;
    /// `openai`, at `OpenRouter`.
    Openrouter => "openrouter", Server, Some("model");
    /// `openai`, at Groq.
    Groq => "groq", Server, Some("model");
    /// `openai`, at Mistral.
    Mistral => "mistral", Server, Some("model");
    /// `openai`, at `DeepSeek`.
    Deepseek => "deepseek", Server, Some("model");
    /// `openai`, at Together.
    Together => "together", Server, Some("model");
    /// `openai`, at Fireworks.
    Fireworks => "fireworks", Server, Some("model");
    /// `openai`, at xAI.
    Xai => "xai", Server, Some("model");
    /// `openai`, at Cerebras.
    Cerebras => "cerebras", Server, Some("model");
    /// `openai`, at Perplexity.
    Perplexity => "perplexity", Server, Some("model");
    /// `openai`, at NVIDIA.
    Nvidia => "nvidia", Server, Some("model");
    /// `openai`, at GitHub Models.
    GithubModels => "github-models", Server, Some("model");
    /// Any server; the suite says what is sent, and where the reply stands.
    Http => "http", Custom, Some("url");
    /// A model in this process.
    Embedded => "embedded", Engine, None;
    /// Claude Code's command line.
    Claude => "claude", Program, None;
    /// Codex' command line.
    Codex => "codex", Program, None;
    /// GitHub Copilot's command line.
    Copilot => "copilot", Program, None;
    /// Any program.
    Command => "command", Program, Some("command");
    /// A function in Python.
    Python => "python", Function, Some("file");
    /// A function in JavaScript, for Node.
    Node => "node", Function, Some("file");
    /// Answers from a file.
    Replay => "replay", File, Some("file");
    /// The prompt itself.
    Echo => "echo", Nobody, None;
}

/// How a kind of backend is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over HTTP, in the language of the server.
    Server,
    /// Over HTTP, as the suite says.
    Custom,
    /// By starting a program for each call.
    Program,
    /// By calling a function in a process that stays up.
    Function,
    /// By an engine in this process.
    Engine,
    /// By looking into a file.
    File,
    /// Not at all.
    Nobody,
}

impl BackendKind {
    /// Whether a program is started for each call.
    pub const fn is_program(self) -> bool {
        matches!(self.way(), Way::Program)
    }

    /// Whether a function of the user answers.
    pub const fn is_function(self) -> bool {
        matches!(self.way(), Way::Function)
    }

    /// Whether a model in this process answers.
    pub const fn is_embedded(self) -> bool {
        matches!(self.way(), Way::Engine)
    }

    /// Whether it can be asked how relevant texts are. Whether a server has a model for that, it says
    /// itself.
    pub const fn reranks(self) -> bool {
        self.embeds()
            && !matches!(
                self,
                Self::Azure | Self::Ollama | Self::Gemini | Self::Vertex | Self::Embedded
            )
    }

    /// Whether it can be asked for embeddings. Whether a server has a model for them, it says itself.
    pub const fn embeds(self) -> bool {
        matches!(self.way(), Way::Server | Way::Engine)
            && !matches!(self, Self::Anthropic | Self::VertexAnthropic | Self::Bedrock)
    }
}

/// How a prompt reaches a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Through a pipe.
    Stdin,
    /// In a file that is its standard input.
    FileStdin,
    /// As an argument.
    Arg,
}

impl Transport {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Stdin, Self::FileStdin, Self::Arg];

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::FileStdin => "file_stdin",
            Self::Arg => "arg",
        }
    }
}

/// Where a program's answer stands in what it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// All of it.
    Text,
    /// One JSON value, and where in it.
    Json(String),
    /// JSON events, one a line; the last that has something at this place.
    Jsonl(String),
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Tokens of prompts.
    pub input: f64,
    /// Tokens of replies.
    pub output: f64,
}

/// One backend as the file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendConfig {
    /// What runners call it.
    pub name: String,
    /// What it is.
    pub kind: BackendKind,
    /// Where a server is.
    pub base_url: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
    /// Headers and the variables that hold their values.
    pub headers_env: BTreeMap<String, String>,
    /// How words are chosen.
    pub sampling: Sampling,
    /// The form that answers must have.
    pub response_format: Option<ResponseFormat>,
    /// More fields for the body of a request.
    pub extra_body: Option<Value>,
    /// Whether the reply is read while it is written.
    pub stream: bool,
    /// What is sent, of a backend that has no language of its own.
    pub custom: Option<CustomHttp>,
    /// Calls in flight at once.
    pub max_concurrency: Option<u64>,
    /// The limit of one call, in seconds.
    pub timeout: Option<std::time::Duration>,
    /// What tokens cost.
    pub price: Option<Price>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How the prompt reaches the program.
    pub transport: Option<Transport>,
    /// Where the answer stands in what the program prints.
    pub output: Option<Output>,
    /// Variables that the program may see beside the usual ones.
    pub env: Vec<String>,
    /// The sandbox that the program runs in.
    pub sandbox: Option<SandboxedProgram>,
    /// The file that answers are replayed from, or that has the function or the model.
    pub file: Option<String>,
    /// How a model in this process is loaded and held to a form.
    pub embedded: EmbeddedModel,
    /// What the function is told.
    pub config: Option<serde_json::Map<String, Value>>,
}

impl BackendConfig {
    /// Asks for another model than the suite does.
    pub fn set_model(&mut self, model: &str) {
        self.model = Some(model.to_owned());
        // The file is the suite's model.
        if self.kind.is_embedded() {
            self.file = None;
        }
    }

    /// A backend with nothing but a name and a kind.
    pub fn new(name: &str, kind: BackendKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            base_url: None,
            model: None,
            api_key_env: None,
            headers_env: BTreeMap::new(),
            sampling: Sampling::default(),
            response_format: None,
            extra_body: None,
            stream: false,
            custom: None,
            max_concurrency: None,
            timeout: None,
            price: None,
            command: Vec::new(),
            transport: None,
            output: None,
            env: Vec::new(),
            sandbox: None,
            file: None,
            embedded: EmbeddedModel::default(),
            config: None,
        }
    }
}

pub(super) fn decode(node: &Node, folder: &Path, findings: &mut Findings) -> Vec<BackendConfig> {
    let Some(_) = Fields::open(node, "`backends`", findings) else { return Vec::new() };
    node.entries()
        .iter()
        .filter_map(|entry| decode_backend(&entry.key, &entry.node, folder, findings))
        .collect()
}

/// The fields of all backends but those of kind `http`.
const KNOWN: &[&str] = &[
    "kind",
    "base_url",
    "model",
    "api_key_env",
    "headers_env",
    "temperature",
    "top_p",
    "max_tokens",
    "seed",
    "stop",
    "logprobs",
    "presence_penalty",
    "frequency_penalty",
    "response_format",
    "extra_body",
    "stream",
    "max_concurrency",
    "timeout",
    "price",
    "command",
    "transport",
    "output",
    "output_pointer",
    "env",
    "sandbox",
    "file",
    "config",
    "context",
    "threads",
    "grammar",
];

fn decode_backend(
    name: &str,
    node: &Node,
    folder: &Path,
    findings: &mut Findings,
) -> Option<BackendConfig> {
    refuse_keys(node, findings);
    let keys = node.entries().iter().map(|it| it.key.as_str()).filter(|name| is_key(name));
    let known: Vec<&str> = KNOWN.iter().chain(custom::OF_CUSTOM).copied().chain(keys).collect();
    let mut fields = Fields::new(node, "a backend", &known, findings)?;
    let kinds = BackendKind::ALL.map(BackendKind::as_str);
    if fields.get("kind").is_none() {
        let message = format!("backend `{name}` has no `kind`");
        let help = format!("it is one of {}", kinds.join(", "));
        fields.findings().error_with_help("missing-field", &node.span, message, help);
        return None;
    }
    let kind = fields.one_of("kind", "kind of backend", &kinds, |name| {
        BackendKind::ALL.into_iter().find(|it| it.as_str() == name)
    })?;
    if !is_plain(name) {
        let message = "the name of a backend must not have control characters".to_owned();
        fields.findings().error("bad-name", &node.span, message);
    }
    if name.trim().is_empty() || name.contains(',') {
        let message = "the name of a backend must not be empty or have a comma".to_owned();
        let help = "`--backend a,b` names two".to_owned();
        fields.findings().error_with_help("bad-name", &node.span, message, help);
    }
    let config = BackendConfig {
        base_url: fields.text("base_url"),
        model: fields.text("model"),
        api_key_env: fields.text("api_key_env"),
        headers_env: headers_of(&mut fields, "headers_env", "the name of a variable"),
        sampling: decode_sampling(&mut fields),
        response_format: decode_response_format(&mut fields),
        extra_body: fields.json("extra_body"),
        stream: fields.boolean("stream").unwrap_or_default(),
        custom: custom::decode(&mut fields, kind),
        max_concurrency: fields.count("max_concurrency", 1..=u64::MAX),
        timeout: decode_timeout(&mut fields),
        price: decode_price(&mut fields),
        command: fields.texts("command"),
        transport: {
            let names = Transport::ALL.map(Transport::as_str);
            fields.one_of("transport", "transport", &names, |name| {
                Transport::ALL.into_iter().find(|it| it.as_str() == name)
            })
        },
        output: decode_output(&mut fields),
        env: fields.texts("env"),
        sandbox: sandboxed::decode(&mut fields, folder),
        file: fields.text("file"),
        embedded: embedded::decode(&mut fields),
        config: decode_config(&mut fields),
        ..BackendConfig::new(name, kind)
    };
    require(&config, node, &mut fields);
    Some(config)
}

/// What a kind cannot do without, and what it cannot use.
fn require(config: &BackendConfig, node: &Node, fields: &mut Fields<'_, '_>) {
    let has = |key: &str| match key {
        "command" => !config.command.is_empty(),
        "file" => config.file.is_some(),
        "url" => fields.get("url").is_some(),
        _ => config.model.is_some(),
    };
    let missing = config.kind.needs().filter(|key| !has(key));
    if let Some(key) = missing {
        let (name, kind) = (&config.name, config.kind.as_str());
        let message = format!("backend `{name}` of kind `{kind}` needs `{key}`");
        fields.findings().error("missing-field", &node.span, message);
    }
    let kind = config.kind;
    let foreign = FOREIGN.iter().filter(|(_, is_own)| !is_own(kind)).flat_map(|(keys, _)| *keys);
    for key in foreign {
        if fields.get(key).is_none() {
            continue;
        }
        let (span, kind) = (fields.span(key), config.kind.as_str());
        let message = format!("`{key}` does not apply to a backend of kind `{kind}`");
        fields.findings().error("foreign-field", &span, message);
    }
    custom::check(config, fields);
    embedded::check(config, node, fields);
    if config.base_url.as_ref().is_some_and(|url| url.contains('#')) {
        let span = fields.span("base_url");
        let message = "`base_url` must not have a fragment: no server gets to see it".to_owned();
        let help = "remove `#` and everything after it; in a password, write `%23`".to_owned();
        fields.findings().error_with_help("bad-url", &span, message, help);
    }
    if let Some(url) = &config.base_url {
        check_base_url(url, fields);
    }
    if let Some(extra) = fields.get("extra_body") {
        check_extra_body(config, extra, fields.findings());
    }
}

/// Nothing but variables of the environment can be filled in in an address.
fn check_base_url(url: &str, fields: &mut Fields<'_, '_>) {
    if template::names_only_env(url) {
        return;
    }
    let span = fields.span("base_url");
    let message = "`base_url` must be the same for every case".to_owned();
    let help = "only `{{ env.NAME }}` can be filled in there".to_owned();
    fields.findings().error_with_help("bad-url", &span, message, help);
}

/// How words are chosen, of a backend, a runner or a case.
pub(crate) fn decode_sampling(fields: &mut Fields<'_, '_>) -> Sampling {
    Sampling {
        temperature: decode_number(fields, "temperature", 0.0..=f64::MAX, "not negative"),
        top_p: decode_number(fields, "top_p", 0.0..=1.0, "from 0 to 1"),
        max_tokens: fields.count("max_tokens", 1..=u64::MAX),
        seed: fields.count("seed", 0..=u64::from(u32::MAX)),
        // A line end is what most often ends a reply.
        stop: fields.texts_with_blanks("stop"),
        logprobs: fields.boolean("logprobs"),
        presence_penalty: decode_number(fields, "presence_penalty", -2.0..=2.0, "from -2 to 2"),
        frequency_penalty: decode_number(fields, "frequency_penalty", -2.0..=2.0, "from -2 to 2"),
    }
}

/// The form that answers must have.
pub(crate) fn decode_response_format(fields: &mut Fields<'_, '_>) -> Option<ResponseFormat> {
    let format = ResponseFormat::from_value(fields.json("response_format")?);
    if format.is_none() {
        let span = fields.span("response_format");
        let message = "`response_format` is \"json\" or a JSON Schema".to_owned();
        fields.findings().error("unknown-value", &span, message);
    }
    format
}

/// `extra_body` is for what the suite has no field for: with two values for one thing it
/// would be anybody's guess which is sent, and budgets and the cache would not know.
fn check_extra_body(config: &BackendConfig, extra: &Node, findings: &mut Findings) {
    if !extra.to_json().is_object() {
        let message = "`extra_body` must be a table".to_owned();
        return findings.error("wrong-type", &extra.span, message);
    }
    // Some dialects have these fields in an object of their own.
    let inner =
        ["options", "generationConfig", "inferenceConfig"].iter().find_map(|key| extra.get(key));
    for entry in extra.entries() {
        let key = entry.key.as_str();
        if ["messages", "contents", "input", "stream"].contains(&key) {
            let message = format!("`extra_body` must not bring `{key}`: each case does");
            findings.error("foreign-field", &entry.key_span, message);
        }
    }
    for entry in extra.entries().iter().chain(inner.map_or(&[][..], Node::entries)) {
        let Some(field) = field_for(config, &entry.key) else { continue };
        let message = format!("`extra_body` must not bring `{}`", entry.key);
        let help = format!("the field for it is `{field}`");
        findings.error_with_help("foreign-field", &entry.key_span, message, help);
    }
}

/// The field of a suite that says what a key of a body says.
fn field_for(config: &BackendConfig, key: &str) -> Option<&'static str> {
    let seedless = [BackendKind::Anthropic, BackendKind::VertexAnthropic, BackendKind::Bedrock];
    let has_seed = !seedless.contains(&config.kind);
    let (field, is_taken) = match key {
        "model" => ("model", true),
        "temperature" => ("temperature", true),
        "top_p" => ("top_p", true),
        "max_tokens" => ("max_tokens", true),
        "seed" => ("seed", has_seed),
        "stop" => ("stop", true),
        "logprobs" => ("logprobs", config.sampling.logprobs.is_some()),
        "presence_penalty" | "presencePenalty" => {
            ("presence_penalty", config.sampling.presence_penalty.is_some())
        }
        "frequency_penalty" | "frequencyPenalty" => {
            ("frequency_penalty", config.sampling.frequency_penalty.is_some())
        }
        // Other names, which a server may need for want of the usual one.
        "max_completion_tokens"
        | "num_predict"
        | "maxOutputTokens"
        | "max_output_tokens"
        | "maxTokens" => ("max_tokens", config.sampling.max_tokens.is_some()),
        "topP" => ("top_p", config.sampling.top_p.is_some()),
        "random_seed" => ("seed", config.sampling.seed.is_some()),
        "stop_sequences" | "stopSequences" => ("stop", !config.sampling.stop.is_empty()),
        "response_format" | "format" | "responseMimeType" | "responseJsonSchema"
        | "outputConfig" => ("response_format", config.response_format.is_some()),
        _ => return None,
    };
    is_taken.then_some(field)
}

/// Whether fields are those of a kind.
type OfKind = fn(BackendKind) -> bool;

/// Fields that only some kinds can use.
const FOREIGN: &[(&[&str], OfKind)] = &[
    (&["command", "transport", "output", "output_pointer", "sandbox"], BackendKind::is_program),
    (&["env"], |kind| kind.is_program() || kind.is_function()),
    (&["file"], |kind| kind == BackendKind::Replay || kind.is_function() || kind.is_embedded()),
    (embedded::OWN, BackendKind::is_embedded),
    (embedded::OF_OTHERS, |kind| !kind.is_embedded()),
    (&["config"], BackendKind::is_function),
    (&["stream"], |kind| matches!(kind.way(), Way::Server)),
    (custom::OF_CUSTOM, |kind| kind == BackendKind::Http),
    (custom::OF_DIALECTS, |kind| kind != BackendKind::Http),
];

/// Whether a name can be shown as it is.
pub(super) fn is_plain(name: &str) -> bool {
    let direction = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    !name.contains(|c: char| c.is_control() || direction(c))
}

/// A limit of time, of a backend or of a runner.
pub(super) fn decode_timeout(fields: &mut Fields<'_, '_>) -> Option<std::time::Duration> {
    let parsed = parse_duration(fields.digits("timeout")?).filter(|limit| !limit.is_zero());
    if parsed.is_none() {
        let span = fields.span("timeout");
        let message = "field `timeout` must be a duration such as \"30s\", and not zero".to_owned();
        fields.findings().error("wrong-type", &span, message);
    }
    parsed
}

/// A number within a range.
fn decode_number(
    fields: &mut Fields<'_, '_>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
    wanted: &str,
) -> Option<f64> {
    let number = fields.number(key)?;
    if !range.contains(&number) {
        let span = fields.span(key);
        let message = format!("`{key}` must be a number that is {wanted}, not {number}");
        fields.findings().error("wrong-type", &span, message);
    }
    Some(number)
}

/// A table of headers, each with a text that is `what`.
fn headers_of(fields: &mut Fields<'_, '_>, key: &str, what: &str) -> BTreeMap<String, String> {
    let Some(node) = fields.get(key) else { return BTreeMap::new() };
    let mut headers = BTreeMap::new();
    if Fields::open(node, &format!("`{key}`"), fields.findings()).is_none() {
        return headers;
    }
    for entry in node.entries() {
        match entry.node.as_str() {
            Some(text) => {
                headers.insert(entry.key.clone(), text.to_owned());
            }
            None => {
                let message = format!("`{key}` maps a header to {what}");
                fields.findings().error("wrong-type", &entry.node.span, message);
            }
        }
    }
    headers
}

fn decode_config(fields: &mut Fields<'_, '_>) -> Option<serde_json::Map<String, Value>> {
    match fields.json("config")? {
        Value::Object(config) => Some(config),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let span = fields.span("config");
            let message = "`config` must be a table".to_owned();
            fields.findings().error("wrong-type", &span, message);
            None
        }
    }
}

fn decode_price(fields: &mut Fields<'_, '_>) -> Option<Price> {
    let node = fields.get("price")?;
    let mut inner = Fields::new(node, "`price`", &["input", "output"], fields.findings())?;
    let price = (inner.number("input"), inner.number("output"));
    match price {
        (Some(input), Some(output)) if input >= 0.0 && output >= 0.0 => {
            Some(Price { input, output })
        }
        (_, _) => {
            let message = "`price` needs `input` and `output`, dollars for a million tokens";
            fields.findings().error("wrong-type", &node.span, message.to_owned());
            None
        }
    }
}

fn decode_output(fields: &mut Fields<'_, '_>) -> Option<Output> {
    let pointer = fields.text("output_pointer");
    if pointer.is_some() && fields.get("output").is_none() {
        let span = fields.span("output_pointer");
        let message = "`output_pointer` needs `output`, which is `json` or `jsonl`".to_owned();
        fields.findings().error("missing-field", &span, message);
    }
    let kind = fields.text("output")?;
    let span = fields.span("output");
    match (kind.as_str(), pointer) {
        ("text", None) => Some(Output::Text),
        ("json", Some(pointer)) => Some(Output::Json(pointer)),
        ("jsonl", Some(pointer)) => Some(Output::Jsonl(pointer)),
        ("json" | "jsonl", None) => {
            let message = format!("output `{kind}` needs `output_pointer`, such as \"/result\"");
            fields.findings().error("missing-field", &span, message);
            None
        }
        ("text", Some(_)) => {
            let message = "`output_pointer` does not apply to output `text`".to_owned();
            fields.findings().error("bad-output", &span, message);
            None
        }
        (_, _) => {
            let message = format!("unknown output `{kind}`");
            let help = "it is one of `text`, `json`, `jsonl`".to_owned();
            fields.findings().error_with_help("unknown-value", &span, message, help);
            None
        }
    }
}
