//! `--backend KIND:MODEL[@URL]`, and how it gets into a suite file.

use std::{fmt::Write as _, str::FromStr};

use probity_load::suite::{BackendKind, Way};

/// The backend that a written suite is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackendChoice {
    kind: BackendKind,
    model: Option<String>,
    url: Option<String>,
}

/// Why a text names no backend.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; the form is KIND:MODEL[@URL], such as ollama:llama3.2, claude:haiku or openai:default@http://127.0.0.1:8080/v1"
)]
pub(crate) struct InvalidBackend(String);

impl FromStr for BackendChoice {
    type Err = InvalidBackend;

    fn from_str(text: &str) -> Result<Self, InvalidBackend> {
        let (before, url) = split_url(text)?;
        let (kind, model) = match before.split_once(':') {
            Some((kind, model)) => (kind, Some(model).filter(|it| !it.is_empty())),
            None => (before, None),
        };
        let found = BackendKind::ALL.into_iter().find(|it| it.as_str() == kind);
        let kind = found.ok_or_else(|| InvalidBackend(unknown_kind(kind)))?;
        Self::new(kind, model, url)
    }
}

/// Models may have `@` in their names, so only what looks like an address is one.
fn split_url(text: &str) -> Result<(&str, Option<&str>), InvalidBackend> {
    let begins = ["@http://", "@https://"].iter().filter_map(|begin| text.find(begin)).min();
    if let Some(at) = begins {
        let url = &text[at + 1..];
        let host = url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = host.split(['/', '?', '#']).next().unwrap_or_default();
        return match authority {
            "" => Err(InvalidBackend(format!("`{url}` names no server"))),
            it if it.contains('@') => {
                let message = "a user or a password in the URL has no place in a suite file";
                Err(InvalidBackend(message.to_owned()))
            }
            _ => Ok((&text[..at], Some(url))),
        };
    }
    match text.rsplit_once('@') {
        Some((_, rest)) if rest.is_empty() || rest.contains(':') || rest == "localhost" => {
            let message = format!("`{rest}` is not a URL: it must begin with http:// or https://");
            Err(InvalidBackend(message))
        }
        Some(_) | None => Ok((text, None)),
    }
}

fn unknown_kind(kind: &str) -> String {
    let kinds = BackendKind::ALL.into_iter().filter(|it| can_be_named(*it));
    let kinds: Vec<&str> = kinds.map(BackendKind::as_str).collect();
    format!("`{kind}` is not a kind of backend: they are {}", kinds.join(", "))
}

/// Whether a kind and a model are all that a backend of this kind needs.
fn can_be_named(kind: BackendKind) -> bool {
    kind.needs().is_none_or(|key| key == "model")
}

fn check(kind: BackendKind, model: Option<&str>, url: Option<&str>) -> Result<(), InvalidBackend> {
    let name = kind.as_str();
    let wrong = match kind.way() {
        _ if !can_be_named(kind) => Some(format!(
            "a backend of kind `{name}` needs more than a model: write it into probity.toml"
        )),
        Way::Server if kind.needs() == Some("model") && model.is_none() => {
            Some(format!("a backend of kind `{name}` needs a model"))
        }
        Way::Program if url.is_some() => Some(format!("`{name}` is a program and has no URL")),
        Way::Engine if model.is_none() => {
            Some(format!("a backend of kind `{name}` needs a model, such as `{name}:smollm2-135m`"))
        }
        Way::Engine if url.is_some() => Some(format!("`{name}` is no server and has no URL")),
        Way::Nobody if model.is_some() || url.is_some() => {
            Some(format!("`{name}` is not a model: it stands alone"))
        }
        Way::Server
        | Way::Custom
        | Way::Program
        | Way::Function
        | Way::Engine
        | Way::File
        | Way::Nobody => None,
    };
    wrong.map_or(Ok(()), |wrong| Err(InvalidBackend(wrong)))
}

/// The table whose keys are replaced.
const TABLE: &str = "[backends.local]\n";

impl BackendChoice {
    pub(super) fn new(
        kind: BackendKind,
        model: Option<&str>,
        url: Option<&str>,
    ) -> Result<Self, InvalidBackend> {
        // A name without a letter is none.
        let model = model.filter(|it| !it.is_empty());
        check(kind, model, url)?;
        Ok(Self { kind, model: model.map(ToOwned::to_owned), url: url.map(ToOwned::to_owned) })
    }

    /// A suite file that asks this backend instead of its own `local`.
    pub(super) fn put_into(&self, suite: &str) -> String {
        let Some(start) = suite.find(TABLE).map(|at| at + TABLE.len()) else {
            return suite.to_owned();
        };
        let lines = suite[start..].split_inclusive('\n');
        let lines = lines.take_while(|line| !line.trim().is_empty() && !line.starts_with('['));
        let lines: Vec<&str> = lines.collect();
        let end = start + lines.iter().map(|line| line.len()).sum::<usize>();
        // How the model is to answer is the suite's affair, whichever model it is.
        let kept =
            lines.iter().filter(|line| self.takes_limits() && line.starts_with("max_tokens"));
        let kept: String = kept.copied().collect();
        format!("{}{}{kept}{}", &suite[..start], self.keys(), &suite[end..])
    }

    /// Programs cannot be told how to answer, and an echo has no choice.
    fn takes_limits(&self) -> bool {
        matches!(self.kind.way(), Way::Server | Way::Engine)
    }

    fn keys(&self) -> String {
        let Self { kind, model, url } = self;
        let mut keys = format!("kind = \"{}\"\n", kind.as_str());
        for (key, value) in [("base_url", url), ("model", model)] {
            if let Some(value) = value {
                let _ = writeln!(keys, "{key} = {}", toml::Value::from(value.as_str()));
            }
        }
        if self.takes_limits() {
            keys.push_str("temperature = 0\n");
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<BackendChoice>() {
            Ok(choice) => choice.keys(),
            Err(error) => error.0,
        };
        assert_eq!(shown.trim_end().replace('\n', ", "), expected, "{text}");
    }

    #[test]
    fn a_backend_is_a_kind_a_model_and_an_address() {
        check("ollama:llama3.2:3b", r#"kind = "ollama", model = "llama3.2:3b", temperature = 0"#);
        check(
            "openai:gpt-x@http://127.0.0.1:8080/v1",
            r#"kind = "openai", base_url = "http://127.0.0.1:8080/v1", model = "gpt-x", temperature = 0"#,
        );
        check("claude:haiku", r#"kind = "claude", model = "haiku""#);
        check("claude", r#"kind = "claude""#);
        check("echo", r#"kind = "echo""#);
        check("vllm", r#"kind = "vllm", temperature = 0"#);
        check("groq:m", r#"kind = "groq", model = "m", temperature = 0"#);
        check("embedded:m", r#"kind = "embedded", model = "m", temperature = 0"#);
    }

    #[test]
    fn a_model_may_have_signs_in_its_name() {
        check("openai:@cf/m", r#"kind = "openai", model = "@cf/m", temperature = 0"#);
        check("openai:a\"b", r#"kind = "openai", model = 'a"b', temperature = 0"#);
        check(
            "openai:m@2@https://host/a@b",
            r#"kind = "openai", base_url = "https://host/a@b", model = "m@2", temperature = 0"#,
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check("openai", "a backend of kind `openai` needs a model");
        check("openai:@http://h", "a backend of kind `openai` needs a model");
        check(
            "openai:m@https://me:pw@host/v1",
            "a user or a password in the URL has no place in a suite file",
        );
        check("openai:m@http://", "`http://` names no server");
        check(
            "openai:m@localhost:8080",
            "`localhost:8080` is not a URL: it must begin with http:// or https://",
        );
        check("openai:m@", "`` is not a URL: it must begin with http:// or https://");
        check(
            "gpt:4",
            "`gpt` is not a kind of backend: they are openai, openai-responses, azure, anthropic, gemini, vertex, vertex-anthropic, bedrock, ollama, vllm, mlx, lmstudio, llamacpp, openrouter, groq, mistral, deepseek, together, fireworks, xai, cerebras, perplexity, nvidia, github-models, embedded, claude, codex, copilot, echo",
        );
        check("claude:haiku@http://h", "`claude` is a program and has no URL");
        check("echo:x", "`echo` is not a model: it stands alone");
        check(
            "command:x",
            "a backend of kind `command` needs more than a model: write it into probity.toml",
        );
    }

    #[test]
    fn only_the_table_is_replaced() {
        let suite = "# a\n[backends.local]\nkind = \"echo\"\nmodel = \"x\"\n\n# b\n[[runners]]\n";
        let choice: BackendChoice = "claude:haiku".parse().unwrap();
        let expected =
            "# a\n[backends.local]\nkind = \"claude\"\nmodel = \"haiku\"\n\n# b\n[[runners]]\n";
        assert_eq!(choice.put_into(suite), expected);
    }
}
