//! What can be asked: servers, programs, models in this process, recordings.

pub mod collector;
pub mod embedded;
pub mod found;
pub mod function;
pub mod http;
pub mod open;
pub mod program;

mod address;
mod custom;
mod dialect;
mod language;
mod sigv4;
mod silence;
mod stream;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use probity_core::reply::Reply;
use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    record::{CacheKind, CallError, InputDigest, Usage},
    request::{Need, Request, Sampling},
    span::Span,
};
use probity_load::suite::{BackendKind, Price, Way};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use embedded::Embedded;
use function::Function;
use http::Http;
use program::Program;

use crate::recording::Replay;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The request.
    pub request: &'a Request,
    /// Which of the repeats it is for, from 0.
    pub repeat: u32,
    /// What it is asked for.
    pub about: Option<&'a About>,
}

/// A case, and the conversations that it has.
#[derive(Debug)]
pub struct About {
    /// The case.
    pub case: Arc<TestCase>,
    /// Whether the case itself is asked, and not a question about it.
    is_subject: bool,
    /// The ids that servers gave its conversations, by ours. Its questions are asked one by one.
    sessions: Mutex<BTreeMap<String, String>>,
}

impl About {
    /// A case that nobody has been asked about.
    pub fn new(case: Arc<TestCase>) -> Self {
        Self { case, is_subject: true, sessions: Mutex::default() }
    }

    /// The same for judges and simulated users: functions are told of nothing but their question.
    pub fn of_others(case: Arc<TestCase>) -> Self {
        Self { is_subject: false, ..Self::new(case) }
    }

    pub(crate) fn is_subject(&self) -> bool {
        self.is_subject
    }

    /// The ids that servers gave its conversations, by ours.
    pub(crate) fn sessions(&self) -> BTreeMap<String, String> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_sessions(&self, sessions: BTreeMap<String, String>) {
        *self.sessions.lock().unwrap_or_else(PoisonError::into_inner) = sessions;
    }

    fn session(&self, conversation: &str) -> Option<String> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(conversation).cloned()
    }

    fn keep_session(&self, conversation: String, session: String) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(conversation, session);
    }
}

/// A call that came to nothing, and what it used all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// Why.
    pub error: Box<CallError>,
    /// Tokens as the backend counted them.
    pub usage: Usage,
    /// Dollars as the backend counted them.
    pub cost_usd: Option<f64>,
    /// Whether anybody was asked; not where we had no file descriptor left to do so.
    pub is_call: bool,
}

impl Failed {
    /// The same, where what was left of a case's limit was the limit of the call.
    pub(crate) fn of_case(mut self, limit: Duration) -> Self {
        if self.error.kind == ErrorKind::Timeout {
            let limit = Span(limit);
            self.error.message =
                format!("{}, the rest of the case's timeout of {limit}", self.error.message);
        }
        self
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self { error: Box::new(error), usage: Usage::default(), cost_usd: None, is_call: true }
    }
}

/// Answers of earlier calls. Errors are never among them.
pub trait Answers: Send + Sync + std::fmt::Debug {
    /// The answer to a question that was asked before.
    fn get(&self, kept: CacheKind, key: InputDigest) -> Option<String>;
    /// Keeps an answer.
    fn put(&self, kept: CacheKind, key: InputDigest, answer: &str);
}

/// What is done with answers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Those of earlier calls are used.
    pub read: bool,
    /// New ones are kept.
    pub write: bool,
}

impl Access {
    /// Used and kept.
    pub const FULL: Self = Self { read: true, write: true };
    /// Kept, and those of earlier calls are replaced.
    pub const ANEW: Self = Self { read: false, write: true };

    /// Whether there is anything to do.
    pub(crate) const fn any(self) -> bool {
        self.read || self.write
    }
}

/// What is done with answers of earlier calls, kind by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheAccess {
    /// Answers to cases.
    pub answers: Access,
    /// Answers that are going to be judged.
    pub generations: Access,
    /// What judges said.
    pub judgements: Access,
    /// Embeddings of texts.
    pub embeddings: Access,
}

impl CacheAccess {
    pub(crate) const fn of(self, kept: CacheKind) -> Access {
        match kept {
            CacheKind::Answer => self.answers,
            CacheKind::Generation => self.generations,
            CacheKind::Judgement => self.judgements,
            CacheKind::Embedding => self.embeddings,
        }
    }
}

/// One backend, ready to be asked.
#[derive(Debug)]
pub struct Backend {
    /// What the suite calls it.
    pub name: String,
    /// Its kind; none where nobody is asked.
    pub kind: Option<BackendKind>,
    /// The model it is asked for.
    pub model: Option<String>,
    /// What tokens cost.
    pub price: Option<Price>,
    /// Calls in flight at once.
    pub max_concurrency: u64,
    /// The limit of one call.
    pub timeout: Duration,
    /// The longest reply.
    pub max_tokens: Option<u64>,
    /// The parameters of a call, as they count for whether two calls ask the same.
    pub parameters: String,
    /// Whether it says itself what a call cost.
    pub reports_cost: bool,
    /// Settings that it cannot take.
    pub not_applied: Vec<&'static str>,
    /// How it is asked.
    pub wire: Wire,
    /// Who answers instead, in a simulation.
    #[cfg(all(feature = "simulated", not(test)))]
    pub(crate) simulated: Option<Arc<dyn crate::simulated::Model>>,
}

/// How a backend is asked.
#[derive(Debug)]
pub enum Wire {
    /// Over HTTP.
    Http(Http),
    /// From a file of answers.
    Replay(Replay),
    /// By starting a program.
    Program(Program),
    /// By calling a function.
    Function(Function),
    /// In this process.
    Embedded(Embedded),
    /// By workers alone: its model is not on this machine.
    Elsewhere,
    /// The prompt is the reply.
    Echo,
    /// A script of replies, for tests of the loop.
    #[cfg(test)]
    Scripted(crate::engine::tests::Scripted),
}

impl Backend {
    /// Asks, and waits for the answer no longer than `limit`. Tokens that it does not report
    /// are estimated.
    pub async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        #[cfg(all(feature = "simulated", not(test)))]
        if let Some(model) = &self.simulated {
            return crate::simulated::ask(&**model, ask, limit).await;
        }
        let reply = match &self.wire {
            Wire::Http(http) => http.ask(ask, limit).await?,
            // It says what was recorded, and asks nobody.
            Wire::Replay(replay) => return replay.ask(ask).map_err(Failed::from),
            // In boxes, so that asking a server needs no room for them.
            Wire::Program(program) => Box::pin(program.ask_and_count(ask, limit)).await?,
            Wire::Function(function) => Box::pin(function.ask(ask, limit)).await?,
            Wire::Embedded(model) => Box::pin(model.ask(ask, limit)).await?,
            Wire::Echo => echo(ask),
            Wire::Elsewhere => {
                let message = "its model is not on this machine";
                return Err(CallError::new(ErrorKind::NotInstalled, message).into());
            }
            #[cfg(test)]
            Wire::Scripted(script) => script.ask(ask, limit).await?,
        };
        Ok(reply.with_estimated_usage(ask.request))
    }

    /// The vector of a text, of a backend that embeds texts.
    pub async fn embed(&self, ask: &Ask<'_>, limit: Duration) -> Result<Vec<f32>, Failed> {
        let reply = self.ask(ask, limit).await?;
        Ok(vector_in(&reply)?)
    }

    /// Those of some settings of a request that it cannot take.
    pub fn ignored(&self, sampling: &Sampling) -> Vec<&'static str> {
        match &self.wire {
            Wire::Http(http) => http.ignored(sampling),
            // What a function is told of them is up to its `config`.
            Wire::Program(_) | Wire::Function(_) => sampling.names().collect(),
            Wire::Embedded(_) | Wire::Elsewhere => embedded::ignored(sampling),
            Wire::Replay(_) | Wire::Echo => Vec::new(),
            #[cfg(test)]
            Wire::Scripted(_) => Vec::new(),
        }
    }

    /// What it cannot be asked for.
    pub fn lacks(&self) -> Cow<'static, [Need]> {
        match &self.wire {
            Wire::Http(http) => http.lacks(),
            // A program gets one text.
            Wire::Program(_) => Cow::Borrowed(&Need::ALL),
            Wire::Function(_) => Cow::Borrowed(Function::LACKS),
            Wire::Embedded(_) | Wire::Elsewhere => Cow::Borrowed(Embedded::LACKS),
            Wire::Replay(_) | Wire::Echo => Cow::Borrowed(&[]),
            #[cfg(test)]
            Wire::Scripted(_) => Cow::Borrowed(&[]),
        }
    }

    /// Whether a JSON Schema of the answer is sent along: if that is wanted, or else where it is known
    /// to work, as long as the server takes it.
    pub(crate) fn is_sent_schemas(&self, wanted: Option<bool>) -> bool {
        let (keeps, refuses) = match &self.wire {
            Wire::Http(http) => (http.keeps_schemas(), http.refuses_schemas()),
            // It is held to them, but not to every schema.
            Wire::Embedded(_) | Wire::Elsewhere => (false, false),
            Wire::Function(_) | Wire::Replay(_) | Wire::Program(_) | Wire::Echo => (false, false),
            #[cfg(test)]
            Wire::Scripted(_) => (false, false),
        };
        wanted.unwrap_or(keeps) && !refuses && !self.lacks().contains(&Need::ResponseFormat)
    }

    /// Sends no JSON Schema any more, since the server does not take it.
    pub(crate) fn spare_schemas(&self) {
        if let Wire::Http(http) = &self.wire {
            http.spare_schemas();
        }
    }

    /// How many repeats there are answers to; none where any number can be asked.
    pub fn recorded_repeats(&self) -> Option<u32> {
        match &self.wire {
            Wire::Replay(replay) => Some(replay.repeats()),
            Wire::Http(_)
            | Wire::Program(_)
            | Wire::Function(_)
            | Wire::Embedded(_)
            | Wire::Elsewhere
            | Wire::Echo => None,
            #[cfg(test)]
            Wire::Scripted(_) => None,
        }
    }

    /// Whether answers come from a recording.
    pub fn is_replay(&self) -> bool {
        match &self.wire {
            Wire::Replay(_) => true,
            Wire::Http(_)
            | Wire::Program(_)
            | Wire::Function(_)
            | Wire::Embedded(_)
            | Wire::Elsewhere
            | Wire::Echo => false,
            #[cfg(test)]
            Wire::Scripted(_) => false,
        }
    }

    /// Whether another one is the same model at the same vendor, as far as the suite says so.
    pub fn is_same_model(&self, other: &Self) -> bool {
        self.kind == other.kind && self.model.is_some() && self.model == other.model
    }

    /// What stands for a backend where none is asked.
    pub fn nobody(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: None,
            model: None,
            price: None,
            max_concurrency: 1,
            timeout: Duration::MAX,
            max_tokens: None,
            parameters: String::new(),
            reports_cost: true,
            not_applied: Vec::new(),
            wire: Wire::Echo,
            #[cfg(all(feature = "simulated", not(test)))]
            simulated: None,
        }
    }

    /// The name of its kind, for tables of errors and for reports.
    pub fn kind_name(&self) -> &'static str {
        self.kind.map_or("program", BackendKind::as_str)
    }

    /// Whether it can be known what a call costs.
    pub fn has_known_cost(&self) -> bool {
        self.price.is_some() || self.reports_cost
    }

    /// How it is asked over HTTP, if it is.
    pub fn http(&self) -> Option<&Http> {
        match &self.wire {
            Wire::Http(http) => Some(http),
            Wire::Program(_)
            | Wire::Function(_)
            | Wire::Embedded(_)
            | Wire::Elsewhere
            | Wire::Replay(_)
            | Wire::Echo => None,
            #[cfg(test)]
            Wire::Scripted(_) => None,
        }
    }

    /// Whether it is told of the case beside what is asked.
    pub(crate) fn is_told_of_cases(&self) -> bool {
        match &self.wire {
            Wire::Http(http) => http.is_told_of_cases(),
            Wire::Function(_) => true,
            Wire::Program(program) => program.is_sandboxed(),
            Wire::Embedded(_) | Wire::Elsewhere | Wire::Replay(_) | Wire::Echo => false,
            #[cfg(test)]
            Wire::Scripted(_) => false,
        }
    }

    /// Whether an answer depends on more than what is sent, so that it is not kept for others.
    pub fn has_sessions(&self) -> bool {
        self.http().is_some_and(Http::has_sessions)
    }

    /// What is asked with which parameters, for a case.
    pub fn digest(&self, case: Option<&TestCase>, request: &Request) -> InputDigest {
        let plain = request.digest(&self.parameters);
        match case.and_then(|case| self.own_values(case)) {
            None => plain,
            Some(values) => InputDigest::of([&plain.0[..], values.to_string().as_bytes()]),
        }
    }

    /// What a case brings along beside what it asks, if it is told of that.
    fn own_values(&self, case: &TestCase) -> Option<Value> {
        match &self.wire {
            Wire::Http(http) => http.own_values(case),
            Wire::Function(_) => Some(json!(case.prompt_vars)),
            Wire::Program(program) => {
                let call = program.call_after(case)?;
                Some(json!([call.digest(), call.looks]))
            }
            Wire::Embedded(_) | Wire::Elsewhere | Wire::Replay(_) | Wire::Echo => None,
            #[cfg(test)]
            Wire::Scripted(_) => None,
        }
    }

    /// What is asked of whom, with which parameters, for which repeat.
    pub fn cache_key(&self, ask: &Ask<'_>) -> InputDigest {
        let address = self.http().map_or("", Http::url);
        let is_told = |about: &&About| about.is_subject || !matches!(self.wire, Wire::Function(_));
        let case = ask.about.filter(is_told).map(|it| &*it.case);
        let asked = self.digest(case, ask.request).0;
        InputDigest::of([address.as_bytes(), &asked, &ask.repeat.to_le_bytes()])
    }

    /// What a call cost: what the backend says, else by the price.
    pub fn cost(&self, usage: Usage, said: Option<f64>) -> Option<f64> {
        let Usage { input_tokens, output_tokens, cached_tokens: _, estimated: _ } = usage;
        said.or_else(|| {
            let price = self.price?;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53 tokens")]
            let millions = |tokens: Option<u64>| tokens.unwrap_or(0) as f64 / 1e6;
            (input_tokens.is_some() || output_tokens.is_some()).then(|| {
                price.input * millions(input_tokens) + price.output * millions(output_tokens)
            })
        })
    }
}

/// The vector in the reply of a backend that embeds texts.
pub(crate) fn vector_in(reply: &Reply) -> Result<Vec<f32>, CallError> {
    let unread = || CallError::new(ErrorKind::Server, "the embedding cannot be read");
    dialect::vector_in(&reply.text).ok_or_else(unread)
}

/// The reply in a stream of a kind of server that came in these pieces; none if it is no reply.
/// For those who test that pieces make no difference.
pub fn streamed(kind: BackendKind, pieces: &[&[u8]]) -> Option<Reply> {
    let is_server = kind.way() == Way::Server;
    let service = is_server.then(|| dialect::Service::of(kind))?;
    let mut listener = stream::Listener::new(&service.dialect.stream);
    for piece in pieces {
        listener.hear(piece).ok()?;
    }
    listener.finish()?.ok()
}

/// The reply in the body of an answer of a kind of server; none if it is no reply. For those who test what is made of any bytes.
pub fn decoded(kind: BackendKind, body: &[u8]) -> Option<Reply> {
    let is_server = kind.way() == Way::Server;
    let service = is_server.then(|| dialect::Service::of(kind))?;
    (service.dialect.decode)(body).ok()
}

fn echo(ask: &Ask<'_>) -> Reply {
    Reply {
        text: ask.request.prompt().to_owned(),
        model: Some("echo".to_owned()),
        ..Reply::default()
    }
}
