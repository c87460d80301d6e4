//! The commands that judge runs and show them in other forms.

use std::path::PathBuf;

use clap::Args;

use super::run::StoreArgs;
use crate::exit::Exit;

/// What a gate that fails does.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GatingArgs {
    /// Count what could not be judged as failed
    #[arg(long)]
    pub(crate) errors_as_failures: bool,

    /// The exit code when a gate fails [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) fail_exit_code: Option<u8>,

    /// Exit with 0 even when a gate fails
    #[arg(long, conflicts_with = "fail_exit_code")]
    pub(crate) informational: bool,
}

impl GatingArgs {
    /// How to end when a gate failed.
    pub(crate) fn failed(&self) -> Exit {
        match (self.informational, self.fail_exit_code) {
            (true, _) => Exit::Success,
            (false, code) => Exit::Failed(code.unwrap_or(1)),
        }
    }
}

/// When a run may end early.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct DecidingArgs {
    /// Stop as soon as no outcome of the remaining cases can change what the gates say
    #[arg(long)]
    pub(crate) stop_when_decided: bool,

    /// Stop as soon as the gates are decided but for a chance of A to be wrong, such as 0.05
    ///
    /// Cases are asked in an order that chance draws, so that those that are done speak for
    /// the others. The chance holds at whatever moment the run stops.
    #[arg(long, value_name = "A")]
    pub(crate) alpha: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run: its id, the beginning or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Write a report; the ending of the name says which. May be given several times
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}
