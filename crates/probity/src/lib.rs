//! What the `probity` command does.
//!
//! The command itself is [`command`] and nothing else. Other programs that are the command as well, such as the one of
//! the Python package, call it too. [`guest`] is for programs that run suites without being the command.

mod cli;
mod clock;
mod commands;
mod diagnostic;
mod environment;
mod exit;
mod failure;
pub mod guest;
mod jsonl;
mod output;
mod printer;
mod program;
mod signals;

#[cfg(feature = "simulated")]
pub use commands::simulated;

use std::ffi::OsString;

use clap::Parser as _;
use probity_report::plain as terminal;

use crate::{
    cli::{Cli, ColorArg},
    exit::Exit,
    printer::Printer,
};

/// Does what a command line says, and gives the exit code. Its first word is the name of the program. `again` starts
/// the program again, where its own file alone does not.
///
/// It takes over standard input, standard output and signals, so a process calls it once and then ends.
pub fn command(words: Vec<OsString>, again: Option<Vec<OsString>>) -> u8 {
    program::started(words.iter().skip(1).cloned().collect(), again);
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error).code(),
    };
    let printer = Printer::new(cli.color);
    let exit = match commands::run(cli.command, &printer) {
        Ok(exit) => exit,
        Err(failure) => {
            printer.failure(&failure);
            failure.exit_code()
        }
    };
    exit.code()
}

/// Shows help, or what is wrong with the command line. Scripts that wait for lines get
/// them here too.
fn refuse(error: &clap::Error) -> Exit {
    let wants_lines = program::arguments().iter().any(|word| word == "--porcelain");
    if wants_lines && error.use_stderr() {
        let lines = commands::Porcelain { aborted: true, ..Default::default() };
        // Nobody is left to tell if the reader is gone.
        let _ = lines.print();
    }
    let (printer, text) = (Printer::new(ColorArg::Auto), error.render().ansi().to_string());
    match error.use_stderr() {
        true => {
            printer.note_styled(text.trim_end_matches('\n'));
            Exit::Usage
        }
        false => {
            let _ = printer.show_styled(&text);
            Exit::Success
        }
    }
}
