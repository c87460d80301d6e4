//! The loop that runs a plan.
//!
//! It owns all state of the run and does nothing that takes time: fill the free slots,
//! wake up, handle what happened, tell about it. Cases run in tasks, which ask the loop
//! for a permit before each call and report after it.

mod ending;
mod groups;
mod handle;
mod lane;
mod schedule;
mod task;
mod turns;

#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    future::{pending, poll_fn},
    io,
    sync::Arc,
    task::Poll,
};

use probity_core::{
    case::Category,
    event::{CaseKey, Event, Stamped, VERSION},
    record::{Aborted, FailedAttempt, LaneStatus, Spent},
};
use probity_grade::Rules;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    backend::{About, Backend},
    budget::{Ledger, Left, Meter, Used},
    carrier::News,
    clock::now_ms,
    events,
    pace::{Pacer, Pause},
    plan::Plan,
    sandbox,
    source::{Fed, Prepared, weight},
};
use ending::Cramped;
use groups::Groups;
use handle::{BackendRef, Parties, Vectors, Whose};
use lane::LaneState;
use task::{CallOutcome, Called, Grant, Message, Shared, TaskEnd};
use turns::Turns;

pub(crate) use groups::{Decision, Duty, Entries, JudgeFailed};
pub(crate) use handle::{Handle, Query, Target, Unanswered, cached, put};
pub(crate) use task::{Ended, JudgeCall, ask_judge, failed, failed_with, finish};

/// What a run came to in this session.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// How each lane ended.
    pub lanes: Vec<LaneStatus>,
    /// What was used in this session.
    pub used: Used,
}

/// What happens is no longer recorded, so nothing more is asked.
#[derive(Debug, thiserror::Error)]
#[error("the run cannot be recorded")]
pub struct Unrecorded {
    /// What was used in this session.
    pub used: Used,
    /// Why, unless whoever takes the events knows.
    #[source]
    why: Option<io::Error>,
}

/// Why the loop ends before the run does.
#[derive(Debug)]
enum Halt {
    /// Nobody takes the events any more.
    Unheard,
    /// Calls cannot be counted before they are made.
    Uncounted(io::Error),
}

/// Runs a plan until every lane has ended, or `stop` becomes true.
pub async fn run(
    plan: Plan,
    rules: &'static Rules,
    events: events::Sender,
    stop: watch::Receiver<bool>,
) -> Result<RunOutcome, Unrecorded> {
    let mut engine = Engine::new(plan, rules, events);
    let outcome = engine.drive(stop).await;
    // Whatever is left, after a failure to record, ends here and is waited for.
    engine.tasks.shutdown().await;
    outcome.map_err(|halt| Unrecorded {
        used: engine.used_after_all(),
        why: match halt {
            Halt::Unheard => None,
            Halt::Uncounted(error) => Some(error),
        },
    })
}

/// A backend and how it is doing.
#[derive(Debug)]
struct BackendState {
    backend: Arc<Backend>,
    pacer: Pacer,
    /// Why it gets no more work at all.
    given_up: Option<String>,
    /// Cases that wait for a permit to ask it, in the order they came.
    waiting: VecDeque<Waiting>,
}

/// A case that waits for a permit.
#[derive(Debug)]
struct Waiting {
    serial: u64,
    /// When it is no longer of use.
    deadline: Instant,
    grant: oneshot::Sender<Grant>,
}

/// A case that is being worked on.
#[derive(Debug)]
struct Live {
    task: AbortHandle,
    key: CaseKey,
    place: u64,
    category: Option<Category>,
    /// The backend that it has a call of in flight, or a permit for one.
    calling: Option<usize>,
    /// The backend that it waits to ask again.
    backing_off: Option<usize>,
    /// Why it was given up.
    aborted: Option<Aborted>,
    /// Whether its answer is compared with those of other lanes.
    is_compared: bool,
    /// Whether it waits for them: then it counts for no backend.
    is_parked: bool,
    /// What its texts take.
    bytes: usize,
    /// What its calls used so far.
    used: Spent,
}

struct Engine {
    shared: Arc<Shared>,
    rules: &'static Rules,
    events: events::Sender,
    lanes: Vec<LaneState>,
    backends: Vec<BackendState>,
    /// Lanes that run at the same time, one group after the other.
    stages: Vec<Vec<usize>>,
    /// Which of them have begun.
    turns: Turns,
    /// What the run may use, then what each runner may.
    meter: Meter,
    runner_meters: Vec<Meter>,
    /// What earlier sessions have used.
    carried: Used,
    ledger: Option<Box<dyn Ledger>>,
    tasks: JoinSet<TaskEnd>,
    live: BTreeMap<u64, Live>,
    /// What the texts of those take that do not wait for other lanes.
    live_bytes: usize,
    /// Cases that are compared with those of other lanes.
    groups: Groups,
    next_serial: u64,
    messages: mpsc::UnboundedReceiver<Message>,
    interrupted: bool,
    cramped: Cramped,
    started: Started,
}

const NO_FILES: &str = "too many open files: lower `-j`, or raise the limit with `ulimit -n`";

/// What is told when the run begins.
struct Started {
    run_id: String,
    resumed: bool,
    done_before: Vec<u64>,
}

/// What woke the loop up.
enum Wake {
    Stop,
    Message(Message),
    Ended(Result<(Id, TaskEnd), JoinError>),
    Fed(usize, Option<Fed>),
    PauseOver,
    /// A lane may have taken too long.
    Late,
    /// Something happened to the workers.
    News(News),
}

impl Engine {
    fn new(plan: Plan, rules: &'static Rules, events: events::Sender) -> Self {
        let Plan {
            run_id,
            resumed,
            settings,
            backends,
            lanes,
            stages,
            budgets,
            carried,
            carried_by_runner,
            ledger,
            cache,
            access,
            scorers,
            ground,
            executor,
        } = plan;
        let (to_loop, messages) = mpsc::unbounded_channel();
        let probation =
            settings.fail_fast.map(|limits| limits.threshold.min(limits.permanent_threshold));
        let backends = backends
            .into_iter()
            .map(|backend| BackendState {
                pacer: Pacer::new(backend.max_concurrency, probation, settings.pace.max_pause),
                backend,
                given_up: None,
                waiting: VecDeque::new(),
            })
            .collect();
        let mut meter = Meter::new(settings.budget);
        meter.carry_over(&carried);
        let shared_id: Arc<str> = run_id.as_str().into();
        let started = Started {
            run_id,
            resumed,
            done_before: lanes.iter().map(|lane| lane.done.len() as u64).collect(),
        };
        Self {
            rules,
            events,
            lanes: lanes.into_iter().map(|lane| LaneState::new(lane, &settings)).collect(),
            backends,
            stages,
            turns: Turns::default(),
            meter,
            carried,
            ledger,
            runner_meters: budgets
                .into_iter()
                .enumerate()
                .map(|(at, budget)| {
                    let mut meter = Meter::new(budget);
                    meter.carry_over(&carried_by_runner.get(at).copied().unwrap_or_default());
                    meter
                })
                .collect(),
            tasks: JoinSet::new(),
            live: BTreeMap::new(),
            live_bytes: 0,
            groups: Groups::default(),
            next_serial: 0,
            messages,
            interrupted: false,
            cramped: Cramped::default(),
            shared: Arc::new(Shared {
                settings,
                cache,
                access,
                scorers,
                sandbox: sandbox::Shared::new(ground),
                vectors: Vectors::default(),
                run_id: shared_id,
                executor,
                to_loop,
            }),
            started,
        }
    }

    async fn drive(&mut self, mut stop: watch::Receiver<bool>) -> Result<RunOutcome, Halt> {
        let begun = self.run_started();
        self.emit(begun).await?;
        for stage in std::mem::take(&mut self.stages) {
            self.turns = Turns::of(&stage, |at| self.lanes[at].runner);
            loop {
                self.seat_groups();
                self.grant_waiting()?;
                self.take_turns().await?;
                if self.turns.are_over() && self.live.is_empty() {
                    break;
                }
                self.unblock_groups();
                let wake = self.wake(&mut stop).await;
                self.handle(wake).await?;
                self.catch_up().await?;
            }
        }
        let lanes: Vec<LaneStatus> = self.lanes.iter().map(LaneState::outcome).collect();
        let complete = lanes.iter().all(LaneStatus::is_sound);
        self.emit(Event::RunFinished { complete }).await?;
        let used = self.meter.used_since(&self.carried);
        Ok(RunOutcome { lanes, used })
    }

    /// What was used in this session, with what tasks said last.
    fn used_after_all(&mut self) -> Used {
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Called(called) = message {
                self.settle(&called);
            }
        }
        self.meter.used_since(&self.carried)
    }

    fn run_started(&self) -> Event {
        Event::RunStarted {
            version: VERSION,
            run_id: self.started.run_id.clone(),
            resumed: self.started.resumed,
            lanes: self.lanes.iter().map(|lane| lane.info.clone()).collect(),
            done_before: self.started.done_before.clone(),
        }
    }

    async fn emit(&self, event: Event) -> Result<(), Halt> {
        let stamped = Stamped { at_ms: now_ms(), event };
        self.events.send(stamped).await.map_err(|_| Halt::Unheard)
    }

    /// Sleeps until something happens. Everything it waits for can be dropped halfway.
    async fn wake(&mut self, stop: &mut watch::Receiver<bool>) -> Wake {
        let open = self.open_lanes();
        let resume_at = self.next_resume();
        let due = self.turns.active().iter().filter_map(|at| self.lanes[*at].due()).min();
        let Self { messages, tasks, lanes, interrupted, shared, .. } = self;
        let stopped = async {
            // A sender that is gone can no longer stop anything.
            let asked = stop.wait_for(|stop| *stop).await.is_ok();
            if !asked {
                pending::<()>().await;
            }
        };
        let case = poll_fn(|context| {
            for &at in &open {
                if let Poll::Ready(fed) = lanes[at].poll_case(context) {
                    return Poll::Ready((at, fed));
                }
            }
            Poll::Pending
        });
        tokio::select! {
            biased;
            () = stopped, if !*interrupted => Wake::Stop,
            Some(message) = messages.recv() => Wake::Message(message),
            Some(ended) = tasks.join_next_with_id() => Wake::Ended(ended),
            (lane, fed) = case, if !open.is_empty() => Wake::Fed(lane, fed),
            () = until(resume_at), if resume_at.is_some() => Wake::PauseOver,
            () = until(due), if due.is_some() => Wake::Late,
            news = shared.executor.news() => Wake::News(news),
        }
    }

    async fn handle(&mut self, wake: Wake) -> Result<(), Halt> {
        match wake {
            Wake::Stop => self.interrupt().await,
            Wake::Message(message) => self.message(message).await,
            Wake::Ended(ended) => {
                // A task may have reported and ended between two looks.
                while let Ok(message) = self.messages.try_recv() {
                    self.message(message).await?;
                }
                match ended {
                    Ok((_, TaskEnd { serial, result })) => self.ended(serial, result).await,
                    Err(error) => self.broken(&error).await,
                }
            }
            Wake::Fed(lane, Some(Fed::Case(case, held))) => {
                // The next one may be read.
                drop(held);
                self.begin(lane, case).await
            }
            Wake::Fed(lane, Some(Fed::Known(seen))) => {
                self.lanes[lane].count(seen);
                Ok(())
            }
            Wake::Fed(lane, Some(Fed::Broken(reason))) => {
                self.lanes[lane].stop(LaneStatus::Broken { reason });
                self.turns.one_wants_no_more();
                Ok(())
            }
            Wake::Fed(lane, None) => {
                self.lanes[lane].exhausted();
                self.turns.one_wants_no_more();
                Ok(())
            }
            Wake::PauseOver => Ok(()),
            Wake::News(News::Paused { reason }) => self.emit(Event::WorkersPaused { reason }).await,
            Wake::News(News::Resumed { reason }) => {
                self.emit(Event::WorkersResumed { reason }).await
            }
            Wake::News(News::Crew(crew)) => self.emit(Event::WorkersSeen(crew)).await,
            Wake::Late => {
                self.end_late_lanes();
                Ok(())
            }
        }
    }

    /// Handles what else has happened meanwhile, up to a number: who may begin is looked at once for all of it, which
    /// takes longer the more lanes there are.
    async fn catch_up(&mut self) -> Result<(), Halt> {
        const MOST: usize = 64;
        for _ in 0..MOST {
            if let Ok(message) = self.messages.try_recv() {
                self.message(message).await?;
            } else if let Some(ended) = self.tasks.try_join_next_with_id() {
                self.handle(Wake::Ended(ended)).await?;
            } else {
                break;
            }
        }
        Ok(())
    }

    async fn message(&mut self, message: Message) -> Result<(), Halt> {
        match message {
            Message::Wants { serial, backend, deadline, grant } => {
                self.wants(backend, Waiting { serial, deadline, grant });
                Ok(())
            }
            Message::Idles { serial } => {
                self.idles(serial);
                Ok(())
            }
            Message::Meets { serial, entries, duty } => {
                self.park(groups::Waiting { serial, entries, duty });
                Ok(())
            }
            Message::Called(called) => self.called(*called).await,
            Message::Lost { serial, failure } => {
                let Some(live) = self.live.get(&serial) else { return Ok(()) };
                let FailedAttempt { attempt, error, retry_in_ms, .. } = failure;
                let case = live.key.clone();
                self.emit(Event::AttemptFailed { case, attempt, error, retry_in_ms }).await
            }
        }
    }

    /// Begins a case, with a permit for its first call.
    async fn begin(&mut self, at: usize, case: Box<Prepared>) -> Result<(), Halt> {
        if let Left::Nothing(reason) = self.budget_left(at) {
            self.lanes[at].stop(LaneStatus::Budget { reason });
            return Ok(());
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let party = |at: usize| BackendRef { at, backend: self.backends[at].backend.clone() };
        let LaneState { backend, ref judges, embedder, reranker, ref users, .. } = self.lanes[at];
        let plays = |at: &&usize| case.user.as_ref() == Some(&self.backends[**at].backend.name);
        let asked = Parties {
            subject: party(backend),
            judges: judges.iter().copied().map(party).collect(),
            embedder: embedder.map(party),
            reranker: reranker.map(party),
            user: users.iter().find(plays).copied().map(party),
            lane: self.lanes[at].name_within.clone(),
        };
        self.backends[backend].pacer.begin_case();
        for other in self.parties(at).filter(|it| *it != backend) {
            self.backends[other].pacer.enter();
        }
        self.permit(at, backend)?;
        let lane = &mut self.lanes[at];
        lane.live += 1;
        lane.tracker.begin(case.repeat, serial);
        let key = CaseKey { lane: at, case_id: case.case_id.clone(), repeat: case.repeat };
        let (place, category) = (case.place, case.category.clone());
        let bytes = weight(&case);
        let is_compared = !case.expectation.contests().is_empty();
        if is_compared {
            self.groups.begin(self.group_key(&key), at);
        }
        let about = About::new(case.case.clone());
        let whose = Whose { serial, key: key.clone(), lane: self.lanes[at].name.clone() };
        let handle = Box::new(Handle::new(whose, asked, self.shared.clone(), about));
        let task = self.tasks.spawn(async move {
            TaskEnd { serial, result: case.work.clone().run(case, handle).await }
        });
        let live = Live {
            task,
            key: key.clone(),
            place,
            category,
            calling: Some(backend),
            backing_off: None,
            aborted: None,
            is_compared,
            is_parked: false,
            bytes,
            used: Spent::default(),
        };
        self.live_bytes += bytes;
        self.live.insert(serial, live);
        self.emit(Event::CaseStarted(key)).await
    }

    /// A call came back.
    async fn called(&mut self, called: Called) -> Result<(), Halt> {
        self.settle(&called);
        let Called { serial, backend, began, calls, usage, cost_usd, outcome } = called;
        let Some(live) = self.live.get_mut(&serial) else { return Ok(()) };
        live.calling = None;
        live.used.add(calls, usage, cost_usd);
        let key = live.key.clone();
        let lane = &mut self.lanes[key.lane];
        let state = &mut self.backends[backend];
        let now = Instant::now();
        let (pause, failed) = match outcome {
            CallOutcome::Answered { exhausted_for } => {
                self.cramped.relieve();
                (state.pacer.succeeded(now, exhausted_for), None)
            }
            CallOutcome::Abandoned => {
                state.pacer.dropped();
                (None, None)
            }
            CallOutcome::NoFiles => {
                state.pacer.cramped(began, now);
                state.pacer.back_off();
                live.backing_off = Some(backend);
                if self.cramped.is_hopeless(now) {
                    self.end_cramped();
                }
                return Ok(());
            }
            CallOutcome::Failed(failure) => {
                self.cramped.relieve();
                let pause = state.pacer.failed(began, now, &failure.error);
                if failure.retry_in_ms.is_some() {
                    lane.tracker.retry(key.repeat, serial);
                    state.pacer.back_off();
                    live.backing_off = Some(backend);
                }
                (pause, Some(failure))
            }
        };
        let backend = state.backend.name.clone();
        let reason = match &failed {
            Some(failure) => failure.error.to_string(),
            None => "its answer says that a rate limit is used up".to_owned(),
        };
        if let Some(failure) = failed {
            let event = Event::AttemptFailed {
                case: key,
                attempt: failure.attempt,
                error: failure.error,
                retry_in_ms: failure.retry_in_ms,
            };
            self.emit(event).await?;
        }
        if let Some(Pause { length, limit }) = pause {
            let for_ms = crate::grade::millis(length);
            self.emit(Event::BackendPaused { backend, for_ms, limit, reason }).await?;
        }
        Ok(())
    }
}

/// A moment that may not come.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}
