//! Is the answer better with the skill than without?

use probity_core::{
    evidence::{Condition, Pair},
    kind::{Evidence, RunnerKind},
    problem::Problem,
};
use probity_load::suite::RunnerConfig;

use super::{
    Site,
    comparing::{Comparing, Rules},
};

pub(super) fn open(
    runner: &RunnerConfig,
    site: &Site<'_>,
    report: &mut dyn FnMut(Problem),
) -> Option<Comparing> {
    let rules = Rules {
        kind: RunnerKind::Effectiveness,
        evidence: Evidence::Effectiveness,
        conditions: |_| &[Condition::Full, Condition::Baseline],
        pairs: |_| &[Pair::HELPS],
        needs_rubric: true,
    };
    Comparing::open(rules, runner, site, report)
}
