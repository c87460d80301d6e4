//! `probity dataset validate`: every problem in one pass.

use std::{io::Write as _, path::PathBuf, slice};

use probity_core::{
    problem::{Problem, Severity},
    visible::safe,
};
use probity_load::dataset::{Item, Summary};
use serde_json::json;

use super::{counted, problem_json, read_checked};
use crate::{exit::Exit, failure::Failure, printer::Printer};

pub(super) struct Options {
    pub(super) strict: bool,
    pub(super) require_criteria: bool,
    pub(super) json: bool,
}

pub(super) fn run(
    files: &[PathBuf],
    options: &Options,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let mut output = Printer::data();
    let mut sound = true;
    for file in files {
        let mut without_criteria: Vec<String> = Vec::new();
        let mut undecided = 0;
        let mut written = Ok(());
        let mut shown = printer.problems();
        let mut report = |problem: &Problem| match options.json {
            true => {
                let line = writeln!(output, "{}", problem_json(problem));
                if written.is_ok() {
                    written = line;
                }
            }
            false => shown.show(problem),
        };
        let mut summary = read_checked(slice::from_ref(file), &mut |item| match item {
            Item::Problem(problem) => report(&problem),
            Item::Case(at) if !at.case.has_criteria() => {
                undecided += 1;
                match options.require_criteria {
                    true => report(&no_criterion(file, at.line, &at.case.id)),
                    false if without_criteria.len() < SHOWN_IDS => {
                        without_criteria.push(at.case.id);
                    }
                    false => {}
                }
            }
            Item::Case(_) => {}
        });
        if undecided > 0 && !options.require_criteria {
            report(&self::undecided(file, undecided, &without_criteria));
            summary.warnings += 1;
        }
        written.map_err(Failure::output)?;
        drop(shown);
        let errors = summary.errors + if options.require_criteria { undecided } else { 0 };
        let accepted = errors == 0 && !(options.strict && summary.warnings > 0);
        sound &= accepted;
        let line = match options.json {
            true => summary_json(file, &summary, errors, accepted).to_string(),
            false => safe(&summary_line(file, &summary, errors, accepted)).into_owned(),
        };
        writeln!(output, "{line}").map_err(Failure::output)?;
        output.flush().map_err(Failure::output)?;
    }
    Ok(if sound { Exit::Success } else { Exit::Usage })
}

/// So many ids of cases are named in a warning.
const SHOWN_IDS: usize = 5;

/// One warning for all of them: most often it is the same slip in each.
pub(in crate::commands) fn undecided(
    file: &std::path::Path,
    count: usize,
    first: &[String],
) -> Problem {
    let first = &first[..first.len().min(SHOWN_IDS)];
    let more = if count > first.len() { ", …" } else { "" };
    let verb = if count == 1 { "has" } else { "have" };
    Problem {
        severity: Severity::Warning,
        code: "no-criterion",
        message: format!(
            "{} {verb} no criterion and will be undecided: {}{more}",
            counted(count, "case"),
            first.join(", ")
        ),
        file: file.display().to_string().into(),
        place: None,
        case_id: None,
        help: Some("say when a reply is right, for example with `expected_response`".to_owned()),
    }
}

fn no_criterion(file: &std::path::Path, line: usize, id: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        code: "no-criterion",
        message: format!("the case at line {line} has no criterion"),
        file: file.display().to_string().into(),
        place: None,
        case_id: Some(id.to_owned()),
        help: Some("say when a reply is right, for example with `expected_response`".to_owned()),
    }
}

fn summary_line(
    file: &std::path::Path,
    summary: &Summary,
    errors: usize,
    accepted: bool,
) -> String {
    let verdict = if accepted { "ok" } else { "not ok" };
    let mut line = format!("{}: {verdict}, {}", file.display(), counted(summary.cases, "case"));
    for (count, noun) in [(errors, "error"), (summary.warnings, "warning")] {
        if count > 0 {
            line.extend([", ", &counted(count, noun)]);
        }
    }
    if accepted {
        line.extend([", digest ", &summary.digest.to_string()[..16]]);
    }
    line
}

fn summary_json(
    file: &std::path::Path,
    summary: &Summary,
    errors: usize,
    accepted: bool,
) -> serde_json::Value {
    json!({
        "file": file.display().to_string(),
        "ok": accepted,
        "version": summary.version,
        "cases": summary.cases,
        "errors": errors,
        "warnings": summary.warnings,
        "digest": accepted.then_some(summary.digest),
    })
}
