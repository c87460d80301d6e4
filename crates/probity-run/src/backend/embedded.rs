//! Models in this process: GGUF files, asked through `probity-model`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use probity_core::{
    failure::ErrorKind,
    record::{CallError, Usage},
    reply::{Logprobs, TokenLogprob},
    request::{Need, Part, Request, ResponseFormat, Sampling},
    span::Span,
};
use probity_load::suite::{BackendConfig, EmbeddedModel};
pub use probity_model::engine::Use;
use probity_model::{
    chat::{ChatError, ChatMessage, ChatTemplate},
    engine::{self, Answer, Engine, EngineError, Load, Question},
    gguf::{self, GgufError, Header},
    grammar,
    models::{Models, ModelsError},
};
use serde_json::{Value, json};

use super::{
    Ask, Failed, Reply,
    silence::{is_silent_about, silence},
};

/// A model that can be asked.
#[derive(Debug)]
pub struct Embedded {
    model: String,
    header: Header,
    /// None where it embeds texts.
    template: Option<ChatTemplate>,
    sampling: Sampling,
    /// The form that answers have, unless a case has one of its own.
    grammar: Option<Arc<str>>,
    engine: Engine,
}

/// Why a model cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// It is not where it should be.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// Its file is none.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// It cannot hold a conversation.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// There is no engine, or it cannot be had.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It cannot be held to the form that is wanted.
    #[error(transparent)]
    Schema(#[from] grammar::SchemaError),
    /// The grammar is none.
    #[error(transparent)]
    Grammar(#[from] grammar::GrammarError),
}

impl EmbeddedError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Models(error) => error.hint(),
            Self::Engine(EngineError::NotBuiltIn) => Some(
                "build it with `cargo build --release --features embedded`, which needs cmake, a C++ \
                 compiler and libclang"
                    .to_owned(),
            ),
            Self::Gguf(_) => Some(
                "`file` names a GGUF file; `probity model pull` fetches one again if it is damaged"
                    .to_owned(),
            ),
            Self::Chat(_) => Some("choose a model with `instruct` or `chat` in its name".to_owned()),
            Self::Engine(_) | Self::Schema(_) | Self::Grammar(_) => None,
        }
    }
}

/// Those of some settings that the engine does not have.
pub(super) fn ignored(sampling: &Sampling) -> Vec<&'static str> {
    let penalties = ["presence_penalty", "frequency_penalty"];
    sampling.names().filter(|it| penalties.contains(it)).collect()
}

impl Embedded {
    /// What it cannot be asked for.
    pub(super) const LACKS: &'static [Need] =
        &[Need::Tools, Need::ForcedCall, Need::ImageFile, Need::ImageUrl];

    /// A model as a suite describes it. Its file is looked at now, and loaded when it is asked.
    pub(super) fn open(
        config: &BackendConfig,
        folder: &Path,
        variables: &BTreeMap<OsString, OsString>,
        use_for: Use,
    ) -> Result<Self, EmbeddedError> {
        let EmbeddedModel { context, threads, grammar } = &config.embedded;
        let path = path(config, folder, variables)?;
        let header = gguf::read(&path)?;
        let template = match use_for {
            Use::Answers => Some(ChatTemplate::of(&header)?),
            Use::Embeddings => None,
        };
        let grammar = match (grammar, &config.response_format) {
            (Some(text), _) => {
                grammar::check(text)?;
                Some(text.as_str().into())
            }
            (None, format) => format.as_ref().map(grammar_of).transpose()?,
        };
        let trained = header.context.and_then(|it| u32::try_from(it).ok());
        let usual = || trained.map_or(engine::USUAL_CONTEXT, |it| it.min(engine::USUAL_CONTEXT));
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let load = Load {
            path,
            context: context.unwrap_or_else(usual),
            threads: threads.unwrap_or_else(|| engine::usual_threads(header.bytes, cores())),
            use_for,
        };
        let named = || header.name.clone().unwrap_or_else(|| header.architecture.clone());
        Ok(Self {
            model: config.model.clone().unwrap_or_else(named),
            template,
            sampling: config.sampling.clone(),
            grammar,
            engine: Engine::open(&load)?,
            header,
        })
    }

    /// What it is called.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// What its file says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it is loaded.
    pub fn load(&self) -> &Load {
        self.engine.load()
    }

    /// Asks, and waits no longer than `limit`. The work ends when nobody waits.
    pub(super) async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        let question = self.question(ask.request)?;
        let answer = tokio::time::timeout(limit, self.engine.ask(question)).await;
        let answer = answer.map_err(|_| {
            CallError::new(ErrorKind::Timeout, format!("no answer within {}", Span(limit)))
        })?;
        let reply = self.reply(answer.map_err(|error| self.call_error(&error))?);
        if is_silent_about(&reply, ask.request) {
            let silence = silence(&reply);
            let error = CallError { status: None, ..*silence.error };
            return Err(Failed { error: Box::new(error), ..silence });
        }
        Ok(reply)
    }

    fn question(&self, request: &Request) -> Result<Question, CallError> {
        let refused = |why: String| CallError::new(ErrorKind::BadRequest, why);
        let text = match &self.template {
            Some(template) => {
                let texts = texts(request).map_err(refused)?;
                let messages = request.messages.iter().zip(&texts);
                let messages: Vec<_> = messages
                    .map(|(message, content)| ChatMessage { role: message.role.as_str(), content })
                    .collect();
                template.render(&messages).map_err(|error| refused(error.to_string()))?
            }
            None => request.prompt().to_owned(),
        };
        let grammar = match &request.response_format {
            Some(format) => Some(grammar_of(format).map_err(|error| refused(error.to_string()))?),
            None => self.grammar.clone(),
        };
        let Sampling { temperature, top_p, max_tokens, seed, stop, logprobs, .. } =
            request.sampling.or(&self.sampling);
        let is_begun = self.template.as_ref().is_some_and(|it| it.has_beginning(&text));
        #[expect(clippy::cast_possible_truncation, reason = "the engine has no more digits")]
        let narrow = |value: f64| value as f32;
        Ok(Question {
            wants_beginning: !is_begun,
            text,
            // An evaluation is to be repeatable, unless it says otherwise.
            temperature: temperature.map_or(0.0, narrow),
            top_p: top_p.map(narrow),
            seed: seed.and_then(|it| u32::try_from(it).ok()).unwrap_or_else(|| fastrand::u32(..)),
            max_tokens,
            stop,
            grammar,
            logprobs: logprobs == Some(true),
        })
    }

    fn reply(&self, answer: Answer) -> Reply {
        let Answer {
            text,
            is_cut,
            input_tokens,
            output_tokens,
            logprobs,
            took,
            first_token,
            vector,
        } = answer;
        let logprobs = logprobs.into_iter().map(|(token, logprob)| TokenLogprob { token, logprob });
        let text = match self.template {
            Some(_) => text,
            None => json!(vector).to_string(),
        };
        let reply = Reply {
            text,
            stop_reason: Some(if is_cut { "length" } else { "stop" }.to_owned()),
            model: Some(self.model.clone()),
            usage: Usage {
                input_tokens: Some(input_tokens),
                output_tokens: Some(output_tokens),
                ..Usage::default()
            },
            cost_usd: Some(0.0),
            logprobs: Logprobs::of(logprobs),
            latency: Some(took),
            first_token: self.template.is_some().then_some(first_token),
            ..Reply::default()
        };
        reply.with_reasoning_apart()
    }

    fn call_error(&self, error: &EngineError) -> CallError {
        let kind = match error {
            EngineError::NotBuiltIn | EngineError::Load { .. } => ErrorKind::NotInstalled,
            EngineError::TooLarge { .. } => ErrorKind::TooLarge,
            EngineError::Empty | EngineError::BadGrammar { .. } => ErrorKind::BadRequest,
            EngineError::Failed { .. } => ErrorKind::Crash,
            EngineError::Abandoned => ErrorKind::Timeout,
        };
        let message = match (error, self.header.context) {
            (EngineError::TooLarge { context, .. }, Some(trained))
                if trained > u64::from(*context) =>
            {
                format!("{error}; `context` can be up to {trained} with this model")
            }
            (_, _) => error.to_string(),
        };
        CallError::new(kind, message)
    }
}

/// The texts of messages, one for each.
fn texts(request: &Request) -> Result<Vec<String>, String> {
    let of_part = |part: &Part| match part {
        Part::Text(text) => Ok(text.to_string()),
        Part::ToolResult(result) => Ok(result.content.to_string()),
        Part::Image(_) | Part::ToolCall(_) => {
            Err("an embedded model is told texts only, no images and no calls of tools".to_owned())
        }
    };
    request.messages.iter().map(|it| it.content.iter().map(of_part).collect()).collect()
}

fn grammar_of(format: &ResponseFormat) -> Result<Arc<str>, grammar::SchemaError> {
    match format {
        ResponseFormat::Json => Ok(grammar::any_object().into()),
        ResponseFormat::Schema(schema) => grammar::of_schema(schema).map(Into::into),
    }
}

/// The file of a model: the one that the suite names, or the one of that name among the models here.
fn path(
    config: &BackendConfig,
    folder: &Path,
    variables: &BTreeMap<OsString, OsString>,
) -> Result<PathBuf, ModelsError> {
    match &config.file {
        Some(file) => Ok(folder.join(file)),
        None => Models::of(variables)?.find(config.model.as_deref().unwrap_or_default()),
    }
}

/// What of its description makes other answers.
pub(super) fn parameters(
    config: &BackendConfig,
    folder: &Path,
    variables: &BTreeMap<OsString, OsString>,
) -> Value {
    let EmbeddedModel { context, threads: _, grammar } = &config.embedded;
    let path = path(config, folder, variables).ok();
    // A digest of a gigabyte for each run would take too long.
    let bytes = path.and_then(|it| Some(std::fs::metadata(it).ok()?.len()));
    json!({ "context": context, "grammar": grammar, "file": config.file, "bytes": bytes })
}

#[cfg(test)]
mod tests {
    use probity_load::suite::BackendKind;

    use super::*;

    #[test]
    fn another_file_of_the_same_name_makes_other_answers() {
        let folder = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("PROBITY_MODELS".into(), folder.path().into())]);
        let file = folder.path().join("m.gguf");
        let mut named = BackendConfig::new("b", BackendKind::Embedded);
        let mut filed = named.clone();
        named.model = Some("m".to_owned());
        filed.file = Some("m.gguf".to_owned());
        let both = || [&named, &filed].map(|it| parameters(it, folder.path(), &variables));
        std::fs::write(&file, "1").unwrap();
        let [named_before, filed_before] = both();
        std::fs::write(&file, "12").unwrap();
        let [named_after, filed_after] = both();
        assert_ne!(named_before, named_after);
        assert_ne!(filed_before, filed_after);
    }
}
