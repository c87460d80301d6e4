//! `probity` evaluates language models and the tools built on them.

mod cli;
mod commands;
mod diagnostic;
mod exit;
mod failure;
mod jsonl;
mod output;
mod printer;

use clap::Parser as _;

use crate::{cli::Cli, exit::Exit, printer::Printer};

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let printer = Printer::new(cli.color);
    let exit = match commands::run(cli.command, &printer) {
        Ok(exit) => exit,
        Err(failure) if failure.is_broken_pipe() => Exit::Success,
        Err(failure) => {
            printer.failure(&failure);
            Exit::Usage
        }
    };
    exit.into()
}
