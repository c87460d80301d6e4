//! Servers that the suite itself describes.

use std::collections::BTreeSet;

use probity_http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use probity_load::{
    suite::{BackendConfig, CustomBody, CustomHttp, UsagePointers},
    template,
};
use serde_json::{Value, json};

use super::{BackendError, BackendFactory, secret_header};
use crate::{
    backend::{
        Backend, Wire, address,
        custom::{Custom, Environment, Parts},
        http::{Http, HttpConfig},
        language::Language,
    },
    redact::Redactor,
};

impl BackendFactory<'_> {
    pub(super) fn open_custom(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        let no_address = || BackendError::NoAddress { backend: config.name.clone() };
        let spec = config.custom.clone().ok_or_else(no_address)?;
        let mut redactor = Redactor::default();
        let mut env = Environment(std::collections::BTreeMap::new());
        for variable in variables(&spec) {
            let value = self.required(config, &variable)?;
            redactor.add_key(&value);
            redactor.add_header(&value);
            env.0.insert(variable, value.trim().to_owned());
        }
        let vars = [("env".to_owned(), json!(env.0))].into();
        let bad_url = |url: &str| {
            let (backend, url) = (config.name.clone(), address::without_secrets(url));
            BackendError::BadUrl { backend, url }
        };
        let origin = template::render(spec.origin(), &vars).map_err(|_| bad_url(&spec.url))?;
        let origin = origin.trim_end_matches('/').to_owned();
        let parsed = address::parse(&origin).ok_or_else(|| bad_url(&spec.url))?;
        address::add_secrets(&parsed, &mut redactor);
        let query = spec.url.split_once('?').map_or("", |(_, query)| query);
        for pair in query.split('&').filter(|it| !template::is_template(it)) {
            redactor.add(pair.split_once('=').map_or(pair, |(_, value)| value));
        }
        for (name, value) in spec.headers.iter().filter(|it| !template::is_template(it.1)) {
            redactor.add_chosen_header(name, value);
        }
        self.hide_proxies(&mut redactor);
        let mut headers = HeaderMap::new();
        if let Some(variable) = &config.api_key_env {
            let key = self.required(config, variable)?;
            redactor.add_key(&key);
            let text = format!("Bearer {}", key.trim());
            headers.insert(AUTHORIZATION, secret_header(&text, variable)?);
        }
        self.add_headers_env(config, &mut headers, &mut redactor)?;
        let parts = Parts {
            origin,
            headers: named_headers(config, &spec)?,
            env,
            model: config.model.clone(),
            sampling: config.sampling.clone(),
        };
        let signer = match &spec.aws_service {
            Some(service) => Some(self.signer_for(config, service, &parsed, &mut redactor)?),
            None => None,
        };
        let has_cost = spec.usage.cost_usd.is_some();
        let custom = Custom::new(spec, parts);
        let not_applied = custom.not_applied();
        let language = Language::Custom(Box::new(custom));
        let kind = config.kind.as_str();
        let http = HttpConfig { language, kind, headers, signer, redactor };
        let wire = Wire::Http(Http::new(self.client_to(config, &parsed)?, http, self.rules));
        let backend = self.backend(config, wire, None, not_applied);
        Ok(Backend { reports_cost: has_cost, ..backend })
    }
}

fn named_headers(
    config: &BackendConfig,
    spec: &CustomHttp,
) -> Result<Vec<(HeaderName, String)>, BackendError> {
    let named = |(name, value): (&String, &String)| match name.parse() {
        Ok(name) => Ok((name, value.clone())),
        Err(_) => {
            Err(BackendError::BadHeaderName { backend: config.name.clone(), header: name.clone() })
        }
    };
    spec.headers.iter().map(named).collect()
}

/// The variables of the environment that its templates name.
pub(super) fn variables(spec: &CustomHttp) -> BTreeSet<String> {
    spec.templates().into_iter().flat_map(template::env_variables).collect()
}

/// What makes two such requests different ones, before anything is filled in.
pub(super) fn parameters(spec: &CustomHttp) -> Value {
    let CustomHttp { url, method, headers, body, reply, error, usage, session, aws_service: _ } =
        spec;
    let UsagePointers { input_tokens, output_tokens, cached_tokens, cost_usd } = usage;
    json!({
        "url": url,
        "method": method.as_str(),
        "headers": headers,
        "body": match body {
            None => Value::Null,
            Some(CustomBody::Text(text)) => json!({ "text": text }),
            Some(CustomBody::Json(value)) => json!({ "json": value }),
        },
        "reply": reply,
        "error": error,
        "usage": [input_tokens, output_tokens, cached_tokens, cost_usd],
        "session": session,
    })
}
