//! Is the answer better with the skill than without?

use probity_core::{
    evidence::{Condition, Pair},
    kind::{Evidence, RunnerKind},
};

use super::comparing::Rules;

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::Effectiveness,
    evidence: Evidence::Effectiveness,
    conditions: |_| &[Condition::Full, Condition::Baseline],
    pairs: |_| &[Pair::HELPS],
    needs_rubric: true,
};
