//! What promptfoo sends if nothing is said.

use probity_core::located::Node;
use probity_load::suite::BackendKind;

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
        let stated = config.and_then(|it| text(it, "isReasoningModel"));
        let reasons = is_chat && (reasons(&model) || stated.as_deref() == Some("true"));
        if omits || reasons {
            if reasons {
                self.backend.sampling.temperature = None;
            }
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
