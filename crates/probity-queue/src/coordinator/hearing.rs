//! What the run hears: results, calls that were begun, calls that were delivered too often, workers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use probity_core::crew::Crew;
use probity_run::carrier::{CallId, News, Who};
use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinHandle},
    time::interval,
};

use super::{
    Core, LinkError,
    books::{Arrived, Kept, Object},
    shown,
};
use crate::{
    jetstream::{JsError, at_last},
    names::{Names, last_token},
    setup::Setup,
    wire::{self, OBJECT, OfferNote, Outcome, Started, WIRE, WorkerNote},
};

/// How often is looked whether everything is as it should be.
const LOOK: Duration = Duration::from_millis(250);
/// How often people are told how the workers stand.
const TELL: Duration = Duration::from_secs(1);
/// How long calls wait for somebody who makes them before people are told.
const UNTOLD: Duration = Duration::from_secs(3);
/// How long the server is away before people are told.
const BRIEF: Duration = Duration::from_millis(400);

/// The server says that a message was delivered too often.
#[derive(Deserialize)]
struct TooOften {
    stream_seq: u64,
    deliveries: u64,
}

impl Core {
    /// Where results of the run are delivered to. It is the same after the connection was lost.
    fn result_inbox(&self) -> String {
        format!("{}.inbox.{}.results", self.names.prefix(), Names::results_consumer(&self.run))
    }

    fn lost_inbox(&self) -> String {
        format!("{}.inbox.{}.lost", self.names.prefix(), Names::results_consumer(&self.run))
    }

    /// Begins to listen. What comes is dealt with in tasks.
    pub(super) async fn listen(
        self: &Arc<Self>,
        done: mpsc::UnboundedReceiver<Kept>,
    ) -> Result<Vec<AbortHandle>, LinkError> {
        let subscribe = |subject: String| async move {
            let heard = self.link.client.subscribe(subject.clone()).await;
            heard.map_err(|error| {
                LinkError::Server(format!("failed to listen to `{subject}`: {error}"))
            })
        };
        let results = subscribe(self.result_inbox()).await?;
        let lost = subscribe(self.lost_inbox()).await?;
        let started = subscribe(self.names.started(&self.run)).await?;
        let workers = subscribe(self.names.every("worker")).await?;
        self.link.flush().await;
        Ok(vec![
            tokio::spawn(self.clone().hear_results(results)).abort_handle(),
            tokio::spawn(self.clone().hear_lost(lost)).abort_handle(),
            tokio::spawn(self.clone().hear_started(started)).abort_handle(),
            tokio::spawn(self.clone().hear_workers(workers)).abort_handle(),
            tokio::spawn(self.clone().forget_done(done)).abort_handle(),
        ])
    }

    /// Has all results that are not acknowledged sent again. Those that were on their way when a connection was lost would
    /// not come otherwise.
    pub(super) async fn hear_anew(&self) -> Result<(), JsError> {
        let Self { js, names, run, .. } = self;
        let consumer = Names::results_consumer(run);
        for (stream, config) in [
            (names.results(), Setup::results_consumer(names, run, &self.result_inbox())),
            (names.lost(), Setup::lost_consumer(&self.lost_inbox())),
        ] {
            at_last(|| js.delete_consumer(&stream, &consumer)).await?;
            at_last(|| js.ensure_consumer(&stream, &consumer, config.clone())).await?;
        }
        Ok(())
    }

    /// Hears everything again whenever the connection is back.
    pub(super) fn come_back(self: Arc<Self>) -> AbortHandle {
        let mut connected = self.link.connected.clone();
        connected.mark_unchanged();
        let back = async move {
            while connected.changed().await.is_ok() {
                // What cannot be had now is tried again with the next connection.
                let _ = self.hear_anew().await;
            }
        };
        tokio::spawn(back).abort_handle()
    }

    async fn hear_results(self: Arc<Self>, mut results: Subscriber) {
        while let Some(message) = results.next().await {
            let Ok(id) = last_token(&message.subject).parse::<CallId>() else { continue };
            match message.headers.as_ref().and_then(|it| it.get(OBJECT)).map(ToString::to_string) {
                None => self.take_result(id, &message, None, &message.payload),
                Some(name) => {
                    // It takes a while to fetch, and others do not wait for it.
                    let core = self.clone();
                    tokio::spawn(async move {
                        let bucket = core.names.objects_out();
                        let body = core.js.get(&bucket, &name).await.unwrap_or_default();
                        core.take_result(id, &message, Some(Object::Result(id)), &body);
                    });
                }
            }
        }
    }

    fn take_result(&self, id: CallId, message: &Message, object: Option<Object>, body: &[u8]) {
        let outcome = match wire::read::<Outcome>(body) {
            Ok(outcome) if outcome.wire == WIRE => outcome,
            Ok(_) => unread("a worker of another version made the call"),
            Err(_) => unread("what a worker sent back cannot be read"),
        };
        let reply = message.reply.as_ref().map(ToString::to_string);
        let kept = Kept { reply, objects: object.into_iter().collect() };
        let unneeded = self.books().arrived(id, Arrived { outcome, kept });
        if let Some(kept) = unneeded {
            let _ = self.done.send(kept);
        }
    }

    async fn hear_started(self: Arc<Self>, mut started: Subscriber) {
        while let Some(message) = started.next().await {
            let Ok(note) = wire::read::<Started>(&message.payload) else { continue };
            let Started { id, worker, delivery, handed_back } = note;
            if let Ok(id) = id.parse() {
                self.books().begun(id, worker, delivery, handed_back);
            }
        }
    }

    async fn hear_lost(self: Arc<Self>, mut lost: Subscriber) {
        while let Some(message) = lost.next().await {
            let Ok(note) = wire::read::<TooOften>(&message.payload) else { continue };
            let TooOften { stream_seq, deliveries } = note;
            let calls = self.names.calls();
            // One that is gone came to its end all the same, or was another run's.
            let found = at_last(|| self.js.by_number(&calls, stream_seq)).await;
            let Ok(stored) = found else { continue };
            let mut tokens = stored.subject.rsplit('.');
            let (id, run) = (tokens.next().unwrap_or_default(), tokens.next().unwrap_or_default());
            if run != Names::results_consumer(&self.run) {
                continue;
            }
            if let Ok(id) = id.parse() {
                self.books().poisoned(id, deliveries);
                let _ = at_last(|| self.js.delete(&calls, stream_seq)).await;
            }
        }
    }

    async fn hear_workers(self: Arc<Self>, mut workers: Subscriber) {
        while let Some(message) = workers.next().await {
            if let Ok(note) = wire::read::<WorkerNote>(&message.payload) {
                self.books().heard(note, Instant::now());
            }
        }
    }

    /// Acknowledges results that are on the disk, and forgets what was their way.
    async fn forget_done(self: Arc<Self>, mut done: mpsc::UnboundedReceiver<Kept>) {
        while let Some(Kept { reply, objects }) = done.recv().await {
            if let Some(reply) = reply {
                // One that does not arrive comes again with the result, which nobody waits for then.
                let _ = self.link.client.publish(reply, Bytes::from_static(b"+ACK")).await;
            }
            for object in objects {
                let (bucket, name) = match object {
                    Object::Call(id) => (self.names.objects_in(), format!("call-{id}")),
                    Object::Result(id) => (self.names.objects_out(), format!("result-{id}")),
                };
                let _ = self.js.forget(&bucket, &name).await;
            }
        }
    }

    /// Says so when nothing goes on, and when it goes on again.
    pub(super) fn watch(self: Arc<Self>) -> AbortHandle {
        let watching = async move {
            let mut looks = interval(LOOK);
            let mut down_since = None;
            let mut is_told = false;
            let mut unserved: BTreeSet<Who> = BTreeSet::new();
            let (mut seen, mut seen_at) = (Crew::default(), None);
            let mut silence = Silence::new(self.books().changed());
            loop {
                looks.tick().await;
                let now = Instant::now();
                match (self.link.is_down(), down_since) {
                    (true, None) => down_since = Some(now),
                    (true, Some(since)) if !is_told && now - since >= BRIEF => {
                        is_told = true;
                        let reason =
                            "the NATS server cannot be reached; calls wait until it can be";
                        self.tell(News::Paused { reason: reason.to_owned() });
                    }
                    (true, Some(_)) | (false, None) => {}
                    (false, Some(since)) => {
                        if std::mem::take(&mut is_told) {
                            let away = (now - since).as_secs_f64();
                            let reason = format!("the NATS server is back after {away:.1} s");
                            self.tell(News::Resumed { reason });
                        }
                        // They could not be heard meanwhile.
                        self.books().all_heard(now);
                        down_since = None;
                    }
                }
                if down_since.is_none() {
                    let is_waiting = self.books().is_waiting();
                    silence.look(&self, now, is_waiting);
                    self.books().forget_silent(now);
                    self.give_up_exhausted(now);
                    self.look_for_workers(now, &mut unserved);
                    if seen_at.is_none_or(|at| now - at >= TELL) {
                        seen_at = Some(now);
                        self.look_at_crew(&mut seen);
                    }
                }
            }
        };
        tokio::spawn(watching).abort_handle()
    }

    /// Tells how the workers stand, if anything is different.
    fn look_at_crew(&self, seen: &mut Crew) {
        let offers = self.offers.values().map(|it| it.digest.as_str()).collect();
        let crew = self.books().crew(&offers);
        if crew != *seen {
            seen.clone_from(&crew);
            self.tell(News::Crew(crew));
        }
    }

    fn give_up_exhausted(&self, now: Instant) {
        let most = u64::from(self.setup.max_deliver);
        let exhausted = self.books().exhausted(most, self.setup.ack_wait, now);
        for (id, seq) in exhausted {
            self.books().poisoned(id, most);
            let (js, calls) = (self.js.clone(), self.names.calls());
            self.runtime.spawn(async move {
                if let Some(seq) = seq {
                    let _ = js.delete(&calls, seq).await;
                }
            });
        }
    }

    fn look_for_workers(&self, now: Instant, unserved: &mut BTreeSet<Who>) {
        let waiting: BTreeMap<Who, Instant> = self.books().waiting();
        for (who, since) in waiting {
            let Some(OfferNote { digest, kind }) = self.offers.get(&who) else { continue };
            let is_served = self.books().is_served(digest, now);
            if is_served && unserved.remove(&who) {
                let reason = format!("a worker does {} now", shown(kind));
                self.tell(News::Resumed { reason });
            } else if !is_served && now - since >= UNTOLD && unserved.insert(who) {
                let (count, refusals) = self.books().refusals(&kind.shown());
                let there = match (count, refusals.is_empty()) {
                    (0, _) => "; there is no worker".to_owned(),
                    (count, true) => format!("; {count} workers are there that do not offer it"),
                    (_, false) => format!("; {}", refusals.join("; ")),
                };
                let reason = format!("calls wait for a worker that does {}{there}", shown(kind));
                self.tell(News::Paused { reason });
            }
        }
    }

    fn tell(&self, news: News) {
        // A run that is over wants no news.
        let _ = self.news.send(news);
    }
}

/// How long no result has come.
///
/// A result that was on its way to us when one server of several was lost does not come again by itself, and our own connection,
/// which is to another one, does not notice. So whoever waits for results, and hears of none for long, has them sent again.
struct Silence {
    results: watch::Receiver<u64>,
    since: Instant,
    asking: Option<JoinHandle<()>>,
}

impl Silence {
    fn new(results: watch::Receiver<u64>) -> Self {
        Self { results, since: Instant::now(), asking: None }
    }

    fn look(&mut self, core: &Arc<Core>, now: Instant, is_waiting: bool) {
        // Nobody tells of results any more when the run is over.
        if !is_waiting || self.results.has_changed().unwrap_or(false) {
            self.results.mark_unchanged();
            self.since = now;
            return;
        }
        let is_asking = self.asking.as_ref().is_some_and(|it| !it.is_finished());
        if is_asking || now - self.since < core.setup.ack_wait {
            return;
        }
        self.since = now;
        let core = core.clone();
        self.asking = Some(tokio::spawn(async move {
            // What cannot be had now is asked for again after another silence.
            let _ = core.hear_anew().await;
        }));
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // What is made for a run that is over would stay with the server.
        if let Some(asking) = &self.asking {
            asking.abort();
        }
    }
}

fn unread(why: &str) -> Outcome {
    Outcome {
        wire: WIRE,
        worker: String::new(),
        delivery: 1,
        took: Duration::ZERO,
        result: Err(why.to_owned()),
    }
}
