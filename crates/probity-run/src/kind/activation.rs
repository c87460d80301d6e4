//! Is the right skill chosen from an index?

use probity_core::{case::TestCase, criteria::CriteriaProblem, kind::RunnerKind};

use super::{choosing::Rules, skills};

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::Activation,
    how_many: "Choose the skills that the request clearly calls for, most often one. Choose none \
               if none covers it: a request may be close to what a skill is about and still not \
               be covered by it.",
    asks_again: true,
    has_groups: false,
    check,
    stratum: |case| case.routing.is_positive().to_string(),
};

fn check(case: &TestCase) -> Option<CriteriaProblem> {
    let states_nothing =
        case.routing.should_activate.is_none() && case.routing.expected_skills.is_empty();
    let message = "the case does not say which skill it expects";
    let help = "name it in `expected_skills`, or write `should_activate = false`";
    states_nothing.then(|| skills::problem("expected_skills", "missing-field", message, Some(help)))
}
