//! `probity` evaluates language models and the tools built on them.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The program starts itself again as the keeper of its sandbox.
    if let Some(exit) = probity_sandbox::keep() {
        return exit;
    }
    ExitCode::from(probity::command(std::env::args_os().collect(), None))
}
