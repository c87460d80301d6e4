//! Programs as backends, with real processes: small shell scripts in temporary directories.

#![expect(clippy::unwrap_used, reason = "what is not as expected fails the test")]

mod clis;
mod command;
mod killed;
mod lab;
mod probe;
mod process;
