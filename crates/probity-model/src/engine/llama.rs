//! llama.cpp. Nothing else here knows it.

mod log;

use std::{num::NonZeroU32, sync::OnceLock, time::Instant};

use llama_cpp_2::{
    context::{
        LlamaContext,
        params::{LlamaContextParams, LlamaPoolingType},
    },
    llama_backend::LlamaBackend,
    llama_batch::LlamaBatch,
    model::{LlamaModel, params::LlamaModelParams},
    sampling::LlamaSampler,
    token::LlamaToken,
};

use super::{Answer, EngineError, Load, Model, Question, Use};

/// Tokens of a question that are read between two looks at whether somebody waits.
const STEP: u32 = 128;
/// `LLAMA_FLASH_ATTN_TYPE_DISABLED`. With it, sums would be split by the number of threads, and the
/// same question could have another answer with another number.
const NO_FLASH_ATTENTION: i32 = 0;

/// Loads a model and hands it over.
pub(super) fn with_model(
    load: &Load,
    serve: &mut dyn FnMut(&mut dyn Model),
) -> Result<(), EngineError> {
    let backend = backend()?;
    let failed = |why: String| EngineError::Load { path: load.path.clone(), why };
    let (model, said) = log::heard(|| {
        LlamaModel::load_from_file(backend, &load.path, &LlamaModelParams::default())
    });
    let model = model.map_err(|error| failed(said.unwrap_or_else(|| error.to_string())))?;
    let (context, said) = log::heard(|| model.new_context(backend, parameters(load)));
    let context = context.map_err(|error| failed(said.unwrap_or_else(|| error.to_string())))?;
    let mut loaded = Loaded { model: &model, context, load };
    // What it says of itself from now on is not heard: nobody could do anything about it.
    serve(&mut loaded);
    Ok(())
}

/// The engine, which may be set up once in a process.
fn backend() -> Result<&'static LlamaBackend, EngineError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        log::send_to_us();
        LlamaBackend::init().map_err(|error| error.to_string())
    });
    backend.as_ref().map_err(|why| EngineError::Failed { why: why.clone() })
}

fn parameters(load: &Load) -> LlamaContextParams {
    let threads = i32::try_from(load.threads).unwrap_or(1).max(1);
    let parameters = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(load.context))
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_flash_attention_policy(NO_FLASH_ATTENTION)
        .with_no_perf(true);
    match load.use_for {
        Use::Answers => parameters.with_n_batch(STEP).with_n_ubatch(STEP),
        // A vector is made of the whole text at once.
        Use::Embeddings => parameters
            .with_n_batch(load.context)
            .with_n_ubatch(load.context)
            .with_embeddings(true)
            .with_pooling_type(LlamaPoolingType::Mean),
    }
}

struct Loaded<'a> {
    model: &'a LlamaModel,
    context: LlamaContext<'a>,
    load: &'a Load,
}

impl Model for Loaded<'_> {
    fn answer(
        &mut self,
        question: &Question,
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<Answer, EngineError> {
        let begun = Instant::now();
        let vocabulary = self.model.vocab();
        let tokens = vocabulary.tokenize(question.text.as_bytes(), question.wants_beginning, true);
        let context = self.context.n_ctx().min(self.load.context);
        let input_tokens = tokens.len() as u64;
        // What would be sampled is the end of the question before it.
        if tokens.is_empty() {
            return Err(EngineError::Empty);
        }
        // There has to be room for at least one token of an answer.
        if input_tokens >= u64::from(context) {
            return Err(EngineError::TooLarge { tokens: input_tokens, context });
        }
        self.context.clear_kv_cache();
        if self.load.use_for == Use::Embeddings {
            return self.embed(&tokens, begun);
        }
        let mut sampler = self.sampler(question)?;
        self.read(&tokens, is_abandoned)?;
        let mut writing = Writing::new(question, u64::from(context) - input_tokens, begun);
        let mut position = i32::try_from(tokens.len()).unwrap_or(i32::MAX);
        let mut batch = LlamaBatch::new(1, 1);
        loop {
            if is_abandoned() {
                return Err(EngineError::Abandoned);
            }
            let token = sampler.next(&self.context)?;
            writing.count();
            if vocabulary.is_eog(token) {
                break;
            }
            let piece = vocabulary.token_to_piece(token, false, None);
            if question.logprobs {
                let logprob = logprob(self.context.get_logits_ith(-1), token);
                writing.logprobs.push((String::from_utf8_lossy(&piece).into_owned(), logprob));
            }
            if writing.push(&piece) {
                break;
            }
            batch.clear();
            batch.add(token, position, &[0], true).map_err(failed)?;
            self.context.decode(&mut batch).map_err(failed)?;
            position += 1;
        }
        Ok(Answer { input_tokens, ..writing.done() })
    }
}

impl Loaded<'_> {
    fn sampler(&self, question: &Question) -> Result<Sampler, EngineError> {
        let of_text = |text: &str| {
            let (sampler, said) = log::heard(|| LlamaSampler::grammar(self.model, text, "root"));
            let why = |error: String| EngineError::BadGrammar { why: said.unwrap_or(error) };
            sampler.map_err(|error| why(error.to_string()))
        };
        let grammar = question.grammar.as_deref().map(of_text).transpose()?;
        if question.temperature <= 0.0 {
            let likeliest = || Sampler::Likeliest;
            return Ok(grammar.map_or_else(likeliest, |grammar| Sampler::Chain {
                grammar: Some(grammar),
                chain: LlamaSampler::greedy(),
            }));
        }
        let mut chain = Vec::new();
        chain.extend(question.top_p.map(|share| LlamaSampler::top_p(share, 1)));
        chain.push(LlamaSampler::temp(question.temperature));
        chain.push(LlamaSampler::dist(question.seed));
        Ok(Sampler::Chain { grammar, chain: LlamaSampler::chain(chain, true) })
    }

    /// Reads a question, some tokens at a time.
    fn read(
        &mut self,
        tokens: &[LlamaToken],
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<(), EngineError> {
        let mut batch = LlamaBatch::new(STEP as usize, 1);
        let mut position = 0;
        for step in tokens.chunks(STEP as usize) {
            if is_abandoned() {
                return Err(EngineError::Abandoned);
            }
            batch.clear();
            for (index, token) in step.iter().enumerate() {
                batch.add(*token, position, &[0], index + 1 == step.len()).map_err(failed)?;
                position += 1;
            }
            self.context.decode(&mut batch).map_err(failed)?;
        }
        Ok(())
    }

    fn embed(&mut self, tokens: &[LlamaToken], begun: Instant) -> Result<Answer, EngineError> {
        let mut batch = LlamaBatch::new(tokens.len().max(1), 1);
        for (position, token) in (0..).zip(tokens) {
            batch.add(*token, position, &[0], true).map_err(failed)?;
        }
        self.context.decode(&mut batch).map_err(failed)?;
        let vector = self.context.embeddings_seq_ith(0).map_err(failed)?.to_vec();
        let input_tokens = tokens.len() as u64;
        Ok(Answer { vector, input_tokens, took: begun.elapsed(), ..Answer::default() })
    }
}

/// What chooses the next token.
enum Sampler {
    /// The likeliest token, the first of those that are equally likely. Nothing is copied for it.
    Likeliest,
    Chain {
        grammar: Option<LlamaSampler>,
        chain: LlamaSampler,
    },
}

impl Sampler {
    /// The token that follows what the model read last.
    fn next(&mut self, context: &LlamaContext<'_>) -> Result<LlamaToken, EngineError> {
        let Self::Chain { grammar, chain } = self else {
            return Ok(likeliest(context.get_logits_ith(-1)));
        };
        let mut candidates = context.token_data_array_ith(-1);
        if let Some(grammar) = grammar {
            grammar.apply(&mut candidates);
            // llama.cpp ends the process when it is to accept a token that the grammar forbids.
            candidates.data.retain(|it| it.logit() > f32::NEG_INFINITY);
            if candidates.data.is_empty() {
                let why = "no token of the model can follow".to_owned();
                return Err(EngineError::BadGrammar { why });
            }
        }
        chain.apply(&mut candidates);
        let token = candidates.selected_token().ok_or_else(|| failed("no token is chosen"))?;
        for sampler in grammar.iter_mut().chain([chain]) {
            sampler.accept(token);
        }
        Ok(token)
    }
}

fn likeliest(logits: &[f32]) -> LlamaToken {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &logit) in (0..).zip(logits) {
        if logit > best.1 {
            best = (token, logit);
        }
    }
    LlamaToken(best.0)
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed { why: error.to_string() }
}

/// The natural logarithm of how likely a token was, whatever temperature and grammar made of it.
fn logprob(logits: &[f32], token: LlamaToken) -> f64 {
    let chosen = usize::try_from(token.0).ok().and_then(|index| logits.get(index));
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
    chosen.map_or(f64::NEG_INFINITY, |logit| f64::from(logit - most) - sum.ln())
}

/// An answer that is being written.
struct Writing<'a> {
    stop: &'a [String],
    most: u64,
    bytes: Vec<u8>,
    tokens: u64,
    is_cut: bool,
    logprobs: Vec<(String, f64)>,
    begun: Instant,
    first_token: Option<std::time::Duration>,
}

impl<'a> Writing<'a> {
    fn new(question: &'a Question, room: u64, begun: Instant) -> Self {
        Self {
            stop: &question.stop,
            most: question.max_tokens.map_or(room, |most| most.min(room)),
            bytes: Vec::new(),
            tokens: 0,
            is_cut: false,
            logprobs: Vec::new(),
            begun,
            first_token: None,
        }
    }

    fn count(&mut self) {
        self.tokens += 1;
        self.first_token.get_or_insert_with(|| self.begun.elapsed());
    }

    /// Adds a piece; whether the answer ends with it.
    fn push(&mut self, piece: &[u8]) -> bool {
        let longest = self.stop.iter().map(String::len).max().unwrap_or(0);
        let from = self.bytes.len().saturating_sub(longest);
        self.bytes.extend_from_slice(piece);
        let tail = &self.bytes[from..];
        let find = |stop: &String| {
            let mut windows = tail.windows(stop.len().max(1));
            windows.position(|it| it == stop.as_bytes())
        };
        if let Some(at) = self.stop.iter().filter_map(find).min() {
            self.bytes.truncate(from + at);
            return true;
        }
        self.is_cut = self.tokens >= self.most;
        self.is_cut
    }

    fn done(self) -> Answer {
        let took = self.begun.elapsed();
        Answer {
            text: String::from_utf8_lossy(&self.bytes).into_owned(),
            is_cut: self.is_cut,
            output_tokens: self.tokens,
            logprobs: self.logprobs,
            took,
            first_token: self.first_token.unwrap_or(took),
            ..Answer::default()
        }
    }
}

#[cfg(test)]
mod tests;
