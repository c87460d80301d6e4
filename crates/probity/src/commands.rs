//! One module per command, one function per module that reads like its documentation.

mod check;
mod classify;
mod completions;
mod dataset;
mod rules;

use crate::{cli::Command, exit::Exit, failure::Failure, printer::Printer};

/// Runs the command.
pub(crate) fn run(command: Command, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        Command::Classify(args) => classify::run(&args, printer),
        Command::Check(command) => check::run(command, printer),
        Command::Dataset(command) => dataset::run(command, printer),
        Command::Completions { shell } => completions::completions(shell),
        Command::Man { all } => completions::man(all.as_deref()),
    }
}
