//! Datasets in JSON.

use super::Intake;
use probity_core::{
    json::{Limits, parse_located},
    problem::Source,
};

/// Half of a pair of `\u` escapes stands for no character, and would be sent as another one.
pub(super) fn report_lone_surrogates(source: &Source<'_>, intake: &mut Intake<'_>) {
    let text = source.text();
    let unit = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(escape, 16).ok()
    };
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text.as_bytes()[at..]) {
        let start = at + found;
        let length = match unit(start) {
            Some(0xd800..=0xdbff) if matches!(unit(start + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                let message = format!(
                    "`{}` is half of a pair of escapes, and no character",
                    &text[start..start + 6]
                );
                intake.error_at(source, &(start..start + 6), "lone-surrogate", message);
                6
            }
            Some(_) => 6,
            None => 2,
        };
        at = (start + length).min(text.len());
    }
}

/// Reads a list of cases, or a table with `version` and `test_cases`.
pub(super) fn read(text: &str, intake: &mut Intake<'_>) {
    let source = Source::file(text);
    let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
    match parse_located(text, &limits) {
        Ok(root) => {
            report_lone_surrogates(&source, intake);
            intake.document(&source, &root);
        }
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
