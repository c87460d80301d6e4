//! `{{ env.NAME }}` in a configuration: values of its own `env`, or variables of whoever runs it.

use std::{borrow::Cow, collections::BTreeMap};

use probity_core::located::{Node, NodeValue};

/// The values that a configuration sets itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Env(BTreeMap<String, String>);

/// A text with variables of the environment in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told<'t> {
    /// All that is in it is known.
    Text(Cow<'t, str>),
    /// It is one variable and nothing else.
    Variable(String),
    /// There is a variable in it that is not known.
    Unknown(String),
}

impl Env {
    /// The `env` of a configuration or of a provider. Values that are keys by their names are not kept.
    pub(super) fn of(node: Option<&Node>) -> Self {
        let entries = node.map(Node::entries).unwrap_or_default();
        let known = entries.iter().filter(|it| !names_key(&it.key)).filter_map(|it| {
            let value = match &it.node.value {
                NodeValue::String(text) | NodeValue::Number(text) => text.clone(),
                NodeValue::Bool(value) => value.to_string(),
                NodeValue::Null | NodeValue::Array(_) | NodeValue::Object(_) => return None,
            };
            Some((it.key.clone(), value))
        });
        Self(known.collect())
    }

    /// These values, and others that come before them.
    pub(super) fn with(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.clone());
        Self(all)
    }

    /// Adds a value.
    pub(super) fn set(&mut self, name: String, value: String) {
        self.0.insert(name, value);
    }

    /// A text with what is known filled in.
    pub(super) fn told<'t>(&self, text: &'t str) -> Told<'t> {
        let mut output = String::new();
        let mut rest = text;
        while let Some((before, name, fallback, after)) = variable(rest) {
            match self.0.get(&name).map(String::as_str).or(fallback.as_deref()) {
                Some(value) => output.extend([before, value]),
                None if output.is_empty() && before.is_empty() && after.is_empty() => {
                    return Told::Variable(name);
                }
                None => return Told::Unknown(name),
            }
            rest = after;
        }
        match output.is_empty() && rest.len() == text.len() {
            true => Told::Text(Cow::Borrowed(text)),
            false => Told::Text(Cow::Owned(output + rest)),
        }
    }
}

/// Whether a name says that its value is a key.
pub(super) fn names_key(name: &str) -> bool {
    let mut name = name.to_ascii_uppercase().replace("AUTHORIZ", "AUTH");
    for harmless in ["AUTHOR", "KEYWORD", "TOKENIZ"] {
        name = name.replace(harmless, "");
    }
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "AUTH", "CREDENTIAL", "COOKIE"]
        .iter()
        .any(|it| name.contains(it))
}

/// The variables of the environment that a text names.
pub(super) fn names_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, name, _, after)) = variable(rest) {
        names.push(name);
        rest = after;
    }
    names
}

/// The first `{{ env.NAME }}` of a text: what is before it, its name, its default, and what is after it.
fn variable(text: &str) -> Option<(&str, String, Option<String>, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("{{") {
        let start = from + found;
        let end = start + text[start..].find("}}")?;
        let inner = text[start + 2..end].trim_matches(|c: char| c == '-' || c.is_whitespace());
        if let Some((name, fallback)) = named(inner) {
            return Some((&text[..start], name, fallback, &text[end + 2..]));
        }
        from = end + 2;
    }
    None
}

/// The name in `env.NAME`, `env["NAME"]` or `process.env.NAME`, and the default that stands after it.
fn named(inner: &str) -> Option<(String, Option<String>)> {
    let inner = inner.strip_prefix("process.").unwrap_or(inner);
    let rest = inner.strip_prefix("env")?;
    let (name, rest) = if let Some(rest) = rest.strip_prefix('.') {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.split_at(end)
    } else {
        let rest = rest.strip_prefix(['['])?.trim_start().strip_prefix(['"', '\''])?;
        let (name, rest) = rest.split_once(['"', '\''])?;
        (name, rest.trim_start().strip_prefix(']')?)
    };
    let rest = rest.trim();
    let fallback = rest.strip_prefix("or ").or_else(|| rest.strip_prefix("||")).or_else(|| {
        rest.strip_prefix('|')?.trim_start().strip_prefix("default(")?.strip_suffix(')')
    });
    let fallback = fallback.map(|it| it.trim().trim_matches(['"', '\'']).to_owned());
    (!name.is_empty() && (rest.is_empty() || fallback.is_some()))
        .then(|| (name.to_owned(), fallback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_a_key() {
        for name in ["apiKey", "x-auth", "Authorization", "author_token", "AWS_SECRET", "cookies"] {
            assert!(names_key(name), "{name}");
        }
        for name in ["tone", "author", "keywords", "tokenizer", "host"] {
            assert!(!names_key(name), "{name}");
        }
    }

    #[test]
    fn variables_are_found_in_all_spellings() {
        let env = Env(BTreeMap::from([("HOST".to_owned(), "h.example".to_owned())]));
        let told = |text| env.told(text);
        assert_eq!(told("https://{{env.HOST}}/v1"), Told::Text("https://h.example/v1".into()));
        assert_eq!(told("{{ env['KEY'] }}"), Told::Variable("KEY".to_owned()));
        assert_eq!(told("Bearer {{ env.KEY }}"), Told::Unknown("KEY".to_owned()));
        assert_eq!(told("{{ env.X | default('y') }}"), Told::Text("y".into()));
        assert_eq!(told("{{ prompt }} {{"), Told::Text("{{ prompt }} {{".into()));
    }
}
