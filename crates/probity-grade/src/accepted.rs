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

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes and places of what is wrong with the accepted commands of a case.
    fn problems(command: &str, others: &[&str]) -> String {
        let case = TestCase {
            expected_command: (!command.is_empty()).then(|| command.to_owned()),
            expected_commands: others.iter().map(|it| (*it).to_owned()).collect(),
            ..TestCase::default()
        };
        let said = check_commands(&case).into_iter().map(|it| format!("{} {:?}", it.code, it.path));
        said.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_command_that_is_no_shell_is_a_problem_at_its_place() {
        let unreadable = CriteriaProblem::UNREADABLE_COMMAND;
        assert_eq!(problems("ls", &["pwd"]), "");
        assert_eq!(
            problems("ls \"", &["pwd"]),
            format!("{unreadable} [Key(\"expected_command\")]")
        );
        let second = "[Key(\"expected_commands\"), Index(1)]";
        assert_eq!(problems("", &["pwd", "ls \""]), format!("{unreadable} {second}"));
        let first = "[Key(\"expected_commands\"), Index(0)]";
        assert_eq!(problems("ls", &["ls \""]), format!("{unreadable} {first}"));
    }

    #[test]
    fn a_case_that_accepts_no_command_at_all_is_an_error() {
        assert_eq!(problems("ls \"", &[]), "bad-command [Key(\"expected_command\")]");
    }
}
