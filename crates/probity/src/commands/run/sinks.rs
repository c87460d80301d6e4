//! Where events go: first to the disk, then to whoever watches.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use probity_core::event::Stamped;
use probity_store::Recorder;
use tokio::sync::mpsc;

use super::progress::Progress;
use crate::failure::Failure;

/// Events that are written in one go at most.
const BATCH: usize = 1024;

/// Takes events in, on a thread of its own.
pub(super) struct Sinks {
    pub(super) recorder: Recorder,
    pub(super) events: Option<EventsFile>,
    pub(super) progress: Progress,
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
