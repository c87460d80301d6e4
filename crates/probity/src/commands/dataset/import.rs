//! `probity dataset import`: another tool's cases, and a report of what was left behind.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use probity_core::{case::TestCase, criteria::CriteriaProblem, located::Step};
use probity_grade::Compiler;
use probity_load::import::{Imported, Note, Origin, import};

use super::{counted, create, rules, write_failure};
use crate::{
    cli::ImportArg, exit::Exit, failure::Failure, output::refuse_same_file, printer::Printer,
};

/// Ids shown for each kind of note.
const SHOWN: usize = 3;

pub(super) struct Options<'a> {
    pub(super) from: ImportArg,
    pub(super) prompt: Option<&'a str>,
    pub(super) force: bool,
}

pub(super) fn run(
    options: &Options<'_>,
    input: &Path,
    output: &Path,
    printer: &Printer,
) -> Result<Exit, Failure> {
    refuse_same_file(&[input, output])?;
    let imported = import(origin(options.from), input, options.prompt)
        .map_err(|error| Failure::new("the file cannot be imported").because(error))?;
    let Imported { cases, mut notes, .. } = imported;
    let folder = input.parent().unwrap_or(Path::new(""));
    let cases = compilable(cases, folder, &mut notes);
    if cases.is_empty() {
        show_notes(&notes, printer);
        return Err(Failure::new("no case could be converted"));
    }
    let mut writer = create(output, options.force, None)?;
    for case in &cases {
        writer.case(case).map_err(|error| write_failure(output, error))?;
    }
    writer.finish().map_err(|error| write_failure(output, error))?.finish()?;
    show_notes(&notes, printer);
    let without = cases.iter().filter(|case| !case.has_criteria()).count();
    let mut line = format!("{}: {}", output.display(), counted(cases.len(), "case"));
    if without > 0 {
        let _ = write!(line, ", {without} without a criterion");
    }
    printer.note(&line);
    Ok(Exit::Success)
}

fn origin(from: ImportArg) -> Origin {
    match from {
        ImportArg::Caro => Origin::Caro,
        ImportArg::Failproof => Origin::FailProof,
        ImportArg::Artisan => Origin::Artisan,
        ImportArg::Promptfoo => Origin::Promptfoo,
        ImportArg::Csv => Origin::PlainCsv,
    }
}

/// Takes out the criteria that do not compile, such as a pattern in another dialect.
fn compilable(cases: Vec<TestCase>, folder: &Path, notes: &mut Vec<Note>) -> Vec<TestCase> {
    let rules = rules::without_suite([folder]);
    let mut compiler = Compiler::new(&rules);
    let mut usable = Vec::with_capacity(cases.len());
    for mut case in cases {
        while let Err(problems) = compiler.compile(&case) {
            let CriteriaProblem { path, message, .. } = &problems[0];
            let what = match path.as_slice() {
                [Step::Key("assert"), Step::Index(at), ..] => {
                    let removed = case.criteria.assertions.remove(*at);
                    format!("assertion `{}` is left out: {message}", removed.kind)
                }
                _ => {
                    case.criteria = probity_core::criteria::Criteria::default();
                    format!("the criterion is left out: {message}")
                }
            };
            notes.push(Note { case_id: Some(case.id.clone()), what });
        }
        usable.push(case);
    }
    usable
}

/// One line for each kind of note, with how often and where first.
fn show_notes(notes: &[Note], printer: &Printer) {
    let mut kinds: Vec<&str> = Vec::new();
    let mut cases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Note { case_id, what } in notes {
        if !cases.contains_key(what.as_str()) {
            kinds.push(what);
        }
        cases.entry(what).or_default().extend(case_id.as_deref());
    }
    for what in kinds {
        let ids = &cases[what];
        match ids.len() {
            0 => printer.note(&format!("note: {what}")),
            count => {
                let shown = ids[..count.min(SHOWN)].join(", ");
                let more = if count > SHOWN { ", …" } else { "" };
                printer.note(&format!("note: {what} ({}: {shown}{more})", counted(count, "case")));
            }
        }
    }
}
