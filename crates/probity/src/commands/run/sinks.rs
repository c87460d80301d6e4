//! Where events go: first to the disk, then to whoever watches.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use probity_core::event::{CaseKey, Event, Stamped};
use probity_run::{carrier::Carrier, events, plan::Plan};
use probity_store::{Recorder, StoreError};
use tokio::sync::watch;

use super::progress::Progress;
use crate::failure::Failure;

/// How long each try waits for others that write to the store.
pub(super) const TRY: Duration = Duration::from_millis(250);
/// How long others may write to the store before it is told.
const UNTOLD: Duration = Duration::from_secs(2);
/// How long is waited for them after Ctrl-C.
const LAST_TRIES: Duration = Duration::from_secs(2);

/// How far apart transactions begin: each costs as much as many results do. After a pause the first is begun at once, and
/// nobody waits for the others: what would make the run wait ends the rest.
pub(super) const APART: Duration = Duration::from_millis(20);

/// Takes events in, on a thread of its own.
pub(super) struct Sinks {
    pub(super) recorder: Recorder,
    pub(super) store: PathBuf,
    pub(super) events: Option<EventsFile>,
    /// Somebody in this process who is told of them.
    pub(super) listener: Option<Listener>,
    pub(super) progress: Progress,
    /// What is on the disk, for those who cannot wait for the store.
    pub(super) done: watch::Sender<Done>,
    /// Becomes true when the run is to be stopped.
    pub(super) stopped: watch::Receiver<bool>,
    /// Who keeps results of calls until they are on the disk.
    pub(super) carrier: Option<Arc<dyn Carrier>>,
}

/// Gets events that are recorded, in order. The run waits for it.
pub(crate) type Listener = Box<dyn FnMut(&[Stamped]) + Send>;

/// What has been done and recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) cases: u64,
    pub(super) calls: u64,
    pub(super) cost_usd: f64,
}

impl Done {
    /// What a run begins with that is gone on with.
    pub(super) fn before(plan: &Plan) -> Self {
        Self { cases: 0, calls: plan.carried.calls, cost_usd: plan.carried.cost_usd }
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::RunStarted { done_before, .. } => self.cases += done_before.iter().sum::<u64>(),
            Event::CaseFinished { record, .. } => {
                self.cases += 1;
                self.calls += u64::from(record.calls);
                self.cost_usd += record.cost_usd.unwrap_or(0.0);
            }
            Event::CaseStarted(_)
            | Event::AttemptFailed { .. }
            | Event::BackendPaused { .. }
            | Event::BackendTripped { .. }
            | Event::WorkersPaused { .. }
            | Event::WorkersResumed { .. }
            | Event::WorkersSeen(_)
            | Event::CaseAborted { .. }
            | Event::LaneFinished { .. }
            | Event::CancelStarted { .. }
            | Event::RunFinished { .. } => {}
        }
    }
}

/// A file that everything that happens is written to.
pub(super) struct EventsFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EventsFile {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::write(path, error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }
}

impl Sinks {
    /// Takes events until nobody sends any more, and gives the recorder back. When it ends early, the run does too.
    ///
    /// What is waiting is written in one transaction: a slow model gets one for each case, a fast
    /// one gets large batches.
    pub(super) fn pump(mut self, mut receiver: events::Receiver) -> Result<Recorder, Failure> {
        while let Some(batch) = receiver.next_batch() {
            let begun = Instant::now();
            if let Err(unwritten) = self.take_patiently(batch) {
                return Err(unwritten.failure(&self.store, &receiver.close()));
            }
            receiver.rest_until(begun + APART);
        }
        self.progress.finish();
        Ok(self.recorder)
    }

    /// Durable first, visible after. False if others write to the store for longer than `patience`; then it is neither.
    pub(super) fn take(
        &mut self,
        batch: &[Stamped],
        patience: Duration,
    ) -> Result<bool, Unwritten> {
        let is_recorded = self.recorder.try_record(batch, patience).map_err(Unwritten::Store)?;
        if is_recorded {
            self.show(batch)?;
        }
        Ok(is_recorded)
    }

    /// Tells everybody of what is on the disk.
    fn show(&mut self, batch: &[Stamped]) -> Result<(), Unwritten> {
        if let Some(carrier) = &self.carrier {
            batch
                .iter()
                .filter_map(|it| ended_case(&it.event))
                .for_each(|it| carrier.recorded(&it));
        }
        self.done.send_modify(|done| batch.iter().for_each(|it| done.add(&it.event)));
        if let Some(EventsFile { path, file }) = &mut self.events {
            let mut write = || {
                for stamped in batch {
                    serde_json::to_writer(&mut *file, stamped)?;
                    file.write_all(b"\n")?;
                }
                file.flush()
            };
            write().map_err(|error| Unwritten::Events(Failure::write(path, error)))?;
        }
        if let Some(listener) = &mut self.listener {
            listener(batch);
        }
        self.progress.show(batch);
        Ok(())
    }

    /// Takes a batch. Somebody else who writes is waited for as long as nobody stops the
    /// run: answers that are paid for are not thrown away, and new ones are held back meanwhile.
    fn take_patiently(&mut self, batch: &[Stamped]) -> Result<(), Unwritten> {
        let (begun, mut patience) = (Instant::now(), Patience::default());
        while !self.take(batch, TRY)? {
            match patience.after(begun.elapsed(), *self.stopped.borrow()) {
                Waiting::GoesOn => {}
                Waiting::IsTold => self.progress.note(&format!(
                    "another program is writing to `{}`; results are kept in memory until it is \
                     done (Ctrl-C gives them up)",
                    self.store.display()
                )),
                Waiting::IsOver => return Err(Unwritten::Locked),
            }
        }
        if patience.told {
            self.progress.note("the store can be written to again");
        }
        Ok(())
    }
}

/// How long others that write to the store are waited for.
#[derive(Debug, Default)]
pub(super) struct Patience {
    told: bool,
    /// When the run was stopped, as far as that was noticed.
    stopped: Option<Duration>,
}

/// What becomes of a wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    GoesOn,
    /// People have to know of it.
    IsTold,
    IsOver,
}

impl Patience {
    /// What becomes of a wait that has taken so long.
    pub(super) fn after(&mut self, waited: Duration, is_stopped: bool) -> Waiting {
        if is_stopped {
            let since = *self.stopped.get_or_insert(waited);
            if waited.saturating_sub(since) >= LAST_TRIES {
                return Waiting::IsOver;
            }
        }
        let is_new = !self.told && waited >= UNTOLD;
        self.told |= is_new;
        if is_new { Waiting::IsTold } else { Waiting::GoesOn }
    }
}

/// The case that came to its end, or was given up.
fn ended_case(event: &Event) -> Option<CaseKey> {
    match event {
        Event::CaseFinished { lane, record } => {
            Some(CaseKey { lane: *lane, case_id: record.case_id.clone(), repeat: record.repeat })
        }
        Event::CaseAborted { case, .. } => Some(case.clone()),
        Event::RunStarted { .. }
        | Event::CaseStarted(_)
        | Event::AttemptFailed { .. }
        | Event::BackendPaused { .. }
        | Event::WorkersPaused { .. }
        | Event::WorkersResumed { .. }
        | Event::WorkersSeen(_)
        | Event::BackendTripped { .. }
        | Event::LaneFinished { .. }
        | Event::CancelStarted { .. }
        | Event::RunFinished { .. } => None,
    }
}

/// Why events could not be written.
pub(super) enum Unwritten {
    /// The store cannot be written to.
    Store(StoreError),
    /// Somebody else was writing to the store all the time.
    Locked,
    /// The file of events cannot be written to.
    Events(Failure),
}

impl Unwritten {
    /// The failure, with how many results are lost by it.
    pub(super) fn failure(self, store: &Path, rest: &[Stamped]) -> Failure {
        let is_result = |it: &&Stamped| matches!(it.event, Event::CaseFinished { .. });
        let lost = match rest.iter().filter(is_result).count() {
            0 => "the run could not be recorded".to_owned(),
            1 => "one result could not be recorded".to_owned(),
            lost => format!("{lost} results could not be recorded"),
        };
        let store = store.display();
        match self {
            Self::Store(error) => Failure::new(format!("{lost} in `{store}`")).because(error),
            Self::Locked => Failure::new(format!(
                "{lost}: another program was writing to `{store}` all the time"
            )),
            Self::Events(failure) => failure,
        }
    }
}
