//! From the description of a backend to one that can be asked.

mod aws;
mod custom;
mod error;
mod function;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    path::Path,
};

use probity_core::{record::InputDigest, request::Sampling};
use probity_grade::Rules;
use probity_http::{
    Error, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use probity_load::{
    function::split_name,
    settings::Settings,
    suite::{BackendConfig, BackendKind, Output, SandboxedProgram, Way},
    template,
};
use serde_json::json;

pub use error::BackendError;

use super::{
    Backend, Wire, address,
    dialect::{self, DialectSpec, KeyHeader, Service},
    embedded::{self, Embedded, Use},
    http::{Client, Http, HttpConfig},
    language::{BodySettings, Language, Spoken},
    program::{Program, ProgramError, Surroundings},
};
use crate::{callable::Callables, prices::Prices, recording::Replay, redact::Redactor};

/// What stands for the value of a variable that workers have.
const ELSEWHERE: &str = "elsewhere";

/// What all backends of a run have in common.
#[derive(Clone, Copy)]
pub struct BackendFactory<'a> {
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
    /// Functions of this process that stand for backends.
    pub callables: &'a Callables,
}

impl BackendFactory<'_> {
    /// The value of a variable, if it is text.
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(OsStr::new(name))?.to_str().map(ToOwned::to_owned)
    }

    /// Makes a backend ready to be asked.
    pub fn open(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        match config.kind.way() {
            Way::Server => {
                let service = Service::of(config.kind);
                self.open_http(config, service, service.dialect)
            }
            Way::Custom => self.open_custom(config),
            Way::Nobody => {
                let backend = self.backend(config, Wire::Echo, None, Vec::new());
                Ok(Backend { reports_cost: true, ..backend })
            }
            Way::File => {
                let file = self.folder.join(config.file.as_deref().unwrap_or(""));
                self.open_replay(config, &file)
            }
            Way::Program => self.open_program(config),
            Way::Function => self.open_function(config),
            Way::Engine => self.open_embedded(config, Use::Answers),
        }
    }

    /// Makes a backend ready to embed texts.
    pub fn open_embedder(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        if config.kind.is_embedded() {
            return self.open_embedded(config, Use::Embeddings);
        }
        let service = config.kind.embeds().then(|| Service::of(config.kind));
        let Some((service, dialect)) = service.and_then(|it| Some((it, it.embeddings?))) else {
            let (backend, kind) = (config.name.clone(), config.kind.as_str());
            return Err(BackendError::NoEmbeddings { backend, kind });
        };
        self.open_plain(config, service, dialect)
    }

    /// Makes a backend ready to say how relevant texts are.
    pub fn open_reranker(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        let service = config.kind.reranks().then(|| Service::of(config.kind));
        let Some((service, dialect)) = service.and_then(|it| Some((it, it.rerank?))) else {
            let (backend, kind) = (config.name.clone(), config.kind.as_str());
            return Err(BackendError::NoReranking { backend, kind });
        };
        self.open_plain(config, service, dialect)
    }

    fn open_plain(
        &self,
        config: &BackendConfig,
        service: &'static Service,
        dialect: &'static DialectSpec,
    ) -> Result<Backend, BackendError> {
        // Numbers come as a whole, and nothing is left to chance in them.
        let config = BackendConfig {
            stream: false,
            sampling: Sampling::default(),
            response_format: None,
            ..config.clone()
        };
        self.open_http(&config, service, dialect)
    }

    fn open_program(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        let surroundings = Surroundings {
            env: self.variables.clone(),
            // A program runs elsewhere, so a relative path would lead it astray.
            base: std::path::absolute(self.folder.join(".")).unwrap_or_default(),
            kill_grace: self.settings.timeouts.kill_grace,
        };
        let program = Program::new(config, surroundings, self.rules)?;
        let (not_applied, reports_cost) = (program.not_applied(), program.reports_cost());
        let backend = self.backend(config, Wire::Program(program), None, not_applied);
        Ok(Backend { reports_cost, ..backend })
    }

    fn open_embedded(&self, config: &BackendConfig, use_for: Use) -> Result<Backend, BackendError> {
        let opened = Embedded::open(config, self.folder, self.variables, use_for);
        let backend = |error| BackendError::Embedded { backend: config.name.clone(), error };
        let embedded = opened.map_err(backend)?;
        let model = embedded.model().to_owned();
        let not_applied = embedded::ignored(&config.sampling);
        let backend = self.backend(config, Wire::Embedded(embedded), None, not_applied);
        // Nobody asks for money.
        Ok(Backend { model: Some(model), reports_cost: true, ..backend })
    }

    /// A backend that workers ask: keys and credentials may be theirs alone, and so may the model of one that is `embedded`.
    pub fn open_elsewhere(
        &self,
        config: &BackendConfig,
        open: fn(&BackendFactory<'_>, &BackendConfig) -> Result<Backend, BackendError>,
    ) -> Result<Backend, BackendError> {
        let mut variables = self.variables.clone();
        let mut lacking = BTreeSet::new();
        loop {
            let factory = BackendFactory { variables: &variables, ..*self };
            let names: Vec<String> = match open(&factory, config) {
                Ok(backend) => {
                    let most = || self.settings.max_concurrency;
                    let max_concurrency = config.max_concurrency.unwrap_or_else(most);
                    return Ok(Backend { max_concurrency, ..backend });
                }
                Err(
                    BackendError::NoKey { variable, .. }
                    | BackendError::Program(ProgramError::NoKey { variable, .. }),
                ) => vec![variable],
                Err(BackendError::NoCredentials { .. }) => {
                    aws::CREDENTIALS.iter().map(|it| (*it).to_owned()).collect()
                }
                Err(BackendError::Embedded { .. }) => {
                    let not_applied = embedded::ignored(&config.sampling);
                    let backend = factory.backend(config, Wire::Elsewhere, None, not_applied);
                    let most = self.settings.max_concurrency;
                    let max_concurrency = config.max_concurrency.unwrap_or(most);
                    return Ok(Backend { reports_cost: true, max_concurrency, ..backend });
                }
                Err(error) => return Err(error),
            };
            for name in names {
                // One that is lacking all the same would be so for ever.
                if !lacking.insert(name.clone()) {
                    let backend = config.name.clone();
                    return Err(BackendError::NoKey { backend, variable: name });
                }
                variables.insert(name.into(), ELSEWHERE.into());
            }
        }
    }

    fn concurrency(&self, config: &BackendConfig) -> u64 {
        let usual = || default_concurrency(config.kind, self.settings);
        config.max_concurrency.unwrap_or_else(usual)
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
        Ok(Backend { model, price: None, reports_cost: true, ..backend })
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
            kind: Some(config.kind),
            model: config.model.clone(),
            price: config.price.or_else(listed),
            max_concurrency: self.concurrency(config),
            timeout: config.timeout.unwrap_or(self.settings.timeouts.attempt),
            max_tokens: config.sampling.max_tokens.filter(|_| !not_applied.contains(&"max_tokens")),
            parameters: self.parameters(config),
            reports_cost: false,
            not_applied,
            wire,
            #[cfg(all(feature = "simulated", not(test)))]
            simulated: None,
        }
    }

    /// The connections to a server.
    fn client_to(
        &self,
        config: &BackendConfig,
        url: &Url,
    ) -> Result<probity_http::Client, BackendError> {
        let backend = || config.name.clone();
        self.client.to(url).map_err(|source| match &source {
            Error::Address(_) => {
                let url = address::without_secrets(url.as_str());
                BackendError::BadUrl { backend: backend(), url }
            }
            Error::Tls(_)
            | Error::Connect(_)
            | Error::Exchange(_)
            | Error::Body(_)
            | Error::Packed(_)
            | Error::Silence => BackendError::NoClient { backend: backend(), source },
            #[cfg(feature = "simulated")]
            Error::Simulated(_) => BackendError::NoClient { backend: backend(), source },
        })
    }

    /// What makes two calls with the same prompt different calls.
    ///
    /// Values of variables are in it as a digest only: they may be secrets. What is not
    /// set is left out, so that a new field here changes nothing for those without it.
    fn parameters(&self, config: &BackendConfig) -> String {
        let Sampling { temperature, top_p, max_tokens, seed, stop, logprobs, .. } =
            &config.sampling;
        let Sampling { presence_penalty, frequency_penalty, .. } = &config.sampling;
        let mut parameters = json!({
            "kind": config.kind.as_str(),
            "model": config.model,
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "seed": seed,
            "stop": stop,
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
        // What a function does is in its file.
        if let Some(file) = config.file.as_deref().filter(|_| config.kind.is_function()) {
            let text = match self.callables.backends.get(&config.name) {
                Some(callable) => callable.identity.clone().into_bytes(),
                None => std::fs::read(self.folder.join(split_name(file).0)).unwrap_or_default(),
            };
            parameters["function"] = json!([file, InputDigest::of([&text[..]]).to_string()]);
            parameters["config"] = json!(config.config);
        }
        if let Some(SandboxedProgram { world, paths, reach: _ }) = &config.sandbox {
            parameters["sandbox"] = json!([world, paths]);
        }
        if config.kind.is_embedded() {
            parameters["embedded"] = embedded::parameters(config, self.folder, self.variables);
        }
        if let Some(logprobs) = logprobs {
            parameters["logprobs"] = json!(logprobs);
        }
        if let Some(penalty) = presence_penalty {
            parameters["presence_penalty"] = json!(penalty);
        }
        if let Some(penalty) = frequency_penalty {
            parameters["frequency_penalty"] = json!(penalty);
        }
        // Only a reply that is read while it is written has the time of its first token.
        if config.stream {
            parameters["stream"] = json!(true);
        }
        if let Some(custom) = &config.custom {
            parameters["custom"] = custom::parameters(custom);
            for name in custom::variables(custom) {
                parameters["env"][&name] = json!(digest(&name));
            }
        }
        for name in &config.env {
            parameters["env"][name] = json!(digest(name));
        }
        for (header, variable) in &config.headers_env {
            parameters["headers"][header.to_ascii_lowercase()] = json!(digest(variable));
        }
        parameters.to_string()
    }

    fn open_http(
        &self,
        config: &BackendConfig,
        service: &'static Service,
        dialect: &'static DialectSpec,
    ) -> Result<Backend, BackendError> {
        let mut redactor = Redactor::default();
        let base_url = self.base_url(config, service, &mut redactor)?;
        let model = config.model.as_deref().unwrap_or("");
        if base_url.is_empty() {
            let backend = config.name.clone();
            let variable = service.base_variables.first().copied().unwrap_or_default();
            return Err(BackendError::NoUrl { backend, variable });
        }
        let (url, models_url) = dialect::addresses(dialect, &base_url, model);
        let Some(parsed) = address::parse(&url) else {
            let backend = config.name.clone();
            let url = address::without_secrets(&base_url);
            return Err(BackendError::BadUrl { backend, url });
        };
        address::add_secrets(&parsed, &mut redactor);
        self.hide_proxies(&mut redactor);
        let is_official = address::is_official(&parsed, service.hosts);
        let signer = self.signer(config, service, (&parsed, is_official), &mut redactor)?;
        let key = match signer {
            Some(_) => None,
            None => self.key(config, service, is_official)?,
        };
        let headers = self.headers(config, service, key, &mut redactor)?;
        let limit = if is_official { service.limit } else { "max_tokens" };
        let settings = BodySettings {
            dialect,
            model: config.model.clone(),
            sampling: config.sampling.clone(),
            response_format: config.response_format.clone(),
            extra_body: config.extra_body.clone(),
            limit,
            seed: service.seed,
            stream: config.stream.then_some(&dialect.stream),
            stream_usage: service.stream_usage,
            keeps_schemas: service.keeps_schemas,
        };
        let (fields, not_applied) = settings.fields(None);
        let kind = config.kind.as_str();
        let url = if config.stream { (dialect.stream.endpoint)(&url) } else { url };
        let language = Language::Dialect(Box::new(Spoken { settings, fields, url, models_url }));
        let http = HttpConfig { language, kind, headers, signer, redactor };
        let wire = Wire::Http(Http::new(self.client_to(config, &parsed)?, http, self.rules));
        let vendor = is_official.then_some(service.prices);
        let backend = self.backend(config, wire, vendor, not_applied);
        Ok(Backend {
            max_tokens: backend.max_tokens.or(dialect.max_tokens),
            reports_cost: is_official && service.reports_cost,
            ..backend
        })
    }

    /// A proxy may quote what it was asked with.
    fn hide_proxies(&self, redactor: &mut Redactor) {
        for (name, value) in self.variables {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            if name.to_ascii_lowercase().ends_with("_proxy") {
                redactor.add_variable(&name, &value);
            }
        }
    }

    /// Where a server is: what the suite says, else the vendor's own variable, else the
    /// place where it usually is.
    fn base_url(
        &self,
        config: &BackendConfig,
        service: &Service,
        redactor: &mut Redactor,
    ) -> Result<String, BackendError> {
        let from_variables = || {
            let value = |name: &&str| self.variable(name).filter(|value| !value.is_empty());
            (service.address)(&service.base_variables.iter().map(value).collect::<Vec<_>>())
        };
        if let Some(url) = &config.base_url {
            return self.with_variables(config, url, redactor);
        }
        Ok(from_variables().unwrap_or_else(|| service.base_url.to_owned()))
    }

    /// An address with its variables of the environment filled in.
    fn with_variables(
        &self,
        config: &BackendConfig,
        url: &str,
        redactor: &mut Redactor,
    ) -> Result<String, BackendError> {
        let mut env = BTreeMap::new();
        for name in template::env_variables(url) {
            let value = self.required(config, &name)?.trim().to_owned();
            redactor.add_key(&value);
            env.insert(name, value);
        }
        let vars = [("env".to_owned(), json!(env))].into();
        template::render(url, &vars).map_err(|_| BackendError::BadUrl {
            backend: config.name.clone(),
            url: address::without_secrets(url),
        })
    }

    fn headers(
        &self,
        config: &BackendConfig,
        service: &Service,
        key: Option<(String, String)>,
        redactor: &mut Redactor,
    ) -> Result<HeaderMap, BackendError> {
        let mut headers = HeaderMap::new();
        if let Some((variable, key)) = key {
            redactor.add_key(&key);
            let (name, text) = match service.dialect.key_header {
                KeyHeader::Named(name) => (HeaderName::from_static(name), key.trim().to_owned()),
                KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", key.trim())),
            };
            headers.insert(name, secret_header(&text, &variable)?);
        }
        self.add_headers_env(config, &mut headers, redactor)?;
        for (name, value) in service.dialect.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Ok(headers)
    }

    /// Headers whose values stand in variables.
    fn add_headers_env(
        &self,
        config: &BackendConfig,
        headers: &mut HeaderMap,
        redactor: &mut Redactor,
    ) -> Result<(), BackendError> {
        for (name, variable) in &config.headers_env {
            let value = self.required(config, variable)?;
            redactor.add_header(&value);
            let bad = || BackendError::BadHeader { variable: variable.clone() };
            let name: HeaderName = name.parse().map_err(|_| bad())?;
            headers.insert(name, secret_header(value.trim(), variable)?);
        }
        Ok(())
    }

    /// The value of a variable that has to be set.
    fn required(&self, config: &BackendConfig, variable: &str) -> Result<String, BackendError> {
        self.variable(variable).ok_or_else(|| BackendError::NoKey {
            backend: config.name.clone(),
            variable: variable.to_owned(),
        })
    }

    /// The key and the variable that holds it. A key of a vendor goes to the vendor, and to
    /// nobody else unless a suite says so.
    fn key(
        &self,
        config: &BackendConfig,
        service: &Service,
        is_official: bool,
    ) -> Result<Option<(String, String)>, BackendError> {
        let usual = service.key_variables.iter().copied().filter(|_| is_official);
        let names: Vec<&str> = match &config.api_key_env {
            Some(variable) => vec![variable],
            None => usual.collect(),
        };
        let is_set = |name: &&str| {
            let key = self.variable(name).filter(|key| !key.trim().is_empty())?;
            Some(((*name).to_owned(), key))
        };
        match (names.iter().find_map(is_set), names.first()) {
            (Some(found), _) => Ok(Some(found)),
            (None, None) => Ok(None),
            (None, Some(variable)) => Err(BackendError::NoKey {
                backend: config.name.clone(),
                variable: (*variable).to_owned(),
            }),
        }
    }
}

fn secret_header(text: &str, variable: &str) -> Result<HeaderValue, BackendError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| BackendError::BadHeader { variable: variable.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Servers take what the run allows; a program for each call is another matter.
fn default_concurrency(kind: BackendKind, settings: &Settings) -> u64 {
    const PROGRAMS: u64 = 4;
    match kind.way() {
        Way::Program | Way::Function => PROGRAMS.min(settings.max_concurrency),
        // It answers one question after the other.
        Way::Engine => 1,
        Way::Server | Way::Custom | Way::File | Way::Nobody => settings.max_concurrency,
    }
}

#[cfg(test)]
mod tests;
