//! Loads the rules of judging from a suite file, for every command that judges.

use std::path::{Path, PathBuf};

use probity_grade::{Rules, command::ShellRules};
use probity_load::suite::Suite;
use probity_run::scripts::JavaScript;

use super::project::{Reading, read};
use crate::{cli::run::RulesArgs, failure::Failure, printer::Printer};

/// The rules of a suite; without a file, those that come with the program.
pub(super) fn load(args: &RulesArgs, printer: &Printer) -> Result<Rules, Failure> {
    Ok(of_suite(args, printer)?.map_or_else(|| without_suite([]), |(_, rules)| rules))
}

/// The rules that come with the program. Scripts are looked for in some folders, and then in the
/// working directory.
pub(super) fn without_suite<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Rules {
    let folders = folders.into_iter().map(Path::to_owned);
    Rules::default().with_scripts(JavaScript::of_any(folders.chain([PathBuf::new()])))
}

/// What a suite says, for commands that need none of its rules compiled.
pub(super) fn load_suite(args: &RulesArgs, printer: &Printer) -> Result<Suite, Failure> {
    Ok(of_suite(args, printer)?.map(|(suite, _)| suite).unwrap_or_default())
}

/// How a suite judges shell commands.
pub(super) fn load_shell(args: &RulesArgs, printer: &Printer) -> Result<ShellRules, Failure> {
    Ok(of_suite(args, printer)?.map(|(_, rules)| rules.into_shell()).unwrap_or_default())
}

fn of_suite(args: &RulesArgs, printer: &Printer) -> Result<Option<(Suite, Rules)>, Failure> {
    let reading = Reading::strict(printer, args.foreign);
    args.suite.as_deref().map(|path| read(path, &reading)).transpose()
}
