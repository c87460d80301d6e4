//! `probity dataset stats`: what a dataset is made of.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    path::PathBuf,
};

use probity_load::dataset::{Stats, Summary};
use serde_json::json;

use super::{counted, read_cases};
use crate::{exit::Exit, failure::Failure, printer::Printer};

/// Rows of a table that may have many.
const ROWS: usize = 20;
/// Fewer cases for a command than this are a gap.
const FEW: usize = 3;

pub(super) fn run(files: &[PathBuf], json: bool, printer: &Printer) -> Result<Exit, Failure> {
    let mut stats = Stats::default();
    let summary = read_cases(files, printer, |case| stats.add(&case))?;
    match json {
        true => {
            let mut value = serde_json::to_value(&stats).unwrap_or_default();
            value["version"] = json!(summary.version);
            value["digest"] = json!(summary.digest);
            Printer::emit(&format!("{value:#}\n"))?;
        }
        false => printer.show(&table(&stats, &summary))?,
    }
    Ok(Exit::Success)
}

fn table(stats: &Stats, summary: &Summary) -> String {
    let mut text = format!("{}\n", counted(stats.cases, "case"));
    if let Some(version) = &summary.version {
        text.extend(["version   ", version, "\n"]);
    }
    text.extend(["digest    ", &summary.digest.to_string(), "\n"]);
    let mean = stats.prompt_characters / stats.cases.max(1);
    let _ =
        writeln!(text, "prompts   {mean} characters on average, {} at most", stats.longest_prompt);
    section(&mut text, "by category", &stats.categories, stats.without_category);
    section(&mut text, "by difficulty", &stats.difficulties, stats.without_difficulty);
    section(&mut text, "by tag", &stats.tags, 0);
    section(&mut text, "decided by", &stats.criteria, 0);
    section(&mut text, "by command", &stats.commands, 0);
    let few: Vec<&str> = stats
        .commands
        .iter()
        .filter(|(_, count)| **count < FEW)
        .map(|(name, _)| name.as_str())
        .collect();
    if !few.is_empty() {
        let shown = few.iter().take(ROWS).copied().collect::<Vec<_>>().join(", ");
        let more = if few.len() > ROWS { ", …" } else { "" };
        let _ = writeln!(text, "\nfewer than {FEW} cases for: {shown}{more}");
    }
    if stats.without_criteria_count > 0 {
        let shown = stats.without_criteria.join(", ");
        let more = stats.without_criteria_count - stats.without_criteria.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let count = counted(stats.without_criteria_count, "case");
        let _ = writeln!(text, "\nwithout a criterion: {count}: {shown}{more}");
    }
    text
}

/// A table of counts, the largest first, and of the cases that have no name there.
fn section<K: Display + Ord>(
    text: &mut String,
    title: &str,
    counts: &BTreeMap<K, usize>,
    without: usize,
) {
    if counts.is_empty() {
        return;
    }
    let mut rows: Vec<(&K, &usize)> = counts.iter().collect();
    rows.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let _ = writeln!(text, "\n{title}");
    for (name, count) in rows.iter().take(ROWS) {
        let _ = writeln!(text, "  {count:>7}  {name}");
    }
    if rows.len() > ROWS {
        let _ = writeln!(text, "           and {} more", rows.len() - ROWS);
    }
    if without > 0 {
        let _ = writeln!(text, "  {without:>7}  (without)");
    }
}
