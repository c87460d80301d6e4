//! `probity dataset`: everything about files of cases that needs no model.

mod convert;
mod lint;
mod stats;
mod validate;

use std::path::{Path, PathBuf};

use probity_core::{
    case::TestCase,
    criteria::CriteriaProblem,
    problem::{Problem, Severity},
};
use probity_grade::{Compiler, Rules, check_commands, check_thresholds};
use probity_load::dataset::{Format, Item, Summary, WriteError, Writer, read};

use super::rules;
pub(super) use crate::terminal::counted;
use crate::{
    cli::DatasetCommand, exit::Exit, failure::Failure, output::OutputFile, printer::Printer,
};
pub(super) use validate::undecided;

pub(super) fn run(command: DatasetCommand, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        DatasetCommand::Validate { files, strict, require_criteria, json } => {
            validate::run(&files, &validate::Options { strict, require_criteria, json }, printer)
        }
        DatasetCommand::Stats { files, json } => stats::run(&files, json, printer),
        DatasetCommand::Lint { files, strict } => lint::run(&files, strict, printer),
        DatasetCommand::Convert { input, output, force } => {
            convert::run(&input, &output, force, printer)
        }
    }
}

/// Reads datasets with their criteria compiled, as a run would.
fn read_checked(files: &[PathBuf], sink: &mut dyn FnMut(Item)) -> Summary {
    let rules = rules::without_suite(files.iter().filter_map(|it| it.parent()));
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    read(&paths, &criteria_check(&rules), sink)
}

/// Says what is wrong with the criteria of cases, by compiling them.
pub(super) fn criteria_check(rules: &Rules) -> impl Fn(&TestCase) -> Vec<CriteriaProblem> {
    let compiler = std::cell::RefCell::new(Compiler::new(rules));
    move |case| {
        let mut problems = compiler.borrow_mut().compile(case).err().unwrap_or_default();
        problems.extend(check_commands(case));
        problems.extend(check_thresholds(case));
        problems
    }
}

/// Reads datasets for a command that needs their cases: problems are shown, errors are fatal.
fn read_cases(
    files: &[PathBuf],
    printer: &Printer,
    mut each: impl FnMut(TestCase),
) -> Result<Summary, Failure> {
    let mut shown = printer.problems();
    let summary = read_checked(files, &mut |item| match item {
        Item::Case(at) => each(at.case),
        Item::Problem(problem) => shown.show(&problem),
    });
    match summary.errors {
        0 => Ok(summary),
        1 => Err(Failure::new("the dataset has an error")),
        errors => Err(Failure::new(format!("the dataset has {errors} errors"))),
    }
}

/// Opens a dataset for writing. An existing file is only replaced when asked to, and only
/// when all of the new one is written.
fn create(path: &Path, force: bool, version: Option<&str>) -> Result<Writer<OutputFile>, Failure> {
    let format = Format::of_path(path).ok_or_else(|| {
        Failure::new(format!("the name of `{}` has no known suffix", path.display()))
            .hint("datasets end in .toml, .jsonl, .json, .yaml or .csv")
    })?;
    if !force && path.symlink_metadata().is_ok() {
        return Err(Failure::new(format!("`{}` is there already", path.display()))
            .hint("pass --force to overwrite it"));
    }
    let file = OutputFile::create(path)?;
    Writer::new(format, version, file).map_err(|error| write_failure(path, error))
}

fn write_failure(path: &Path, error: WriteError) -> Failure {
    Failure::new(format!("failed to write `{}`", path.display())).because(error)
}

/// A problem as one JSON line.
fn problem_json(problem: &Problem) -> serde_json::Value {
    let Problem { severity, code, message, file, place, case_id, help } = problem;
    let severity = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    serde_json::json!({
        "severity": severity,
        "code": code,
        "message": message,
        "file": &**file,
        "line": place.as_ref().map(|place| place.line),
        "column": place.as_ref().map(|place| place.column),
        "case_id": case_id,
        "help": help,
    })
}
