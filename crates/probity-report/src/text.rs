//! What the terminal shows, at most 80 columns wide but for long names.

pub(crate) mod consistency;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use probity_core::{
    figures::{Sheet, Table},
    gate::{GateStatus, percent},
    metrics::{Metrics, Repeats, Verdicts},
    record::{CallError, LaneStatus},
    view::{LaneReport, RunView},
};

pub(crate) use probity_core::figures::shown_interval;

use crate::plain::one_line;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const SO_SO: Style = AnsiColor::Yellow.on_default();
const TITLE: Style = Style::new().bold();

/// Flaky cases and the like that are named; the other reports have them all.
const NAMED: usize = 10;
/// Rows of a table that are shown; the other reports have them all.
const MOST_ROWS: usize = 24;

/// The summary of a run, with colours for terminals that have them.
pub fn render(run: &RunView) -> String {
    let mut text = format!("run {} of {}: {}\n", run.run_id, one_line(&run.suite, 60), run.status);
    for lane in &run.lanes {
        write_lane(&mut text, lane);
    }
    for found in &run.consistency {
        consistency::write(&mut text, &run.short, found);
    }
    if let Some(against) = &run.against {
        text.push_str(&against.text);
    }
    let (errors, results) = run.errors();
    if errors > 0 {
        let run = &run.short;
        let _ = writeln!(
            text,
            "\nended in an error: {errors}; ask them again with --retry-errors {run}"
        );
    }
    if run.locked_out() > 0 {
        let count = run.locked_out();
        let _ =
            writeln!(text, "{count} authentication or quota errors: the results are not usable");
    }
    if run.is_degraded() {
        let (rate, most) = (percent(errors, results), run.max_error_rate * 100.0);
        let _ = writeln!(
            text,
            "{BAD}degraded{BAD:#}: {rate} of the cases ended in an error, more than {most} %"
        );
    }
    text
}

fn write_lane(text: &mut String, report: &LaneReport) {
    let LaneReport { lane, metrics, gates, .. } = report;
    let model = lane.model.as_deref().map(|model| format!(" ({})", one_line(model, 40)));
    let replayed = if lane.replayed { ", replayed from a recording" } else { "" };
    let _ = writeln!(
        text,
        "\n{TITLE}{}{TITLE:#}{}{replayed}",
        one_line(&report.title(), 60),
        model.unwrap_or_default()
    );
    let Verdicts { pass, fail, error, undecided } = metrics.all.verdicts;
    let counted = match (metrics.results(), lane.judging.min_pass) {
        (results, None) if lane.repeat > 1 => {
            format!("{results} of {} answers, {} to a case", lane.planned, lane.repeat)
        }
        (_, None) => format!("{} of {} cases", report.cases(), report.planned()),
        (results, Some(least)) => {
            format!("{results} of {} answers, {least} of {} make a case", lane.planned, lane.repeat)
        }
    };
    let _ =
        writeln!(text, "  {counted}: {pass} pass, {fail} fail, {error} error{}", and(undecided));
    if let Some(interval) = metrics.interval {
        let (rate, range) = (percent(pass, pass + fail), shown_interval(interval));
        let grouped = if metrics.is_clustered { ", cases that belong together" } else { "" };
        let _ = writeln!(text, "  passed: {rate} of those judged (95 % CI {range}{grouped})");
    }
    write_categories(text, metrics);
    let classes: Vec<String> = (metrics.all.classes.iter())
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| format!("{count} {class}"))
        .collect();
    let _ = writeln!(text, "  classes: {}", classes.join(", "));
    write_scores(text, metrics);
    if let Some(repeats) = &metrics.repeats {
        write_repeats(text, repeats);
    }
    if let Some(figures) = &metrics.figures {
        write_sheet(text, &figures.sheet());
    }
    let _ = writeln!(text, "  {}", spent(metrics));
    if let Some(latency) = &metrics.latency {
        let [p50, p95, p99] = [latency.p50, latency.p95, latency.p99].map(millis);
        let _ = writeln!(text, "  latency: {p50} median, {p95} p95, {p99} p99");
    }
    if let Some(status) = told(report) {
        let _ = writeln!(text, "  {status}");
    }
    if !metrics.unexpected_passes.is_empty() {
        let names = listed(metrics.unexpected_passes.iter().map(String::as_str));
        let _ = writeln!(text, "  known to fail, and passed: {names}");
    }
    for outcome in gates {
        let (style, word) = match outcome.status {
            GateStatus::Pass => (GOOD, "pass"),
            GateStatus::Empty => (SO_SO, "n/a"),
            GateStatus::Warn => (SO_SO, "warn"),
            GateStatus::Fail => (BAD, "FAIL"),
        };
        let _ = writeln!(text, "  gate {style}{word:<4}{style:#} {}", outcome.sentence());
    }
}

fn write_sheet(text: &mut String, sheet: &Sheet) {
    for (name, value) in &sheet.facts {
        let _ = writeln!(text, "  {name}: {}", one_line(value, 120));
    }
    for table in &sheet.tables {
        write_table(text, table);
    }
    for (about, message) in sheet.notices.iter().take(NAMED) {
        let (about, message) = (one_line(about, 60), one_line(message, 200));
        let _ = writeln!(text, "  {SO_SO}note{SO_SO:#} {about}: {message}");
    }
    let more = sheet.notices.len().saturating_sub(NAMED);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more notes");
    }
}

/// Names to the left, figures to the right, as wide as they have to be.
fn write_table(text: &mut String, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = std::iter::once(&table.head)
        .chain(table.rows.iter().take(MOST_ROWS))
        .map(|row| row.iter().map(|cell| one_line(cell, 44)).collect())
        .collect();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|it| it.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let _ = writeln!(text, "  {}:", one_line(&table.title, 60));
    for row in &rows {
        let mut line = String::from("    ");
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match at {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let more = table.rows.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more rows, in the other reports");
    }
}

/// Named scores with their means; those of a single check that everybody knows are the rate again.
fn write_scores(text: &mut String, metrics: &Metrics) {
    if metrics.scores.len() < 2 {
        return;
    }
    let width = metrics.scores.keys().map(|it| one_line(it, 30).chars().count()).max().unwrap_or(0);
    for (name, score) in metrics.scores.iter().take(MOST_ROWS) {
        let mean = score.mean.map_or_else(|| "n/a".to_owned(), |mean| format!("{mean:.3}"));
        let range = score.interval.map(|it| format!(" (95 % CI {:.3} to {:.3})", it.low, it.high));
        let _ = writeln!(
            text,
            "  score {:<width$} {mean}{}, {} of {} passed",
            one_line(name, 30),
            range.unwrap_or_default(),
            score.passed,
            score.count + score.unscored
        );
    }
    let more = metrics.scores.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more scores, in the other reports");
    }
}

/// A count of undecided results behind others.
fn and(undecided: u64) -> String {
    if undecided > 0 { format!(", {undecided} undecided") } else { String::new() }
}

fn write_categories(text: &mut String, metrics: &Metrics) {
    for (category, slice) in &metrics.categories {
        let Verdicts { pass, fail, error, undecided } = slice.verdicts;
        let rate = percent(pass, pass + fail);
        let judged = pass + fail;
        let errors = if error > 0 { format!(", {error} error") } else { String::new() };
        let name = category.as_str();
        let more = and(undecided);
        let _ = writeln!(text, "    {name:<12} {rate:>8}  {pass} of {judged}{errors}{more}");
    }
}

fn write_repeats(text: &mut String, repeats: &Repeats) {
    if let (Some(mean), Some(deviation)) = (repeats.mean, repeats.deviation) {
        let (mean, deviation) = (mean * 100.0, deviation * 100.0);
        let rounds = repeats.most;
        let _ = writeln!(
            text,
            "  {rounds} rounds: mean {mean:.1} %, sample deviation {deviation:.1} points"
        );
    }
    let tries: Vec<String> = repeats
        .by_tries
        .iter()
        .filter(|it| it.k > 1)
        .map(|it| {
            let (any, all) = (it.any * 100.0, it.all * 100.0);
            format!("pass@{} {any:.1} %, pass^{} {all:.1} %", it.k, it.k)
        })
        .collect();
    if !tries.is_empty() {
        let _ = writeln!(text, "  {}", tries.join("; "));
    }
    if !repeats.flaky.is_empty() {
        let names = repeats
            .flaky
            .iter()
            .map(|it| format!("{} ({} of {})", one_line(&it.case_id, 32), it.passed, it.judged));
        let names: Vec<String> = names.collect();
        let count = repeats.flaky.len();
        let _ = writeln!(text, "  flaky: {count}: {}", listed(names.iter().map(String::as_str)));
    }
}

/// The first few of some names.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut list: Vec<String> = names.take(NAMED).map(|name| one_line(name, 40)).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    list.join(", ")
}

/// What a lane used.
pub fn spent(metrics: &Metrics) -> String {
    let mut text = format!("{} calls", metrics.calls);
    if metrics.cached > 0 {
        let _ = write!(text, ", {} answers from the cache", metrics.cached);
    }
    if metrics.replayed > 0 {
        let _ = write!(text, ", {} answers from a recording", metrics.replayed);
    }
    if metrics.input_tokens + metrics.output_tokens > 0 {
        let estimated = if metrics.estimated > 0 { " (estimated)" } else { "" };
        let (input, output) = (metrics.input_tokens, metrics.output_tokens);
        let _ = write!(text, ", {input} tokens in, {output} out{estimated}");
    }
    if metrics.priced > 0 {
        let estimated = if metrics.estimated > 0 { " (estimated)" } else { "" };
        let _ = write!(text, ", ${:.4}{estimated}", metrics.cost_usd);
    }
    text
}

/// What there is to say about a lane that did not come to its end.
pub fn told(report: &LaneReport) -> Option<String> {
    let status = report.status.as_ref()?;
    let cut = match report.aborted {
        0 => String::new(),
        1 => "; 1 case was cut off".to_owned(),
        count => format!("; {count} cases were cut off"),
    };
    let text = match status {
        LaneStatus::Complete => return None,
        LaneStatus::FailFast { reason, permanent } => {
            let what = report.error.as_ref().map_or_else(|| reason.clone(), CallError::sentence);
            let kind = if *permanent { "a permanent error" } else { "a transient error" };
            let advice = report.error.as_ref().and_then(CallError::advice);
            let advice = advice.map(|it| format!("; {it}")).unwrap_or_default();
            format!("stopped by {kind}, again and again: {}{advice}", one_line(&what, 300))
        }
        LaneStatus::Skipped { reason } => {
            format!("skipped: what it needs was given up before: {}", one_line(reason, 200))
        }
        LaneStatus::Budget { reason } => format!("stopped by the budget: {reason}"),
        LaneStatus::Decided { gates, reason } => {
            return Some(format!("stopped: the gates are decided ({}), {reason}", gates.as_str()));
        }
        LaneStatus::Interrupted => "interrupted".to_owned(),
        LaneStatus::TimedOut { reason } => format!("stopped: {}", one_line(reason, 200)),
        LaneStatus::GaveUp { reason } => format!("given up by itself: {}", one_line(reason, 200)),
        LaneStatus::Broken { reason } => format!("broken: {}", one_line(reason, 200)),
    };
    Some(text + &cut)
}

/// A time that was reckoned.
pub fn millis(value: f64) -> String {
    match value.max(0.0).round() {
        value if value < 1000.0 => format!("{value}ms"),
        value => format!("{:.2}s", value / 1000.0),
    }
}
