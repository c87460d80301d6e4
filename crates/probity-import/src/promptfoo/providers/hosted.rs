//! Services with an interface of their own, asked as servers that the suite itself describes.

use probity_core::located::{Node, NodeValue};
use probity_load::suite::BackendKind;
use serde_json::{Map, Value, json};

use super::{
    Described, Takes, Told,
    http::{self, Made, of_response},
    keys::{Place, variable},
};
use crate::{cases::text, draft::BackendDraft, promptfoo::Context};

/// A service, and what of it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hosted {
    /// A model at Replicate.
    Replicate(String),
    /// A model of Hugging Face that goes on with a text.
    TextGeneration(String),
    /// A workflow of n8n, by its address.
    N8n(Option<String>),
    /// An endpoint of `SageMaker`, after the form of its requests.
    SageMaker(String),
    /// A model of Cohere, by the first version of its API.
    Cohere(String),
}

/// Forms of requests that endpoints of `SageMaker` take.
#[derive(Clone, Copy)]
enum Form {
    Openai,
    Llama,
    HuggingFace,
    JumpStart,
    /// Whatever else there is: it is sent the prompt alone.
    Other,
}

/// Output of a model that comes in pieces.
const JOINED: &str = "let parts = null;\ntry { parts = JSON.parse(output); } catch {}\n\
                      return Array.isArray(parts) ? parts.join('') : output;";
/// What a workflow of n8n answers, in one of its usual forms.
const N8N_OUTPUT: &str = "(json, text) => {
  const first = (...all) => all.find((it) => it !== undefined);
  const found = (data) => {
    if (data === null || typeof data !== 'object') return data;
    if (Array.isArray(data)) {
      const item = data[0] ?? {};
      const own = first(item.output, item.response, item.text, item.message);
      return own !== undefined ? own : item.json !== undefined ? found(item.json) : data;
    }
    const own = first(data.output, data.response);
    if (own !== undefined) return own;
    if (data.json !== undefined) return found(data.json);
    return first(data.message?.content, data.text, data.content, data);
  };
  return json === null ? text : found(json);
}";
/// Settings of text generation that Hugging Face is told.
const GENERATION: &[&str] = &[
    "best_of",
    "decoder_input_details",
    "details",
    "do_sample",
    "max_new_tokens",
    "max_time",
    "num_return_sequences",
    "repetition_penalty",
    "return_full_text",
    "seed",
    "stop",
    "temperature",
    "top_k",
    "top_n_tokens",
    "top_p",
    "truncate",
    "typical_p",
    "watermark",
];
const OF_SAGEMAKER: &[&str] = &[
    "region",
    "endpoint",
    "modelType",
    "temperature",
    "maxTokens",
    "topP",
    "stopSequences",
    "contentType",
    "acceptType",
    "responseFormat",
    "delay",
    "profile",
];

impl Form {
    /// What an endpoint can be told.
    fn takes(self) -> Takes {
        match self {
            Self::Llama => Takes::TextOrMessages,
            Self::Openai | Self::HuggingFace | Self::JumpStart | Self::Other => Takes::Text,
        }
    }
}

/// The backend of such a service, the transform of its replies, and what it can be told.
pub(super) fn read(
    hosted: &Hosted,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<(Made, Takes)> {
    backend.kind = BackendKind::Http;
    let empty = Node { span: described.node.span.clone(), value: NodeValue::Object(Vec::new()) };
    let config = described.config.unwrap_or(&empty);
    let (made, takes) = match hosted {
        Hosted::Replicate(model) => {
            (replicate(model, config, described, backend, context), Takes::Conversations)
        }
        Hosted::TextGeneration(model) => {
            (text_generation(model, config, described, backend, context), Takes::Text)
        }
        Hosted::N8n(url) => (n8n(url.clone(), config, described, backend, context), Takes::Text),
        Hosted::SageMaker(named) => {
            let (form, endpoint) = form(named, config);
            (Some(sagemaker((form, endpoint), config, described, backend, context)), form.takes())
        }
        Hosted::Cohere(model) => (cohere(model, config, described, backend, context), Takes::Text),
    };
    Some((made?, takes))
}

/// Settings that only the first version of Cohere's API has.
pub(super) fn needs_first_version(config: &Node) -> bool {
    ["connectors", "prompt_truncation", "search_queries_only", "chat_history", "chatHistory"]
        .iter()
        .any(|it| config.get(it).is_some())
}

fn cohere(
    model: &str,
    config: &Node,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<Made> {
    const SHOWN: &[(&str, &str, &str)] = &[
        ("showSearchQueries", "search_queries", "it.text"),
        ("showDocuments", "documents", "JSON.stringify(it)"),
    ];
    backend.url = Some("https://api.cohere.ai/v1/chat".to_owned());
    backend.api_key_env = Some(key(config, "COHERE_API_KEY", described, context));
    let without: Vec<&str> = SHOWN.iter().map(|(key, ..)| *key).chain(["apiKey"]).collect();
    let own = filled(config, &without, &backend.name, described, context)?;
    let mut body = json!({
        "message": "{{ prompt }}",
        "model": model,
        "prompt_truncation": "OFF",
        "temperature": 0.3,
        "k": 0,
        "p": 0.75,
    });
    if let Value::Object(body) = &mut body {
        body.extend(own);
    }
    backend.body = Some(body);
    backend.error = Some("/message".to_owned());
    let mut script = "json.text".to_owned();
    for (key, field, item) in SHOWN {
        if text(config, key).as_deref() == Some("true") {
            let head = field.replace('_', " ");
            let title: String = head.split(' ').map(capital).collect::<Vec<_>>().join(" ");
            script = format!(
                "{script} + (json.{field} ? '\\n\\n{title}:\\n' + json.{field}.map((it) => {item}).join('\\n') : '')"
            );
        }
    }
    Some(Made { backend, transform: Some(of_response(&script)) })
}

/// A word with a capital letter.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn replicate(
    model: &str,
    config: &Node,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<Made> {
    let (url, version) = match model.split_once(':') {
        Some((_, version)) => {
            ("https://api.replicate.com/v1/predictions".to_owned(), Some(version))
        }
        None => (format!("https://api.replicate.com/v1/models/{model}/predictions"), None),
    };
    backend.url = Some(url);
    backend.headers.insert("prefer".to_owned(), "wait=60".to_owned());
    backend.api_key_env = Some(key(config, "REPLICATE_API_TOKEN", described, context));
    let mut input = filled(config, &["apiKey", "prompt"], &backend.name, described, context)?;
    let around = |key| config.get("prompt").and_then(|it| text(it, key)).unwrap_or_default();
    let prompt = format!("{}{{{{ prompt }}}}{}", around("prefix"), around("suffix"));
    input.entry("system_prompt").or_insert_with(|| Value::from("{{ system }}"));
    input.insert("prompt".to_owned(), Value::from(prompt));
    backend.body = Some(match version {
        Some(version) => json!({ "version": version, "input": input }),
        None => json!({ "input": input }),
    });
    backend.reply = Some("/output".to_owned());
    backend.error = Some("/error".to_owned());
    let what = "a prediction that takes longer than a minute is an error";
    context.assumed(described.node, what, "");
    Some(Made { backend, transform: Some(JOINED.to_owned()) })
}

fn text_generation(
    model: &str,
    config: &Node,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<Made> {
    const OTHERS: &[&str] = &["apiKey", "apiEndpoint", "chatCompletion"];
    context.lost_keys(config, "a provider of Hugging Face", &[GENERATION, OTHERS].concat());
    let usual = || format!("https://router.huggingface.co/hf-inference/models/{model}");
    let place = Place { backend: &backend.name, what: "the address under" };
    let url = text(config, "apiEndpoint").unwrap_or_else(usual);
    backend.url = Some(place.url(&url, &described.node.span, context));
    // A key that is written out for another server is not the usual one.
    let is_own = config.get("apiKey").is_some() && config.get("apiEndpoint").is_some();
    let own = is_own.then(|| variable(&backend.name, "api_key"));
    let usual = own.as_deref().unwrap_or("HF_TOKEN");
    backend.api_key_env = Some(key(config, usual, described, context));
    let mut parameters = filled(config, OTHERS, &backend.name, described, context)?;
    parameters.entry("return_full_text").or_insert(Value::Bool(false));
    backend.body = Some(json!({ "inputs": "{{ prompt }}", "parameters": parameters }));
    backend.error = Some("/error".to_owned());
    let found = "json?.generated_text ?? json?.[0]?.generated_text";
    Some(Made { backend, transform: Some(of_response(found)) })
}

fn n8n(
    url: Option<String>,
    config: &Node,
    described: &Described<'_>,
    backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<Made> {
    let is_get = text(config, "method").is_some_and(|it| it.eq_ignore_ascii_case("get"));
    if is_get {
        context.lost(described.node, "a workflow that is asked by `GET`", "ask it by `POST`");
        return None;
    }
    let mut made = http::read(url, described, backend, context)?;
    made.backend.body.get_or_insert_with(|| json!({ "prompt": "{{ prompt }}" }));
    made.backend.method = None;
    if config.get("transformResponse").is_none() {
        made.transform = Some(of_response(N8N_OUTPUT));
    }
    Some(made)
}

/// The form of the requests of an endpoint of `SageMaker`, and its name.
fn form<'n>(named: &'n str, config: &Node) -> (Form, &'n str) {
    let (kind, endpoint) = match named.split_once(':') {
        Some((kind, endpoint)) => (Some(kind.to_owned()), endpoint),
        None => (text(config, "modelType"), named),
    };
    let form = match kind.as_deref() {
        Some("openai") => Form::Openai,
        Some("llama") => Form::Llama,
        Some("huggingface") => Form::HuggingFace,
        Some("jumpstart") => Form::JumpStart,
        Some(_) | None => Form::Other,
    };
    (form, endpoint)
}

fn sagemaker(
    (form, endpoint): (Form, &str),
    config: &Node,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Made {
    context.lost_keys(config, "a provider of SageMaker", OF_SAGEMAKER);
    let region = text(config, "region").unwrap_or_else(|| "us-east-1".to_owned());
    let endpoint = text(config, "endpoint").unwrap_or_else(|| endpoint.to_owned());
    backend.url = Some(format!(
        "https://runtime.sagemaker.{region}.amazonaws.com/endpoints/{endpoint}/invocations"
    ));
    backend.aws_service = Some("sagemaker".to_owned());
    for (name, key) in [("content-type", "contentType"), ("accept", "acceptType")] {
        let usual = || "application/json".to_owned();
        backend.headers.insert(name.to_owned(), text(config, key).unwrap_or_else(usual));
    }
    backend.body = Some(payload(form, config, described, context));
    let path = config.get("responseFormat").and_then(|it| text(it, "path"));
    let found = match (path, form) {
        (Some(path), _) => path,
        (None, Form::Openai) => {
            "json.generated_text || json.choices?.[0]?.message?.content || json.choices?.[0]?.text \
             || json.generation || json"
                .to_owned()
        }
        (None, Form::Llama) => {
            "json.generated_text || json.generation || json.choices?.[0]?.message?.content || \
             json.choices?.[0]?.text || json"
                .to_owned()
        }
        (None, Form::HuggingFace) => {
            "Array.isArray(json) ? json[0]?.generated_text || json[0] : json.generated_text || json"
                .to_owned()
        }
        (None, Form::JumpStart) => "json.generated_text || json".to_owned(),
        (None, Form::Other) => {
            "json.output || json.generation || json.response || json.text || json.generated_text || \
             json.choices?.[0]?.message?.content || json.choices?.[0]?.text || json"
                .to_owned()
        }
    };
    Made { backend, transform: Some(of_response(&found)) }
}

/// What an endpoint of `SageMaker` is sent. promptfoo's usual settings stand in it.
fn payload(
    form: Form,
    config: &Node,
    described: &Described<'_>,
    context: &mut Context<'_>,
) -> Value {
    let mut number =
        |key: &str, usual: f64| context.number_within(&described.env, config, key).unwrap_or(usual);
    let (temperature, top_p) = (number("temperature", 0.7), number("topP", 1.0));
    let most: u64 = context.number_within(&described.env, config, "maxTokens").unwrap_or(1024);
    let stop = crate::cases::texts(config, "stopSequences");
    let mut parameters =
        json!({ "max_new_tokens": most, "temperature": temperature, "top_p": top_p });
    match form {
        Form::Openai => {
            let mut body = json!({
                "prompt": "{{ prompt }}",
                "max_tokens": most,
                "temperature": temperature,
                "top_p": top_p,
            });
            if !stop.is_empty() {
                body["stop"] = json!(stop);
            }
            return body;
        }
        Form::Other => return json!({ "prompt": "{{ prompt }}" }),
        Form::Llama if !stop.is_empty() => parameters["stop"] = json!(stop),
        Form::Llama => {}
        Form::JumpStart => parameters["do_sample"] = json!(temperature > 0.0),
        Form::HuggingFace => {
            parameters["do_sample"] = json!(temperature > 0.0);
            parameters["return_full_text"] = json!(false);
        }
    }
    json!({ "inputs": "{{ prompt }}", "parameters": parameters })
}

/// The variable with the key of a service.
fn key(config: &Node, usual: &str, described: &Described<'_>, context: &mut Context<'_>) -> String {
    let Some(node) = config.get("apiKey") else { return usual.to_owned() };
    match described.env.told(node.as_str().unwrap_or_default()) {
        Told::Variable(name) => name,
        Told::Text(_) | Told::Unknown(_) => {
            let advice = format!("put it into the variable `{usual}`");
            context.assumed(node, "the key of `apiKey` is not copied into the suite", advice);
            usual.to_owned()
        }
    }
}

/// The settings of a service, without some that are no input of a model.
fn filled(
    config: &Node,
    without: &[&str],
    backend: &str,
    described: &Described<'_>,
    context: &mut Context<'_>,
) -> Option<Map<String, Value>> {
    let mut all = Map::new();
    for entry in config.entries().iter().filter(|it| !without.contains(&it.key.as_str())) {
        let value = entry.node.to_json();
        let told = value.as_str().map(|it| described.env.told(it));
        let place = Place { backend, what: "the field" };
        match told {
            Some(Told::Variable(name) | Told::Unknown(name)) => {
                let what = format!("`{name}` in the `config` of the provider `{}`", described.id);
                context.lost(&entry.node, what, "write the value out");
                return None;
            }
            Some(Told::Text(text)) => {
                let text = place.text(&entry.key, text.into_owned(), &entry.key_span, context);
                all.insert(entry.key.clone(), Value::from(text))
            }
            None => {
                let value = place.named(&entry.key, value, &entry.key_span, context);
                all.insert(entry.key.clone(), value)
            }
        };
    }
    Some(http::known(all))
}
