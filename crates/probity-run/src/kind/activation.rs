//! Is the right skill chosen from an index?

use probity_core::kind::RunnerKind;

use super::choosing::Rules;

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::Activation,
    how_many: "Choose the skills that the request clearly calls for, most often one. Choose none \
               if none covers it: a request may be close to what a skill is about and still not \
               be covered by it.",
    asks_again: true,
    has_groups: false,
    stratum: |case| case.routing.is_positive().to_string(),
};
