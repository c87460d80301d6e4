//! How a case asks: with retries, limits, permits of the loop, and the cache.

mod carrying;
mod embedding;
mod executing;
mod reranking;

use std::{sync::Arc, time::Duration};

use probity_core::{
    event::CaseKey,
    failure::ErrorKind,
    record::{Aborted, Asked, CacheKind, CallError, FailedAttempt, InputDigest, Source, Usage},
    request::Request,
    span::Span,
};
use probity_grade::internal::{
    again::scorer_role,
    script::{Scorer, ScorerCall, ScorerInput},
};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};

use super::{
    groups::{Duty, Entries},
    task::{CallOutcome, Called, Grant, Message, Shared},
};
use crate::{
    backend::{About, Answers, Ask, Backend, Failed, Reply},
    clock::now_ms,
    grade::{Account, Spent, millis},
    retry::{self, Situation},
};
use carrying::{CaseName, Made};
use embedding::Vector;
pub(super) use embedding::Vectors;

/// A backend and its place in the plan.
#[derive(Clone, Debug)]
pub(crate) struct BackendRef {
    pub(crate) at: usize,
    pub(crate) backend: Arc<Backend>,
}

/// Which of its backends a case asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The backend whose answers are evaluated.
    Subject,
    /// One of the backends that judge them, by its place among these.
    Judge(usize),
    /// The backend that embeds texts.
    Embedder,
    /// The backend that says how relevant texts are.
    Reranker,
    /// The backend that plays the user.
    User,
}

/// What a case is to its backends.
#[derive(Debug)]
pub(crate) struct Handle {
    serial: u64,
    /// What its calls are named after.
    name: CaseName,
    pub(crate) subject: BackendRef,
    pub(crate) judges: Vec<BackendRef>,
    embedder: Option<BackendRef>,
    reranker: Option<BackendRef>,
    user: Option<BackendRef>,
    /// What its lane is called within the runner.
    pub(crate) lane: Arc<str>,
    shared: Arc<Shared>,
    about: Arc<About>,
    /// What those are told of it who are not asked the case itself.
    about_others: Arc<About>,
    /// Whether it has a permit for a call of the subject that it has not made yet.
    permit: bool,
    began: Instant,
    deadline: Instant,
    /// How long workers could not be reached, as far as the deadline knows.
    paused: Duration,
    spent: Spent,
    /// Every question so far.
    asked: Vec<Asked>,
    /// The text that was embedded last, and its vector.
    embedded: Option<(String, Vector)>,
}

/// What a question came to.
#[derive(Clone, Copy, Debug)]
struct Tally {
    calls: u32,
    usage: Usage,
    cost_usd: Option<f64>,
}

/// The backends that a case may ask.
#[derive(Clone, Debug)]
pub(super) struct Parties {
    pub(super) subject: BackendRef,
    pub(super) judges: Vec<BackendRef>,
    pub(super) embedder: Option<BackendRef>,
    pub(super) reranker: Option<BackendRef>,
    pub(super) user: Option<BackendRef>,
    /// What its lane is called within the runner.
    pub(super) lane: Arc<str>,
}

/// Which case it is.
#[derive(Debug)]
pub(super) struct Whose {
    pub(super) serial: u64,
    pub(super) key: CaseKey,
    /// The name of its lane.
    pub(super) lane: Arc<str>,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The backend failed, and trying again did not help or makes no sense.
    Failed {
        error: CallError,
        /// Its place in the plan.
        backend: usize,
    },
    /// The case is given up.
    Aborted(Aborted),
}

/// A call that came to nothing.
struct NoAnswer {
    error: CallError,
    /// How long to wait before the next try; none if there is to be none.
    wait: Option<Duration>,
    /// Whether anybody was asked.
    is_call: bool,
}

/// How long to wait for others to close their files.
const FOR_FILES: Duration = Duration::from_millis(200);

/// A question and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) target: Target,
    /// What it is asked for, as it is recorded.
    pub(crate) role: &'a str,
    /// The turn of the conversation that it belongs to, from 1.
    pub(crate) turn: Option<u32>,
    /// Where its answer is kept.
    pub(crate) kept: CacheKind,
    pub(crate) request: &'a Request,
    pub(crate) repeat: u32,
}

impl Handle {
    /// The loop spawns a case with a permit for its first call.
    pub(super) fn new(whose: Whose, parties: Parties, shared: Arc<Shared>, about: About) -> Self {
        let Whose { serial, key, lane: lane_name } = whose;
        let Parties { subject, judges, embedder, reranker, user, lane } = parties;
        let began = Instant::now();
        let deadline = began + shared.settings.timeouts.case;
        let limit = subject.backend.timeout.min(shared.settings.timeouts.case);
        let spent = Spent { started_ms: now_ms(), limit, ..Spent::default() };
        Self {
            serial,
            name: CaseName::new(key, lane_name),
            paused: shared.executor.paused(),
            subject,
            judges,
            embedder,
            reranker,
            user,
            lane,
            shared,
            about_others: Arc::new(About::of_others(Arc::clone(&about.case))),
            about: Arc::new(about),
            permit: true,
            began,
            deadline,
            spent,
            asked: Vec::new(),
            embedded: None,
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.shared.settings.seed
    }

    /// How much time is left for the case.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// What was used so far.
    pub(crate) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Every question so far.
    pub(crate) fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Changes the record of the last question.
    pub(crate) fn amend(&mut self, change: impl FnOnce(&mut Asked)) {
        if let Some(last) = self.asked.last_mut() {
            change(last);
        }
    }

    /// Takes the time of a conversation for that of all its answers.
    pub(crate) fn sum_latencies(&mut self) {
        let answers = self.asked.iter().filter(|it| it.turn.is_some());
        self.spent.latency = Duration::from_millis(answers.map(|it| it.latency_ms).sum());
    }

    /// Ends the work on the case.
    pub(super) fn finish(self) -> Account {
        let spent = Spent { elapsed: self.began.elapsed(), ..self.spent };
        Account { spent, asked: self.asked }
    }

    /// Asks, and asks again as long as that makes sense. The question is recorded.
    pub(crate) async fn query(&mut self, query: Query<'_>) -> Result<Reply, Unanswered> {
        let (before, began) = (self.begin_tally(), Instant::now());
        let answer = self.ask(&query).await;
        let Tally { calls, usage, cost_usd } = self.end_tally(before);
        let party = self.party(query.target);
        let (reply, error) = match &answer {
            Ok(reply) => (Some(reply), None),
            Err(Unanswered::Failed { error, .. }) => (None, Some(error.to_string())),
            Err(Unanswered::Aborted(_)) => return answer,
        };
        let latency = reply.and_then(|it| it.latency).unwrap_or_else(|| began.elapsed());
        self.asked.push(Asked {
            role: query.role.to_owned(),
            turn: query.turn,
            backend: party.backend.name.clone(),
            request: query.request.clone(),
            reply: reply.map(|it| it.answer().into_owned()),
            tool_calls: reply.map(|it| it.tool_calls.clone()).unwrap_or_default(),
            reasoning: reply.and_then(|it| it.reasoning.clone()),
            stop_reason: reply.and_then(|it| it.stop_reason.clone()),
            logprobs: reply.and_then(|it| it.logprobs.clone()),
            error,
            model: reply.and_then(|it| it.model.clone()),
            source: reply.map_or(Source::Backend, |it| it.source),
            latency_ms: millis(latency),
            usage,
            cost_usd,
            calls,
        });
        answer
    }

    /// Begins to count what a question comes to.
    fn begin_tally(&mut self) -> Tally {
        let Spent { calls, usage, cost_usd, .. } = &mut self.spent;
        Tally { calls: *calls, usage: std::mem::take(usage), cost_usd: cost_usd.take() }
    }

    /// What it came to, which counts for the case as well.
    fn end_tally(&mut self, before: Tally) -> Tally {
        let Spent { calls, usage, cost_usd, .. } = &mut self.spent;
        let own = Tally { calls: *calls - before.calls, usage: *usage, cost_usd: *cost_usd };
        *usage = before.usage.plus(own.usage);
        *cost_usd = sum(before.cost_usd, own.cost_usd);
        own
    }

    /// Waits until every lane has answered the case, or is not going to.
    pub(crate) async fn meet(&mut self, entries: Entries) -> Result<Duty, Unanswered> {
        self.permit = false;
        let (duty, mine) = oneshot::channel();
        let message = Message::Meets { serial: self.serial, entries, duty };
        let interrupted = || Unanswered::Aborted(Aborted::Interrupted);
        self.shared.to_loop.send(message).map_err(|_| interrupted())?;
        self.wait_for(mine).await.ok_or_else(interrupted)
    }

    /// Waits for another task, which takes nothing of the time that the case has.
    pub(crate) async fn wait_for<T>(&mut self, other: oneshot::Receiver<T>) -> Option<T> {
        let since = Instant::now();
        let said = other.await.ok();
        let waited = since.elapsed();
        self.began += waited;
        self.deadline += waited;
        said
    }

    /// The simulated user gave an answer that is of no use.
    pub(crate) fn failed_user(&self, why: &str) -> Unanswered {
        let BackendRef { at, backend } = self.party(Target::User);
        let error = CallError::new(ErrorKind::Unknown, why);
        let error = of_helper("simulated user", &backend.name, error);
        Unanswered::Failed { error, backend: *at }
    }

    /// Asks a scorer, and records what it returned. An error within is the scorer's own.
    pub(crate) async fn score(
        &mut self,
        number: usize,
        call: &ScorerCall,
        input: &ScorerInput,
    ) -> Result<Result<Value, String>, Unanswered> {
        if let Scorer::Similar(similar) = &call.scorer {
            return self.near(number, call, similar, input).await;
        }
        if let Scorer::Rerank(query) = &call.scorer {
            return self.rerank(number, call, query.as_deref(), input).await;
        }
        let began = Instant::now();
        let scored = match self.carry_score(call, input).await {
            Some(scored) => scored,
            None => self.shared.scorers.score(call, input, self.deadline).await,
        };
        self.asked.push(Asked {
            role: scorer_role(number),
            turn: None,
            backend: call.scorer.to_string(),
            request: Request::new(None, call.question()),
            reply: scored.as_ref().ok().map(ToString::to_string),
            tool_calls: Vec::new(),
            reasoning: None,
            stop_reason: None,
            logprobs: None,
            error: scored.as_ref().err().cloned(),
            model: None,
            source: Source::Backend,
            latency_ms: millis(began.elapsed()),
            usage: Usage::default(),
            cost_usd: None,
            calls: 0,
        });
        Ok(scored)
    }

    /// Records what a backend said of a reply in numbers; an error if it could not be asked.
    fn note_scored(
        &mut self,
        (number, call): (usize, &ScorerCall),
        helper: &BackendRef,
        scored: Result<Value, Unanswered>,
        (own, began): (Tally, Instant),
    ) -> Result<Result<Value, String>, Unanswered> {
        let error = match &scored {
            Ok(_) => None,
            Err(Unanswered::Failed { error, .. }) => Some(error.to_string()),
            Err(Unanswered::Aborted(_)) => return scored.map(Ok),
        };
        self.asked.push(Asked {
            role: scorer_role(number),
            turn: None,
            backend: helper.backend.name.clone(),
            request: Request::new(None, call.question()),
            reply: scored.as_ref().ok().map(ToString::to_string),
            tool_calls: Vec::new(),
            reasoning: None,
            stop_reason: None,
            logprobs: None,
            error,
            model: helper.backend.model.clone(),
            source: Source::Backend,
            latency_ms: millis(began.elapsed()),
            usage: own.usage,
            cost_usd: own.cost_usd,
            calls: own.calls,
        });
        scored.map(Ok)
    }

    /// Asks, and asks again as long as that makes sense.
    pub(crate) async fn ask(&mut self, query: &Query<'_>) -> Result<Reply, Unanswered> {
        let Query { target, kept, request, repeat, .. } = *query;
        let about = Arc::clone(self.about(target));
        let ask = Ask { request, repeat, about: Some(&about) };
        let party = self.party(target).clone();
        let access = self.shared.access.of(kept);
        let may_keep = access.any() && !party.backend.has_sessions();
        let cache = self.shared.cache.clone().filter(|_| may_keep);
        let cache = cache.map(|cache| (cache, party.backend.cache_key(&ask)));
        let known = cache.as_ref().filter(|_| access.read);
        let known = known.and_then(|(cache, key)| cached(&cache.get(kept, *key)?));
        if let Some(reply) = known {
            if target == Target::Subject {
                self.spent.latency = reply.latency.unwrap_or_default();
                self.spent.worker = None;
            }
            self.spent.usage = self.spent.usage.plus(reply.usage);
            return Ok(reply);
        }
        let mut attempts = 1;
        loop {
            self.acquire_permit(target).await?;
            match self.call(&party, target, &ask, attempts).await {
                Ok((reply, latency)) => {
                    let reply = Reply { latency: Some(latency), ..reply };
                    // What a judge says is kept when it turns out that it can be used.
                    if let Some((cache, key)) = cache
                        && access.write
                        && kept != CacheKind::Judgement
                    {
                        put(&*cache, kept, key, &reply);
                    }
                    return Ok(reply);
                }
                Err(NoAnswer { wait: None, is_call: false, .. }) => {
                    return Err(Unanswered::Aborted(Aborted::Broken));
                }
                Err(NoAnswer { error, wait: None, .. }) => {
                    return Err(Unanswered::Failed { error, backend: party.at });
                }
                Err(NoAnswer { wait: Some(wait), is_call, .. }) => {
                    attempts += u64::from(is_call);
                    sleep(wait).await;
                }
            }
        }
    }

    /// Keeps a judgement for later runs, unless that is where it comes from.
    pub(crate) fn keep(&self, query: &Query<'_>, reply: &Reply) {
        let Query { target, kept, request, repeat, .. } = *query;
        let wanted = self.shared.access.of(kept).write && reply.source != Source::Cache;
        let Some(cache) = self.shared.cache.as_ref().filter(|_| wanted) else { return };
        let backend = &self.party(target).backend;
        if backend.has_sessions() {
            return;
        }
        let key = backend.cache_key(&Ask { request, repeat, about: Some(self.about(target)) });
        put(&**cache, kept, key, reply);
    }

    fn about(&self, target: Target) -> &Arc<About> {
        match target {
            Target::Subject => &self.about,
            Target::Judge(_) | Target::Embedder | Target::Reranker | Target::User => {
                &self.about_others
            }
        }
    }

    pub(crate) fn party(&self, target: Target) -> &BackendRef {
        match target {
            Target::Subject => &self.subject,
            // Without a judge of its own, a backend judges itself.
            Target::Judge(at) => self.judges.get(at).unwrap_or(&self.subject),
            // Without one, none is asked for.
            Target::Embedder => self.embedder.as_ref().unwrap_or(&self.subject),
            Target::Reranker => self.reranker.as_ref().unwrap_or(&self.subject),
            Target::User => self.user.as_ref().unwrap_or(&self.subject),
        }
    }

    /// Waits for the right to make a call.
    async fn acquire_permit(&mut self, target: Target) -> Result<(), Unanswered> {
        if target == Target::Subject && std::mem::take(&mut self.permit) {
            return Ok(());
        }
        // A permit that is not used goes back to the loop when another backend is wanted.
        self.permit = false;
        let (grant, granted) = oneshot::channel();
        let interrupted = || Unanswered::Aborted(Aborted::Interrupted);
        let backend = self.party(target).at;
        let (serial, deadline) = (self.serial, self.deadline);
        let message = Message::Wants { serial, backend, deadline, grant };
        self.shared.to_loop.send(message).map_err(|_| interrupted())?;
        let limit = Span(self.shared.settings.timeouts.case);
        let mut granted = granted;
        let answer = loop {
            let deadline = self.deadline;
            match timeout_at(deadline, &mut granted).await {
                // What was waited because of the way to the workers is not the case's.
                Err(_) if self.forgive_pause() => {}
                answer => break answer,
            }
        };
        let (kind, message) = match answer {
            Ok(Ok(Grant::Go)) => return Ok(()),
            Ok(Ok(Grant::NoBudget)) => return Err(Unanswered::Aborted(Aborted::Budget)),
            Ok(Err(_)) => return Err(interrupted()),
            Ok(Ok(Grant::Paused(wait))) => {
                let wait = Span(Duration::from_secs(wait.as_secs().max(1)));
                let message = format!(
                    "the backend asks for a pause of another {wait}, longer than the time left \
                     for the case, whose limit is {limit}"
                );
                (ErrorKind::RateLimit, message)
            }
            Err(_) => {
                let message = format!("the case's limit of {limit} was used up by waiting");
                (ErrorKind::Timeout, message)
            }
        };
        Err(Unanswered::Failed { error: CallError::new(kind, message), backend })
    }

    /// Makes one call, here or through a worker, and reports it.
    async fn call(
        &mut self,
        party: &BackendRef,
        target: Target,
        ask: &Ask<'_>,
        attempts: u64,
    ) -> Result<(Reply, Duration), NoAnswer> {
        let BackendRef { at, backend } = party;
        let began = Instant::now();
        let left = self.deadline.saturating_duration_since(began);
        // In whole milliseconds, since it is shown.
        let limit = backend.timeout.min(Duration::from_millis(millis(left)));
        let to_loop = Some(self.shared.to_loop.clone());
        let mut report = Report { serial: self.serial, backend: *at, began, calls: 1, to_loop };
        let mut made = Made::default();
        let answer = match (limit.is_zero(), self.carrier(party)) {
            (false, None) => backend.ask(ask, limit).await,
            (false, Some(carrier)) => {
                let (answer, by) = Box::pin(self.carry(&carrier, party, ask, limit)).await;
                made = by;
                answer
            }
            (true, _) => {
                Err(CallError::new(ErrorKind::Timeout, "no time is left for the case").into())
            }
        };
        let case_limit = self.shared.settings.timeouts.case;
        let answer = answer.map_err(|failed| match limit < backend.timeout && !limit.is_zero() {
            true => failed.of_case(case_limit),
            false => failed,
        });
        let latency = match &answer {
            Ok(Reply { latency: Some(latency), .. }) => *latency,
            Ok(_) | Err(_) => made.took.unwrap_or_else(|| began.elapsed()),
        };
        let is_call = answer.as_ref().map_or_else(|failed| failed.is_call, |_| true);
        self.spent.calls += u32::from(is_call && !backend.is_replay());
        report.calls = u64::from(is_call && !made.taken_over) + made.lost;
        if target == Target::Subject {
            self.spent.latency = latency;
        }
        // A call that failed may have cost as much as one that did not.
        let (usage, said) = match &answer {
            Ok(Reply { usage, cost_usd, .. }) | Err(Failed { usage, cost_usd, .. }) => {
                (*usage, *cost_usd)
            }
        };
        let cost = backend.cost(usage, said);
        self.spent.usage = self.spent.usage.plus(usage);
        self.spent.cost_usd = sum(self.spent.cost_usd, cost);
        match answer {
            Ok(reply) => {
                if target == Target::Subject {
                    self.spent.worker = made.worker;
                }
                report.send(
                    usage,
                    cost,
                    CallOutcome::Answered { exhausted_for: reply.exhausted_for },
                );
                Ok((reply, latency))
            }
            Err(Failed { error, is_call: false, .. }) => {
                report.send(usage, cost, CallOutcome::NoFiles);
                let left = self.deadline.saturating_duration_since(Instant::now());
                let wait = Some(FOR_FILES).filter(|wait| *wait < left);
                Err(NoAnswer { error: *error, wait, is_call })
            }
            Err(Failed { error, .. }) => {
                let error = match target {
                    Target::Subject => *error,
                    Target::Judge(_) => of_helper("judge", &backend.name, *error),
                    Target::Embedder => of_helper("embeddings", &backend.name, *error),
                    Target::Reranker => of_helper("reranker", &backend.name, *error),
                    Target::User => of_helper("simulated user", &backend.name, *error),
                };
                let left = self.deadline.saturating_duration_since(Instant::now());
                let max_pause = self.shared.settings.pace.max_pause;
                let chance = fastrand::f64();
                let situation = Situation { error: &error, attempts, left, max_pause, chance };
                let wait = retry::wait(&self.shared.settings.retry, situation);
                let error = match wait {
                    Some(_) => error,
                    None => retry::explained(error, left, max_pause),
                };
                let failure = FailedAttempt {
                    attempt: self.spent.calls,
                    error: error.clone(),
                    latency_ms: millis(latency),
                    retry_in_ms: wait.map(millis),
                    worker: made.worker,
                };
                self.spent.failures.push(failure.clone());
                report.send(usage, cost, CallOutcome::Failed(failure));
                Err(NoAnswer { error, wait, is_call })
            }
        }
    }

    /// Reports what a program of its own did in place of a call.
    pub(crate) fn report_external(&mut self, calls: u64, cost_usd: f64, latency: Duration) {
        self.permit = false;
        self.spent.calls = u32::try_from(calls).unwrap_or(u32::MAX);
        self.spent.latency = latency;
        self.spent.cost_usd = (cost_usd > 0.0).then_some(cost_usd);
        let called = Called {
            serial: self.serial,
            backend: self.subject.at,
            began: self.began,
            calls,
            usage: Usage::default(),
            cost_usd: self.spent.cost_usd,
            outcome: CallOutcome::Answered { exhausted_for: None },
        };
        // A loop that is gone has given this task up.
        let _ = self.shared.to_loop.send(Message::Called(Box::new(called)));
    }
}

/// The sum of what is known.
fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}

pub(crate) fn put(cache: &dyn Answers, kept: CacheKind, key: InputDigest, reply: &Reply) {
    // What could not be looked at may be seen the next time.
    if matches!(reply.left_behind.as_deref(), Some(Err(_))) {
        return;
    }
    // One that could not be written down is asked for again.
    if let Ok(text) = serde_json::to_string(reply) {
        cache.put(kept, key, &text);
    }
}

/// An error of another backend than the one that is evaluated says so, wherever it is shown.
fn of_helper(what: &str, name: &str, error: CallError) -> CallError {
    CallError { message: format!("{what} `{name}`: {}", error.message), ..error }
}

/// An answer as the cache keeps it; one that is not understood is none.
pub(crate) fn cached(text: &str) -> Option<Reply> {
    let reply: Reply = serde_json::from_str(text).ok()?;
    Some(Reply { source: Source::Cache, ..reply })
}

/// Tells the loop of a call that was made, also of one that is dropped halfway.
struct Report {
    serial: u64,
    backend: usize,
    began: Instant,
    calls: u64,
    to_loop: Option<mpsc::UnboundedSender<Message>>,
}

impl Report {
    fn send(&mut self, usage: Usage, cost_usd: Option<f64>, outcome: CallOutcome) {
        let Some(to_loop) = self.to_loop.take() else { return };
        let Self { serial, backend, began, calls, .. } = *self;
        let called = Called { serial, backend, began, calls, usage, cost_usd, outcome };
        // A loop that is gone has given this task up.
        let _ = to_loop.send(Message::Called(Box::new(called)));
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.send(Usage::default(), None, CallOutcome::Abandoned);
    }
}
