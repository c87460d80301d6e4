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
    let test = assertion.kind.test;
    let is_share = matches!(
        test,
        AssertionTest::TokenF1
            | AssertionTest::Rouge1
            | AssertionTest::Rouge2
            | AssertionTest::RougeL
            | AssertionTest::Bleu
            | AssertionTest::Gleu
            | AssertionTest::Meteor
            | AssertionTest::Chrf
            | AssertionTest::EditSimilarity
            | AssertionTest::ToolCallF1
    );
    is_share || (test != AssertionTest::LlmRubric && test.asks_judge())
}

#[cfg(test)]
mod tests {
    use probity_core::criteria::AssertionKind;

    use super::*;

    #[test]
    fn only_what_ends_at_one_is_warned_of() {
        let mut case = TestCase::default();
        for (name, threshold) in [
            ("bleu", 50.0),
            ("not-tool-call-f1", 1.5),
            ("gleu", 1.0),
            ("llm-rubric", 4.0),
            ("closed-qa", 2.0),
            ("latency", 3000.0),
        ] {
            let kind = AssertionKind::named(name).unwrap();
            case.criteria
                .assertions
                .push(Assertion { threshold: Some(threshold), ..Assertion::new(kind) });
        }
        let told: Vec<String> = check_thresholds(&case).into_iter().map(|it| it.message).collect();
        assert_eq!(
            told,
            [
                "`bleu` scores from 0 to 1: with the threshold 50 it never holds",
                "`not-tool-call-f1` scores from 0 to 1: with the threshold 1.5 it always holds",
                "`closed-qa` scores from 0 to 1: with the threshold 2 it never holds",
            ]
        );
    }
}
