//! From the description of a backend to one that can be asked.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
};

use probity_core::record::InputDigest;
use probity_grade::Rules;
use probity_load::{
    settings::Settings,
    suite::{BackendConfig, BackendKind, Output},
};
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value, json};

use super::{
    Backend, Wire, anthropic,
    http::{Dialect, Http, HttpConfig},
    ollama,
    program::{Program, ProgramError, Surroundings},
};
use crate::{
    prices::Prices,
    recording::{RecordingError, Replay},
    redact::Redactor,
};

/// Tokens that Anthropic's interface is asked for at most, since it wants a number.
const ANTHROPIC_MAX_TOKENS: u64 = 1024;

/// What all backends of a run have in common.
pub struct Workshop<'a> {
    /// The client that asks servers.
    pub client: &'a Client,
    /// The environment.
    pub variables: &'a BTreeMap<OsString, OsString>,
    /// The settings of the run.
    pub settings: &'a Settings,
    /// What errors mean.
    pub rules: &'static Rules,
    /// What tokens cost.
    pub prices: &'a Prices,
    /// The folder that paths in the suite start from.
    pub folder: &'a Path,
}

/// Why a backend cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The variable with its key is not set.
    #[error("backend `{backend}` needs a key in the variable `{variable}`, which is not set")]
    NoKey {
        /// The backend.
        backend: String,
        /// The variable.
        variable: String,
    },
    /// Its recording cannot be used.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// It is a program, and cannot be called as the suite says.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A key or header has characters that no header may have.
    #[error("the value of `{variable}` cannot be sent in a header")]
    BadHeader {
        /// The variable.
        variable: String,
    },
    /// Its address is none.
    #[error("`{url}` of backend `{backend}` is no address of a server")]
    BadUrl {
        /// The backend.
        backend: String,
        /// The address.
        url: String,
    },
}

impl BackendError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey { variable, .. } => {
                Some(format!("export {variable}=..., or name another with `api_key_env`"))
            }
            Self::Program(_) => None,
            Self::Recording(_) => Some("`probity run --record FILE` makes one".to_owned()),
            Self::BadHeader { .. } => Some("is there a line break in it?".to_owned()),
            Self::BadUrl { .. } => {
                let hint = "write it as http://host:port/v1 or https://host/v1, without a `#`";
                Some(hint.to_owned())
            }
        }
    }
}

impl Workshop<'_> {
    /// The value of a variable, if it is text.
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(OsStr::new(name))?.to_str().map(ToOwned::to_owned)
    }

    /// Makes a backend ready to be asked.
    pub fn open(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        let dialect = match config.kind {
            BackendKind::Openai | BackendKind::Vllm | BackendKind::Mlx => Dialect::Openai,
            BackendKind::Anthropic => Dialect::Anthropic,
            BackendKind::Ollama => Dialect::Ollama,
            BackendKind::Echo => return Ok(self.backend(config, Wire::Echo, None, Vec::new())),
            BackendKind::Replay => {
                let file = self.folder.join(config.file.as_deref().unwrap_or(""));
                return self.open_replay(config, &file);
            }
            BackendKind::Claude
            | BackendKind::Codex
            | BackendKind::Copilot
            | BackendKind::Command => {
                let surroundings = Surroundings {
                    env: self.variables.clone(),
                    // A program runs elsewhere, so a relative path would lead it astray.
                    base: std::path::absolute(self.folder.join(".")).unwrap_or_default(),
                    kill_grace: self.settings.timeouts.kill_grace,
                };
                let program = Program::new(config, surroundings, self.rules)?;
                let not_applied = program.not_applied();
                return Ok(self.backend(config, Wire::Program(program), None, not_applied));
            }
        };
        self.open_http(config, dialect)
    }

    /// A backend whose answers come from a recording, whatever it is otherwise.
    pub fn open_replay(
        &self,
        config: &BackendConfig,
        file: &Path,
    ) -> Result<Backend, BackendError> {
        let replay = Replay::load(file, &config.name)?;
        let model = config.model.clone().or_else(|| replay.model().map(ToOwned::to_owned));
        let backend = self.backend(config, Wire::Replay(replay), None, Vec::new());
        Ok(Backend { model, price: None, ..backend })
    }

    fn backend(
        &self,
        config: &BackendConfig,
        wire: Wire,
        vendor: Option<&str>,
        not_applied: Vec<&'static str>,
    ) -> Backend {
        let model = config.model.as_deref();
        let listed = || self.prices.find(vendor?, model?);
        Backend {
            name: config.name.clone(),
            kind: config.kind.as_str(),
            model: config.model.clone(),
            price: config.price.or_else(listed),
            max_concurrency: config
                .max_concurrency
                .unwrap_or_else(|| default_concurrency(config.kind, self.settings)),
            timeout: config.timeout.unwrap_or(self.settings.timeouts.attempt),
            max_tokens: sent_max_tokens(config).filter(|_| !not_applied.contains(&"max_tokens")),
            parameters: self.parameters(config),
            not_applied,
            wire,
        }
    }

    /// What makes two calls with the same prompt different calls.
    ///
    /// Values of variables are in it as a digest only: they may be secrets. What is not
    /// set is left out, so that a new field here changes nothing for those without it.
    fn parameters(&self, config: &BackendConfig) -> String {
        let mut parameters = json!({
            "kind": config.kind.as_str(),
            "model": config.model,
            "temperature": config.temperature,
            "top_p": config.top_p,
            "max_tokens": config.max_tokens,
            "seed": config.seed,
            "stop": config.stop,
            "response_format": config.response_format,
            "extra_body": config.extra_body,
            "command": config.command,
        });
        let digest = |variable: &str| {
            let value = self.variables.get(OsStr::new(variable))?;
            Some(InputDigest::of([value.as_encoded_bytes()]).to_string())
        };
        if let Some(output) = &config.output {
            parameters["output"] = match output {
                Output::Text => json!(["text"]),
                Output::Json(pointer) => json!(["json", pointer]),
                Output::Jsonl(pointer) => json!(["jsonl", pointer]),
            };
        }
        for name in &config.env {
            parameters["env"][name] = json!(digest(name));
        }
        for (header, variable) in &config.headers_env {
            parameters["headers"][header.to_ascii_lowercase()] = json!(digest(variable));
        }
        parameters.to_string()
    }

    fn open_http(&self, config: &BackendConfig, dialect: Dialect) -> Result<Backend, BackendError> {
        let Address { url, is_vendor } = self.address(config);
        let mut redactor = Redactor::default();
        let address = dialect.endpoint(&url);
        let parsed = Url::parse(&address).ok();
        let is_server =
            |it: &Url| it.has_host() && it.scheme().starts_with("http") && it.fragment().is_none();
        let Some(parsed) = parsed.filter(is_server) else {
            let backend = config.name.clone();
            return Err(BackendError::BadUrl { backend, url: without_secrets(&url) });
        };
        add_secrets(&parsed, &mut redactor);
        let headers = self.headers(config, dialect, is_vendor, &mut redactor)?;
        let (mut fields, not_applied) = match dialect {
            Dialect::Openai => openai_fields(config, is_vendor),
            Dialect::Anthropic => anthropic_fields(config),
            Dialect::Ollama => ollama_fields(config),
        };
        if let Some(Value::Object(extra)) = &config.extra_body {
            merge(&mut fields, extra);
        }
        let kind = config.kind.as_str();
        let http = HttpConfig { dialect, kind, url: address, headers, fields, redactor };
        let wire = Wire::Http(Http::new(self.client.clone(), http, self.rules));
        Ok(self.backend(config, wire, is_vendor.then_some(kind), not_applied))
    }

    /// Where a server is: what the suite says, else the vendor's own variable, else the
    /// place where it usually is.
    fn address(&self, config: &BackendConfig) -> Address {
        let (variable, usual) = match config.kind {
            BackendKind::Anthropic => (Some("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
            BackendKind::Ollama => (Some("OLLAMA_HOST"), "http://127.0.0.1:11434"),
            BackendKind::Vllm => (None, "http://127.0.0.1:8000/v1"),
            BackendKind::Mlx => (None, "http://127.0.0.1:8080/v1"),
            BackendKind::Openai
            | BackendKind::Claude
            | BackendKind::Codex
            | BackendKind::Copilot
            | BackendKind::Command
            | BackendKind::Replay
            | BackendKind::Echo => (Some("OPENAI_BASE_URL"), "https://api.openai.com/v1"),
        };
        let from_variable = || {
            let value = self.variable(variable?).filter(|value| !value.is_empty())?;
            Some(match config.kind == BackendKind::Ollama {
                true => ollama::address(&value),
                false if value.contains("://") => value,
                false => format!("http://{value}"),
            })
        };
        let given = config.base_url.clone().or_else(from_variable);
        let is_vendor = given.as_ref().is_none_or(|url| {
            url.contains("://api.openai.com") || url.contains("://api.anthropic.com")
        }) && usual.starts_with("https");
        Address { url: given.unwrap_or_else(|| usual.to_owned()), is_vendor }
    }

    fn headers(
        &self,
        config: &BackendConfig,
        dialect: Dialect,
        is_vendor: bool,
        redactor: &mut Redactor,
    ) -> Result<HeaderMap, BackendError> {
        let mut headers = HeaderMap::new();
        // A key of a vendor goes to the vendor, and to nobody else unless a suite says so.
        let usual = match dialect {
            Dialect::Openai => Some("OPENAI_API_KEY"),
            Dialect::Anthropic => Some("ANTHROPIC_API_KEY"),
            Dialect::Ollama => None,
        };
        let named = config.api_key_env.as_deref().or_else(|| usual.filter(|_| is_vendor));
        if let Some(variable) = named {
            let key = self.variable(variable).filter(|key| !key.trim().is_empty());
            let key = key.ok_or_else(|| BackendError::NoKey {
                backend: config.name.clone(),
                variable: variable.to_owned(),
            })?;
            redactor.add(&key);
            let (name, text) = match dialect {
                Dialect::Anthropic => (HeaderName::from_static("x-api-key"), key.trim().to_owned()),
                Dialect::Openai | Dialect::Ollama => {
                    (AUTHORIZATION, format!("Bearer {}", key.trim()))
                }
            };
            headers.insert(name, secret_header(&text, variable)?);
        }
        for (name, variable) in &config.headers_env {
            let value = self.variable(variable).ok_or_else(|| BackendError::NoKey {
                backend: config.name.clone(),
                variable: variable.clone(),
            })?;
            redactor.add_header(&value);
            let bad = || BackendError::BadHeader { variable: variable.clone() };
            let name: HeaderName = name.parse().map_err(|_| bad())?;
            headers.insert(name, secret_header(value.trim(), variable)?);
        }
        if dialect == Dialect::Anthropic {
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.insert("anthropic-version", version);
        }
        Ok(headers)
    }
}

struct Address {
    url: String,
    /// Whether it is the vendor's own service.
    is_vendor: bool,
}

fn secret_header(text: &str, variable: &str) -> Result<HeaderValue, BackendError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| BackendError::BadHeader { variable: variable.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Keeps out what an address says in confidence: as it is written, and as it is meant.
fn add_secrets(url: &Url, redactor: &mut Redactor) {
    // A name without a password is a token.
    let secret = url.password().unwrap_or_else(|| url.username());
    redactor.add(secret);
    redactor.add(&percent_decoded(secret));
    for pair in url.query().unwrap_or("").split('&') {
        redactor.add(pair.split_once('=').map_or(pair, |(_, value)| value));
    }
    url.query_pairs().for_each(|(_, value)| redactor.add(&value));
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|it| str::from_utf8(it).ok());
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (_, _) => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An address that is none, as it may be shown.
fn without_secrets(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, "?[redacted]"),
        None => (url, ""),
    };
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            format!("{}://[redacted]{}{query}", &url[..scheme], &url[at..])
        }
        (_, _) => format!("{url}{query}"),
    }
}

/// Servers take what the run allows; a program for each call is another matter.
fn default_concurrency(kind: BackendKind, settings: &Settings) -> u64 {
    const PROGRAMS: u64 = 4;
    if kind.is_program() {
        PROGRAMS.min(settings.max_concurrency)
    } else {
        settings.max_concurrency
    }
}

/// The limit of a reply that a server is told.
fn sent_max_tokens(config: &BackendConfig) -> Option<u64> {
    let usual = (config.kind == BackendKind::Anthropic).then_some(ANTHROPIC_MAX_TOKENS);
    config.max_tokens.or(usual)
}

/// Puts what is set into a body.
fn put<T: Into<Value>>(fields: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Adds fields, also to the objects that are there already.
fn merge(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(value)) => merge(known, value),
            (_, _) => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

fn some_list(list: &[String]) -> Option<Value> {
    (!list.is_empty()).then(|| Value::from(list))
}

/// The fields of a body, and the settings that have no place in it.
type Fields = (Map<String, Value>, Vec<&'static str>);

fn openai_fields(config: &BackendConfig, is_vendor: bool) -> Fields {
    let mut fields = Map::new();
    put(&mut fields, "model", config.model.as_deref());
    put(&mut fields, "temperature", config.temperature);
    put(&mut fields, "top_p", config.top_p);
    // The vendor's newer models refuse the older name, other servers ignore the newer one.
    let limit = if is_vendor { "max_completion_tokens" } else { "max_tokens" };
    put(&mut fields, limit, config.max_tokens);
    put(&mut fields, "seed", config.seed);
    put(&mut fields, "stop", some_list(&config.stop));
    let format = config.response_format.as_ref().map(|format| match format.as_str() {
        Some("json") => json!({ "type": "json_object" }),
        Some(_) | None => match format.get("type") {
            Some(Value::String(kind)) if kind.starts_with("json_") => format.clone(),
            Some(_) | None => json!({
                "type": "json_schema",
                "json_schema": { "name": "reply", "schema": format },
            }),
        },
    });
    put(&mut fields, "response_format", format);
    (fields, Vec::new())
}

fn anthropic_fields(config: &BackendConfig) -> Fields {
    let mut fields = Map::new();
    put(&mut fields, "model", config.model.as_deref());
    put(&mut fields, "max_tokens", sent_max_tokens(config));
    put(&mut fields, "temperature", config.temperature);
    put(&mut fields, "top_p", config.top_p);
    put(&mut fields, "stop_sequences", some_list(&config.stop));
    let unknown =
        [("seed", config.seed.is_some()), ("response_format", config.response_format.is_some())];
    (fields, unknown.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect())
}

fn ollama_fields(config: &BackendConfig) -> Fields {
    let mut options = Map::new();
    put(&mut options, "temperature", config.temperature);
    put(&mut options, "top_p", config.top_p);
    put(&mut options, "num_predict", config.max_tokens);
    put(&mut options, "seed", config.seed);
    put(&mut options, "stop", some_list(&config.stop));
    let mut fields = Map::new();
    put(&mut fields, "model", config.model.as_deref());
    put(&mut fields, "stream", Some(false));
    put(&mut fields, "format", config.response_format.clone());
    put(&mut fields, "options", (!options.is_empty()).then_some(options));
    (fields, Vec::new())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use probity_load::settings::Resolved;

    use super::*;

    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

    fn open(config: &BackendConfig, variables: &[(&str, &str)]) -> Result<Backend, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let workshop = Workshop {
            client: &super::super::http::client().unwrap(),
            variables: &variables,
            settings: &Resolved::of([]).settings(),
            rules: &RULES,
            prices: &Prices::with(None).unwrap(),
            folder: Path::new("."),
        };
        workshop.open(config).map_err(|error| error.to_string())
    }

    fn config(kind: BackendKind) -> BackendConfig {
        BackendConfig { model: Some("gpt-4o-mini".to_owned()), ..BackendConfig::new("b", kind) }
    }

    fn url(backend: &Backend) -> &str {
        match &backend.wire {
            Wire::Http(http) => http.url(),
            Wire::Echo | Wire::Program(_) | Wire::Replay(_) | Wire::Scripted(_) => {
                unreachable!("asked over HTTP")
            }
        }
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = open(&config(BackendKind::Openai), &[]).unwrap_err();
        assert_eq!(
            error,
            "backend `b` needs a key in the variable `OPENAI_API_KEY`, which is not set"
        );
    }

    #[test]
    fn a_server_of_ones_own_gets_no_key_and_has_no_list_price() {
        let local = BackendConfig {
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            ..config(BackendKind::Openai)
        };
        let backend = open(&local, &[("OPENAI_API_KEY", "sk-secret-key")]).unwrap();
        assert_eq!(
            (url(&backend), backend.price),
            ("http://127.0.0.1:1/v1/chat/completions", None)
        );
        let vendor =
            open(&config(BackendKind::Openai), &[("OPENAI_API_KEY", "sk-secret-key")]).unwrap();
        assert_eq!(vendor.price.map(|price| price.input), Some(0.15));
        assert!(!format!("{vendor:?}").contains("sk-secret-key"));
    }

    #[test]
    fn addresses_come_from_where_people_put_them() {
        let at = |kind, variables: &[(&str, &str)]| {
            url(&open(&config(kind), variables).unwrap()).to_owned()
        };
        assert_eq!(at(BackendKind::Ollama, &[]), "http://127.0.0.1:11434/api/chat");
        assert_eq!(at(BackendKind::Ollama, &[("OLLAMA_HOST", "h:1")]), "http://h:1/api/chat");
        let anywhere = at(BackendKind::Ollama, &[("OLLAMA_HOST", "0.0.0.0")]);
        assert_eq!(anywhere, "http://127.0.0.1:11434/api/chat");
        assert_eq!(at(BackendKind::Vllm, &[]), "http://127.0.0.1:8000/v1/chat/completions");
        let bad = BackendConfig {
            base_url: Some("ftp://u:p@h".to_owned()),
            ..config(BackendKind::Openai)
        };
        let error = open(&bad, &[]).unwrap_err();
        assert_eq!(error, "`ftp://[redacted]@h` of backend `b` is no address of a server");
    }

    #[test]
    fn what_is_read_and_handed_over_makes_another_call() {
        let program = BackendConfig {
            command: vec!["cat".to_owned()],
            env: vec!["MODE".to_owned()],
            ..BackendConfig::new("b", BackendKind::Command)
        };
        let pointed = |pointer: &str| BackendConfig {
            output: Some(Output::Json(pointer.to_owned())),
            ..program.clone()
        };
        let lines =
            BackendConfig { output: Some(Output::Jsonl("/a".to_owned())), ..program.clone() };
        let server = BackendConfig {
            base_url: Some("http://h/v1".to_owned()),
            headers_env: [("x-beta".to_owned(), "BETA".to_owned())].into(),
            ..config(BackendKind::Openai)
        };
        let of = |config: &BackendConfig, variables: &[(&str, &str)]| {
            open(config, variables).unwrap().parameters
        };
        let all = [
            of(&program, &[]),
            of(&program, &[("MODE", "")]),
            of(&program, &[("MODE", "fast-mode")]),
            of(&pointed("/a"), &[]),
            of(&pointed("/b"), &[]),
            of(&lines, &[]),
            of(&server, &[("BETA", "beta-one")]),
            of(&server, &[("BETA", "beta-two")]),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:#?}");
        assert!(all.iter().all(|it| !it.contains("beta-") && !it.contains("fast")), "{all:#?}");
    }

    #[test]
    fn more_fields_are_added_and_none_is_lost() {
        let config = BackendConfig {
            max_tokens: Some(9),
            temperature: Some(0.0),
            ..config(BackendKind::Ollama)
        };
        let (mut fields, _) = ollama_fields(&config);
        let Value::Object(more) = json!({ "options": { "num_ctx": 8192 }, "think": false }) else {
            unreachable!("it is one")
        };
        merge(&mut fields, &more);
        assert_eq!(
            Value::from(fields),
            json!({
                "model": "gpt-4o-mini", "stream": false, "think": false,
                "options": { "num_predict": 9, "temperature": 0.0, "num_ctx": 8192 },
            })
        );
    }

    #[test]
    fn each_dialect_gets_its_own_names() {
        let config = BackendConfig {
            max_tokens: Some(9),
            seed: Some(1),
            stop: vec!["x".to_owned()],
            response_format: Some(json!("json")),
            ..config(BackendKind::Openai)
        };
        let (openai, _) = openai_fields(&config, false);
        assert_eq!(
            Value::from(openai),
            json!({
                "model": "gpt-4o-mini", "max_tokens": 9, "seed": 1, "stop": ["x"],
                "response_format": { "type": "json_object" },
            })
        );
        let (anthropic, not_applied) = anthropic_fields(&config);
        assert_eq!(
            Value::from(anthropic),
            json!({
                "model": "gpt-4o-mini", "max_tokens": 9, "stop_sequences": ["x"],
            })
        );
        assert_eq!(not_applied, ["seed", "response_format"]);
        let (ollama, _) = ollama_fields(&config);
        assert_eq!(
            Value::from(ollama),
            json!({
                "model": "gpt-4o-mini", "stream": false, "format": "json",
                "options": { "num_predict": 9, "seed": 1, "stop": ["x"] },
            })
        );
    }
}
