//! The cases that did not pass, with their reasons.

use std::{fmt::Write as _, io};

use anstyle::Style;
use probity_core::{
    classification::Verdict,
    record::CaseRecord,
    view::{Found, LaneReport, Wanted},
};

use super::{Extent, Page};
use crate::{
    palette::{Tint, shown_class},
    plain::{columns, counted, fitted, flush_left, shell_word},
};

/// Columns of an id, and of the name of a lane.
const MOST_OF_NAME: usize = 36;
/// Columns that a reason gets at least.
const LEAST_OF_REASON: usize = 24;

/// The cases that failed, those that ended in an error, and those that nothing decides.
pub(super) fn write(text: &mut String, page: &Page<'_>) -> io::Result<()> {
    for verdict in [Verdict::Fail, Verdict::Error, Verdict::Undecided] {
        let found = find(page, verdict)?;
        if found.iter().any(|(_, it)| it.count() + it.known > 0) {
            write_section(text, page, verdict, &found);
        }
    }
    Ok(())
}

/// The first case that failed, or else ended in an error.
pub(super) fn example(page: &Page<'_>) -> Option<String> {
    [Verdict::Fail, Verdict::Error].into_iter().find_map(|verdict| {
        page.run.lanes.iter().enumerate().find_map(|(at, report)| {
            let known = &report.lane.judging.known_failures;
            let found = page.cases.find(at, &Wanted { verdict, known, most: 1 }).ok()?;
            Some(found.first.first()?.case_id.clone())
        })
    })
}

fn find<'p>(page: &Page<'p>, verdict: Verdict) -> io::Result<Vec<(&'p LaneReport, Found)>> {
    let most = most(page);
    let lanes = page.run.lanes.iter().enumerate().map(|(at, report)| {
        let known = &report.lane.judging.known_failures;
        Ok((report, page.cases.find(at, &Wanted { verdict, known, most })?))
    });
    lanes.collect()
}

/// Cases that are listed.
fn most(page: &Page<'_>) -> usize {
    match page.extent {
        Extent::Brief => 10,
        Extent::Full => 50,
    }
}

fn write_section(
    text: &mut String,
    page: &Page<'_>,
    verdict: Verdict,
    found: &[(&LaneReport, Found)],
) {
    let all: u64 = found.iter().map(|(_, it)| it.count()).sum();
    let known: u64 = found.iter().map(|(_, it)| it.known).sum();
    let style = Tint::of_verdict(verdict).style().bold();
    let _ = writeln!(text, "\n{style}{}{style:#}", title(page, verdict, all, known));
    let listed = chosen(found, most(page));
    let label = |report: &LaneReport| match page.has_several_lanes() {
        true => page.label(report),
        false => String::new(),
    };
    let row = |(report, case): &(&LaneReport, &CaseRecord)| Row {
        style: style_of(case),
        id: case.case_id.clone(),
        lane: label(report),
        why: flat(&case.why()),
    };
    let rows: Vec<Row> = listed.iter().map(row).collect();
    write_rows(text, &rows, page.width);
    let more = all - rows.len() as u64;
    let short = &page.run.short;
    match (more, page.extent) {
        (0, _) => {}
        (_, Extent::Brief) => {
            let _ = writeln!(text, "  and {more} more; see one: probity show {short} CASE");
        }
        (_, Extent::Full) => {
            let _ = writeln!(text, "  and {more} more; see all: probity show {short} --json");
        }
    }
    if verdict == Verdict::Error && all > 0 && page.run.imported.is_none() {
        let suite = suite(page);
        let _ = writeln!(text, "  ask them again: probity run{suite} --retry-errors {short}");
    }
}

/// The suite as a word of a command; the usual one needs not be named.
pub(super) fn suite(page: &Page<'_>) -> String {
    match page.suite {
        Some("probity.toml") => String::new(),
        Some(suite) => format!(" {}", shell_word(suite)),
        None => " SUITE".to_owned(),
    }
}

fn title(page: &Page<'_>, verdict: Verdict, all: u64, known: u64) -> String {
    let cases = counted(all, "case");
    let repeated = page.run.lanes.iter().any(|it| it.lane.repeat > 1);
    let what = match (verdict, repeated) {
        (Verdict::Pass, _) => "passed",
        (Verdict::Fail, false) => "failed",
        (Verdict::Fail, true) => "failed at least once",
        (Verdict::Error, false) => "ended in an error",
        (Verdict::Error, true) => "ended in an error at least once",
        (Verdict::Undecided, _) => "could not be decided",
    };
    match known {
        0 => format!("{cases} {what}"),
        1 => format!("{cases} {what}, and 1 that is known to"),
        _ => format!("{cases} {what}, and {known} that are known to"),
    }
}

/// The cases that are shown: the first of each lane, then the second, and so on, lane by lane.
fn chosen<'f>(
    found: &'f [(&'f LaneReport, Found)],
    most: usize,
) -> Vec<(&'f LaneReport, &'f CaseRecord)> {
    let longest = found.iter().map(|(_, it)| it.first.len()).max().unwrap_or(0);
    let places = (0..longest).flat_map(|at| (0..found.len()).map(move |lane| (lane, at)));
    let there = places.filter(|(lane, at)| *at < found[*lane].1.first.len());
    let mut places: Vec<(usize, usize)> = there.take(most).collect();
    places.sort_unstable();
    places.into_iter().map(|(lane, at)| (found[lane].0, &found[lane].1.first[at])).collect()
}

/// A text of several lines in one.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A case as it is listed.
struct Row {
    style: Style,
    id: String,
    lane: String,
    why: String,
}

/// The colour of its class.
fn style_of(case: &CaseRecord) -> Style {
    let class = shown_class(case.verdict, case.class);
    class.map_or_else(|| Tint::of_verdict(case.verdict), Tint::of_class).style()
}

/// Id, lane and reason in columns. A reason gets what is left of the width.
fn write_rows(text: &mut String, rows: &[Row], width: usize) {
    let room = width.saturating_sub(LEAST_OF_REASON + 6) / 2;
    let column = |of: fn(&Row) -> &String| {
        let longest = rows.iter().map(|row| columns(of(row))).max().unwrap_or(0);
        longest.min(MOST_OF_NAME.min(room))
    };
    let (of_id, of_lane) = (column(|row| &row.id), column(|row| &row.lane));
    for Row { style, id, lane, why } in rows {
        let id = flush_left(&fitted(id, of_id), of_id);
        let lane = match of_lane {
            0 => String::new(),
            _ => format!("  {}", flush_left(&fitted(lane, of_lane), of_lane)),
        };
        let left = width.saturating_sub(of_id + columns(&lane) + 4).max(LEAST_OF_REASON);
        let _ = writeln!(text, "  {style}{id}{style:#}{lane}  {}", fitted(why, left));
    }
}
