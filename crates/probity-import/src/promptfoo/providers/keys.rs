//! Keys have no place in a suite: where one is written out, a variable takes its place.

use std::ops::Range;

use probity_core::located::{Entry, Node, NodeValue};
use probity_load::template;
use serde_json::{Map, Value};

use crate::promptfoo::{Context, env::names_key, files::with_files};

/// The variable that holds a value of a backend. It is named after the backend, so that what is meant for one
/// server is not sent to another.
pub(super) fn variable(backend: &str, name: &str) -> String {
    let variable = format!("{backend}_{name}")
        .to_ascii_uppercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    match variable.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{variable}"),
        false => variable,
    }
}

/// Whether a value is a key that is written out.
fn is_key(name: &str, value: &str) -> bool {
    names_key(name) && !value.trim().is_empty() && !template::is_template(value)
}

/// The id of a provider as people may see it: an address without its parameters, and without who asks.
pub(in crate::promptfoo) fn shown(id: &str) -> String {
    let Some((scheme, rest)) = id.split_once("://") else { return id.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or(rest);
    format!("{scheme}://{host}{}", &rest[end..])
}

/// Whether a text is an address and nothing else.
pub(super) fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric());
        is_scheme && !rest.is_empty() && !text.contains(char::is_whitespace)
    })
}

/// Whether a text is an address with a key in it.
pub(in crate::promptfoo) fn holds_key(text: &str) -> bool {
    if !is_address(text) {
        return false;
    }
    let rest = text.split_once("://").map_or("", |it| it.1);
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let query = rest.split_once('?').map_or("", |it| it.1).split('#').next().unwrap_or_default();
    let is_secret = |it: &str| {
        let (name, value) = it.split_once('=').unwrap_or((it, ""));
        is_key(if is_key_of_url(name) { "key" } else { name }, value)
    };
    authority.contains('@') || query.split('&').any(is_secret)
}

/// Whether a parameter of an address is a key although its name does not say so.
fn is_key_of_url(name: &str) -> bool {
    ["sig", "signature", "code"].iter().any(|it| name.eq_ignore_ascii_case(it))
}

/// What code is told, without the keys in it, which are noted. `named` is the code.
pub(in crate::promptfoo) fn without_keys(
    node: &Node,
    named: &str,
    context: &mut Context<'_>,
) -> Value {
    match &node.value {
        NodeValue::Array(items) => {
            items.iter().map(|it| without_keys(it, named, context)).collect()
        }
        NodeValue::Object(entries) => {
            let mut kept = Map::new();
            for entry in entries {
                let is_secret = |it: &str| is_key(&entry.key, it) || holds_key(it);
                match entry.node.as_str().is_some_and(is_secret) {
                    true => note_key(entry, named, context),
                    false => {
                        let value = without_keys(&entry.node, named, context);
                        kept.insert(entry.key.clone(), value);
                    }
                }
            }
            Value::Object(kept)
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            node.to_json()
        }
    }
}

/// Notes a key that code is told.
fn note_key(entry: &Entry, named: &str, context: &mut Context<'_>) {
    let at = context.source.at(&entry.key_span);
    let what = format!("the key `{}` in the `config` of `{named}`", entry.key);
    context.notes.lost(at, what, "have the code read it from a variable");
}

/// Where a value of a backend stands that is a template.
pub(in crate::promptfoo) struct Place<'p> {
    pub(in crate::promptfoo) backend: &'p str,
    /// Such as `the header`.
    pub(in crate::promptfoo) what: &'p str,
}

impl Place<'_> {
    /// A value, or the variable in the place of a key.
    pub(super) fn text(
        &self,
        name: &str,
        value: String,
        span: &Range<usize>,
        context: &mut Context<'_>,
    ) -> String {
        if !is_key(name, &value) {
            return value;
        }
        let variable = variable(self.backend, name);
        let what = format!("the key in {} `{name}` is not copied", self.what);
        let advice = format!("put it into the variable `{variable}`");
        context.notes.assumed(context.source.at(span), what, advice);
        format!("{{{{ env.{variable} }}}}")
    }

    /// An address without the keys in it: passwords before the host, and parameters whose names say so.
    pub(in crate::promptfoo) fn url(
        &self,
        url: &str,
        span: &Range<usize>,
        context: &mut Context<'_>,
    ) -> String {
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), url),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = match authority.rsplit_once('@') {
            None => authority.to_owned(),
            Some((user, host)) => match user.split_once(':') {
                Some((user, password)) => {
                    let password = self.text("password", password.to_owned(), span, context);
                    format!("{user}:{password}@{host}")
                }
                None => {
                    let token = self.text("token", user.to_owned(), span, context);
                    format!("{token}@{host}")
                }
            },
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (query, fragment) = query.split_once('#').unwrap_or((query, ""));
        let parameter = |it: &str| match it.split_once('=') {
            Some((name, value)) => {
                let called = if is_key_of_url(name) { "key" } else { name };
                let kept = self.text(called, value.to_owned(), span, context);
                format!("{name}={kept}")
            }
            None => it.to_owned(),
        };
        let query = match query.is_empty() {
            true => String::new(),
            false => {
                let parameters: Vec<String> = query.split('&').map(parameter).collect();
                format!("?{}", parameters.join("&"))
            }
        };
        let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
        format!("{scheme}{authority}{path}{query}{fragment}")
    }

    /// A value under a name.
    pub(super) fn named(
        &self,
        name: &str,
        value: Value,
        span: &Range<usize>,
        context: &mut Context<'_>,
    ) -> Value {
        match value {
            Value::String(text) => self.text(name, text, span, context).into(),
            Value::Array(items) => {
                items.into_iter().map(|it| self.named(name, it, span, context)).collect()
            }
            Value::Object(map) => {
                let pairs = map.into_iter().map(|(key, it)| {
                    let value = self.named(&key, it, span, context);
                    (key, value)
                });
                Value::Object(pairs.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// A tree of values, with the files that it names put in their places.
    pub(super) fn tree(&self, node: &Node, context: &mut Context<'_>) -> Value {
        let value = with_files(node, context);
        self.beside(("", &node.span), node, value, context)
    }

    /// A value under a name, with the tree that it was made of, which says where its parts stand.
    fn beside(
        &self,
        (name, span): (&str, &Range<usize>),
        node: &Node,
        value: Value,
        context: &mut Context<'_>,
    ) -> Value {
        match (&node.value, value) {
            (NodeValue::Array(items), Value::Array(values)) => {
                let both = items.iter().zip(values);
                both.map(|(it, value)| self.beside((name, span), it, value, context)).collect()
            }
            (NodeValue::Object(entries), Value::Object(mut values)) => {
                let pairs = entries.iter().map(|it| {
                    let value = values.get_mut(&it.key).map(Value::take).unwrap_or_default();
                    let named = (it.key.as_str(), &it.key_span);
                    (it.key.clone(), self.beside(named, &it.node, value, context))
                });
                Value::Object(pairs.collect())
            }
            (_, value) => self.named(name, value, span, context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_without_keys() {
        assert_eq!(
            shown("webhook:https://a:b@h.example/x@y?key=z#f"),
            "webhook:https://h.example/x@y"
        );
        assert_eq!(shown("openai:gpt-4o"), "openai:gpt-4o");
    }

    #[test]
    fn addresses_with_keys_are_told_from_texts() {
        for text in ["https://u:p@h.example/", "https://h.example/t.csv?a=1&token=x", "wss://t@h"] {
            assert!(holds_key(text), "{text}");
        }
        let code = "json.u.startsWith('https://') ? json.token === 'x' && json.b : ''";
        for text in [code, "https://h.example/a@b?page=1", "https://h.example/?token={{ x }}"] {
            assert!(!holds_key(text), "{text}");
        }
        assert!(!is_address(code) && is_address("https://h.example/?a=1&&b=2"));
    }

    #[test]
    fn variables_are_named_after_their_backends() {
        assert_eq!(variable("my-vllm", "api_key"), "MY_VLLM_API_KEY");
        assert_eq!(variable("4o", "x-token"), "_4O_X_TOKEN");
    }
}
