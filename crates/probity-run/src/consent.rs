//! Consent to run what a dataset brings. Datasets may come from others; the suite is one's own.

use probity_core::{
    criteria::{Assertion, AssertionTest, CriteriaProblem},
    located::Step,
};

/// Refuses the assertions of a case that would start a program. Scripts in the sandbox and scorers
/// that the suite describes need no consent.
pub(crate) fn refuse(assertions: &[Assertion], problems: &mut Vec<CriteriaProblem>) {
    refuse_within(assertions, &[], problems);
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
