//! Runs that go on, as events.
//!
//! However many pages follow a run, one task looks at the store for all of them, and only when something was written.
//! Whoever writes is another process as a rule, and does not wait for this one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use probity_core::record::RunStatus;
use probity_store::{Reader, RunRow};
use tokio::{
    sync::{Semaphore, mpsc, watch},
    task::spawn_blocking,
    time::{MissedTickBehavior, interval, timeout},
};

use crate::{
    api,
    pages::live::{Progress, fragment},
    problem::Problem,
    reply::{self, Response},
    site::{self, Site},
};

/// How often the store is looked at.
const TICK: Duration = Duration::from_millis(500);
/// How often something is sent even if nothing happens, so that a client that is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long one is followed without asking again, which browsers do by themselves.
const LONGEST: Duration = Duration::from_mins(9);
/// How many may follow at once.
const MOST_FOLLOWERS: usize = 256;

/// What those who follow a run are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A part of its page.
    Html,
    /// What programs read.
    Json,
}

/// The runs that somebody follows.
#[derive(Debug)]
pub(crate) struct Live {
    followed: Mutex<BTreeMap<String, watch::Receiver<Option<State>>>>,
    places: Arc<Semaphore>,
}

impl Default for Live {
    fn default() -> Self {
        Self { followed: Mutex::default(), places: Arc::new(Semaphore::new(MOST_FOLLOWERS)) }
    }
}

/// How a run stands, in both forms.
#[derive(Clone, Debug)]
struct State {
    html: Arc<str>,
    json: Arc<str>,
    is_over: bool,
}

impl State {
    fn event(&self, form: Form) -> Bytes {
        let text = match form {
            Form::Html => &self.html,
            Form::Json => &self.json,
        };
        let lines: Vec<&str> = text.split('\n').collect();
        format!("event: progress\ndata: {}\n\n", lines.join("\ndata: ")).into()
    }
}

/// Follows a run until it ends.
pub(crate) async fn follow(site: &Arc<Site>, name: &str, form: Form) -> Result<Response, Problem> {
    let name = name.to_owned();
    let run = site.read(move |_, reader| Ok(reader.find(&name)?)).await?;
    let place = Arc::clone(&site.live.places).try_acquire_owned().map_err(|_| {
        Problem::too_many(format!("{MOST_FOLLOWERS} pages follow runs already"))
            .hint("close some of them, or reload this page now and then")
    })?;
    let states = subscribe(site, run.run_id);
    let (sender, receiver) = mpsc::channel(2);
    tokio::spawn(async move {
        let listening = sender.clone();
        tokio::select! {
            () = listening.closed() => {}
            // Whoever has not been told everything by then asks again.
            _ = timeout(LONGEST, send(states, form, sender)) => {}
        }
        drop(place);
    });
    Ok(reply::events(receiver))
}

/// The states of a run, which somebody looks for from now on.
fn subscribe(site: &Arc<Site>, run_id: String) -> watch::Receiver<Option<State>> {
    let mut followed = site.live.followed.lock().unwrap_or_else(PoisonError::into_inner);
    // The task that looks for them has ended if it can send no more.
    let known = followed.get(&run_id).filter(|it| it.has_changed().is_ok());
    if let Some(known) = known {
        return known.clone();
    }
    let (sender, receiver) = watch::channel(None);
    followed.retain(|_, it| it.has_changed().is_ok());
    followed.insert(run_id.clone(), receiver.clone());
    tokio::spawn(look(Arc::clone(site), run_id, sender));
    receiver
}

async fn send(mut states: watch::Receiver<Option<State>>, form: Form, sender: mpsc::Sender<Bytes>) {
    if sender.send(Bytes::from_static(b"retry: 2000\n\n")).await.is_err() {
        return;
    }
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(state) = state {
            if sender.send(state.event(form)).await.is_err() {
                return;
            }
            if state.is_over {
                // Nobody is left to tell if this fails.
                let _ = sender.send(Bytes::from_static(b"event: end\ndata: {}\n\n")).await;
                return;
            }
        }
        match timeout(HEARTBEAT, states.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                if sender.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Looks at a run for all who follow it, until it is over or nobody does any more.
async fn look(site: Arc<Site>, run_id: String, sender: watch::Sender<Option<State>>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut watcher = Watcher { site, run_id, reader: None, seen: None };
    loop {
        ticks.tick().await;
        // The site keeps one itself.
        if sender.receiver_count() <= 1 && watcher.seen.is_some() {
            return;
        }
        let Ok((back, state)) = spawn_blocking(move || watcher.look()).await else { return };
        watcher = back;
        match state {
            Ok(Some(state)) => {
                let is_over = state.is_over;
                if sender.send(Some(state)).is_err() || is_over {
                    return;
                }
            }
            Ok(None) => {}
            // The run is gone, or the store: those who follow ask again and are told.
            Err(_) => return,
        }
    }
}

/// A connection of its own: what changes is seen by comparing with what the same one saw before.
struct Watcher {
    site: Arc<Site>,
    run_id: String,
    reader: Option<Reader>,
    seen: Option<(i64, RunStatus)>,
}

impl Watcher {
    fn look(mut self) -> (Self, Result<Option<State>, Problem>) {
        let state = self.state();
        (self, state)
    }

    /// How the run stands, if that is news.
    fn state(&mut self) -> Result<Option<State>, Problem> {
        let reader = match self.reader.take() {
            Some(reader) if !reader.is_immutable() => reader,
            Some(_) | None => Reader::open_to_look(&self.site.options.store)?,
        };
        let reader = self.reader.insert(reader);
        reader.stop_at(Instant::now() + site::LONGEST)?;
        let version = reader.data_version()?;
        let run: RunRow = reader.find(&self.run_id)?;
        let now = (version, run.status);
        // The versions of two connections say nothing about each other.
        if self.seen == Some(now) && !reader.is_immutable() {
            return Ok(None);
        }
        self.seen = Some(now);
        let progress = Progress::read(reader, &run)?;
        let json = serde_json::to_string(&api::progress(&run, &progress))
            .map_err(|error| Problem::internal(error.to_string()))?;
        Ok(Some(State {
            html: fragment(&run, &progress).into_string().into(),
            json: json.into(),
            is_over: run.status != RunStatus::Running,
        }))
    }
}
