//! Does the size of a skill pay off?

use probity_core::{
    evidence::{Condition, Pair},
    kind::{Evidence, RunnerKind},
};
use probity_load::skill::Skill;

use super::comparing::Rules;

pub(super) const RULES: Rules = Rules {
    kind: RunnerKind::SizeImpact,
    evidence: Evidence::SizeImpact,
    conditions,
    pairs,
    needs_rubric: false,
};

/// With companions only where the skill has some.
fn conditions(skill: &Skill) -> &'static [Condition] {
    use Condition::{Baseline, Companions, Full, Summary};
    match skill.companions.is_empty() {
        true => &[Full, Summary, Baseline],
        false => &[Full, Summary, Baseline, Companions],
    }
}

fn pairs(skill: &Skill) -> &'static [Pair] {
    match skill.companions.is_empty() {
        true => &Pair::SIZES[..3],
        false => &Pair::SIZES,
    }
}
