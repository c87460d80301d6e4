//! Cases whose answers are compared with those of the other lanes of their runner.

use std::collections::BTreeSet;

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

/// Has cases whose answers are compared asked again in all lanes of their runner, unless all of them
/// are done: what the others came to depends on those that are missing.
pub fn reopen_comparisons(lanes: &mut [PlannedLane]) {
    let runners: BTreeSet<usize> = lanes.iter().map(|it| it.runner).collect();
    for runner in runners {
        let own: Vec<usize> = (0..lanes.len()).filter(|at| lanes[*at].runner == runner).collect();
        let Some(first) = own.first() else { continue };
        let mut open = Vec::new();
        let (cases, repeats) = (&lanes[*first].cases, lanes[*first].info.repeat);
        // A dataset that has changed since is noticed when its cases are fed.
        let _ = cases.reread(|case| {
            let is_done =
                |repeat: u32| own.iter().all(|at| lanes[*at].done.get(&case.id, repeat).is_some());
            if is_compared(case) {
                let missing = (0..repeats).filter(|it| !is_done(*it));
                open.extend(missing.map(|it| (case.id.clone(), it)));
            }
            Ok(())
        });
        for at in own {
            open.iter().for_each(|(case_id, repeat)| lanes[at].done.remove(case_id, *repeat));
        }
    }
}
