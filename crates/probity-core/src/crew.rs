//! The workers of a run, as they stand at one moment.

use serde::{Deserialize, Serialize};

/// Who works for a run, and what waits for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Crew {
    /// Calls that were handed over and that no worker has begun.
    pub backlog: u64,
    /// Calls that were given to another worker after the first was lost.
    pub redelivered: u64,
    /// The workers, by name.
    pub workers: Vec<CrewMember>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrewMember {
    /// Its name.
    pub name: String,
    /// How many calls it can make at the same time.
    pub slots: u64,
    /// How many calls of this run it makes now.
    pub in_flight: u64,
    /// How many calls of this run it has made.
    pub done: u64,
    /// Calls a second over the last while, of all runs.
    pub rate: f64,
}

impl Crew {
    /// Calls that are being made.
    pub fn in_flight(&self) -> u64 {
        self.workers.iter().map(|it| it.in_flight).sum()
    }

    /// How many bytes its texts take.
    pub fn text_bytes(&self) -> usize {
        self.workers.iter().map(|it| it.name.len()).sum()
    }
}
