//! The work on one case, in a task of its own.

use std::{sync::Arc, time::Duration};

use probity_core::{
    failure::ErrorKind,
    record::{Aborted, CallError, CaseRecord, FailedAttempt, Source, Usage},
    settings::Settings,
    suite::RunnerKind,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use crate::{
    backend::{Answers, Ask, Backend, Failed, Reply},
    clock::now_ms,
    grade::{self, Spent, millis},
    retry::{self, Situation},
    source::Prepared,
};

/// What a task tells the loop.
#[derive(Debug)]
pub(super) enum Message {
    /// It wants to make a call.
    Wants { serial: u64, grant: oneshot::Sender<Grant> },
    /// A call came back.
    Called(Called),
}

/// The loop's answer to a task that wants to make a call.
#[derive(Debug)]
pub(super) enum Grant {
    Go,
    /// Nothing is left to spend.
    NoBudget,
}

/// A call that came back.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) serial: u64,
    pub(super) began: Instant,
    pub(super) usage: Usage,
    pub(super) cost_usd: Option<f64>,
    pub(super) outcome: Came,
}

/// What a call came to.
#[derive(Debug)]
pub(super) enum Came {
    Back {
        /// How long the backend says it has nothing left.
        exhausted_for: Option<Duration>,
    },
    Failed(FailedAttempt),
    /// Nobody waited for it.
    Abandoned,
}

/// How a task ended.
#[derive(Debug)]
pub(super) struct TaskEnd {
    pub(super) serial: u64,
    pub(super) result: Result<Box<CaseRecord>, Aborted>,
}

/// What all tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Settings,
    /// Answers of earlier calls that may be used.
    pub(super) cache: Option<Arc<dyn Answers>>,
    /// Not bounded: each task waits for the answer to its message, or sends its last.
    pub(super) to_loop: mpsc::UnboundedSender<Message>,
}

/// What a case is to its backend: the way to ask it, with retries, limits and leave.
#[derive(Debug)]
pub(super) struct Handle {
    serial: u64,
    backend: Arc<Backend>,
    shared: Arc<Shared>,
    /// Leave for a call that has not been made yet.
    leave: bool,
    began: Instant,
    deadline: Instant,
    spent: Spent,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The backend failed, and trying again did not help or makes no sense.
    Failed(CallError),
    /// The case is given up.
    Aborted(Aborted),
}

impl Handle {
    /// The loop spawns a case when there is leave for its first call.
    pub(super) fn new(serial: u64, backend: Arc<Backend>, shared: Arc<Shared>) -> Self {
        let began = Instant::now();
        let deadline = began + shared.settings.timeouts.case;
        let spent = Spent { started_ms: now_ms(), limit: backend.timeout, ..Spent::default() };
        Self { serial, backend, shared, leave: true, began, deadline, spent }
    }

    /// Asks, and asks again as long as that makes sense.
    pub(super) async fn ask(&mut self, ask: &Ask<'_>) -> Result<Reply, Unanswered> {
        let cache = self.shared.cache.clone().map(|cache| (cache, self.backend.cache_key(ask)));
        let known = cache.as_ref().and_then(|(cache, key)| cached(&cache.get(*key)?));
        if let Some(reply) = known {
            self.spent.latency = reply.latency.unwrap_or_default();
            self.spent.usage = self.spent.usage.plus(reply.usage);
            return Ok(reply);
        }
        let mut attempts = 0;
        loop {
            self.take_leave().await?;
            attempts += 1;
            match self.call(ask, attempts).await {
                Ok(reply) => {
                    if let Some((cache, key)) = cache {
                        let kept = Reply { latency: Some(self.spent.latency), ..reply.clone() };
                        cache.put(key, &serde_json::to_string(&kept).unwrap_or_default());
                    }
                    return Ok(reply);
                }
                Err((error, None)) => return Err(Unanswered::Failed(error)),
                Err((_, Some(wait))) => sleep(wait).await,
            }
        }
    }

    /// Waits for leave to make a call.
    async fn take_leave(&mut self) -> Result<(), Unanswered> {
        if std::mem::take(&mut self.leave) {
            return Ok(());
        }
        let (grant, granted) = oneshot::channel();
        let interrupted = || Unanswered::Aborted(Aborted::Interrupted);
        let message = Message::Wants { serial: self.serial, grant };
        self.shared.to_loop.send(message).map_err(|_| interrupted())?;
        match granted.await {
            Ok(Grant::Go) => Ok(()),
            Ok(Grant::NoBudget) => Err(Unanswered::Aborted(Aborted::Budget)),
            Err(_) => Err(interrupted()),
        }
    }

    /// Makes one call and reports it. An error comes with the wait before the next try.
    async fn call(
        &mut self,
        ask: &Ask<'_>,
        attempts: u64,
    ) -> Result<Reply, (CallError, Option<Duration>)> {
        let began = Instant::now();
        let left = self.deadline.saturating_duration_since(began);
        let limit = self.backend.timeout.min(left);
        let mut report = Report { serial: self.serial, began, to_loop: Some(&self.shared.to_loop) };
        let answer = match limit.is_zero() {
            false => self.backend.ask(ask, limit).await,
            true => Err(CallError::new(ErrorKind::Timeout, "no time is left for the case").into()),
        };
        let latency = match &answer {
            Ok(Reply { latency: Some(latency), .. }) => *latency,
            Ok(_) | Err(_) => began.elapsed(),
        };
        self.spent.calls += u32::from(!self.backend.is_replay());
        self.spent.latency = latency;
        self.spent.limit = limit;
        // A call that failed may have cost as much as one that did not.
        let (usage, said) = match &answer {
            Ok(Reply { usage, cost_usd, .. }) | Err(Failed { usage, cost_usd, .. }) => {
                (*usage, *cost_usd)
            }
        };
        let cost = self.backend.cost(usage, said);
        self.spent.usage = self.spent.usage.plus(usage);
        if let Some(cost) = cost {
            *self.spent.cost_usd.get_or_insert(0.0) += cost;
        }
        match answer {
            Ok(reply) => {
                report.send(usage, cost, Came::Back { exhausted_for: reply.exhausted_for });
                Ok(reply)
            }
            Err(Failed { error, .. }) => {
                let error = *error;
                let situation = Situation {
                    error: &error,
                    attempts,
                    left: self.deadline.saturating_duration_since(Instant::now()),
                    chance: fastrand::f64(),
                };
                let wait = retry::wait(&self.shared.settings.retry, situation);
                let failure = FailedAttempt {
                    attempt: self.spent.calls,
                    error: error.clone(),
                    latency_ms: millis(latency),
                    retry_in_ms: wait.map(millis),
                };
                self.spent.failures.push(failure.clone());
                report.send(usage, cost, Came::Failed(failure));
                Err((error, wait))
            }
        }
    }

    fn finish(self, case: Prepared, answer: Result<Reply, CallError>) -> Box<CaseRecord> {
        let spent = Spent { elapsed: self.began.elapsed(), ..self.spent };
        Box::new(grade::record(case, self.backend.kind, answer, spent))
    }
}

/// An answer as the cache keeps it; one that is not understood is none.
fn cached(text: &str) -> Option<Reply> {
    let reply: Reply = serde_json::from_str(text).ok()?;
    Some(Reply { source: Source::Cache, ..reply })
}

/// Tells the loop of a call that was made, also of one that is dropped halfway.
struct Report<'a> {
    serial: u64,
    began: Instant,
    to_loop: Option<&'a mpsc::UnboundedSender<Message>>,
}

impl Report<'_> {
    fn send(&mut self, usage: Usage, cost_usd: Option<f64>, outcome: Came) {
        let Some(to_loop) = self.to_loop.take() else { return };
        let called = Called { serial: self.serial, began: self.began, usage, cost_usd, outcome };
        // A loop that is gone has given this task up.
        let _ = to_loop.send(Message::Called(called));
    }
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        self.send(Usage::default(), None, Came::Abandoned);
    }
}

/// From a case to its record: what a kind of runner is.
pub(super) async fn run_case(
    kind: RunnerKind,
    case: Prepared,
    handle: Handle,
) -> Result<Box<CaseRecord>, Aborted> {
    match kind {
        // They differ in what their cases have to say, which was checked when they were read.
        RunnerKind::Respond | RunnerKind::Command => one_answer(case, handle).await,
        RunnerKind::Activation
        | RunnerKind::Confusion
        | RunnerKind::Effectiveness
        | RunnerKind::SizeImpact => unreachable!("a plan has no such lanes"),
    }
}

/// One question, one answer.
async fn one_answer(case: Prepared, mut handle: Handle) -> Result<Box<CaseRecord>, Aborted> {
    let ask = Ask { prompt: &case.prompt, system: case.system.as_deref(), repeat: case.repeat };
    let answer = match handle.ask(&ask).await {
        Ok(reply) => Ok(reply),
        Err(Unanswered::Failed(error)) => Err(error),
        Err(Unanswered::Aborted(reason)) => return Err(reason),
    };
    Ok(handle.finish(case, answer))
}
