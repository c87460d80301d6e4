//! Calls that leave the loop, and who carries them out: this process, or workers elsewhere.
//!
//! A call is all that somebody else needs in order to do it, and its result all that comes back. Who does it is
//! decided here and nowhere else; permits, retries, budgets, the cache, grading and records know nothing of it.

use std::{
    collections::BTreeMap, fmt, future::Future, pin::Pin, str::FromStr, sync::Arc, time::Duration,
};

use probity_core::{
    case::TestCase,
    crew::Crew,
    event::CaseKey,
    execution::{EffectCall, EffectFound, Executed, ExecutionCall},
    record::InputDigest,
    request::Request,
};
use probity_grade::internal::script::{Scorer, ScorerCall, ScorerInput};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    backend::{About, Ask, Backend, Failed, Reply},
    sandbox,
    scorer::Scorers,
};

/// Where calls are carried out.
#[derive(Clone, Debug, Default)]
pub enum Executor {
    /// In this process.
    #[default]
    Local,
    /// By workers.
    Workers(Arc<dyn Carrier>),
}

impl Executor {
    /// Who carries calls of a kind to somebody else; none if they are made here.
    pub(crate) fn carrier(&self, who: Who) -> Option<&Arc<dyn Carrier>> {
        match self {
            Self::Local => None,
            Self::Workers(carrier) => Some(carrier).filter(|it| it.takes(who)),
        }
    }

    /// How long nothing could be carried out so far, for want of a way to the workers.
    pub(crate) fn paused(&self) -> Duration {
        match self {
            Self::Local => Duration::ZERO,
            Self::Workers(carrier) => carrier.paused(),
        }
    }

    /// What happens to the workers next.
    pub(crate) async fn news(&self) -> News {
        match self {
            Self::Local => std::future::pending().await,
            Self::Workers(carrier) => carrier.news().await,
        }
    }
}

/// Carries calls to workers.
pub trait Carrier: Send + Sync + fmt::Debug {
    /// Whether such calls are for workers.
    fn takes(&self, who: Who) -> bool;
    /// Has a call carried out. Whoever drops this gives the call up.
    fn carry(&self, order: Order) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>>;
    /// How long nothing could be carried out so far.
    fn paused(&self) -> Duration;
    /// What happens next that people have to know.
    fn news(&self) -> Pin<Box<dyn Future<Output = News> + Send + '_>>;
    /// A case is on the disk, or was given up: its results are not needed any more.
    fn recorded(&self, case: &CaseKey);
}

/// What people have to know of the workers.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Calls wait.
    Paused {
        /// For what.
        reason: String,
    },
    /// They are carried out again.
    Resumed {
        /// What is there again, or new.
        reason: String,
    },
    /// How the workers stand.
    Crew(Crew),
}

/// Who does what a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A backend, by its place in the plan.
    Backend(usize),
    /// Programs that score replies.
    Scorers,
    /// The sandbox.
    Sandbox,
}

/// One try to have something done, under the same name whoever makes it and whenever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub InputDigest);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CallId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 16];
        let text = text.as_bytes();
        if text.len() != bytes.len() * 2 {
            return Err(());
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |it: u8| char::from(it).to_digit(16).and_then(|it| u8::try_from(it).ok());
            let (high, low) = (digit(digits[0]).ok_or(())?, digit(digits[1]).ok_or(())?);
            *byte = (high << 4) | low;
        }
        Ok(Self(InputDigest(bytes)))
    }
}

/// A call on its way.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its name.
    pub id: CallId,
    /// The case that it is made for.
    pub case: CaseKey,
    /// Who is to do it.
    pub who: Who,
    /// How long that may take.
    pub limit: Duration,
    /// What is to be done.
    pub call: Call,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Call {
    /// Ask a backend.
    Ask(Box<Question>),
    /// Score a reply.
    Score(Box<Scoring>),
    /// Execute what is in a reply.
    Execute(Box<Execution>),
    /// Execute two commands, and compare what they do.
    Compare(EffectCall),
}

/// A question to a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What is asked.
    pub request: Request,
    /// Which of the repeats it is for, from 0.
    pub repeat: u32,
    /// The case, where the backend is told of more than the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<Box<TestCase>>,
    /// Whether the case itself is asked, and not a question about it.
    pub is_subject: bool,
    /// The ids that the server gave the conversations of the case, by ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, String>,
}

/// An execution, and the paths to look at afterwards, which tell it from no other one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// What is executed.
    pub call: ExecutionCall,
    /// The paths.
    pub looks: Vec<String>,
}

impl Execution {
    pub(crate) fn of(call: &ExecutionCall) -> Self {
        Self { call: call.clone(), looks: call.looks.clone() }
    }
}

/// A reply that is to be scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scoring {
    /// The program.
    pub scorer: Program,
    /// The reply, or what transforms made of it.
    pub output: Value,
    /// What it is told of the case, as a JSON object.
    pub context: String,
    /// What the reply answers.
    pub question: String,
}

/// A program that scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// One of the suite, by name.
    Named(String),
    /// Python: code, or the file that it names with `file://`.
    Python(String),
    /// A program that is run for one reply, with its arguments.
    Exec(Vec<String>),
}

impl Program {
    /// The program of a scorer; none where a backend scores.
    pub(crate) fn of(scorer: &Scorer) -> Option<Self> {
        match scorer {
            Scorer::Named(name) => Some(Self::Named(name.clone())),
            Scorer::Python(source) => Some(Self::Python(source.clone())),
            Scorer::Exec(command) => Some(Self::Exec(command.clone())),
            Scorer::Similar(_) | Scorer::Rerank(_) => None,
        }
    }

    fn scorer(&self) -> Scorer {
        match self {
            Self::Named(name) => Scorer::Named(name.clone()),
            Self::Python(source) => Scorer::Python(source.clone()),
            Self::Exec(command) => Scorer::Exec(command.clone()),
        }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallResult {
    /// A backend answered.
    Answered(Box<Answered>),
    /// A backend failed.
    Failed(Box<Failed>),
    /// What a scorer returned.
    Scored(Value),
    /// What an execution did.
    Executed(Box<Executed>),
    /// How two commands compare.
    Compared(Box<EffectFound>),
    /// Why a scorer or the sandbox did nothing.
    NotDone(String),
}

/// An answer, with what of it is not part of the reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// What came back.
    pub reply: Reply,
    /// How long the backend says it has nothing left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted_for: Option<Duration>,
    /// The conversations of the case, as they are now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<String, String>,
}

/// What came back from a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Who did it.
    pub worker: Option<String>,
    /// How long the call itself took, without its way there and back.
    pub took: Duration,
    /// Whether it was made in an earlier session of the run, which counted it.
    pub taken_over: bool,
    /// Workers that were lost with it before.
    pub lost: Vec<Lost>,
    /// What came of it; an error says why nobody could do it.
    pub result: Result<CallResult, String>,
}

/// A worker that was lost while it held a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its name, if it is known.
    pub worker: Option<String>,
    /// For how long it held the call.
    pub held: Duration,
}

impl Lost {
    /// What is recorded of it.
    pub fn message(&self) -> String {
        match &self.worker {
            Some(name) => format!("worker `{name}` was lost while it held the call"),
            None => "a worker was lost while it held the call".to_owned(),
        }
    }
}

impl Question {
    /// What a case asks, with as much of the case as the backend is told.
    pub(crate) fn of(backend: &Backend, ask: &Ask<'_>) -> Self {
        let about = ask.about.filter(|_| backend.is_told_of_cases());
        Self {
            request: ask.request.clone(),
            repeat: ask.repeat,
            case: about.map(|it| Box::new((*it.case).clone())),
            is_subject: about.is_none_or(About::is_subject),
            sessions: about.map(About::sessions).unwrap_or_default(),
        }
    }

    /// Asks a backend of this process.
    pub async fn ask(self, backend: &Backend, limit: Duration) -> CallResult {
        let Self { request, repeat, case, is_subject, sessions } = self;
        let about = case.map(|case| match is_subject {
            true => About::new(Arc::from(case)),
            false => About::of_others(Arc::from(case)),
        });
        if let Some(about) = &about {
            about.set_sessions(sessions);
        }
        let ask = Ask { request: &request, repeat, about: about.as_ref() };
        match backend.ask(&ask, limit).await {
            Ok(reply) => CallResult::Answered(Box::new(Answered {
                exhausted_for: reply.exhausted_for,
                reply,
                sessions: about.as_ref().map(About::sessions).unwrap_or_default(),
            })),
            Err(failed) => CallResult::Failed(Box::new(failed)),
        }
    }
}

impl Scoring {
    /// Has a program of this machine score.
    pub async fn score(self, scorers: &Scorers, limit: Duration) -> CallResult {
        let Self { scorer, output, context, question } = self;
        let call = ScorerCall::outside(scorer.scorer());
        let input = ScorerInput { output, context, question };
        let deadline = Instant::now() + limit;
        match scorers.score(&call, &input, deadline).await {
            Ok(value) => CallResult::Scored(value),
            Err(why) => CallResult::NotDone(why),
        }
    }
}

/// Executes commands for others.
#[derive(Debug)]
pub struct Executions(sandbox::Shared);

impl Executions {
    /// On this ground.
    pub fn new(ground: Arc<sandbox::Ground>) -> Self {
        Self(sandbox::Shared::new(ground))
    }

    /// Executes what a case asks for.
    pub async fn execute(&self, execution: Execution, limit: Duration) -> CallResult {
        let Execution { call, looks } = execution;
        let call = ExecutionCall { looks, ..call };
        match self.0.execute(call, Instant::now() + limit).await {
            Ok(executed) => CallResult::Executed(Box::new(executed)),
            Err(why) => CallResult::NotDone(why),
        }
    }

    /// Executes a command and an accepted one.
    pub async fn compare(&self, call: EffectCall, limit: Duration) -> CallResult {
        let EffectCall { command, against } = call;
        match self.0.effect(command, against, Instant::now() + limit).await {
            Ok(found) => CallResult::Compared(Box::new(found)),
            Err(why) => CallResult::NotDone(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_call_is_read_back() {
        let id = CallId(InputDigest::of([&b"a"[..]]));
        assert_eq!(id.to_string().parse(), Ok(id));
        for other in ["", "zz", "0123", &"g".repeat(32), &"é".repeat(16)] {
            assert_eq!(other.parse::<CallId>(), Err(()), "{other}");
        }
    }

    #[test]
    fn an_answer_is_the_same_after_its_way() {
        let reply = Reply {
            text: "é\u{0}\n".to_owned(),
            cost_usd: Some(0.1 + 0.2),
            latency: Some(Duration::from_nanos(1_234_567_891)),
            first_token: Some(Duration::from_micros(17)),
            ..Reply::default()
        };
        let sessions = [("a".to_owned(), "b".to_owned())].into();
        let exhausted_for = Some(Duration::from_millis(1500));
        let answered = Answered { reply, exhausted_for, sessions };
        let result = CallResult::Answered(Box::new(answered));
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<CallResult>(&text).unwrap(), result, "{text}");
    }
}
