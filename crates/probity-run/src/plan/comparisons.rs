//! Cases whose answers are compared with those of the other lanes of their runner.

use std::collections::{BTreeMap, BTreeSet};

use probity_core::case::TestCase;

use super::PlannedLane;
use crate::kind::contest::is_compared;

/// Has the questions about the answers of all lanes of a runner counted once: with its first lane, and
/// not at all if there is no other.
pub fn count_comparisons(lanes: &mut [PlannedLane]) {
    let of_runner = |lanes: &[PlannedLane], runner: usize| {
        lanes.iter().filter(|it| it.runner == runner).count()
    };
    for at in 0..lanes.len() {
        let runner = lanes[at].runner;
        if of_runner(&lanes[..at], runner) > 0 || of_runner(lanes, runner) == 1 {
            lanes[at].calls.comparisons = 0;
        }
    }
}

/// Cases whose answers are compared, by their runners.
#[derive(Debug, Default)]
pub struct Compared(BTreeMap<usize, BTreeSet<String>>);

impl Compared {
    /// Takes a case of a lane in, if its answers are compared.
    pub fn add(&mut self, lane: &PlannedLane, case: &TestCase) {
        let known = self.0.get(&lane.runner).is_some_and(|it| it.contains(&case.id));
        if !known && is_compared(case) {
            self.0.entry(lane.runner).or_default().insert(case.id.clone());
        }
    }

    /// Has these cases asked again in all lanes of their runner, unless all of them are done: what the
    /// others came to depends on those that are missing.
    pub fn reopen(&self, lanes: &mut [PlannedLane]) {
        for (runner, cases) in &self.0 {
            let mut own: Vec<&mut PlannedLane> =
                lanes.iter_mut().filter(|it| it.runner == *runner).collect();
            let repeats = own.first().map_or(0, |it| it.info.repeat);
            for (case_id, repeat) in
                cases.iter().flat_map(|it| (0..repeats).map(move |at| (it, at)))
            {
                if own.iter().any(|it| !it.done.has(case_id, repeat)) {
                    own.iter_mut().for_each(|it| it.done.remove(case_id, repeat));
                }
            }
        }
    }
}
