//! What promptfoo sends if nothing is said.

use probity_core::located::Node;
use probity_load::suite::BackendKind;
use serde_json::json;

use super::Filling;
use crate::{
    cases::text,
    promptfoo::providers::{
        http::known,
        vendors::{Family, Server, reasons},
    },
};

impl Filling<'_, '_> {
    /// What promptfoo sends if nothing is said. It stands in the suite, so that nobody has to know.
    pub(super) fn defaults(&mut self, config: Option<&Node>) {
        let omits = config.and_then(|it| text(it, "omitDefaults")).as_deref() == Some("true");
        let model = self.backend.model.clone().unwrap_or_default();
        let is_chat = matches!(self.server.family, Family::Chat | Family::Responses);
        let stated = |key| config.and_then(|it| text(it, key)).as_deref() == Some("true");
        let is_stated = stated("isReasoningModel") || stated("o1");
        let reasons = is_chat && (reasons(&model) || is_stated);
        self.reasoning_effort(reasons, !omits);
        if reasons {
            self.backend.sampling.temperature = None;
            self.backend.sampling.max_tokens = self.longest_of_reasoning(config, !omits);
        }
        if omits || reasons {
            return;
        }
        let sampling = &mut self.backend.sampling;
        let thinks = self.backend.extra_body.contains_key("thinking");
        match self.server.family {
            Family::Chat | Family::Responses => {
                let (temperature, max_tokens) = usual_sampling(self.server);
                sampling.temperature = sampling.temperature.or(temperature);
                sampling.max_tokens = sampling.max_tokens.or(max_tokens);
            }
            Family::Anthropic
                if !thinks && sampling.top_p.is_none() && takes_temperature(&model) =>
            {
                sampling.temperature = sampling.temperature.or(Some(0.0));
                sampling.max_tokens = sampling.max_tokens.or(Some(1024));
            }
            Family::Anthropic => sampling.max_tokens = sampling.max_tokens.or(Some(2048)),
            Family::Gemini | Family::Bedrock | Family::Ollama | Family::Embeddings => {}
        }
        let extra = std::mem::take(&mut self.backend.extra_body);
        self.backend.extra_body = known(extra);
    }
}

impl Filling<'_, '_> {
    /// The longest reply of a model that reasons: promptfoo takes other keys for it, and `max_tokens` for Azure
    /// alone.
    fn longest_of_reasoning(&mut self, config: Option<&Node>, has_default: bool) -> Option<u64> {
        let usual = (has_default && self.server.kind == BackendKind::Azure).then_some(1024);
        let keys: &[&str] = match (self.server.kind, self.server.family) {
            (BackendKind::Azure, _) => &["max_completion_tokens", "max_tokens"],
            (_, Family::Responses) => &["max_output_tokens"],
            (_, _) => &["max_completion_tokens"],
        };
        let sent = config.and_then(|it| it.get("passthrough"));
        for table in [config, sent].into_iter().flatten() {
            for key in keys {
                if let Some(number) = self.number(table, key) {
                    return Some(number);
                }
            }
        }
        usual
    }

    /// How long a model reasons, which promptfoo tells only those models of OpenAI's that do.
    fn reasoning_effort(&mut self, reasons: bool, has_default: bool) {
        const KEY: &str = "reasoning_effort";
        let kind = self.server.kind;
        // Others with the same API have keys of their own.
        let is_openai = kind == BackendKind::Openai && self.server.key.is_none()
            || matches!(
                kind,
                BackendKind::OpenaiResponses | BackendKind::Openrouter | BackendKind::Azure
            );
        if !is_openai {
            return;
        }
        let is_azure = kind == BackendKind::Azure;
        let is_open = self.backend.model.as_deref().is_some_and(|it| it.contains("gpt-oss"));
        let extra = &mut self.backend.extra_body;
        match reasons || is_open && !is_azure {
            false => drop(extra.remove(KEY)),
            true if self.server.family == Family::Responses => {
                if let Some(effort) = extra.remove(KEY) {
                    let reasoning = extra.entry("reasoning").or_insert_with(|| json!({}));
                    if let Some(reasoning) = reasoning.as_object_mut() {
                        reasoning.entry("effort").or_insert(effort);
                    }
                }
            }
            true if is_azure && has_default => {
                extra.entry(KEY).or_insert_with(|| "medium".into());
            }
            true => {}
        }
    }
}

/// What promptfoo sends to a server if nothing is said: the temperature and the longest reply.
fn usual_sampling(server: &Server) -> (Option<f64>, Option<u64>) {
    match (server.kind, server.key) {
        (BackendKind::Mistral, _) => (None, Some(1024)),
        (_, Some("COHERE_API_KEY")) => (Some(0.3), None),
        (_, Some("AI21_API_KEY")) => (Some(0.1), Some(1024)),
        (_, _) => (Some(0.0), Some(1024)),
    }
}

/// Whether a model of Anthropic's takes a temperature.
fn takes_temperature(model: &str) -> bool {
    let newer = ["opus-4-7", "opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos"];
    !newer.iter().any(|it| model.contains(it))
}
