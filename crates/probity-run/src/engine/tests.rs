//! The loop against scripts of replies, in time that the tests own.

#![expect(clippy::wildcard_enum_match_arm, reason = "tests look for single events")]

mod giving_up;
mod judges;
mod long;
mod streams;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use probity_core::{
    case::TestCase,
    classification::{Class, Verdict},
    criteria::{Assertion, AssertionKind, AssertionTest},
    failure::ErrorKind,
    kind::RunnerKind,
    record::{CallError, InputDigest},
};
use probity_load::settings::{Budget, FailFast, Resolved, Retry, Settings};
use proptest::prelude::*;

use super::*;
use crate::{
    backend::{Ask, Failed, Reply, Wire},
    callable::Callables,
    kind::Site,
    plan::{PlannedLane, Used},
    redact::Redactor,
    sandbox::Ground,
    scorer::Scorers,
    source::{Cases, Done, DoneCase, Stored},
};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

/// What a scripted backend does when it is asked.
#[derive(Clone, Debug)]
enum Act {
    Reply,
    /// Content with what it judges.
    Judge,
    Fail(ErrorKind, Option<f64>),
    /// Nobody was asked, for want of file descriptors.
    NoCall,
    Hang,
}

const JUDGED: &str = r#"{"criteria": [{"name": "rubric", "score": 5, "reason": ""}]}"#;
const CHOSEN: &str = r#"{"reason": "", "best": 1}"#;

/// A backend that plays a list of acts for each prompt, the last one again and again.
#[derive(Debug, Default)]
pub struct Scripted {
    acts: BTreeMap<String, Vec<(Duration, Act)>>,
    /// For prompts that have none of their own, such as those for a judge.
    otherwise: Vec<(Duration, Act)>,
    /// What its replies are, so that those of two backends differ.
    voice: String,
    asked: Mutex<BTreeMap<String, usize>>,
    in_flight: AtomicU64,
    peak: AtomicU64,
}

/// Counts a call as ended, also one that is dropped halfway.
struct Ending<'a>(&'a AtomicU64);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scripted {
    pub(crate) async fn ask(&self, ask: &Ask<'_>, limit: Duration) -> Result<Reply, Failed> {
        let (latency, act) = {
            let mut asked = self.asked.lock().unwrap();
            let count = asked.entry(ask.request.prompt().to_owned()).or_default();
            let acts = self.acts.get(ask.request.prompt()).unwrap_or(&self.otherwise);
            let act = acts[(*count).min(acts.len() - 1)].clone();
            *count += 1;
            act
        };
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.peak.fetch_max(now, Ordering::SeqCst);
        let _ending = Ending(&self.in_flight);
        let played = async {
            tokio::time::sleep(latency).await;
            match act {
                Act::Reply => Ok(Reply { text: format!("yes {}", self.voice), ..Reply::default() }),
                Act::Judge => {
                    let is_choice = ask.request.prompt().contains("\"best\"");
                    let text = if is_choice { CHOSEN } else { JUDGED };
                    Ok(Reply { text: text.to_owned(), ..Reply::default() })
                }
                Act::Fail(kind, retry_after) => {
                    Err(CallError { retry_after, ..CallError::new(kind, kind.as_str()) }.into())
                }
                Act::NoCall => {
                    let error = CallError::new(ErrorKind::Network, "too many open files");
                    Err(Failed { is_call: false, ..error.into() })
                }
                Act::Hang => std::future::pending().await,
            }
        };
        tokio::time::timeout(limit, played)
            .await
            .unwrap_or_else(|_| Err(CallError::new(ErrorKind::Timeout, "too slow").into()))
    }

    fn calls(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }
}

fn backend(name: &str, acts: Vec<Vec<(Duration, Act)>>, max_concurrency: u64) -> Arc<Backend> {
    let acts = acts.into_iter().enumerate().map(|(at, acts)| (format!("case {at}"), acts));
    Arc::new(Backend {
        name: name.to_owned(),
        kind: Some(probity_load::suite::BackendKind::Echo),
        model: None,
        price: None,
        max_concurrency,
        timeout: Duration::from_secs(10),
        max_tokens: None,
        parameters: String::new(),
        reports_cost: false,
        not_applied: Vec::new(),
        wire: Wire::Scripted(Scripted {
            acts: acts.collect(),
            voice: name.to_owned(),
            ..Scripted::default()
        }),
    })
}

fn script(backend: &Backend) -> &Scripted {
    match &backend.wire {
        Wire::Scripted(script) => script,
        Wire::Http(_)
        | Wire::Program(_)
        | Wire::Function(_)
        | Wire::Embedded(_)
        | Wire::Replay(_)
        | Wire::Elsewhere
        | Wire::Echo => {
            unreachable!("these tests make scripted backends only")
        }
    }
}

fn settings() -> Settings {
    let settings = Resolved::of([]).settings();
    let retry = Retry { backoff_jitter: 0.0, ..settings.retry };
    Settings { retry, ..settings }
}

fn no_scorers(settings: &Settings) -> Scorers {
    let site = Site {
        folder: Path::new(""),
        rules: &RULES,
        env: BTreeMap::new(),
        redactor: Redactor::default(),
        kill_grace: Duration::ZERO,
        function_timeout: Duration::ZERO,
    };
    Scorers::new(&[], site, settings, &Callables::default())
}

/// A plan that asks each backend every case it has acts for.
fn plan(backends: &[Arc<Backend>], settings: Settings, repeat: u32) -> Plan {
    let lanes = backends.iter().enumerate().map(|(at, asked)| {
        let given: Vec<TestCase> = (0..script(asked).acts.len())
            .map(|at| TestCase {
                id: format!("{at}"),
                prompt: format!("case {at}").into(),
                ..TestCase::default()
            })
            .collect();
        let planned = given.len() as u64 * u64::from(repeat);
        PlannedLane {
            info: probity_core::record::Lane {
                runner: "r".to_owned(),
                variant: None,
                kind: RunnerKind::Respond,
                backend: asked.name.clone(),
                backend_kind: "echo".to_owned(),
                model: None,
                dataset_digest: String::new(),
                dataset: Vec::new(),
                planned,
                repeat,
                replayed: false,
                imported: None,
                judge: None,
                judges: Vec::new(),
                skills: None,
                judging: probity_core::record::Judging::default(),
            },
            backend: at,
            judges: Vec::new(),
            embedder: None,
            reranker: None,
            users: Vec::new(),
            runner: 0,
            calls: crate::plan::Calls::default(),
            prompt_bytes: 0,
            timeout: None,
            cases: Cases { repeat, given, ..Cases::default() },
            done: Done::default(),
            ended: None,
            planned: crate::decide::Planned::default(),
            certainty: None,
        }
    });
    Plan {
        run_id: "test".to_owned(),
        resumed: false,
        scorers: no_scorers(&settings),
        ground: Arc::new(Ground::new(&BTreeMap::new())),
        settings,
        backends: backends.to_vec(),
        lanes: lanes.collect(),
        stages: vec![(0..backends.len()).collect()],
        budgets: vec![Budget::default()],
        carried: Used::default(),
        carried_by_runner: Vec::new(),
        ledger: None,
        cache: None,
        access: crate::backend::CacheAccess::default(),
        executor: crate::carrier::Executor::Local,
    }
}

/// Runs a plan, and stops it after a time if one is given.
async fn trace(plan: Plan, stop_after: Option<Duration>) -> (RunOutcome, Vec<Event>) {
    let (events, mut seen) = events::channel(16, 1 << 20);
    let (stop, stopped) = watch::channel(false);
    let collector = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(stamped) = seen.recv().await {
            all.push(stamped.event);
        }
        all
    });
    let timer = tokio::spawn(async move {
        match stop_after {
            Some(after) => tokio::time::sleep(after).await,
            None => pending().await,
        }
        let _ = stop.send(true);
    });
    let outcome = run(plan, &RULES, events, stopped).await.unwrap();
    timer.abort();
    (outcome, collector.await.unwrap())
}

const SOON: Duration = Duration::from_millis(50);

fn replies(count: usize) -> Vec<Vec<(Duration, Act)>> {
    vec![vec![(SOON, Act::Reply)]; count]
}

fn failures(count: usize, kind: ErrorKind) -> Vec<Vec<(Duration, Act)>> {
    vec![vec![(SOON, Act::Fail(kind, None))]; count]
}

fn finished(events: &[Event], lane: usize) -> usize {
    let is = |event: &&Event| matches!(event, Event::CaseFinished { lane: at, .. } if *at == lane);
    events.iter().filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn every_case_comes_to_an_end() {
    let backend = backend("a", replies(200), 64);
    let (outcome, events) = trace(plan(std::slice::from_ref(&backend), settings(), 1), None).await;
    assert_eq!(outcome.lanes, [LaneStatus::Complete]);
    assert_eq!((outcome.used.calls, finished(&events, 0)), (200, 200));
    assert_eq!(script(&backend).peak.load(Ordering::SeqCst), 64);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_left_nothing_is_read() {
    let backend = backend("a", replies(3), 64);
    let mut plan = plan(std::slice::from_ref(&backend), settings(), 1);
    let lane = &mut plan.lanes[0];
    let input = InputDigest::of([b"asked".as_slice()]);
    let mut stored = Stored::default();
    for TestCase { id, .. } in &lane.cases.given {
        let (class, verdict) = (Class::Pass, Verdict::Pass);
        stored.add(id, 0, DoneCase { input, class, verdict }, true);
    }
    lane.done = stored.settle();
    for TestCase { id, .. } in lane.cases.given.drain(..) {
        lane.done.meet(&id, 0, input);
    }
    // It would be an error if anybody read this.
    lane.cases.files.paths.push("/nowhere/cases.jsonl".into());
    let (outcome, _) = trace(plan, None).await;
    assert_eq!((outcome.lanes, outcome.used.calls), (vec![LaneStatus::Complete], 0));
}

#[tokio::test(start_paused = true)]
async fn a_bad_key_costs_three_calls_and_spares_the_other_backend() {
    let bad = backend("bad", failures(100, ErrorKind::Auth), 64);
    let good = backend("good", replies(100), 64);
    let (outcome, events) = trace(plan(&[bad.clone(), good], settings(), 1), None).await;
    let reason = "auth: auth".to_owned();
    assert_eq!(
        outcome.lanes,
        [LaneStatus::FailFast { reason, permanent: true }, LaneStatus::Complete]
    );
    assert_eq!((script(&bad).calls(), finished(&events, 1)), (3, 100));
}

#[tokio::test(start_paused = true)]
async fn an_outage_costs_three_cases_with_their_retries() {
    let backend = backend("a", failures(100, ErrorKind::Server), 64);
    let (outcome, events) = trace(plan(std::slice::from_ref(&backend), settings(), 1), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::FailFast { permanent: false, .. }));
    assert_eq!((script(&backend).calls(), finished(&events, 0)), (12, 3));
}

#[tokio::test(start_paused = true)]
async fn a_breach_cancels_what_is_in_flight() {
    let mut acts = replies(40);
    acts.extend(vec![vec![(SOON, Act::Fail(ErrorKind::Auth, None))]; 3]);
    acts.extend(vec![vec![(SOON, Act::Hang)]; 20]);
    let begun = Instant::now();
    let (outcome, events) = trace(plan(&[backend("a", acts, 64)], settings(), 1), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::FailFast { permanent: true, .. }));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let aborted = events.iter().filter(|it| matches!(it, Event::CaseAborted { .. })).count();
    assert!(aborted > 0);
}

#[tokio::test(start_paused = true)]
async fn errors_that_pass_are_tried_again() {
    let fail = |kind| (SOON, Act::Fail(kind, None));
    let acts = vec![vec![fail(ErrorKind::Server), fail(ErrorKind::Overloaded), (SOON, Act::Reply)]];
    let (outcome, events) = trace(plan(&[backend("a", acts, 4)], settings(), 1), None).await;
    assert_eq!((outcome.used.calls, finished(&events, 0)), (3, 1));
    let record = events.iter().find_map(|event| match event {
        Event::CaseFinished { record, .. } => Some(record),
        _ => None,
    });
    let record = record.unwrap();
    assert_eq!(
        (record.calls, record.failures.len(), record.reply.as_deref()),
        (3, 2, Some("yes a"))
    );
    assert_eq!(record.failures[0].retry_in_ms, Some(2000));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_heard_of_is_none() {
    let acts = vec![vec![(SOON, Act::NoCall), (SOON, Act::Reply)]];
    let (outcome, events) = trace(plan(&[backend("a", acts, 4)], settings(), 1), None).await;
    assert_eq!((outcome.used.calls, finished(&events, 0)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn without_files_the_run_ends_with_advice_and_blames_nobody() {
    for case_limit in [Duration::from_secs(1), Duration::from_mins(10)] {
        let mut settings = settings();
        settings.timeouts.case = case_limit;
        let acts = vec![vec![(SOON, Act::NoCall)]; 20];
        let begun = Instant::now();
        let (outcome, events) = trace(plan(&[backend("a", acts, 4)], settings, 1), None).await;
        let reason = NO_FILES.to_owned();
        assert_eq!(outcome.lanes, [LaneStatus::Broken { reason }]);
        assert_eq!((outcome.used.calls, finished(&events, 0)), (0, 0));
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
        assert!(!events.iter().any(|it| matches!(it, Event::AttemptFailed { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn two_moments_without_files_are_no_time_without_them() {
    let limit = |kind| (SOON, Act::Fail(kind, Some(40.0)));
    for between in [ErrorKind::RateLimit, ErrorKind::Overloaded] {
        // The server is asked between the two, and asks for more time than the run waits for files.
        let acts =
            vec![(SOON, Act::NoCall), limit(between), (SOON, Act::NoCall), (SOON, Act::Reply)];
        let backends = [backend("a", vec![acts; 3], 1)];
        let (outcome, events) = trace(plan(&backends, settings(), 1), None).await;
        assert_eq!((outcome.lanes, finished(&events, 0)), (vec![LaneStatus::Complete], 3));
    }
}

#[test]
fn nobody_knows_of_files_while_nobody_tries() {
    let (mut cramped, start) = (Cramped::default(), Instant::now());
    let at = |seconds| start + Duration::from_secs(seconds);
    assert!((0..30).all(|it| !cramped.is_hopeless(at(it))));
    assert!(!cramped.is_hopeless(at(40)));
    assert!((41..70).all(|it| !cramped.is_hopeless(at(it))));
    assert!(cramped.is_hopeless(at(70)));
    cramped.relieve();
    assert!(!cramped.is_hopeless(at(71)));
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_asks_for_time_is_left_alone_for_it() {
    let acts =
        vec![vec![(SOON, Act::Fail(ErrorKind::RateLimit, Some(30.0))), (SOON, Act::Reply)]; 20];
    let begun = Instant::now();
    let (outcome, events) = trace(plan(&[backend("a", acts, 8)], settings(), 1), None).await;
    assert_eq!((outcome.lanes, finished(&events, 0)), (vec![LaneStatus::Complete], 20));
    assert!(begun.elapsed() >= Duration::from_secs(30));
    assert!(events.iter().any(|it| matches!(it, Event::BackendPaused { for_ms: 30_000, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_a_timeout() {
    let acts = vec![vec![(SOON, Act::Hang)]];
    let (outcome, events) = trace(plan(&[backend("a", acts, 8)], settings(), 1), None).await;
    assert_eq!((outcome.used.calls, finished(&events, 0)), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn the_budget_counts_calls_in_flight() {
    let budget = Budget { max_calls: Some(10), ..Budget::default() };
    let backend = backend("a", replies(100), 64);
    let settings = Settings { budget, ..settings() };
    let (outcome, events) = trace(plan(std::slice::from_ref(&backend), settings, 1), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::Budget { .. }));
    assert_eq!((script(&backend).calls(), finished(&events, 0)), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_just_enough_is_enough() {
    let budget = Budget { max_calls: Some(100), ..Budget::default() };
    let settings = Settings { budget, ..settings() };
    let (outcome, _) = trace(plan(&[backend("a", replies(100), 64)], settings, 1), None).await;
    assert_eq!((outcome.lanes, outcome.used.calls), (vec![LaneStatus::Complete], 100));
}

#[tokio::test(start_paused = true)]
async fn a_case_that_needs_more_than_the_budget_is_given_up_and_no_error() {
    let budget = Budget { max_calls: Some(2), ..Budget::default() };
    let acts = failures(5, ErrorKind::Server);
    let settings = Settings { budget, ..settings() };
    let (outcome, events) = trace(plan(&[backend("a", acts, 64)], settings, 1), None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::Budget { .. }));
    let reasons: Vec<Aborted> = events
        .iter()
        .filter_map(|event| match event {
            Event::CaseAborted { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!((reasons, finished(&events, 0)), (vec![Aborted::Budget; 2], 0));
}

#[tokio::test(start_paused = true)]
async fn a_slow_backend_does_not_take_all_slots() {
    let slow = backend("slow", vec![vec![(Duration::from_secs(9), Act::Reply)]; 100], 64);
    let fast = backend("fast", replies(200), 64);
    let settings = Settings { max_concurrency: 16, ..settings() };
    let begun = Instant::now();
    let (_, events) = trace(plan(&[slow, fast], settings, 1), None).await;
    let slow_done_first = events
        .iter()
        .filter_map(|event| match event {
            Event::CaseFinished { lane, .. } => Some(*lane),
            _ => None,
        })
        .take(205)
        .filter(|lane| *lane == 0)
        .count();
    assert!(slow_done_first <= 8, "{slow_done_first} in {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_repeat_begins_its_streak_anew() {
    let acts = failures(2, ErrorKind::Auth);
    let (outcome, events) = trace(plan(&[backend("a", acts, 1)], settings(), 5), None).await;
    assert_eq!((outcome.lanes, finished(&events, 0)), (vec![LaneStatus::Complete], 10));
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_takes_too_long_ends_and_the_next_stage_begins() {
    let (slow, fast) = (
        backend("slow", vec![vec![(Duration::from_secs(5), Act::Reply)]; 10], 1),
        backend("fast", replies(5), 4),
    );
    let mut plan = plan(&[slow, fast], settings(), 1);
    plan.stages = vec![vec![0], vec![1]];
    plan.lanes[0].timeout = Some(Duration::from_secs(12));
    let begun = Instant::now();
    let (outcome, events) = trace(plan, None).await;
    assert!(matches!(outcome.lanes[0], LaneStatus::TimedOut { .. }));
    assert_eq!((finished(&events, 0), finished(&events, 1)), (2, 5));
    assert!(begun.elapsed() < Duration::from_secs(13));
    check_stream(&events);
}

#[tokio::test(start_paused = true)]
async fn many_runners_at_the_same_time_take_turns_and_a_slow_backend_holds_up_no_other() {
    const RUNNERS: usize = 150;
    let slow = backend("slow", vec![vec![(Duration::from_secs(2), Act::Reply)]; 2], 4);
    let fast = backend("fast", replies(2), 4);
    let bad = backend("bad", failures(3, ErrorKind::Auth), 4);
    // All lanes of the slow one come first.
    let asked: Vec<Arc<Backend>> =
        [&slow, &fast, &bad].into_iter().flat_map(|it| vec![it.clone(); RUNNERS]).collect();
    let mut plan = plan(&asked, settings(), 1);
    for (at, lane) in plan.lanes.iter_mut().enumerate() {
        (lane.runner, lane.backend) = (at, at / RUNNERS);
    }
    plan.backends = vec![slow, fast, bad.clone()];
    plan.budgets = vec![Budget::default(); asked.len()];
    let (outcome, events) = trace(plan, None).await;
    check_stream(&events);
    let (sound, given_up) = outcome.lanes.split_at(2 * RUNNERS);
    assert!(sound.iter().all(|it| *it == LaneStatus::Complete), "{sound:?}");
    let is_given_up =
        |it: &LaneStatus| matches!(it, LaneStatus::FailFast { .. } | LaneStatus::Skipped { .. });
    assert!(given_up.iter().all(is_given_up), "{given_up:?}");
    // Failures in a row are counted by lane, and four lanes ask at the same time.
    assert!(script(&bad).calls() <= 3 * 4, "{}", script(&bad).calls());
    let ends: Vec<usize> = (events.iter())
        .filter_map(|it| match it {
            Event::LaneFinished { lane, .. } => Some(*lane),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 3 * RUNNERS);
    // The fast one is done before half of the slow one's are.
    let last_fast = ends.iter().rposition(|it| (RUNNERS..2 * RUNNERS).contains(it)).unwrap();
    let slow_before = ends[..last_fast].iter().filter(|it| **it < RUNNERS).count();
    assert!(slow_before < RUNNERS / 2, "{slow_before}");
}

/// The invariants that `core::event` states.
fn check_stream(events: &[Event]) {
    assert!(matches!(events.first(), Some(Event::RunStarted { .. })));
    assert!(matches!(events.last(), Some(Event::RunFinished { .. })));
    let mut open: BTreeSet<CaseKey> = BTreeSet::new();
    let mut seen: BTreeSet<CaseKey> = BTreeSet::new();
    let mut cancelled = false;
    let mut ended = BTreeSet::new();
    for event in events {
        match event {
            Event::CaseStarted(key) => {
                assert!(!cancelled, "{key:?} began after the cancel");
                assert!(!ended.contains(&key.lane), "{key:?} began after the end of its lane");
                assert!(open.insert(key.clone()) && seen.insert(key.clone()), "{key:?} twice");
            }
            Event::CaseFinished { lane, record } => {
                let case_id = record.case_id.clone();
                let key = CaseKey { lane: *lane, case_id, repeat: record.repeat };
                assert!(open.remove(&key), "{key:?} ended without having begun");
            }
            Event::CaseAborted { case, .. } => assert!(open.remove(case), "{case:?}"),
            Event::AttemptFailed { case, .. } => assert!(open.contains(case), "{case:?}"),
            Event::LaneFinished { lane, .. } => {
                assert!(ended.insert(*lane));
                assert!(open.iter().all(|key| key.lane != *lane));
            }
            Event::CancelStarted { .. } => cancelled = true,
            Event::RunStarted { .. }
            | Event::RunFinished { .. }
            | Event::BackendPaused { .. }
            | Event::WorkersPaused { .. }
            | Event::WorkersResumed { .. }
            | Event::WorkersSeen(_)
            | Event::BackendTripped { .. } => {}
        }
    }
    assert!(open.is_empty(), "{open:?} never ended");
}
