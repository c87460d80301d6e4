//! What a foreign runner said of itself.

use serde::Serialize;

use crate::evidence::{FailFast, Foreign};

/// The sums of what it said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Program {
    /// Cases that it brought to an end.
    pub cases: u64,
    /// Cases that it had planned.
    pub planned: u64,
    /// Calls that it made.
    pub calls: u64,
    /// Dollars that it spent.
    pub cost_usd: f64,
    /// Whether it gave up before its end.
    pub aborted: bool,
    /// Why it gave up early.
    pub fail_fast: Option<FailFast>,
    /// Where it wrote its results.
    pub result_files: Vec<String>,
}

impl Program {
    pub(super) fn add(&mut self, foreign: &Foreign) {
        self.cases += foreign.cases;
        self.planned += foreign.planned;
        self.calls += foreign.calls;
        self.cost_usd += foreign.cost_usd;
        self.aborted |= foreign.aborted;
        if self.fail_fast.is_none() {
            self.fail_fast.clone_from(&foreign.fail_fast);
        }
        self.result_files.extend(foreign.result_file.clone());
    }
}
