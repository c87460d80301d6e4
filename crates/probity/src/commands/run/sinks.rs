//! Where events go: first to the disk, then to whoever watches.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use probity_core::event::{CaseKey, Event, Stamped};
use probity_run::{carrier::Carrier, events, plan::Plan};
use probity_store::{Recorder, StoreError};
use tokio::sync::watch;

use super::progress::Progress;
use crate::failure::Failure;

/// How long each try waits for others that write to the store.
const TRY: Duration = Duration::from_millis(250);
/// How long others may write to the store before it is told.
const UNTOLD: Duration = Duration::from_secs(2);
/// How long is waited for them after Ctrl-C.
const LAST_TRIES: Duration = Duration::from_secs(2);

/// How far apart transactions are, in a run that makes many.
const APART: Duration = Duration::from_millis(10);
/// How many may follow each other at once before they are that far apart.
const UNRESTED: u32 = 10;

/// Takes events in, on a thread of its own.
pub(super) struct Sinks {
    pub(super) recorder: Recorder,
    pub(super) store: PathBuf,
    pub(super) events: Option<EventsFile>,
    pub(super) progress: Progress,
    /// What is on the disk, for those who cannot wait for the store.
    pub(super) done: watch::Sender<Done>,
    /// Becomes true when the run is to be stopped.
    pub(super) stopped: watch::Receiver<bool>,
    /// Who keeps results of calls until they are on the disk.
    pub(super) carrier: Option<Arc<dyn Carrier>>,
}

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
            | Event::CaseAborted { .. }
            | Event::LaneFinished { .. }
            | Event::CancelStarted { .. }
            | Event::RunFinished { .. } => {}
        }
    }
}

/// How often transactions end: each costs the disk as much as many results do.
struct Pace {
    /// When the next one is due.
    due: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { due: long_ago(now) }
    }

    /// How long to rest after one that has just ended. A few in short order need no rest, so that
    /// neither a short run nor a slow model waits for anything.
    fn rest(&mut self, now: Instant) -> Duration {
        self.due = self.due.max(long_ago(now)) + APART;
        self.due.saturating_duration_since(now)
    }
}

/// When what was due then has been forgotten.
fn long_ago(now: Instant) -> Instant {
    now.checked_sub(APART * UNRESTED).unwrap_or(now)
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
    /// Takes events until nobody sends any more. When it ends early, the run does too.
    ///
    /// What is waiting is written in one transaction: a slow model gets one for each case, a fast
    /// one gets large batches.
    pub(super) fn pump(mut self, mut receiver: events::Receiver) -> Result<(), Failure> {
        let mut pace = Pace::new(Instant::now());
        while let Some(batch) = receiver.next_batch() {
            if let Err(unwritten) = self.take(batch) {
                return Err(unwritten.failure(&self.store, &receiver.close()));
            }
            thread::sleep(pace.rest(Instant::now()));
        }
        self.progress.finish();
        self.recorder.close();
        Ok(())
    }

    /// Durable first, visible after.
    fn take(&mut self, batch: &[Stamped]) -> Result<(), Unwritten> {
        self.record(batch)?;
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
        self.progress.show(batch);
        Ok(())
    }

    /// Writes to the store. Somebody else who writes is waited for as long as nobody stops the
    /// run: answers that are paid for are not thrown away, and new ones are held back meanwhile.
    fn record(&mut self, batch: &[Stamped]) -> Result<(), Unwritten> {
        let begun = Instant::now();
        let (mut told, mut stopped) = (false, None);
        while !self.recorder.try_record(batch, TRY).map_err(Unwritten::Store)? {
            if !told && begun.elapsed() >= UNTOLD {
                told = true;
                self.progress.note(&format!(
                    "another program is writing to `{}`; results are kept in memory until it is \
                     done (Ctrl-C gives them up)",
                    self.store.display()
                ));
            }
            if *self.stopped.borrow() {
                let since = *stopped.get_or_insert_with(Instant::now);
                if since.elapsed() >= LAST_TRIES {
                    return Err(Unwritten::Locked);
                }
            }
        }
        if told {
            self.progress.note("the store can be written to again");
        }
        Ok(())
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
        | Event::BackendTripped { .. }
        | Event::LaneFinished { .. }
        | Event::CancelStarted { .. }
        | Event::RunFinished { .. } => None,
    }
}

/// Why events could not be written.
enum Unwritten {
    /// The store cannot be written to.
    Store(StoreError),
    /// Somebody else was writing to the store all the time.
    Locked,
    /// The file of events cannot be written to.
    Events(Failure),
}

impl Unwritten {
    /// The failure, with how many results are lost by it.
    fn failure(self, store: &Path, rest: &[Stamped]) -> Failure {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_transactions_in_short_order_are_kept_apart() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        for _ in 0..100 {
            assert_eq!(pace.rest(now), Duration::ZERO, "those of a slow model");
            now += APART * 2;
        }
        let rests: Vec<Duration> = (0..=UNRESTED).map(|_| pace.rest(now)).collect();
        assert_eq!(rests.iter().filter(|it| it.is_zero()).count(), UNRESTED as usize);
        assert_eq!(rests.last(), Some(&APART));
        now += APART;
        assert_eq!(pace.rest(now), APART, "as long as they come that fast");
        now += APART * 2 * UNRESTED;
        assert_eq!(pace.rest(now), Duration::ZERO, "and no longer");
    }
}
