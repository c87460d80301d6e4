//! What scripts are told when a signal ends the program.

use std::path::PathBuf;

use tokio::sync::watch;

use super::{Porcelain, sinks::Done, summary};
use crate::{cli::run::RunArgs, exit::Exit, signals};

/// What is known when the program has to leave. Nothing of it is read from the store, which
/// somebody else may have locked.
pub(super) struct ForcedExit {
    porcelain: bool,
    planned: u64,
    store: PathBuf,
    done: watch::Receiver<Done>,
}

impl ForcedExit {
    /// Before anything is planned.
    pub(super) fn early(args: &RunArgs) -> Self {
        let (_, done) = watch::channel(Done::default());
        Self { porcelain: args.porcelain, planned: 0, store: PathBuf::new(), done }
    }

    /// While a run goes on, and while it is reported.
    pub(super) fn of_run(
        args: &RunArgs,
        store: PathBuf,
        planned: u64,
        done: watch::Receiver<Done>,
    ) -> Self {
        Self { porcelain: args.porcelain, planned, store, done }
    }

    /// Has it said if a signal ends the program.
    pub(super) fn prepare(self) {
        signals::set_last_words(Box::new(move |exit| self.say(exit)));
    }

    fn say(&self, exit: Exit) {
        let why = match exit {
            Exit::Interrupted => "the run was stopped at once",
            Exit::Success | Exit::Failed(_) | Exit::Usage | Exit::Aborted => {
                "stopped before all reports were written"
            }
        };
        if !self.store.as_os_str().is_empty() {
            summary::write_failure(&self.store, why);
        }
        if self.porcelain {
            let Done { cases, calls, cost_usd } = *self.done.borrow();
            let porcelain = Porcelain {
                aborted: true,
                cases,
                planned: self.planned,
                total_calls: calls,
                cost_usd,
                result_file: self.store.display().to_string(),
                ..Porcelain::default()
            };
            // Whoever does not read them any more has gone too.
            let _ = porcelain.print();
        }
    }
}
