//! Backends whose model is in this process.

use super::BackendConfig;
use crate::case::Fields;
use probity_core::located::Node;

/// Fields that only these have.
pub(super) const OWN: &[&str] = &["context", "threads", "grammar"];
/// Fields of others that would do nothing here.
pub(super) const OF_OTHERS: &[&str] = &["base_url", "api_key_env", "headers_env", "extra_body"];
/// More threads than any machine has a use for.
const MOST_THREADS: u64 = 256;
/// More tokens than any model takes.
const LONGEST_CONTEXT: u64 = 1 << 24;

/// How a model is loaded and held to a form. What is not set is left to the model and the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddedModel {
    /// Tokens of question and answer together.
    pub context: Option<u32>,
    /// Threads that compute.
    pub threads: Option<u32>,
    /// A grammar in llama.cpp's notation that answers keep to.
    pub grammar: Option<String>,
}

pub(super) fn decode(fields: &mut Fields<'_, '_>) -> EmbeddedModel {
    let mut number =
        |key: &str, most: u64| fields.count(key, 1..=most).and_then(|it| u32::try_from(it).ok());
    EmbeddedModel {
        context: number("context", LONGEST_CONTEXT),
        threads: number("threads", MOST_THREADS),
        grammar: fields.text("grammar"),
    }
}

/// The model is named in one way, and so is the form of answers.
pub(super) fn check(config: &BackendConfig, node: &Node, fields: &mut Fields<'_, '_>) {
    if !config.kind.is_embedded() {
        return;
    }
    let name = &config.name;
    match (&config.model, &config.file) {
        (None, None) => {
            let message = format!("backend `{name}` of kind `embedded` needs `model` or `file`");
            let help = "`model` is a name that `probity model list` shows, `file` a path to a \
                        GGUF file"
                .to_owned();
            fields.findings().error_with_help("missing-field", &node.span, message, help);
        }
        (Some(_), Some(_)) => {
            let span = fields.span("file");
            let message = format!("backend `{name}` has both `model` and `file`");
            let help = "each of them says which model it is".to_owned();
            fields.findings().error_with_help("foreign-field", &span, message, help);
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    if config.embedded.grammar.is_some() && config.response_format.is_some() {
        let span = fields.span("grammar");
        let message = "`grammar` and `response_format` both say what answers look like".to_owned();
        fields.findings().error("foreign-field", &span, message);
    }
}

#[cfg(test)]
mod tests {
    use super::super::BackendKind;
    use super::*;

    #[test]
    fn another_model_takes_the_place_of_a_file() {
        let mut config = BackendConfig::new("b", BackendKind::Embedded);
        config.file = Some("m.gguf".to_owned());
        config.set_model("other");
        assert_eq!((config.model.as_deref(), config.file), (Some("other"), None));
        let mut config = BackendConfig::new("b", BackendKind::Replay);
        config.file = Some("answers.jsonl".to_owned());
        config.set_model("other");
        assert_eq!(config.file.as_deref(), Some("answers.jsonl"));
    }
}
