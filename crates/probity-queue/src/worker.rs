//! The worker's side: takes calls, makes them, hands results back.

mod call;
mod pulling;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_nats::Subscriber;
use futures_util::StreamExt as _;
use probity_run::{
    backend::Backend,
    carrier::{Call, CallResult, Executions},
    clock::now_ms,
    scorer::Scorers,
};
use tokio::{
    sync::{Semaphore, oneshot, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    jetstream::{JetStream, JsError},
    link::{Link, LinkError},
    names::{Names, last_token},
    wire::{self, Definition, OfferKind, OfferNote, Refusal, RunNote, VERSION, WIRE, WorkerNote},
};

/// How often a worker says what it does.
const BEAT: Duration = Duration::from_secs(2);
/// How often it looks which runs there are, should it have missed one.
const LOOK: Duration = Duration::from_secs(5);
/// What the rate of calls is counted over.
const LATELY: Duration = Duration::from_secs(30);

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// Its name, which is in the records of the run.
    pub name: String,
    /// The machine.
    pub host: String,
    /// How many calls it makes at the same time.
    pub slots: usize,
    /// The suite whose runs it works for; none: any.
    pub suite: Option<String>,
    /// The backends it asks; none: all that it can.
    pub serve: Vec<String>,
}

/// Makes ready what a run asks for. It reads files and looks for keys, programs and models.
pub trait Workshop: Send + Sync {
    /// What of a run can be done here.
    fn open(&self, run: &RunNote, definition: &Definition) -> Vec<Opened>;
}

/// Something that a run asks for, made ready, or why it is not done here.
#[derive(Debug)]
pub struct Opened {
    /// What it is.
    pub offer: OfferNote,
    /// What does it.
    pub tool: Result<Tool, String>,
}

/// What makes calls.
#[derive(Clone, Debug)]
pub enum Tool {
    /// A backend.
    Backend(Arc<Backend>),
    /// Programs that score.
    Scorers(Arc<Scorers>),
    /// The sandbox.
    Sandbox(Arc<Executions>),
}

impl Tool {
    async fn make(&self, call: Call, limit: Duration) -> CallResult {
        match (self, call) {
            (Self::Backend(backend), Call::Ask(question)) => question.ask(backend, limit).await,
            (Self::Scorers(scorers), Call::Score(scoring)) => scoring.score(scorers, limit).await,
            (Self::Sandbox(ground), Call::Execute(call)) => ground.execute(*call, limit).await,
            (Self::Sandbox(ground), Call::Compare(call)) => ground.compare(call, limit).await,
            (Self::Backend(_) | Self::Scorers(_) | Self::Sandbox(_), _) => {
                CallResult::NotDone("the call is for somebody else".to_owned())
            }
        }
    }
}

/// Works for runs until it is stopped.
pub struct Worker {
    shop: Arc<Shop>,
    workshop: Arc<dyn Workshop>,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

/// What the tasks of a worker share.
#[derive(Debug)]
struct Shop {
    link: Link,
    js: JetStream,
    names: Names,
    config: WorkerConfig,
    slots: Arc<Semaphore>,
    began: Instant,
    done: AtomicU64,
    failed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that are being made, and how each is given up.
    running: BTreeMap<String, oneshot::Sender<()>>,
    offers: BTreeMap<String, OfferNote>,
    refused: BTreeMap<String, Vec<Refusal>>,
    /// When the latest calls came to their ends.
    lately: std::collections::VecDeque<Instant>,
    leaving: bool,
}

impl Shop {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked has left a state that is still right: each entry is changed in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) -> WorkerNote {
        let mut state = self.state();
        let now = Instant::now();
        while state.lately.front().is_some_and(|it| now.duration_since(*it) > LATELY) {
            state.lately.pop_front();
        }
        let over = self.began.elapsed().min(LATELY).as_secs_f64().max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let rate = state.lately.len() as f64 / over;
        WorkerNote {
            name: self.config.name.clone(),
            version: VERSION.to_owned(),
            host: self.config.host.clone(),
            offers: state.offers.values().cloned().collect(),
            refused: state.refused.values().flatten().cloned().collect(),
            slots: self.config.slots as u64,
            in_flight: state.running.len() as u64,
            done: self.done.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            rate,
            up_s: self.began.elapsed().as_secs(),
            at_ms: now_ms(),
            leaving: state.leaving,
        }
    }

    async fn beat(&self) {
        let text = serde_json::to_vec(&self.note()).unwrap_or_default();
        // One that does not arrive is followed by the next.
        let _ = self.link.client.publish(self.names.worker(&self.config.name), text.into()).await;
    }

    /// A call has come to its end.
    fn count(&self, result: &Result<CallResult, String>) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if matches!(result, Err(_) | Ok(CallResult::Failed(_) | CallResult::NotDone(_))) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = self.state();
        state.lately.push_back(Instant::now());
        if state.lately.len() > 100_000 {
            state.lately.pop_front();
        }
    }
}

impl Worker {
    /// A worker that says what people have to know with `say`.
    pub fn new(
        link: Link,
        names: Names,
        config: WorkerConfig,
        workshop: Arc<dyn Workshop>,
        say: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let shop = Shop {
            js: JetStream::new(link.client.clone()),
            link,
            names,
            slots: Arc::new(Semaphore::new(config.slots)),
            config,
            began: Instant::now(),
            done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            state: Mutex::default(),
        };
        Self { shop: Arc::new(shop), workshop, say }
    }

    /// Works until `leave` becomes true, and brings to an end what it has begun by then.
    pub async fn run(&self, mut leave: watch::Receiver<bool>) -> Result<(), LinkError> {
        let shop = &self.shop;
        let client = &shop.link.client;
        let failed = |error: async_nats::SubscribeError| LinkError::Server(error.to_string());
        let mut told = client.subscribe(shop.names.every("run")).await.map_err(failed)?;
        let cancels = client.subscribe(shop.names.every("cancel")).await.map_err(failed)?;
        let hearing = tokio::spawn(hear_cancels(shop.clone(), cancels));
        let mut pullers = JoinSet::new();
        let mut pulled: BTreeMap<String, watch::Sender<bool>> = BTreeMap::new();
        let mut runs: BTreeMap<String, RunNote> = BTreeMap::new();
        let mut beats = interval(BEAT);
        let mut looks = interval(LOOK);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut connected = shop.link.connected.clone();
        let stopped = async {
            // A sender that is gone can no longer stop anything.
            if leave.wait_for(|it| *it).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::pin!(stopped);
        loop {
            let found = tokio::select! {
                () = &mut stopped => break,
                _ = beats.tick() => {
                    shop.beat().await;
                    continue;
                }
                Some(_) = pullers.join_next(), if !pullers.is_empty() => continue,
                Some(message) = told.next() => {
                    // The stream may not have it yet.
                    wire::read::<RunNote>(&message.payload).ok().map(|note| {
                        let mut found = runs.clone();
                        found.insert(note.run.clone(), note);
                        found
                    })
                }
                _ = looks.tick() => self.runs().await,
                Ok(()) = connected.changed() => self.runs().await,
            };
            if let Some(found) = found {
                self.take_on(&found, &runs, &mut pulled, &mut pullers).await;
                runs = found;
                shop.beat().await;
            }
        }
        (self.say)("leaving: no new calls are taken; those in flight are finished");
        shop.state().leaving = true;
        shop.beat().await;
        for puller in pulled.values() {
            puller.send_replace(true);
        }
        while pullers.join_next().await.is_some() {}
        // Each slot comes back when its call has come to its end.
        let all = u32::try_from(shop.config.slots).unwrap_or(u32::MAX);
        let _ = shop.slots.acquire_many(all).await;
        hearing.abort();
        shop.beat().await;
        shop.link.flush().await;
        Ok(())
    }

    /// The runs that there are; none if that cannot be known now.
    async fn runs(&self) -> Option<BTreeMap<String, RunNote>> {
        let Shop { js, names, .. } = &*self.shop;
        let stream = names.runs();
        let subjects = match js.subjects(&stream, &names.every("run")).await {
            Ok(subjects) => subjects,
            // Nobody has run anything yet.
            Err(JsError::Refused { .. }) => Vec::new(),
            Err(_) => return None,
        };
        let mut runs = BTreeMap::new();
        for subject in subjects {
            let Ok(stored) = js.last(&stream, &subject).await else { continue };
            if let Ok(note) = wire::read::<RunNote>(&stored.payload()) {
                runs.insert(note.run.clone(), note);
            }
        }
        Some(runs)
    }

    /// Begins to do what runs ask for that are new, and ends what none asks for any more.
    async fn take_on(
        &self,
        found: &BTreeMap<String, RunNote>,
        known: &BTreeMap<String, RunNote>,
        pulled: &mut BTreeMap<String, watch::Sender<bool>>,
        pullers: &mut JoinSet<()>,
    ) {
        for (run, note) in found.iter().filter(|(run, note)| known.get(*run) != Some(note)) {
            let mut refused = Vec::new();
            for Opened { offer, tool } in self.opened(note, &mut refused).await {
                let what = offer.kind.shown();
                let is_new = !pulled.contains_key(&offer.digest);
                match tool {
                    Err(reason) => {
                        refused.push(Refusal { suite: note.suite.clone(), what, reason });
                    }
                    Ok(tool) if is_new => {
                        (self.say)(&format!("doing {what} of `{}`", note.suite));
                        let (stop, stopped) = watch::channel(false);
                        pulled.insert(offer.digest.clone(), stop);
                        let digest = offer.digest.clone();
                        self.shop.state().offers.insert(digest.clone(), offer);
                        pullers.spawn(self.shop.clone().pull(digest, tool, stopped));
                    }
                    Ok(_) => {}
                }
            }
            for Refusal { suite, what, reason } in &refused {
                let what = if what.is_empty() { "anything" } else { what };
                (self.say)(&format!("not doing {what} of `{suite}`: {reason}"));
            }
            self.shop.state().refused.insert(run.clone(), refused);
        }
        self.shop.state().refused.retain(|run, _| found.contains_key(run));
        let wanted: BTreeSet<&String> =
            found.values().flat_map(|it| &it.offers).map(|it| &it.digest).collect();
        pulled.retain(|digest, stop| {
            let is_wanted = wanted.contains(digest);
            if !is_wanted {
                stop.send_replace(true);
                self.shop.state().offers.remove(digest);
            }
            is_wanted
        });
    }

    /// What of a run is done here.
    async fn opened(&self, note: &RunNote, refused: &mut Vec<Refusal>) -> Vec<Opened> {
        let WorkerConfig { suite, serve, .. } = &self.shop.config;
        if suite.as_ref().is_some_and(|it| *it != note.suite) {
            return Vec::new();
        }
        let mut refuse = |reason: String| {
            refused.push(Refusal { suite: note.suite.clone(), what: String::new(), reason });
            Vec::new()
        };
        if note.version != VERSION || note.wire != WIRE {
            return refuse(format!(
                "the run is of version {} and this worker of version {VERSION}: both have to be the same",
                note.version
            ));
        }
        let bucket = self.shop.names.objects_in();
        let definition = match self.shop.js.get(&bucket, &note.definition).await {
            Ok(text) => wire::read::<Definition>(&text).map_err(|it| it.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let definition = match definition {
            Ok(definition) => definition,
            Err(why) => return refuse(format!("its definition cannot be had: {why}")),
        };
        let workshop = self.workshop.clone();
        let mut wanted = note.clone();
        wanted.offers.retain(|it| match &it.kind {
            OfferKind::Backend { name, .. } => serve.is_empty() || serve.contains(name),
            // Whoever names backends serves these.
            OfferKind::Scorers | OfferKind::Sandbox => serve.is_empty(),
        });
        let opened = tokio::task::spawn_blocking(move || workshop.open(&wanted, &definition));
        opened.await.unwrap_or_else(|error| refuse(format!("it cannot be made ready: {error}")))
    }
}

/// Gives up calls that nobody waits for.
async fn hear_cancels(shop: Arc<Shop>, mut cancels: Subscriber) {
    while let Some(message) = cancels.next().await {
        if let Some(given_up) = shop.state().running.remove(last_token(&message.subject)) {
            // One that has just come to its end has no use for it.
            let _ = given_up.send(());
        }
    }
}

/// What says how a message came to its end.
const ACK: &[u8] = b"+ACK";
const PROGRESS: &[u8] = b"+WPI";
const TERM: &[u8] = b"+TERM";
const NAK: &[u8] = b"-NAK";
