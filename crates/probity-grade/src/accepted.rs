//! Whether the commands that a case accepts can be read at all.

use probity_core::{case::TestCase, criteria::CriteriaProblem, located::Step};

use crate::command::Accepted;

/// The accepted commands of a case that are not shell. Nothing is ever equal to such a command, so
/// a case that accepts no other cannot be answered.
pub fn check_commands(case: &TestCase) -> Vec<CriteriaProblem> {
    let all: Vec<&str> = case.accepted_commands().collect();
    let first = usize::from(case.expected_command.is_some());
    let broken: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .filter_map(|(at, text)| Some((at, Accepted::new(text).err()?.to_string())))
        .collect();
    let code = match broken.len() == all.len() {
        true => "bad-command",
        false => CriteriaProblem::UNREADABLE_COMMAND,
    };
    let problem = |(at, why): (usize, String)| CriteriaProblem {
        path: match at.checked_sub(first) {
            None => vec![Step::Key("expected_command")],
            Some(index) => vec![Step::Key("expected_commands"), Step::Index(index)],
        },
        code,
        message: format!("the accepted command is not a shell command: {why}"),
        help: None,
    };
    broken.into_iter().map(problem).collect()
}
