//! A keeper as a program of its own, for tests and for programs that cannot start themselves again.

use std::process::ExitCode;

fn main() -> ExitCode {
    probity_sandbox::keep().unwrap_or(ExitCode::FAILURE)
}
