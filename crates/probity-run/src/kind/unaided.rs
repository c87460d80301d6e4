//! Cases that ask somebody whom the suite does not name.

use probity_core::{
    case::TestCase,
    criteria::{Asks, Assertion, AssertionTest, CriteriaProblem},
    located::Step,
};

/// What is wrong with a case where nobody embeds texts.
pub(crate) fn without_embeddings(case: &TestCase) -> Vec<CriteriaProblem> {
    let absent = Absent {
        asks: |test| test.is_similar(),
        code: "no-embeddings",
        needs: "a backend that embeds texts",
        help: "name one with `embeddings = \"BACKEND\"` in the suite",
    };
    absent.problems(case)
}

/// What is wrong with a case where nobody ranks texts.
pub(crate) fn without_reranker(case: &TestCase) -> Vec<CriteriaProblem> {
    let absent = Absent {
        asks: |test| test.asks() == Asks::Reranker,
        code: "no-reranker",
        needs: "a backend that ranks texts",
        help: "name one with `reranker = \"BACKEND\"` in the suite",
    };
    absent.problems(case)
}

/// What is wrong with a case where no judge is named: that one of the lanes judges all of them would
/// be no comparison.
pub(crate) fn without_judge(case: &TestCase) -> Vec<CriteriaProblem> {
    let absent = Absent {
        asks: |test| test == AssertionTest::SelectBest,
        code: "no-judge",
        needs: "a judge that is named",
        help: "name one with `judge = \"BACKEND\"` in the runner",
    };
    absent.problems(case)
}

/// Somebody who is not there.
struct Absent {
    asks: fn(AssertionTest) -> bool,
    code: &'static str,
    needs: &'static str,
    help: &'static str,
}

impl Absent {
    fn problems(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        let mut problems = Vec::new();
        for (path, assertions) in case.asserted() {
            self.look(assertions, &path, &mut problems);
        }
        problems
    }

    fn look(
        &self,
        assertions: &[Assertion],
        path: &[Step<'static>],
        problems: &mut Vec<CriteriaProblem>,
    ) {
        for (at, assertion) in assertions.iter().enumerate() {
            let mut path = path.to_vec();
            path.extend([Step::Key("assert"), Step::Index(at)]);
            self.look(&assertion.members, &path, problems);
            if (self.asks)(assertion.kind.test) {
                path.push(Step::Key("type"));
                problems.push(CriteriaProblem {
                    path,
                    code: self.code,
                    message: format!("`{}` needs {}", assertion.kind, self.needs),
                    help: Some(self.help.to_owned()),
                });
            }
        }
    }
}
