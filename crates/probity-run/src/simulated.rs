//! The loop with a model of who answers, for simulations in time that is not real.
//!
//! Everything but the answers is what a run uses: the feed, the permits, the pace, retries, grading and events. Nothing here
//! is part of the product.

use std::{
    cell::Cell, collections::BTreeMap, fmt, future::Future, path::Path, pin::Pin, sync::Arc,
    time::Duration,
};

use probity_core::{
    case::TestCase,
    failure::ErrorKind,
    kind::RunnerKind,
    record::{CallError, Judging, Lane},
};
use probity_grade::Rules;
use probity_load::{
    settings::{Budget, Settings},
    suite::BackendKind,
};

use tokio::time::Instant;

use crate::{
    backend::{Ask, Backend, CacheAccess, Failed, Reply, Wire},
    callable::Callables,
    decide::Planned,
    kind::{Calls, Site},
    plan::{Plan, PlannedLane, Used},
    redact::Redactor,
    sandbox::Ground,
    scorer::Scorers,
    source::{Cases, Done},
};

/// What becomes of a call.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Reply, Failed>> + Send + 'a>>;

/// A model of who answers.
pub trait Model: fmt::Debug + Send + Sync {
    /// Answers, as long as that takes in the time of the simulation.
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> Answering<'a>;
}

/// What a server sends, or why it does not.
pub type Sending<'a> =
    Pin<Box<dyn Future<Output = Result<probity_http::Response, probity_http::Error>> + Send + 'a>>;

/// A model of a server: it answers in bytes, which are read as those of any server.
pub trait Server: fmt::Debug + Send + Sync {
    /// Answers, as long as that takes in the time of the simulation.
    fn answer<'a>(&'a self, ask: &'a Ask<'a>) -> Sending<'a>;
}

/// The same backend, answered by a model of its server. One that is not asked over HTTP stays as it is.
pub fn answered_by(mut backend: Backend, server: Arc<dyn Server>) -> Backend {
    if let Wire::Http(http) = &mut backend.wire {
        http.simulated = Some(server);
    }
    backend
}

pub use probity_http::{Bytes, Error as HttpError, Response as HttpResponse, http};

thread_local! {
    /// What the clock on the wall said when the time of this thread's simulation began.
    static BEGUN: Cell<Option<(i64, Instant)>> = const { Cell::new(None) };
}

/// From now on this thread has a clock of its own, which goes with the time of its runtime, and all that a run reads is
/// read by this thread. It ends when the guard is dropped.
pub fn own_time(wall_ms: i64) -> OwnTime {
    BEGUN.set(Some((wall_ms, Instant::now())));
    OwnTime(())
}

/// A thread has a clock of its own as long as this is there.
#[derive(Debug)]
pub struct OwnTime(());

impl Drop for OwnTime {
    fn drop(&mut self) {
        BEGUN.set(None);
    }
}

/// What the clock of this thread says, if it has one.
pub(crate) fn now_ms() -> Option<i64> {
    let (wall, begun) = BEGUN.get()?;
    let passed = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
    Some(wall.saturating_add(passed))
}

/// Asks a model, and waits for the answer no longer than `limit`.
pub(crate) async fn ask(
    model: &dyn Model,
    ask: &Ask<'_>,
    limit: Duration,
) -> Result<Reply, Failed> {
    let late = |_| Err(CallError::new(ErrorKind::Timeout, "too slow").into());
    let reply = tokio::time::timeout(limit, model.ask(ask)).await.unwrap_or_else(late)?;
    Ok(reply.with_estimated_usage(ask.request))
}

/// Cases that are made when they are wanted.
#[derive(Clone)]
pub struct Made {
    /// How many.
    pub count: u64,
    /// The case of a number.
    pub case: Arc<dyn Fn(u64) -> TestCase + Send + Sync>,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Made").field("count", &self.count).finish_non_exhaustive()
    }
}

/// How a model is asked.
#[derive(Debug)]
pub struct Asked {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Calls in flight at once.
    pub max_concurrency: u64,
    /// The limit of one call.
    pub timeout: Duration,
}

/// A plan that asks a model every case once.
pub fn plan(asked: Asked, made: Made, settings: Settings, rules: &'static Rules) -> Plan {
    let backend = Backend {
        kind: Some(BackendKind::Echo),
        max_concurrency: asked.max_concurrency,
        timeout: asked.timeout,
        simulated: Some(asked.model),
        ..Backend::nobody("fleet")
    };
    let site = Site {
        folder: Path::new(""),
        rules,
        env: BTreeMap::new(),
        redactor: Redactor::default(),
        kill_grace: Duration::ZERO,
        function_timeout: Duration::ZERO,
    };
    let lane = PlannedLane {
        info: Lane {
            runner: "simulated".to_owned(),
            variant: None,
            kind: RunnerKind::Respond,
            backend: backend.name.clone(),
            backend_kind: backend.kind_name().to_owned(),
            model: None,
            dataset_digest: String::new(),
            dataset: Vec::new(),
            planned: made.count,
            repeat: 1,
            replayed: false,
            imported: None,
            judge: None,
            judges: Vec::new(),
            skills: None,
            judging: Judging::default(),
        },
        backend: 0,
        judges: Vec::new(),
        embedder: None,
        reranker: None,
        users: Vec::new(),
        runner: 0,
        calls: Calls::default(),
        prompt_bytes: 0,
        timeout: None,
        cases: Cases { repeat: 1, made: Some(made), ..Cases::default() },
        done: Done::default(),
        ended: None,
        planned: Planned::default(),
        certainty: None,
    };
    Plan {
        executor: crate::carrier::Executor::Local,
        run_id: "simulated".to_owned(),
        resumed: false,
        scorers: Scorers::new(&[], site, &settings, &Callables::default()),
        ground: Arc::new(Ground::new(&BTreeMap::new())),
        settings,
        backends: vec![Arc::new(backend)],
        lanes: vec![lane],
        stages: vec![vec![0]],
        budgets: vec![Budget::default()],
        carried: Used::default(),
        carried_by_runner: Vec::new(),
        ledger: None,
        cache: None,
        access: CacheAccess::default(),
    }
}
