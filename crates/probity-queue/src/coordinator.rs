//! The run's side: hands calls over, and brings results back.

mod books;
mod hearing;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_nats::HeaderMap;
use bytes::Bytes;
use probity_core::event::CaseKey;
use probity_run::carrier::{CallId, CallResult, Carried, Carrier, News, Order, Who};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use crate::{
    jetstream::{JetStream, JsError, WRONG_LAST_SEQUENCE, at_last, for_a_while, only_once},
    link::{Link, LinkError},
    names::{Names, last_token},
    setup::Setup,
    wire::{CallMessage, Definition, OBJECT, OfferKind, OfferNote, RunNote, VERSION, WIRE},
};
use books::{Books, Waiter};

/// What a run says of itself before its first call.
#[derive(Debug)]
pub struct Opening {
    /// The run's id.
    pub run: String,
    /// What the suite is called.
    pub suite: String,
    /// What of the suite makes a call what it is.
    pub definition: Definition,
    /// Who does what.
    pub offers: BTreeMap<Who, OfferNote>,
    /// Whether the run was begun before.
    pub resumed: bool,
    /// Whether cases that ended in errors are asked again: then their errors are no results.
    pub retries_errors: bool,
}

/// Hands the calls of a run to workers.
#[derive(Debug)]
pub struct Coordinator {
    core: Arc<Core>,
    news: tokio::sync::Mutex<mpsc::UnboundedReceiver<News>>,
    /// What listens to the server, which ends with this.
    tasks: Vec<AbortHandle>,
    /// What makes consumers anew that are gone.
    renewing: Vec<AbortHandle>,
}

/// What all tasks of it share.
#[derive(Debug)]
struct Core {
    link: Link,
    js: JetStream,
    names: Names,
    setup: Setup,
    run: String,
    offers: BTreeMap<Who, OfferNote>,
    books: Mutex<Books>,
    /// What is to be acknowledged and forgotten.
    done: mpsc::UnboundedSender<books::Kept>,
    /// Where tasks go on, wherever a call is dropped.
    runtime: Handle,
    news: mpsc::UnboundedSender<News>,
}

/// What a message needs beside its body.
const ROOM: usize = 4096;

impl Coordinator {
    /// Makes the streams that are not there yet, tells workers of the run, and takes up what an earlier session has left.
    pub async fn open(
        link: Link,
        names: Names,
        setup: Setup,
        opening: Opening,
    ) -> Result<Self, LinkError> {
        let js = JetStream::new(link.client.clone());
        let Opening { run, suite, definition, offers, resumed, retries_errors } = opening;
        let complaint = link.complaint.clone();
        let failed = |what: &str| {
            let (what, complaint) = (what.to_owned(), complaint.clone());
            move |error: JsError| {
                let said = complaint.lock().unwrap_or_else(PoisonError::into_inner).take();
                let said = said.map(|it| format!("; the server says: {it}")).unwrap_or_default();
                LinkError::Server(format!("{what}: {error}{said}"))
            }
        };
        for_a_while(|| setup.ensure(&js, &names))
            .await
            .map_err(failed("failed to make the streams"))?;
        for offer in offers.values() {
            let config = setup.calls_consumer(&names, &offer.digest);
            let calls = names.calls();
            for_a_while(|| js.ensure_consumer(&calls, &offer.digest, config.clone()))
                .await
                .map_err(failed("failed to make a consumer of calls"))?;
        }
        let object = format!("suite-{run}");
        js.put(&names.objects_in(), &object, &definition.to_json())
            .await
            .map_err(failed("failed to store the definition of the suite"))?;
        let (done, undone) = mpsc::unbounded_channel();
        let (news, heard) = mpsc::unbounded_channel();
        let core = Arc::new(Core {
            js,
            names,
            setup,
            run,
            offers,
            books: Mutex::new(Books::new(retries_errors)),
            done,
            runtime: Handle::current(),
            news,
            link,
        });
        let tasks = core.listen(undone).await?;
        let mut renewing = vec![core.clone().come_back()];
        let taken_up = match resumed {
            true => core.take_up().await,
            false => core.hear_anew().await,
        };
        taken_up.map_err(failed("failed to look for results of the run"))?;
        core.books().is_open = true;
        renewing.push(core.clone().watch());
        let note = RunNote {
            wire: WIRE,
            version: VERSION.to_owned(),
            run: core.run.clone(),
            suite,
            definition: object,
            offers: core.offers.values().cloned().collect(),
        };
        let text: Bytes = serde_json::to_vec(&note).unwrap_or_default().into();
        let subject = core.names.run(&core.run);
        core.js
            .publish_at_last(&subject, &HeaderMap::new(), &text)
            .await
            .map_err(failed("failed to tell workers of the run"))?;
        Ok(Self { core, news: tokio::sync::Mutex::new(heard), tasks, renewing })
    }

    /// Takes away what is left of a run that came to its end. After a failure it stays, for a later session.
    pub async fn close(&self) {
        let Core { js, names, run, .. } = &*self.core;
        // What is taken away is not made anew.
        self.renewing.iter().for_each(AbortHandle::abort);
        self.core.link.flush().await;
        // What could not be taken away goes with its age.
        let _ = js.purge(&names.runs(), &names.run(run)).await;
        let _ = js.purge(&names.calls(), &names.calls_of(run)).await;
        let _ = js.delete_consumer(&names.results(), &Names::results_consumer(run)).await;
        let _ = js.delete_consumer(&names.lost(), &Names::results_consumer(run)).await;
        let _ = js.purge(&names.results(), &names.results_of(run)).await;
        let _ = js.forget(&names.objects_in(), &format!("suite-{run}")).await;
        self.core.link.flush().await;
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.tasks.iter().chain(&self.renewing).for_each(AbortHandle::abort);
    }
}

impl Core {
    fn books(&self) -> MutexGuard<'_, Books> {
        // Whoever panicked has left books that are still right: each entry is changed in one step.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out what an earlier session has left: calls that wait or are being made, and results.
    ///
    /// Calls first: a call that is gone then has left its result before, so each is in at least one of the lists.
    async fn take_up(&self) -> Result<(), JsError> {
        let Self { js, names, run, .. } = self;
        let (calls, of_run) = (names.calls(), names.calls_of(run));
        let subjects = at_last(|| js.subjects(&calls, &of_run)).await?;
        // A call for what the suite or the program was then is not one for what they are now.
        let is_current = |it: &&String| {
            let offer = it.rsplit('.').nth(2).unwrap_or_default();
            self.offers.values().any(|own| own.digest == offer)
        };
        let (current, old): (Vec<_>, Vec<_>) = subjects.iter().partition(is_current);
        for subject in old {
            at_last(|| js.purge(&calls, subject)).await?;
        }
        let adopted = current.iter().filter_map(|it| last_token(it).parse().ok()).collect();
        self.books().adopt(adopted);
        self.hear_anew().await?;
        let (results, of_run) = (names.results(), names.results_of(run));
        let subjects = at_last(|| js.subjects(&results, &of_run)).await?;
        let expected: BTreeSet<CallId> =
            subjects.iter().filter_map(|it| last_token(it).parse().ok()).collect();
        // They are on their way to us already; a server that goes away meanwhile sends them again.
        let mut changed = self.books().changed();
        while !expected.iter().all(|id| self.books().knows(*id)) {
            // The books outlive this, so there is always another change to wait for.
            let _ = changed.changed().await;
        }
        // Those that are asked again must not find their old errors in the way of new results.
        let errors = self.books().take_errors();
        for id in errors {
            let subject = names.result(run, id);
            at_last(|| js.purge(&results, &subject)).await?;
        }
        Ok(())
    }

    /// Hands a call over: by itself, or by way of the object store if it is too large.
    async fn hand_over(&self, order: &Order, offer: &str) -> Result<Option<u64>, String> {
        let message = CallMessage {
            wire: WIRE,
            run: self.run.clone(),
            limit: order.limit,
            ack_wait: self.setup.ack_wait,
            call: order.call.clone(),
        };
        let body = serde_json::to_vec(&message).map_err(|error| error.to_string())?;
        let subject = self.names.call(offer, &self.run, order.id);
        let mut headers = only_once();
        let most = self.link.client.max_payload().saturating_sub(ROOM);
        let body: Bytes = match body.len() > most {
            false => body.into(),
            true => {
                let name = format!("call-{}", order.id);
                let put = self.js.put(&self.names.objects_in(), &name, &body).await;
                put.map_err(|error| format!("the call could not be stored: {error}"))?;
                self.books().has_object(order.id);
                headers.insert(OBJECT, name.as_str());
                Bytes::new()
            }
        };
        match self.js.publish_at_last(&subject, &headers, &body).await {
            Ok(seq) => Ok(Some(seq)),
            // It is there already: an answer to the first try was lost.
            Err(error) if error.is(WRONG_LAST_SEQUENCE) => Ok(None),
            Err(error) => Err(format!("the call could not be handed over: {error}")),
        }
    }

    /// Takes back a call that nobody waits for.
    fn take_back(self: &Arc<Self>, id: CallId, waiter: &Waiter) {
        let core = Arc::clone(self);
        let (seq, has_object) = (waiter.seq, waiter.has_object);
        self.runtime.spawn(async move {
            let cancel = core.names.cancel(&id.to_string());
            let _ = core.link.client.publish(cancel, Bytes::new()).await;
            if let Some(seq) = seq {
                let _ = core.js.delete(&core.names.calls(), seq).await;
            }
            if has_object {
                let name = format!("call-{id}");
                let _ = core.js.forget(&core.names.objects_in(), &name).await;
            }
        });
    }

    async fn carry(self: &Arc<Self>, order: Order) -> Carried {
        let Some(offer) = self.offers.get(&order.who).map(|it| it.digest.clone()) else {
            return books::undone("nobody is to do this".to_owned());
        };
        let (tell, told) = oneshot::channel();
        let id = order.id;
        let is_there = match self.books().expect(&order, tell) {
            books::Expected::Here(carried) => return *carried,
            books::Expected::Underway => true,
            books::Expected::New => false,
        };
        // Whoever stops waiting takes the call back.
        let guard = Guard { core: self, id };
        if !is_there {
            match self.hand_over(&order, &offer).await {
                Ok(seq) => self.books().handed_over(id, seq),
                Err(why) => return books::undone(why),
            }
        }
        let carried = told.await;
        drop(guard);
        carried.unwrap_or_else(|_| books::undone("the run is over".to_owned()))
    }
}

/// Takes a call back if it is dropped before its result has come.
struct Guard<'a> {
    core: &'a Arc<Core>,
    id: CallId,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let waiter = self.core.books().give_up(self.id);
        if let Some(waiter) = waiter {
            self.core.take_back(self.id, &waiter);
        }
    }
}

impl Carrier for Coordinator {
    fn takes(&self, who: Who) -> bool {
        match who {
            Who::Backend(_) => self.core.offers.contains_key(&who),
            // Whoever can do it does it: if no worker does, the run itself.
            Who::Scorers | Who::Sandbox => {
                let offer = self.core.offers.get(&who);
                offer.is_some_and(|it| self.core.books().is_served(&it.digest, Instant::now()))
            }
        }
    }

    fn carry(&self, order: Order) -> Pin<Box<dyn Future<Output = Carried> + Send + '_>> {
        Box::pin(async move { self.core.carry(order).await })
    }

    fn paused(&self) -> Duration {
        self.core.link.paused()
    }

    fn news(&self) -> Pin<Box<dyn Future<Output = News> + Send + '_>> {
        Box::pin(async {
            match self.news.lock().await.recv().await {
                Some(news) => news,
                None => std::future::pending().await,
            }
        })
    }

    fn recorded(&self, case: &CaseKey) {
        let kept = self.core.books().recorded(case);
        for kept in kept {
            // Without the task that acknowledges, the results stay for a later session.
            let _ = self.core.done.send(kept);
        }
    }
}

/// Whether a result says that a backend failed.
fn is_error(result: &Result<CallResult, String>) -> bool {
    matches!(result, Err(_) | Ok(CallResult::Failed(_) | CallResult::NotDone(_)))
}

/// What people call an offer.
fn shown(kind: &OfferKind) -> String {
    match kind {
        OfferKind::Backend { .. } => format!("backend `{}`", kind.shown()),
        OfferKind::Scorers | OfferKind::Sandbox => kind.shown(),
    }
}
