//! `probity check evaluation`: whether files of evaluation results add up.

use std::{fmt::Write as _, fs, path::PathBuf};

use probity_core::evaluation::{CategoryResult, WrittenResult};
use probity_report::plain::one_line;

use crate::{exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(files: &[PathBuf], printer: &Printer) -> Result<Exit, Failure> {
    let mut text = String::new();
    let mut sound = true;
    for path in files {
        let bytes = fs::read(path).map_err(|error| Failure::read(path, error))?;
        let file = path.display();
        match WrittenResult::read(&String::from_utf8_lossy(&bytes)) {
            Ok(results) => {
                for result in &results {
                    let (title, counts) = (one_line(&result.title(), 80), counts(result));
                    let _ = writeln!(text, "{file}: {title}: {counts}");
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

fn counts(result: &WrittenResult) -> String {
    match result {
        WrittenResult::Whole(it) => format!("{} of {} passed", it.passed, it.total),
        WrittenResult::Brief(it) => {
            let (mut right, mut all) = (0_u64, 0_u64);
            for CategoryResult { passed, total, .. } in it.per_category.values() {
                right = right.saturating_add(*passed);
                all = all.saturating_add(*total);
            }
            format!("{right} of {all} passed in its categories (it has no other counts)")
        }
    }
}
