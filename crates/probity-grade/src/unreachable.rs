//! Thresholds that no score reaches.

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionTest, CriteriaProblem},
    located::Step,
};

/// The thresholds of a case that are beyond the scale of what they are about, so that it never passes. They
/// are no errors: promptfoo takes them, and its users have some.
pub fn check_thresholds(case: &TestCase) -> Vec<CriteriaProblem> {
    let mut problems = Vec::new();
    walk(&case.criteria.assertions, &[], &mut problems);
    for (at, turn) in case.conversation.turns.iter().enumerate() {
        let path = [Step::Key("turns"), Step::Index(at)];
        walk(&turn.criteria.assertions, &path, &mut problems);
    }
    problems
}

fn walk(assertions: &[Assertion], path: &[Step<'static>], problems: &mut Vec<CriteriaProblem>) {
    for (index, assertion) in assertions.iter().enumerate() {
        let path = [path, &[Step::Key("assert"), Step::Index(index)]].concat();
        walk(&assertion.members, &path, problems);
        let Some(threshold) = assertion.threshold.filter(|it| *it > 1.0) else { continue };
        if ends_at_one(assertion) {
            let often = if assertion.kind.negated { "always" } else { "never" };
            problems.push(CriteriaProblem {
                path: [&path[..], &[Step::Key("threshold")]].concat(),
                code: CriteriaProblem::UNREACHABLE_THRESHOLD,
                message: format!(
                    "`{}` scores from 0 to 1: with the threshold {threshold} it {often} holds",
                    assertion.kind
                ),
                help: None,
            });
        }
    }
}

/// Whether no score is above 1. The scale of a judge's own prompt is not known.
fn ends_at_one(assertion: &Assertion) -> bool {
    match assertion.kind.test {
        AssertionTest::TokenF1
        | AssertionTest::Rouge1
        | AssertionTest::Rouge2
        | AssertionTest::RougeL
        | AssertionTest::Bleu
        | AssertionTest::Gleu
        | AssertionTest::Meteor
        | AssertionTest::Chrf
        | AssertionTest::EditSimilarity
        | AssertionTest::ToolCallF1 => true,
        AssertionTest::LlmRubric => false,
        test => test.asks_judge(),
    }
}
