//! Cases that compare a reply with texts by their embeddings.

use probity_core::{
    case::TestCase,
    criteria::{Assertion, CriteriaProblem},
    located::Step,
};
use serde_json::Value;

/// How many texts assertions have embedded: for each the reply and what it is compared with.
pub(super) fn texts_in(assertions: &[Assertion]) -> u64 {
    let own = |it: &Assertion| match &it.value {
        _ if !it.kind.test.is_similar() => 0,
        Some(Value::Array(texts)) => 1 + texts.len() as u64,
        Some(_) | None => 2,
    };
    assertions.iter().map(|it| own(it) + texts_in(&it.members)).sum()
}

/// What is wrong with a case where nobody embeds texts.
pub(crate) fn refused(case: &TestCase) -> Vec<CriteriaProblem> {
    let mut problems = Vec::new();
    for (path, assertions) in case.asserted() {
        refuse(assertions, &path, &mut problems);
    }
    problems
}

fn refuse(assertions: &[Assertion], path: &[Step<'static>], problems: &mut Vec<CriteriaProblem>) {
    for (at, assertion) in assertions.iter().enumerate() {
        let mut path = path.to_vec();
        path.extend([Step::Key("assert"), Step::Index(at)]);
        refuse(&assertion.members, &path, problems);
        if assertion.kind.test.is_similar() {
            path.push(Step::Key("type"));
            problems.push(CriteriaProblem {
                path,
                code: "no-embeddings",
                message: format!("`{}` needs a backend that embeds texts", assertion.kind),
                help: Some("name one with `embeddings = \"BACKEND\"` in the suite".to_owned()),
            });
        }
    }
}
