//! A request in words, a shell command as the answer.

use probity_core::{
    case::TestCase,
    criteria::CriteriaProblem,
    kind::{KindSpec, RunnerKind},
};

use super::Kind;

#[derive(Debug)]
pub(super) struct Command;

impl Kind for Command {
    fn spec(&self) -> &'static KindSpec {
        RunnerKind::Command.spec()
    }

    fn check(&self, case: &TestCase) -> Vec<CriteriaProblem> {
        if case.accepted_commands().next().is_some() || case.execution.is_some() {
            return super::respond::one_world(case);
        }
        vec![CriteriaProblem {
            path: vec![],
            code: "missing-field",
            message: "a case of a `command` runner needs `expected_command` or `execution`"
                .to_owned(),
            help: None,
        }]
    }
}
