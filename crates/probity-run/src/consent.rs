//! Consent to run what a dataset brings. Datasets may come from others; the suite is one's own.

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionTest, CriteriaProblem},
    located::Step,
};

/// Refuses the assertions of a case that would start a program, but for the last ones, which the
/// runner adds. Scripts in the sandbox and scorers that the suite describes need no consent.
pub(crate) fn refuse(case: &TestCase, of_runner: usize, problems: &mut Vec<CriteriaProblem>) {
    for (path, all) in case.asserted() {
        // What a runner adds it adds to the case, not to its turns.
        let own = if path.is_empty() { all.len().saturating_sub(of_runner) } else { all.len() };
        refuse_within(&all[..own], &path, problems);
    }
}

fn refuse_within(
    assertions: &[Assertion],
    outer: &[Step<'static>],
    problems: &mut Vec<CriteriaProblem>,
) {
    for (at, assertion) in assertions.iter().enumerate() {
        let mut path = outer.to_vec();
        path.extend([Step::Key("assert"), Step::Index(at)]);
        refuse_within(&assertion.members, &path, problems);
        if starts_a_program(assertion.kind.test) {
            path.push(Step::Key("type"));
            let kind = assertion.kind;
            problems.push(CriteriaProblem {
                path,
                code: "code-not-allowed",
                message: format!(
                    "`{kind}` runs code of the dataset, which the runner does not allow"
                ),
                help: Some(
                    "if you trust the dataset, write `allow_code = true` into the runner, or at \
                     the top of the suite"
                        .to_owned(),
                ),
            });
        }
    }
}

fn starts_a_program(test: AssertionTest) -> bool {
    matches!(test, AssertionTest::Python | AssertionTest::Exec)
}
