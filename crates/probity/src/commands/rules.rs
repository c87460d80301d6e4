//! Loads the rules of judging from a suite file, for every command that judges.

use std::path::Path;

use probity_core::suite::Suite;
use probity_grade::Rules;

use crate::{failure::Failure, printer::Printer};

/// The suite and its rules; without a file, those that come with the program.
pub(super) fn load(path: Option<&Path>, printer: &Printer) -> Result<(Suite, Rules), Failure> {
    let Some(path) = path else { return Ok((Suite::default(), Rules::default())) };
    let check = |suite: &Suite| Rules::compile(suite).err().unwrap_or_default();
    let (suite, problems) = Suite::load(path, &check);
    for problem in &problems {
        printer.problem(problem);
    }
    let unusable = || Failure::new(format!("the suite file `{}` cannot be used", path.display()));
    let suite = suite.ok_or_else(unusable)?;
    let rules = Rules::compile(&suite).map_err(|_| unusable())?;
    Ok((suite, rules))
}
