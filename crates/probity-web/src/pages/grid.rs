//! Cases with the answers of all lanes of a runner beside each other.

mod words;

use maud::{Markup, html};
use probity_core::{classification::Verdict, record::CaseRecord, visible::safe};
use probity_report::plain::{capped, one_line};
use probity_store::GridRow;

use super::{
    Part, Tab, page,
    parts::{empty, millis, pill},
    run_head,
};
use crate::{
    address::{self, with_query},
    filter::GridFilter,
    load::Grid,
};

/// Characters of an answer.
const MOST_TEXT: usize = 1200;
/// Characters of the reason of a verdict.
const MOST_REASON: usize = 240;
/// Bytes of a page, what each row has before its answers, and what each answer has beside its texts.
const MOST_BYTES: usize = 280_000;
const BEFORE_ANSWERS: usize = 800;
const BESIDE_TEXTS: usize = 270;

/// Characters that the texts of each answer may have: the more answers there are, the fewer.
#[derive(Clone, Copy)]
struct Room {
    answer: usize,
    reason: usize,
}

impl Room {
    fn of(rows: usize, columns: usize) -> Self {
        let all = MOST_BYTES.saturating_sub(rows * BEFORE_ANSWERS);
        let each = (all / (rows * columns).max(1)).saturating_sub(BESIDE_TEXTS);
        let reason = (each / 3).min(MOST_REASON);
        Self { answer: (each - reason).clamp(40, MOST_TEXT), reason: reason.max(40) }
    }
}

pub(crate) fn render(grid: &Grid, filter: &GridFilter) -> Markup {
    let here = format!("{}/grid", address::run(&grid.row.run_id));
    let content = html! {
        (run_head(&grid.row, grid.count, Tab::Grid))
        (filters(grid, filter, &here))
        @if grid.page.rows.is_empty() {
            (empty("No case to show", &html! { p { a href=(here) { "Show all cases" } } }))
        } @else {
            div.panel.scroll.grid-scroll tabindex="0" role="region" aria-label="Answers side by side" {
                table.answers {
                    thead { tr {
                        th scope="col" { "Case" }
                        @for (_, lane) in &grid.lanes {
                            th scope="col" dir="auto" {
                                @if let Some(variant) = &lane.lane.variant { (one_line(variant, 40)) " on " }
                                (one_line(&lane.lane.backend, 40))
                                @if let Some(model) = &lane.lane.model { span.sub { (one_line(model, 40)) } }
                            }
                        }
                    } }
                    tbody { @for row in &grid.page.rows { (case_row(grid, row)) } }
                }
            }
            (pager(grid, filter, &here))
        }
    };
    page(Part::Runs, &format!("Grid of {} {}", grid.row.suite, grid.row.short()), &content)
}

fn filters(grid: &Grid, filter: &GridFilter, here: &str) -> Markup {
    html! {
        form.filters method="get" action=(here) data-auto {
            @if grid.runners.len() > 1 {
                select name="runner" aria-label="Runner" {
                    @for it in &grid.runners { option value=(it) selected[*it == grid.runner] { (one_line(it, 60)) } }
                }
            }
            label.check { input type="checkbox" name="differing" value="1" checked[filter.differing]; " only where columns differ" }
            label.check { input type="checkbox" name="failing" value="1" checked[filter.failing]; " only with a failure" }
            button type="submit" { "Filter" }
            @if !filter.pairs().is_empty() { a.clear href=(here) { "Clear" } }
        }
    }
}

fn case_row(grid: &Grid, row: &GridRow) -> Markup {
    let any = row.results.iter().flatten().next();
    let room = Room::of(grid.page.rows.len(), grid.lanes.len());
    let first = row.results.first().and_then(|it| telling(it)).and_then(|it| it.reply.as_deref());
    html! {
        tr {
            th scope="row" {
                code dir="auto" { (one_line(&row.case_id, 120)) }
                @if let Some(record) = any {
                    p.asked dir="auto" { (safe(&capped(&record.request.shown(), 400))) }
                    @if let Some(expected) = record.expected() {
                        p.expected dir="auto" { span.note { "expected " } (safe(&capped(&expected, 300))) }
                    }
                }
            }
            @for (column, results) in row.results.iter().enumerate() {
                @let href = telling(results).map(|it| address::case(&grid.row.run_id, &it.case_id, grid.lanes[column].0, it.repeat));
                td { (cell(href.as_deref(), results, first.filter(|_| column > 0), room)) }
            }
        }
    }
}

/// Of several repeats the one that tells most: one that did not pass.
fn telling(results: &[CaseRecord]) -> Option<&CaseRecord> {
    results.iter().find(|it| it.verdict != Verdict::Pass).or(results.first())
}

fn cell(href: Option<&str>, results: &[CaseRecord], first: Option<&str>, room: Room) -> Markup {
    let Some(record) = telling(results) else {
        return html! { span.none { "not asked" } };
    };
    let passed = results.iter().filter(|it| it.verdict == Verdict::Pass).count();
    // The lowest of those that the case needs.
    let required = record.classification.scores.iter().filter(|it| it.is_required());
    let score = required.filter_map(|it| it.value).reduce(f64::min);
    html! {
        div.cell-head {
            a href=[href] { (pill(record.verdict)) }
            @if record.class.as_str() != record.verdict.as_str() {
                span { span class={ "dot " (record.class) } {} (record.class) }
            }
            @if results.len() > 1 { span { (passed) "/" (results.len()) " passed" } }
            @if let Some(score) = score { span { (format!("{score:.2}")) } }
            span.ms { (millis(record.latency_ms)) }
        }
        @match (&record.reply, &record.error) {
            (Some(reply), _) => div.answer dir="auto" tabindex=[(reply.len() > 300).then_some("0")] { (answer(reply, first, room.answer)) },
            (None, Some(error)) => div.answer.bad dir="auto" { (safe(&capped(&error.message, room.answer))) },
            (None, None) => span.none { "no answer" },
        }
        @if record.verdict == Verdict::Fail { p.why dir="auto" { (one_line(&record.why(), room.reason)) } }
    }
}

/// An answer, with the words marked that the first column does not have at that place.
fn answer(reply: &str, first: Option<&str>, room: usize) -> Markup {
    let shown = capped(reply, room);
    match first.filter(|it| *it != reply) {
        None => html! { (safe(&shown)) },
        Some(first) => html! {
            @for (text, is_new) in words::compared(first, &shown) {
                @if is_new { mark { (safe(text)) } } @else { (safe(text)) }
            }
        },
    }
}

fn pager(grid: &Grid, filter: &GridFilter, here: &str) -> Markup {
    let next = grid.page.next.as_ref().map(|after| {
        let mut pairs = filter.pairs();
        pairs.push(("after", after.clone()));
        with_query(here, pairs)
    });
    html! {
        nav.pages aria-label="Pages" {
            @if filter.after.is_some() { a href=(with_query(here, filter.pairs())) { "« First page" } }
            @if let Some(next) = next { a rel="next" href=(next) { "Next page ›" } }
        }
    }
}
