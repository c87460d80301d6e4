//! Are look-alike skills told apart?

use probity_core::{case::TestCase, criteria::CriteriaProblem, kind::RunnerKind};

use super::{choosing::Rules, skills};

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::Confusion,
    how_many: "The skills are much alike. Choose the one that fits the request best, and no \
               second one; choose none if none of them covers it.",
    // A group of look-alikes is there to be told apart at once.
    asks_again: false,
    has_groups: true,
    check,
    stratum,
};

fn check(case: &TestCase) -> Option<CriteriaProblem> {
    let is_missing = case.routing.is_positive() && case.routing.group.is_none();
    is_missing.then(|| skills::missing("group", None))
}

/// Some of each group, and some that expect no skill.
fn stratum(case: &TestCase) -> String {
    match case.routing.is_positive() {
        true => case.routing.group.clone().unwrap_or_default(),
        false => false.to_string(),
    }
}
