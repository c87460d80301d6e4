//! Where events go: first to the disk, then to whoever watches.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use probity_core::event::{Event, Stamped};
use probity_run::plan::Plan;
use probity_store::Recorder;
use tokio::sync::{mpsc, watch};

use super::progress::Progress;
use crate::failure::Failure;

/// Events that are written in one go at most.
const BATCH: usize = 1024;

/// Takes events in, on a thread of its own.
pub(super) struct Sinks {
    pub(super) recorder: Recorder,
    pub(super) events: Option<EventsFile>,
    pub(super) progress: Progress,
    /// What is on the disk, for those who cannot wait for the store.
    pub(super) done: watch::Sender<Done>,
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
    /// Takes events until nobody sends any more. When it ends early, the run does too.
    ///
    /// What is waiting is written in one transaction: a slow model gets one for each case,
    /// a fast one gets large batches, and nobody waits for a timer.
    pub(super) fn pump(mut self, mut receiver: mpsc::Receiver<Stamped>) -> Result<(), Failure> {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = receiver.blocking_recv() {
            batch.push(first);
            while batch.len() < BATCH
                && let Ok(next) = receiver.try_recv()
            {
                batch.push(next);
            }
            self.take(&batch)?;
            batch.clear();
        }
        self.progress.finish();
        self.recorder.close();
        Ok(())
    }

    /// Durable first, visible after.
    fn take(&mut self, batch: &[Stamped]) -> Result<(), Failure> {
        self.recorder.record(batch)?;
        self.done.send_modify(|done| batch.iter().for_each(|it| done.add(&it.event)));
        if let Some(EventsFile { path, file }) = &mut self.events {
            let mut write = || {
                for stamped in batch {
                    serde_json::to_writer(&mut *file, stamped)?;
                    file.write_all(b"\n")?;
                }
                file.flush()
            };
            write().map_err(|error| Failure::write(path, error))?;
        }
        self.progress.show(batch);
        Ok(())
    }
}
