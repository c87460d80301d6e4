//! `probity schema`: JSON Schemas of the files that are read and written.
//!
//! They are written by hand, because what a file may hold is a promise and not a by-product
//! of our types. Tests hold them against what the program really reads and writes.

use std::{fmt::Write as _, io::Write as _};

use clap::ValueEnum as _;

use crate::{cli::SchemaName, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(name: Option<SchemaName>, printer: &Printer) -> Result<Exit, Failure> {
    match name {
        Some(name) => Printer::data().write_all(text(name).as_bytes()).map_err(Failure::output)?,
        None => printer.show(&list())?,
    }
    Ok(Exit::Success)
}

const fn text(name: SchemaName) -> &'static str {
    match name {
        SchemaName::Suite => include_str!("../../schemas/suite.json"),
        SchemaName::Case => include_str!("../../schemas/case.json"),
        SchemaName::RunResult => include_str!("../../schemas/run-result.json"),
        SchemaName::Evaluation => include_str!("../../schemas/evaluation.json"),
        SchemaName::Summary => include_str!("../../schemas/summary.json"),
        SchemaName::Event => include_str!("../../schemas/event.json"),
        SchemaName::Baseline => include_str!("../../schemas/baseline.json"),
        SchemaName::Comparison => include_str!("../../schemas/comparison.json"),
        SchemaName::ClassifyInput => include_str!("../../schemas/classify-input.json"),
        SchemaName::Classified => include_str!("../../schemas/classified.json"),
    }
}

/// A line for each.
fn list() -> String {
    let mut list = String::new();
    for value in SchemaName::value_variants().iter().filter_map(SchemaName::to_possible_value) {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(list, "{:<15} {help}", value.get_name());
    }
    list
}
