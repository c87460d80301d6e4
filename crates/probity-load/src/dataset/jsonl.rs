//! Datasets in JSON Lines.

use std::{
    cell::Cell,
    io::{self, BufRead},
};

use super::{Intake, json::report_lone_surrogates};
use crate::{
    case::Findings,
    lines::{LONGEST_LINE, Lines},
};
use probity_core::{
    json::{Limits, parse_located},
    located::{Node, NodeValue},
    problem::Source,
};

/// Reads a case a line. Blank lines and lines that start with `#` are passed over, and
/// a line that holds nothing but `version` states the version of the dataset.
pub(super) fn read(
    stream: impl BufRead,
    stop: &Cell<bool>,
    intake: &mut Intake<'_>,
) -> io::Result<()> {
    let mut lines = Lines::new(stream);
    while !stop.get()
        && let Some(line) = lines.next_line()?
    {
        if line.too_long {
            let text = String::from_utf8_lossy(line.bytes);
            let message = format!("the line is longer than {} MiB", LONGEST_LINE >> 20);
            intake.error_at(&Source::part(&text, line.number), &(0..1), "too-large", message);
            continue;
        }
        match std::str::from_utf8(line.bytes) {
            Ok(text) => read_line(&Source::part(text, line.number), intake),
            Err(error) => intake.not_utf8(line.bytes, error.valid_up_to(), line.number),
        }
    }
    Ok(())
}

fn read_line(source: &Source<'_>, intake: &mut Intake<'_>) {
    let text = source.text().trim_ascii();
    if text.is_empty() || text.starts_with('#') {
        return;
    }
    match parse_located(source.text(), &Limits::default()) {
        Ok(node) => match stated_version(&node) {
            Some(version) => {
                let mut findings = Findings::default();
                intake.version(version, &mut findings);
                intake.findings(source, findings, None);
            }
            None => {
                report_lone_surrogates(source, intake);
                intake.case(source, &node);
            }
        },
        Err(error) => {
            intake.error_at(
                source,
                &(error.offset..error.offset + 1),
                "json",
                error.kind.to_string(),
            );
        }
    }
}

fn stated_version(node: &Node) -> Option<&Node> {
    match &node.value {
        NodeValue::Object(entries) if entries.len() == 1 => node.get("version"),
        NodeValue::Null
        | NodeValue::Bool(_)
        | NodeValue::Number(_)
        | NodeValue::String(_)
        | NodeValue::Array(_)
        | NodeValue::Object(_) => None,
    }
}
