//! Loads the rules of judging from a suite file, for every command that judges.

use std::path::Path;

use probity_grade::{Rules, command::ShellRules};
use probity_load::suite::Suite;
use probity_run::scripts::JavaScript;

use super::project::{Reading, read};
use crate::{failure::Failure, printer::Printer};

/// The rules of a suite; without a file, those that come with the program.
pub(super) fn load(path: Option<&Path>, printer: &Printer) -> Result<Rules, Failure> {
    match path {
        Some(path) => read(path, &Reading::strict(printer)).map(|(_, rules)| rules),
        None => Ok(without_suite(Path::new(""))),
    }
}

/// The rules that come with the program, with scripts of a folder.
pub(super) fn without_suite(folder: &Path) -> Rules {
    Rules::default().with_scripts(JavaScript::of(folder))
}

/// What a suite says, for commands that need none of its rules compiled.
pub(super) fn load_suite(path: Option<&Path>, printer: &Printer) -> Result<Suite, Failure> {
    match path {
        Some(path) => read(path, &Reading::strict(printer)).map(|(suite, _)| suite),
        None => Ok(Suite::default()),
    }
}

/// How a suite judges shell commands.
pub(super) fn load_shell(path: Option<&Path>, printer: &Printer) -> Result<ShellRules, Failure> {
    match path {
        Some(path) => read(path, &Reading::strict(printer)).map(|(_, rules)| rules.into_shell()),
        None => Ok(ShellRules::default()),
    }
}
