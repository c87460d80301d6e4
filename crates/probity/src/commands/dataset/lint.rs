//! `probity dataset lint`: what is allowed and still probably wrong.

use std::path::PathBuf;

use probity_grade::internal::lint::{Lint, LintFinding};

use super::{counted, read_cases};
use crate::{exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(files: &[PathBuf], strict: bool, printer: &Printer) -> Result<Exit, Failure> {
    let mut lint = Lint::default();
    let summary = read_cases(files, printer, |case| lint.add(&case))?;
    let findings = lint.finish();
    let mut text = String::new();
    for LintFinding { code, case_id, message } in &findings {
        text.extend([case_id.as_str(), ": ", message, " [", code, "]\n"]);
    }
    let found = counted(findings.len(), "finding");
    text.extend([&counted(summary.cases, "case"), ", ", &found, "\n"].map(|it: &str| it));
    printer.show(&text)?;
    Ok(if strict && !findings.is_empty() { Exit::Usage } else { Exit::Success })
}
