//! Asks a model in this process.
//!
//! One thread owns the model. Questions wait in a bounded queue and are answered one after the other, each
//! from an empty memory, so that an answer depends on nothing but its question. Whoever stops waiting ends
//! the work: it is looked for between two tokens.

#[cfg(feature = "engine")]
mod llama;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

/// Questions that may wait.
const WAITING: usize = 64;
/// Files up to this size are answered by one thread.
const SMALL: u64 = 1 << 30;
/// The context that a model gets unless more is asked for: memory grows with it.
pub const USUAL_CONTEXT: u32 = 4096;

/// Whether there is an engine in this build.
pub const IS_BUILT_IN: bool = cfg!(feature = "engine");

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Its file.
    pub path: PathBuf,
    /// Tokens of question and answer together.
    pub context: u32,
    /// Threads that compute.
    pub threads: u32,
    /// What it is asked for.
    pub use_for: Use,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Answers.
    Answers,
    /// Vectors of texts.
    Embeddings,
}

/// A question, as the text that the model continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The text.
    pub text: String,
    /// Whether the mark of the beginning goes before it, if the model has one.
    pub wants_beginning: bool,
    /// How freely words are chosen; 0 is not at all.
    pub temperature: f32,
    /// The share of likely words to choose from.
    pub top_p: Option<f32>,
    /// What chance begins with.
    pub seed: u32,
    /// The longest answer.
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// The grammar that it keeps to.
    pub grammar: Option<Arc<str>>,
    /// Whether to tell how likely each token was.
    pub logprobs: bool,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// Whether it was cut because it became too long.
    pub is_cut: bool,
    /// Tokens of the question.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Each token and the natural logarithm of how likely it was, if that was asked for.
    pub logprobs: Vec<(String, f64)>,
    /// How long it took, without waiting and loading.
    pub took: Duration,
    /// How long its first token took.
    pub first_token: Duration,
    /// The vector of the text, of a model that embeds.
    pub vector: Vec<f32>,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// This build has no engine.
    #[error("this build of probity has no engine for models in its own process")]
    NotBuiltIn,
    /// The model cannot be loaded.
    #[error("the model `{path}` cannot be loaded: {why}")]
    Load {
        /// Its file.
        path: PathBuf,
        /// What the engine says.
        why: String,
    },
    /// There is nothing to continue.
    #[error("the prompt is empty: it has no tokens")]
    Empty,
    /// The question is longer than the context.
    #[error("the prompt has {tokens} tokens, and the context has room for {context}")]
    TooLarge {
        /// Tokens of the question.
        tokens: u64,
        /// Tokens of the context.
        context: u32,
    },
    /// The grammar is none.
    #[error("the grammar cannot be used: {why}")]
    BadGrammar {
        /// What the engine says.
        why: String,
    },
    /// The engine broke.
    #[error("the engine failed: {why}")]
    Failed {
        /// What it says.
        why: String,
    },
    /// Nobody waits for the answer any more.
    #[error("nobody waits for the answer")]
    Abandoned,
}

/// Something that answers, on a thread of its own.
pub(crate) trait Model {
    /// Answers, unless nobody waits any more.
    fn answer(
        &mut self,
        question: &Question,
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<Answer, EngineError>;
}

/// Loads a model and hands it to what it is given.
type WithModel = dyn Fn(&mut dyn FnMut(&mut dyn Model)) -> Result<(), EngineError>;

/// A question and whoever waits for the answer.
struct Task {
    question: Question,
    waiting: oneshot::Sender<Result<Answer, EngineError>>,
}

/// A model that can be asked. It is loaded when it is asked for the first time.
#[derive(Debug)]
pub struct Engine {
    load: Load,
    tasks: Option<mpsc::Sender<Task>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    /// A model, if this build has an engine for it.
    pub fn open(load: &Load) -> Result<Self, EngineError> {
        #[cfg(feature = "engine")]
        {
            let file = load.clone();
            Ok(Self::start(load.clone(), move |serve| llama::with_model(&file, serve)))
        }
        #[cfg(not(feature = "engine"))]
        {
            let _ = load;
            Err(EngineError::NotBuiltIn)
        }
    }

    /// What it was opened with.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Starts the thread. `with_model` loads a model and hands it to what it is given.
    #[cfg_attr(not(any(test, feature = "engine")), expect(dead_code, reason = "nothing to start"))]
    fn start(
        load: Load,
        with_model: impl Fn(&mut dyn FnMut(&mut dyn Model)) -> Result<(), EngineError> + Send + 'static,
    ) -> Self {
        let (tasks, queue) = mpsc::channel(WAITING);
        let thread = thread::Builder::new().name("model".to_owned());
        let thread = thread.spawn(move || serve(queue, &with_model));
        // Without a thread nobody takes questions, and whoever asks is told so.
        Self { load, tasks: Some(tasks), thread: Mutex::new(thread.ok()) }
    }

    /// Asks, and waits for the answer.
    pub async fn ask(&self, question: Question) -> Result<Answer, EngineError> {
        let gone = || EngineError::Failed { why: "its thread has ended".to_owned() };
        let (waiting, answer) = oneshot::channel();
        let tasks = self.tasks.as_ref().ok_or_else(gone)?;
        tasks.send(Task { question, waiting }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Engine {
    /// Waits for the thread: the engine must not be at work while the process takes its memory apart.
    fn drop(&mut self) {
        self.tasks = None;
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// Answers until nobody is left who could ask.
fn serve(mut queue: mpsc::Receiver<Task>, with_model: &WithModel) {
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        let loaded = with_model(&mut |model| {
            while let Some(task) = next.take().or_else(|| queue.blocking_recv()) {
                let Task { question, waiting } = task;
                if !waiting.is_closed() {
                    let answer = model.answer(&question, &|| waiting.is_closed());
                    // They may have left just now.
                    let _ = waiting.send(answer);
                }
            }
        });
        if let (Err(error), Some(task)) = (loaded, next) {
            let _ = task.waiting.send(Err(error));
        }
    }
}

/// Threads for a model of so many bytes on a machine with so many cores.
///
/// The threads of the engine wait for each other some hundred times for each token. Where one of them does
/// not run because something else does, all wait: two threads on a busy machine with two cores are fifty
/// times slower than one. A small model is quick enough with one.
pub fn usual_threads(bytes: u64, cores: usize) -> u32 {
    match bytes < SMALL {
        true => 1,
        false => u32::try_from(cores / 2).unwrap_or(1).clamp(1, 8),
    }
}

#[cfg(test)]
mod tests;
