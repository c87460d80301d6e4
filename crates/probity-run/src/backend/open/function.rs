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
        if !path.is_file() {
            return Err(BackendError::NoFile { backend: config.name.clone(), path });
        }
        let mut named = config.clone();
        named.env.extend(variables_of(config));
        let told = BackendConfig { config: self.told(config)?, ..named.clone() };
        let function =
            Function::new(&told, self.folder, self.variables, self.rules, self.concurrency(config));
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
        let fill = |text: &str| template::render(text, &vars).unwrap_or_else(|_| text.to_owned());
        let filled = config.config.as_ref().map(|it| {
            let pairs = it.iter().map(|(key, value)| (key.clone(), with_texts(value, &fill)));
            pairs.collect()
        });
        Ok(filled)
    }
}

/// The variables of the environment that a function is told the values of.
fn variables_of(config: &BackendConfig) -> BTreeSet<String> {
    let mut texts = Vec::new();
    let values = config.config.iter().flat_map(Map::values);
    values.for_each(|it| texts_in(it, &mut texts));
    let named =
        texts.into_iter().flat_map(|it| template::members_of(it, "env").unwrap_or_default());
    named.filter(|it| !it.is_empty()).collect()
}

fn texts_in<'v>(value: &'v Value, all: &mut Vec<&'v str>) {
    match value {
        Value::String(text) if names_env_alone(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|it| texts_in(it, all)),
        Value::Object(map) => map.values().for_each(|it| texts_in(it, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A value with each text that names variables of the environment, and nothing else, filled in.
fn with_texts(value: &Value, fill: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) if names_env_alone(text) => Value::String(fill(text)),
        Value::Array(items) => items.iter().map(|it| with_texts(it, fill)).collect(),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, it)| (key.clone(), with_texts(it, fill)));
            Value::Object(pairs.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn names_env_alone(text: &str) -> bool {
    template::is_template(text)
        && template::undefined_variables(text, |name| name == "env").is_ok_and(|it| it.is_empty())
}
