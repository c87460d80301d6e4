//! Datasets in JSON.

use super::Intake;
use probity_core::{
    json::{Limits, parse_located},
    problem::Source,
};

/// Reads a list of cases, or a table with `version` and `test_cases`.
pub(super) fn read(text: &str, intake: &mut Intake<'_>) {
    let source = Source::file(text);
    let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
    match parse_located(text, &limits) {
        Ok(root) => intake.document(&source, &root),
        Err(error) => {
            intake.error_at(
                &source,
                &(error.offset..error.offset + 1),
                "json",
                error.kind.to_string(),
            );
        }
    }
}
