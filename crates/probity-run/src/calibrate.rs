//! Asks a judge about answers that are there: those that people have labelled, or those of a store.

use std::sync::Arc;

use probity_core::{
    case::RubricCriterion,
    failure::ErrorKind,
    record::{CacheKind, CallError, Source},
};
use probity_grade::internal::judge::{Judgement, Marked, Next, Question};
use probity_load::settings::Settings;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    backend::{Answers, Ask, Backend, Reply},
    engine::{cached, put},
    interview::Hearing,
    retry::{self, Situation},
};

/// What a judge is asked about: one answer, or two.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// What was asked for.
    pub task: String,
    /// What is looked at.
    pub criteria: Vec<RubricCriterion>,
    /// The answers in the order they are shown.
    pub answers: Vec<String>,
}

/// A judge that is asked outside of a run.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The backend.
    pub backend: Arc<Backend>,
    /// Whether the form of the answer is sent along; none: where that is known to work.
    pub structured: Option<bool>,
    /// Where its answers are kept, and looked for before it is asked.
    pub cache: Option<Arc<dyn Answers>>,
}

/// Asks the judge about all of them, some at the same time. An answer that cannot be read says so in
/// its place; a judge that cannot be asked at all ends everything.
///
/// The judge is asked in the same way as by a run. `each` is told how many are done.
pub async fn ask_all(
    judge: &Judge,
    settings: &Settings,
    all: Vec<Labelled>,
    mut each: impl FnMut(usize),
) -> Result<Vec<Result<Judgement, String>>, CallError> {
    let most = judge.backend.max_concurrency.min(settings.max_concurrency).max(1);
    let slots = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
    let settings = Arc::new(settings.clone());
    let mut results: Vec<Option<Result<Judgement, String>>> = vec![None; all.len()];
    let mut tasks = JoinSet::new();
    for (at, labelled) in all.into_iter().enumerate() {
        let (judge, slots, settings) = (judge.clone(), slots.clone(), settings.clone());
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _slot = slots.acquire().await;
            (at, ask_one(&judge, &settings, &labelled).await)
        });
    }
    let mut done = 0;
    while let Some(ended) = tasks.join_next().await {
        let Ok((at, result)) = ended else { continue };
        results[at] = Some(match result {
            Ok(judgement) => Ok(judgement),
            Err(Unjudged::Unreadable(why)) => Err(why),
            Err(Unjudged::Failed(error)) if is_hopeless(error.kind) => return Err(error),
            Err(Unjudged::Failed(error)) => Err(error.to_string()),
        });
        done += 1;
        each(done);
    }
    let lost = || Err("the question was lost".to_owned());
    Ok(results.into_iter().map(|it| it.unwrap_or_else(lost)).collect())
}

/// Whether an error is about every question, and not about this one.
const fn is_hopeless(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Auth
            | ErrorKind::Quota
            | ErrorKind::NotFound
            | ErrorKind::NotInstalled
            | ErrorKind::BadFlag
            | ErrorKind::Network
    )
}

enum Unjudged {
    Unreadable(String),
    Failed(CallError),
}

async fn ask_one(
    judge: &Judge,
    settings: &Settings,
    labelled: &Labelled,
) -> Result<Judgement, Unjudged> {
    let answers: Vec<&str> = labelled.answers.iter().map(String::as_str).collect();
    let Labelled { task, criteria, .. } = labelled;
    let question = Question { task, criteria, answers: &answers };
    let interview = Marked::new(question, settings.seed);
    let deadline = Instant::now() + settings.timeouts.case;
    let Judge { backend, structured, cache } = judge;
    let mut hearing = Hearing::new(&interview, backend.clone(), *structured, None);
    loop {
        let request = hearing.request();
        let ask = Ask { request: &request, repeat: 0, about: None };
        let cache = cache.as_ref().filter(|_| !backend.has_sessions());
        let kept = cache.map(|it| (it, backend.cache_key(&ask)));
        let known = kept.as_ref().and_then(|(cache, key)| cache.get(CacheKind::Judgement, *key));
        let known = known.and_then(|it| cached(&it));
        let reply = match known {
            Some(reply) => reply,
            None => match call(backend, settings, &ask, deadline).await {
                Ok(reply) => reply,
                Err(error) if hearing.goes_on_after(&error) => continue,
                Err(error) => return Err(Unjudged::Failed(error)),
            },
        };
        match hearing.hear(&reply.answer()) {
            Next::Done(judgement) => {
                if let Some((cache, key)) = kept.filter(|_| reply.source != Source::Cache) {
                    put(&**cache, CacheKind::Judgement, key, &reply);
                }
                return Ok(judgement);
            }
            Next::Again => {}
            Next::GiveUp(why) => return Err(Unjudged::Unreadable(why)),
        }
    }
}

/// One answer, with retries.
async fn call(
    judge: &Backend,
    settings: &Settings,
    ask: &Ask<'_>,
    deadline: Instant,
) -> Result<Reply, CallError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let left = deadline.saturating_duration_since(Instant::now());
        let error = match judge.ask(ask, judge.timeout.min(left)).await {
            Ok(reply) => return Ok(reply),
            Err(failed) => *failed.error,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let max_pause = settings.pace.max_pause;
        let chance = fastrand::f64();
        let situation = Situation { error: &error, attempts, left, max_pause, chance };
        match retry::wait(&settings.retry, situation) {
            Some(wait) => sleep(wait).await,
            None => return Err(retry::explained(error, left, max_pause)),
        }
    }
}
