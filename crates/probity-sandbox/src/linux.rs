//! The half of the sandbox that is Linux: the keeper and what it starts.
//!
//! ```text
//! program ─ control socket ─▶ keeper ─ fork ─▶ supervisor ─ fork ─▶ first process ─ fork ─▶ command
//!    └────── a connection for each execution ──────┘                (pid 1 in the world)
//! ```

mod base;
mod calls;
mod changes;
mod filter;
mod first;
mod git_index;
pub(crate) mod keeper;
mod load;
mod memory;
mod others;
mod supervisor;
pub(crate) mod sys;
mod wall;
mod way_out;

/// Whom the keeper becomes if it is started as root: `nobody`.
const NOBODY: u32 = 65534;

/// Says where something failed.
trait Doing<T> {
    fn doing(self, what: &str) -> Result<T, String>;
}

impl<T, E: Into<std::io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {}", error.into()))
    }
}
