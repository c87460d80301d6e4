//! `probity check evaluation`: whether files of evaluation results add up.

use std::{fmt::Write as _, fs, path::PathBuf};

use probity_core::evaluation::EvaluationResult;
use probity_report::plain::one_line;

use crate::{exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(files: &[PathBuf], printer: &Printer) -> Result<Exit, Failure> {
    let mut text = String::new();
    let mut sound = true;
    for path in files {
        let bytes = fs::read(path).map_err(|error| Failure::read(path, error))?;
        let file = path.display();
        match EvaluationResult::read(&String::from_utf8_lossy(&bytes)) {
            Ok(results) => {
                for EvaluationResult { runner, backend, passed, total, .. } in &results {
                    let title = one_line(&format!("{runner} on {backend}"), 80);
                    let _ = writeln!(text, "{file}: {title}: {passed} of {total} passed");
                }
            }
            Err(problems) => {
                sound = false;
                problems
                    .iter()
                    .for_each(|it| printer.note(&format!("{file}: {}", one_line(it, 300))));
            }
        }
    }
    printer.show(&text)?;
    Ok(if sound { Exit::Success } else { Exit::Usage })
}
