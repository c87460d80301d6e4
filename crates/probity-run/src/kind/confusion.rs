//! Are look-alike skills told apart?

use probity_core::{case::TestCase, kind::RunnerKind};

use super::choosing::Rules;

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::Confusion,
    how_many: "The skills are much alike. Choose the one that fits the request best, and no \
               second one; choose none if none of them covers it.",
    // A group of look-alikes is there to be told apart at once.
    asks_again: false,
    has_groups: true,
    stratum,
};

/// Some of each group, and some that expect no skill.
fn stratum(case: &TestCase) -> String {
    match case.routing.is_positive() {
        true => case.routing.group.clone().unwrap_or_default(),
        false => false.to_string(),
    }
}
