//! Markdown for a pull request: the verdict, the figures, and the cases to look at.
//!
//! It is never longer than it may be: cases that do not fit are counted instead, and nothing is
//! cut in the middle. What a model wrote stands in code only, where it can neither ping, link,
//! nor close anything.

mod consistency;
pub(crate) mod escape;

use std::{fmt::Write as _, io};

use probity_core::{
    classification::Verdict,
    derived::shown,
    dollars::dollars,
    figures::Sheet,
    gate::{GateOutcome, GateStatus, percent},
    metrics::{Flaky, Verdicts},
    view::{Cases, LaneReport, RunView},
};

use crate::{
    answers::{self, Counted},
    conclusion::{self, Conclusion},
    plain::{capped, one_line},
    text::{estimated, means, millis, shown_interval, told},
};
use escape::{cell, fenced, html, span};

/// Bytes of a comment. GitHub takes 65,536 characters, and no character is less than a byte.
pub const COMMENT_LIMIT: usize = 65_000;
/// Characters of a prompt, an expectation or an answer that are shown.
pub const MOST_TEXT: usize = 1_000;
/// Characters of a name or a reason.
const MOST_NAME: usize = 160;
/// Lanes in the table, and gates below it.
const MOST_ROWS: usize = 40;
/// Names of flaky cases and of known failures that passed.
const MOST_NAMES: usize = 20;
/// Bytes of each of the seven lists of figures, however strange the names are.
const LIST_LIMIT: usize = 6_000;
/// What the opening and closing words of a section take.
const CLOSING: usize = 200;

/// A whole comment.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(render(run, cases, COMMENT_LIMIT)?.as_bytes())
}

/// A text of no more than `limit` bytes; figures alone may take two thirds of [`COMMENT_LIMIT`].
pub fn render(run: &RunView, cases: &dyn Cases, limit: usize) -> io::Result<String> {
    let mut text = head(run);
    let tail = tail(run);
    let sections = [
        (Verdict::Fail, "failed"),
        (Verdict::Error, "could not be judged"),
        (Verdict::Undecided, "undecided"),
    ];
    let asked: Vec<(usize, Verdict, &str)> = sections
        .into_iter()
        .flat_map(|(verdict, words)| (0..run.lanes.len()).map(move |at| (at, verdict, words)))
        .filter(|(at, verdict, _)| has(&run.lanes[*at], *verdict))
        .collect();
    let mut room = limit.saturating_sub(text.len() + tail.len());
    for (at, (lane, verdict, words)) in asked.iter().enumerate() {
        // Every section gets its share, and what one leaves over goes to those after it.
        let share = room / (asked.len() - at);
        let (at, report) = (*lane, &run.lanes[*lane]);
        let each = |take: &mut dyn FnMut(Counted<'_>) -> io::Result<()>| {
            answers::each(cases, at, &report.lane, take)
        };
        let section = section(report, *verdict, words, share, each)?;
        room -= section.len();
        text.push_str(&section);
    }
    text.push_str(&tail);
    Ok(text)
}

/// Whether there are results of a verdict, as the figures count them.
fn has(report: &LaneReport, verdict: Verdict) -> bool {
    let Verdicts { pass: _, fail, error, undecided } = report.metrics.all.verdicts;
    match verdict {
        Verdict::Pass => false,
        Verdict::Fail => fail > 0,
        Verdict::Error => error > 0,
        Verdict::Undecided => undecided > 0,
    }
}

/// The verdict, the lanes and the gates.
fn head(run: &RunView) -> String {
    let concluded = Conclusion::of(run);
    let mut text = format!(
        "## {} {}: {}\n\n{}\n\n",
        concluded.sign(),
        concluded.word(),
        span(&one_line(&run.suite, 60)),
        upper_first(&conclusion::sentence(run)),
    );
    text.push_str("| lane | pass rate | 95 % interval | passed | failed | errors | p95 | cost |\n");
    text.push_str("| --- | ---: | :---: | ---: | ---: | ---: | ---: | ---: |\n");
    list(&mut text, run.lanes.iter().map(row), "lanes");
    if let Some(means) = means(run) {
        let _ = write!(text, "{}\n\n", upper_first(&means));
    }
    let told = |report: &LaneReport| {
        let status = told(report)?;
        let title = span(&one_line(&report.title(), 60));
        Some(format!("- {title}: {}\n", span(&one_line(&status, MOST_NAME))))
    };
    list(&mut text, run.lanes.iter().filter_map(told), "lanes that did not finish");
    let mut gates: Vec<_> =
        run.lanes.iter().flat_map(|lane| lane.gates.iter().map(move |gate| (lane, gate))).collect();
    // Those that do not hold come first.
    gates.sort_by_key(|(_, gate)| std::cmp::Reverse(gate.status));
    if !gates.is_empty() {
        text.push_str("**Gates**\n\n");
    }
    list(&mut text, gates.iter().map(|(lane, gate)| gate_line(lane, gate)), "gates");
    for report in &run.lanes {
        let derived = report.metrics.derived();
        if !derived.is_empty() {
            let facts = derived
                .into_iter()
                .map(|it| (it.name, it.value.map_or_else(|why| format!("n/a: {why}"), shown)));
            let derived = Sheet { facts: facts.collect(), ..Sheet::default() };
            sheet(&mut text, &report.title(), &derived);
        }
        if let Some(figures) = &report.metrics.figures {
            sheet(&mut text, &report.title(), &figures.sheet());
        }
    }
    text.push_str(&consistency::render(run));
    text
}

/// The figures of a kind of runner: facts and notices, and the first table.
fn sheet(text: &mut String, title: &str, sheet: &Sheet) {
    let _ = write!(text, "**{}**\n\n", span(&one_line(title, 60)));
    let facts = sheet.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let notices = sheet.notices.iter().map(|(about, message)| (about.as_str(), message.as_str()));
    let line = |(name, value): (&str, &str)| {
        let (name, value) = (one_line(name, 60), one_line(value, MOST_NAME));
        format!("- {}: {}\n", span(&name), span(&value))
    };
    list(text, facts.chain(notices).map(line), "figures");
    let Some(table) = sheet.tables.iter().find(|it| !it.rows.is_empty()) else { return };
    let row = |cells: &Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|it| cell(&one_line(it, 60))).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push_str(&row(&table.head));
    let _ = writeln!(text, "| --- {}|", "| ---: ".repeat(table.head.len() - 1));
    list(text, table.rows.iter().map(row), "rows");
}

/// As many lines as people read and there is room for, and how many more there are.
fn list(text: &mut String, lines: impl Iterator<Item = String>, things: &str) {
    let (begin, mut shown, mut left_out) = (text.len(), 0, 0);
    for line in lines {
        if left_out == 0 && shown < MOST_ROWS && text.len() - begin + line.len() < LIST_LIMIT {
            text.push_str(&line);
            shown += 1;
        } else {
            left_out += 1;
        }
    }
    if shown + left_out > 0 {
        text.push('\n');
    }
    more(text, left_out, things);
}

fn row(report: &LaneReport) -> String {
    let LaneReport { lane, metrics, .. } = report;
    let Verdicts { pass, fail, error, undecided } = metrics.all.verdicts;
    let error = match undecided {
        0 => error.to_string(),
        undecided => format!("{error} ({undecided} undecided)"),
    };
    let model = lane.model.as_deref().map(|it| format!(" {}", cell(&one_line(it, 40))));
    let interval = metrics.interval.map_or_else(|| "n/a".to_owned(), shown_interval);
    let p95 = metrics.latency.map_or_else(|| "n/a".to_owned(), |it| millis(it.p95));
    let cost = match metrics.priced {
        0 => "n/a".to_owned(),
        _ => format!("{}{}", dollars(metrics.cost_usd), estimated(metrics)),
    };
    let origin = match (&lane.imported, lane.replayed) {
        (Some(tool), _) => format!(" (imported from {})", cell(&one_line(tool, 30))),
        (None, true) => " (replayed)".to_owned(),
        (None, false) => String::new(),
    };
    format!(
        "| {}{}{origin} | **{}** | {interval} | {pass} | {fail} | {error} | {p95} | {cost} |\n",
        cell(&one_line(&report.title(), 60)),
        model.unwrap_or_default(),
        percent(pass, pass + fail),
    )
}

fn gate_line(lane: &LaneReport, gate: &GateOutcome) -> String {
    let sign = match gate.status {
        GateStatus::Pass => "✅ pass",
        GateStatus::Empty => "➖ n/a",
        GateStatus::Warn => "⚠️ warn",
        GateStatus::Fail => "❌ **fail**",
    };
    format!("- {sign}: {}: {}\n", span(&one_line(&lane.title(), 60)), span(&gate.sentence()))
}

/// The results of a lane that came to a verdict, as many as there is room for.
fn section(
    report: &LaneReport,
    verdict: Verdict,
    words: &str,
    room: usize,
    each: impl FnOnce(&mut dyn FnMut(Counted<'_>) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<String> {
    let title = html(&one_line(&report.title(), 60));
    // A number of twenty digits is more than there are.
    let room = room.saturating_sub(title.len() + words.len() + CLOSING);
    let (mut shown, mut found, mut full) = (String::new(), 0_u64, false);
    let mut left_out = 0;
    each(&mut |counted| {
        if counted.verdict == verdict {
            found += 1;
            let block = if full { String::new() } else { block(report, counted) };
            full |= shown.len() + block.len() > room;
            match full {
                true => left_out += 1,
                false => shown.push_str(&block),
            }
        }
        Ok(())
    })?;
    if found == 0 || room == 0 {
        return Ok(String::new());
    }
    let mut text =
        format!("\n<details><summary><b>{found} {words}</b> in <code>{title}</code></summary>\n\n");
    text.push_str(&shown);
    more(&mut text, left_out, "cases");
    text.push_str("</details>\n");
    Ok(text)
}

/// One answer, or one case, that did not pass.
fn block(report: &LaneReport, counted: Counted<'_>) -> String {
    let case = counted.telling();
    let repeat = match case.repeat {
        n if n > 0 && report.lane.judging.min_pass.is_none() => format!(" (repeat {n})"),
        _ => String::new(),
    };
    let known = match report.lane.judging.known_failures.contains(&case.case_id) {
        true => ", known to fail",
        false => "",
    };
    let class = case.error.as_ref().map_or(case.class.as_str(), |it| it.kind.as_str());
    let mut text = format!(
        "<details><summary><code>{}</code>{repeat}: {class}{known}: <code>{}</code></summary>\n\n",
        html(&one_line(&case.case_id, MOST_NAME)),
        html(&one_line(&counted.why(), MOST_NAME)),
    );
    let parts = [
        ("Prompt", Some(case.request.shown().into_owned())),
        ("Expected", case.expected()),
        ("Actual", case.actual().map(str::to_owned)),
    ];
    for (name, part) in parts {
        if let Some(part) = part.filter(|it| !it.is_empty()) {
            let _ = write!(text, "{name}:\n\n{}\n", fenced(&capped(&part, MOST_TEXT)));
        }
    }
    text.push_str("</details>\n\n");
    text
}

/// Known failures that passed, what is flaky, and which run it was.
fn tail(run: &RunView) -> String {
    let mut text = String::from("\n");
    list(
        &mut text,
        run.lanes.iter().filter_map(unexpected),
        "lanes with known failures that passed",
    );
    list(&mut text, run.lanes.iter().filter_map(flaky), "lanes with flaky cases");
    let _ = writeln!(
        text,
        "<sub>run <code>{}</code>, Probity {}</sub>",
        html(&one_line(&run.short, 40)),
        html(&one_line(&run.probity_version, 40))
    );
    text
}

fn unexpected(report: &LaneReport) -> Option<String> {
    let passes = &report.metrics.unexpected_passes;
    let names = listed(passes.iter().map(|it| span(&one_line(it, 60))))?;
    let title = span(&one_line(&report.title(), 60));
    Some(format!("- **Known to fail, and passed** in {title}: {names}\n"))
}

fn flaky(report: &LaneReport) -> Option<String> {
    let flaky = &report.metrics.repeats.as_ref()?.flaky;
    let name = |Flaky { case_id, passed, judged }: &Flaky| {
        format!("{} ({passed} of {judged})", span(&one_line(case_id, 60)))
    };
    let names = listed(flaky.iter().map(name))?;
    Some(format!("- **Flaky** in {}: {names}\n", span(&one_line(&report.title(), 60))))
}

/// The first few of some names; none of none.
fn listed(names: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let more = names.len().saturating_sub(MOST_NAMES);
    let mut list: Vec<String> = names.take(MOST_NAMES).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    (!list.is_empty()).then(|| list.join(", "))
}

fn more(text: &mut String, count: usize, things: &str) {
    if count > 0 {
        let _ = writeln!(text, "and {count} more {things}\n");
    }
}

fn upper_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests;
