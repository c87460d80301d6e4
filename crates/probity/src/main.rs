//! `probity` evaluates language models and the tools built on them.

mod cli;
mod clock;
mod commands;
mod diagnostic;
mod environment;
mod exit;
mod failure;
mod jsonl;
mod output;
mod printer;
mod signals;

use clap::Parser as _;
use probity_report::plain as terminal;

use crate::{
    cli::{Cli, ColorArg},
    exit::Exit,
    printer::Printer,
};

fn main() -> std::process::ExitCode {
    // The program starts itself again as the keeper of its sandbox.
    if let Some(exit) = probity_sandbox::keep() {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let printer = Printer::new(cli.color);
    let exit = match commands::run(cli.command, &printer) {
        Ok(exit) => exit,
        Err(failure) => {
            printer.failure(&failure);
            failure.exit_code()
        }
    };
    exit.into()
}

/// Shows help, or what is wrong with the command line. Scripts that wait for lines get
/// them here too.
fn refuse(error: &clap::Error) -> std::process::ExitCode {
    let wants_lines = std::env::args_os().any(|word| word == "--porcelain");
    if wants_lines && error.use_stderr() {
        let lines = commands::Porcelain { aborted: true, ..Default::default() };
        // Nobody is left to tell if the reader is gone.
        let _ = lines.print();
    }
    let (printer, text) = (Printer::new(ColorArg::Auto), error.render().ansi().to_string());
    let exit = match error.use_stderr() {
        true => {
            printer.note_styled(text.trim_end_matches('\n'));
            Exit::Usage
        }
        false => {
            let _ = printer.show_styled(&text);
            Exit::Success
        }
    };
    exit.into()
}
