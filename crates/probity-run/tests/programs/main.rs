//! Programs as backends, with real processes: small shell scripts in temporary directories.

mod clis;
mod command;
mod killed;
mod lab;
mod probe;
mod process;
