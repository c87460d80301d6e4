//! What the terminal shows of one lane.

use std::fmt::Write as _;

use probity_core::{
    classification::Class,
    derived::shown,
    figures::{Sheet, Table},
    gate::percent,
    kind::Figures,
    metrics::{Metrics, Repeats, Verdicts},
    opinion::JudgeFigures,
    view::LaneReport,
};

use super::{SO_SO, TITLE, millis, shown_interval, speed, spent, told};
use crate::{
    MOST_CATEGORIES,
    palette::Tint,
    plain::{
        columns, counted, fitted, flush_left, flush_right, folded, name_width, one_line, wrapped,
    },
};

/// Flaky cases and the like that are named; the other reports have them all.
const NAMED: usize = 10;
/// A model is not named in fewer columns.
const LEAST_OF_MODEL: usize = 12;
/// Rows of a table that are shown; the other reports have them all.
const MOST_ROWS: usize = 24;

/// All about a lane but its gates.
pub(super) fn write(text: &mut String, report: &LaneReport, width: usize) {
    write_title(text, report, width);
    text.push_str(&wrapped(&figures(report), width));
    text.push_str(&notes(report, width));
}

fn figures(report: &LaneReport) -> String {
    let mut all = String::new();
    let text = &mut all;
    let LaneReport { lane, metrics, .. } = report;
    let Verdicts { pass, fail, error, undecided } = metrics.all.verdicts;
    let of_planned = match (metrics.results(), lane.judging.min_pass) {
        (results, None) if lane.repeat > 1 => {
            format!("{results} of {} answers, {} to a case", lane.planned, lane.repeat)
        }
        (_, None) => format!("{} of {} cases", report.cases(), report.planned()),
        (results, Some(least)) => {
            format!("{results} of {} answers, {least} of {} make a case", lane.planned, lane.repeat)
        }
    };
    let _ = writeln!(
        text,
        "  {of_planned}: {pass} passed, {fail} failed, {}{}",
        counted(error, "error"),
        and(undecided)
    );
    if let Some(interval) = metrics.interval {
        let (rate, range) = (percent(pass, pass + fail), shown_interval(interval));
        let grouped = if metrics.is_clustered { ", cases that belong together" } else { "" };
        let _ = writeln!(text, "  pass rate: {rate} of those judged (95 % CI {range}{grouped})");
    }
    write_categories(text, metrics);
    write_classes(text, metrics);
    write_scores(text, metrics);
    write_derived(text, metrics);
    if let Some(repeats) = &metrics.repeats {
        write_repeats(text, repeats);
    }
    if let Some(judges) = &metrics.judges {
        write_judges(text, judges);
    }
    if let Some(figures) = &metrics.figures {
        write_sheet(text, &figures.sheet());
    }
    let _ = writeln!(text, "  {}", spent(metrics));
    if let Some(latency) = &metrics.latency {
        let [p50, p95, p99] = [latency.p50, latency.p95, latency.p99].map(millis);
        let _ = writeln!(text, "  latency: {p50} median, {p95} p95, {p99} p99");
    }
    for (name, worker) in &metrics.workers {
        let latency = worker.latency.map_or_else(String::new, |it| {
            format!(", {} median, {} p95", millis(it.p50), millis(it.p95))
        });
        let errors = match worker.errors {
            0 => String::new(),
            errors => format!(", {errors} without a reply"),
        };
        let results = worker.results;
        let _ =
            writeln!(text, "  worker {}: {results} results{errors}{latency}", one_line(name, 80));
    }
    if let Some(ttft) = &metrics.ttft {
        let [p50, p95, p99] = [ttft.p50, ttft.p95, ttft.p99].map(millis);
        let speed = metrics.tokens_per_second.map(|it| format!("; {}", speed(it)));
        let speed = speed.unwrap_or_default();
        let _ = writeln!(text, "  first token: {p50} median, {p95} p95, {p99} p99{speed}");
    }
    all
}

/// What a table over several lanes has no room for; nothing of a lane about which there is no more to say.
pub(super) fn write_rest(text: &mut String, report: &LaneReport, width: usize) {
    let mut rest = String::new();
    let sheet = report.metrics.figures.as_ref().map(Figures::sheet);
    if let Some(sheet) = sheet.filter(|it| !it.only_in_full) {
        write_sheet(&mut rest, &sheet);
    }
    write_derived(&mut rest, &report.metrics);
    if let Some(repeats) = &report.metrics.repeats {
        write_flaky(&mut rest, repeats);
    }
    if let Some(judges) = &report.metrics.judges {
        write_judges(&mut rest, judges);
    }
    rest.push_str(&notes(report, width));
    if !rest.is_empty() {
        write_title(text, report, width);
        text.push_str(&wrapped(&rest, width));
    }
}

fn write_title(text: &mut String, report: &LaneReport, width: usize) {
    let lane = &report.lane;
    let title = one_line(&report.title(), 60);
    let origin = match (&lane.imported, lane.replayed) {
        (Some(tool), _) => format!(", imported from {}", one_line(tool, 30)),
        (None, true) => ", replayed from a recording".to_owned(),
        (None, false) => String::new(),
    };
    let left = width.saturating_sub(columns(&title) + origin.len() + 3);
    let model = lane.model.as_deref().filter(|_| left >= LEAST_OF_MODEL);
    let model = model.map(|model| format!(" ({})", fitted(model, left)));
    let _ = writeln!(text, "\n{TITLE}{title}{TITLE:#}{}{origin}", model.unwrap_or_default());
}

/// How it ended, unless that was as planned, and what to look at.
fn notes(report: &LaneReport, width: usize) -> String {
    let mut text = String::new();
    if let Some(status) = told(report) {
        let status = folded(&status, width.saturating_sub(2), "    ");
        let _ = writeln!(text, "  {SO_SO}{status}{SO_SO:#}");
    }
    let passes = &report.metrics.unexpected_passes;
    if !passes.is_empty() {
        let names = listed(passes.iter().map(String::as_str));
        let _ = writeln!(text, "  known to fail, and passed: {names}");
    }
    text
}

/// How far judges agree with each other and with themselves.
fn write_judges(text: &mut String, figures: &JudgeFigures) {
    let JudgeFigures { judges, shared, unanimous, kappa, repeated, flipped, failed } = figures;
    let names = one_line(&judges.join(", "), 100);
    if *shared > 0 {
        let kappa = kappa.map_or_else(|| "not defined".to_owned(), |it| format!("{it:.2}"));
        let share = percent(*unanimous, *shared);
        let _ = writeln!(
            text,
            "  judges {names}: all agree on {unanimous} of {shared} ({share}), kappa {kappa}"
        );
    }
    if *repeated > 0 {
        let share = percent(*flipped, *repeated);
        let _ = writeln!(
            text,
            "  judge noise: {flipped} of {repeated} answers ({share}) are not what the same judge \
             says most often"
        );
    }
    if *failed > 0 {
        let (answers, are) = (counted(*failed, "answer"), if *failed == 1 { "is" } else { "are" });
        let _ = writeln!(text, "  {answers} of judges {are} missing");
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
        rows.iter().filter_map(|row| row.get(column)).map(|it| columns(it)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let _ = writeln!(text, "  {}:", one_line(&table.title, 60));
    for row in &rows {
        let mut line = String::from("    ");
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match at {
                0 => write!(line, "{}", flush_left(cell, *width)),
                _ => write!(line, "  {}", flush_right(cell, *width)),
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
    let width = metrics.scores.keys().map(|it| columns(&one_line(it, 30))).max().unwrap_or(0);
    for (name, figures) in metrics.scores.iter().take(MOST_ROWS) {
        let score = figures.summary;
        let mean = score.mean.map_or_else(|| "n/a".to_owned(), |mean| format!("{mean:.3}"));
        let range = score.interval.map(|it| format!(" (95 % CI {:.3} to {:.3})", it.low, it.high));
        let _ = writeln!(
            text,
            "  score {} {mean}{}, {} of {} passed",
            flush_left(&one_line(name, 30), width),
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

/// Figures that the suite derives, and why one has no value.
fn write_derived(text: &mut String, metrics: &Metrics) {
    let all = metrics.derived();
    let width = all.iter().map(|it| columns(&one_line(&it.name, 30))).max().unwrap_or(0);
    for figure in all.iter().take(MOST_ROWS) {
        let value = match &figure.value {
            Ok(value) => shown(*value),
            Err(why) => format!("n/a: {}", one_line(why, 120)),
        };
        let name = flush_left(&one_line(&figure.name, 30), width);
        let _ = writeln!(text, "  derived {name} {value}");
    }
    let more = all.len().saturating_sub(MOST_ROWS);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more derived figures, in the other reports");
    }
}

/// What the replies are, unless the verdicts say the same.
fn write_classes(text: &mut String, metrics: &Metrics) {
    let classes = &metrics.all.classes;
    let plain = [Class::Pass, Class::Fail];
    if classes.iter().all(|(class, count)| count == 0 || plain.contains(&class)) {
        return;
    }
    let some = classes.iter().filter(|(_, count)| *count > 0);
    let named = some.map(|(class, count)| {
        let style = Tint::of_class(class).style();
        format!("{style}`{class}`{style:#} {count}")
    });
    let named: Vec<String> = named.collect();
    let _ = writeln!(text, "  by class: {}", named.join(", "));
}

/// A count of undecided results behind others.
fn and(undecided: u64) -> String {
    if undecided > 0 { format!(", {undecided} undecided") } else { String::new() }
}

fn write_categories(text: &mut String, metrics: &Metrics) {
    let listed = || metrics.categories.iter().take(MOST_CATEGORIES);
    let width = name_width(listed().map(|(category, _)| category.as_str()));
    for (category, slice) in listed() {
        let Verdicts { pass, fail, error, undecided } = slice.verdicts;
        let rate = percent(pass, pass + fail);
        let judged = pass + fail;
        let errors =
            if error > 0 { format!(", {}", counted(error, "error")) } else { String::new() };
        let name = flush_left(&fitted(category.as_str(), width), width);
        let more = and(undecided);
        let _ = writeln!(text, "    {name} {rate:>8}  {pass} of {judged}{errors}{more}");
    }
    let more = metrics.categories.len().saturating_sub(MOST_CATEGORIES);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more categories");
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
    write_flaky(text, repeats);
}

fn write_flaky(text: &mut String, repeats: &Repeats) {
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
