//! Runs for the program that ours is a library of.

use std::path::PathBuf;

use probity_run::callable::Callables;
use tokio::sync::watch;

use super::{Porcelain, execute, sinks::Listener};
use crate::{cli::run::RunArgs, failure::Failure, printer::Printer};

/// Who a run is for, where that is the program that ours is a library of.
pub(crate) struct Host {
    /// Functions that stand for backends and scorers.
    pub(crate) callables: Callables,
    /// Gets the events of the run, once they are recorded.
    pub(crate) listener: Listener,
    /// Becomes true when the run is to be stopped.
    pub(crate) stopped: watch::Receiver<bool>,
}

/// What came of a run for the program that ours is a library of.
#[derive(Debug, Default)]
pub struct Ran {
    /// The run's id; empty if nothing was to be run.
    pub run_id: String,
    /// Where it is recorded.
    pub store: PathBuf,
    /// The exit code that the command would have.
    pub exit: u8,
}

/// Runs a suite for the program that ours is a library of. Nothing is printed, and signals are its own.
pub(crate) fn run_for(args: &RunArgs, printer: &Printer, host: Host) -> Result<Ran, Failure> {
    let mut porcelain = Porcelain::default();
    let mut ran = Ran::default();
    let mut host = Some(host);
    let outcome = execute(args, printer, &mut porcelain, (&mut host, &mut ran));
    porcelain.summarise(args, &outcome);
    ran.exit = outcome?.code();
    ran.store = PathBuf::from(porcelain.result_file);
    Ok(ran)
}
