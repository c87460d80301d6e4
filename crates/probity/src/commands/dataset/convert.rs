//! `probity dataset convert`: the same cases in another format.

use std::{fs, path::Path};

use probity_load::dataset::WriteError;

use super::{counted, create, read_cases, write_failure};
use crate::{exit::Exit, failure::Failure, output::refuse_same_file, printer::Printer};

pub(super) fn run(
    input: &Path,
    output: &Path,
    force: bool,
    printer: &Printer,
) -> Result<Exit, Failure> {
    refuse_same_file(&[input, output])?;
    if fs::metadata(input).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Failure::new(format!("`{}` is not an ordinary file", input.display()))
            .hint("it is read twice: once to check it, once to write it"));
    }
    // A first pass, so that nothing is written for a dataset that cannot be used.
    let files = [input.to_owned()];
    let summary = read_cases(&files, printer, drop)?;
    let mut writer = create(output, force, summary.version.as_deref())?;
    let mut outcome: Result<(), WriteError> = Ok(());
    let quiet = Printer::silent();
    read_cases(&files, &quiet, |case| {
        if outcome.is_ok() {
            outcome = writer.case(&case);
        }
    })?;
    outcome.map_err(|error| write_failure(output, error))?;
    writer.finish().map_err(|error| write_failure(output, error))?.finish()?;
    printer.note(&format!("{}: {}", output.display(), counted(summary.cases, "case")));
    Ok(Exit::Success)
}
