//! Loads the rules of judging from a suite file, for every command that judges.

use std::path::{Path, PathBuf};

use probity_grade::{Rules, command::ShellRules};
use probity_load::suite::Suite;
use probity_run::scripts::JavaScript;

use super::project::{Reading, read};
use crate::{failure::Failure, printer::Printer};

/// The rules of a suite; without a file, those that come with the program.
pub(super) fn load(path: Option<&Path>, printer: &Printer) -> Result<Rules, Failure> {
    match path {
        Some(path) => read(path, &Reading::strict(printer)).map(|(_, rules)| rules),
        None => Ok(without_suite([])),
    }
}

/// The rules that come with the program. Scripts are looked for in some folders, and then in the
/// working directory.
pub(super) fn without_suite<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Rules {
    let folders = folders.into_iter().map(Path::to_owned);
    Rules::default().with_scripts(JavaScript::of_any(folders.chain([PathBuf::new()])))
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
