//! Functions of users as backends, and what they are told.

use std::collections::{BTreeMap, BTreeSet};

use probity_load::{function::split_name, suite::BackendConfig, template};
use serde_json::{Map, Value, json};

use super::{BackendError, BackendFactory};
use crate::backend::{
    Backend, Wire,
    function::{self, Function},
};

impl BackendFactory<'_> {
    pub(super) fn open_function(&self, config: &BackendConfig) -> Result<Backend, BackendError> {
        let file = config.file.as_deref().unwrap_or_default();
        let path = self.folder.join(split_name(file).0);
        let callable = self.callables.backends.get(&config.name).cloned();
        if callable.is_none() && !path.is_file() {
            return Err(BackendError::NoFile { backend: config.name.clone(), path });
        }
        let mut named = config.clone();
        named.env.extend(variables_of(config));
        let told = BackendConfig { config: self.told(config)?, ..named.clone() };
        let workers = (self.concurrency(config), callable);
        let function = Function::new(&told, self.folder, self.variables, self.rules, workers);
        let not_applied = function::not_applied(config);
        Ok(self.backend(&named, Wire::Function(function), None, not_applied))
    }

    /// What a function is told, with variables of the environment filled in. Other templates are its own.
    fn told(&self, config: &BackendConfig) -> Result<Option<Map<String, Value>>, BackendError> {
        let mut env = BTreeMap::new();
        for name in variables_of(config) {
            let value = self.required(config, &name)?;
            env.insert(name, value.trim().to_owned());
        }
        let vars = [("env".to_owned(), json!(env))].into();
        let fill = |text: &str| {
            template::render(text, &vars).map_err(|reason| BackendError::BadConfig {
                backend: config.name.clone(),
                text: text.to_owned(),
                reason,
            })
        };
        let Some(told) = &config.config else { return Ok(None) };
        let pairs = told.iter().map(|(key, value)| Ok((key.clone(), with_texts(value, &fill)?)));
        pairs.collect::<Result<_, _>>().map(Some)
    }
}

/// The variables of the environment that a function is told the values of.
fn variables_of(config: &BackendConfig) -> BTreeSet<String> {
    let values = config.config.iter().flat_map(Map::values);
    let texts = values.flat_map(template::texts_in).filter(|it| names_env_alone(it));
    texts.flat_map(template::env_variables).collect()
}

/// A value with each text that names variables of the environment, and nothing else, filled in.
fn with_texts(
    value: &Value,
    fill: &dyn Fn(&str) -> Result<String, BackendError>,
) -> Result<Value, BackendError> {
    Ok(match value {
        Value::String(text) if names_env_alone(text) => Value::String(fill(text)?),
        Value::Array(items) => {
            items.iter().map(|it| with_texts(it, fill)).collect::<Result<_, _>>()?
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, it)| Ok((key.clone(), with_texts(it, fill)?)));
            Value::Object(pairs.collect::<Result<_, BackendError>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    })
}

fn names_env_alone(text: &str) -> bool {
    template::is_template(text) && template::names_only_env(text)
}
