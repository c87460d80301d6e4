//! HTML: one file to look around in, without a network.
//!
//! Figures and charts are in the page itself. The cases stand in a JSON island that the page's
//! script reads and only ever shows as text; the file is written case by case. The policy at
//! the top names the script and the style by their digests, so that nothing else can run.

mod charts;
mod consistency;
mod island;
mod overview;
mod sheet;

use std::io;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use probity_core::{
    dollars::dollars,
    evaluation::time,
    view::{Cases, RunView},
};

use crate::{conclusion::Conclusion, plain::one_line};
use island::{Row, Written};

/// Rows that the table has at most; beyond that, results that passed are left out.
pub const MOST_ROWS: u64 = 30_000;
/// Characters that all texts of the cases may take together, if all are long.
pub const TEXT_BUDGET: u64 = 64_000_000;
/// Characters of one text, however few cases there are.
pub const MOST_TEXT: usize = 20_000;
/// Characters of one text, however many cases there are.
pub const LEAST_TEXT: usize = 500;

/// Characters of a tag or a category.
const MOST_LABEL: usize = 200;

/// The style that all pages have in common.
pub const STYLE: &str = include_str!("html/report.css");
const SCRIPT: &str = include_str!("html/report.js");
/// Digests of the two, which the tests hold against them.
const STYLE_DIGEST: &str = "1Az3QbsIdYn6lly2JdNTFE5n0veI692owSNMuxTvLLg=";
const SCRIPT_DIGEST: &str = "Pwk4Es6lY/C6/zBkUHdD++dJ9QclEYrUK93DyyOBtkQ=";

/// A whole page.
pub fn write(run: &RunView, cases: &dyn Cases, out: &mut dyn io::Write) -> io::Result<()> {
    let cap = text_cap(run);
    write!(out, "{}<html lang=\"en\">{}<body>", DOCTYPE.into_string(), head(run).into_string())?;
    out.write_all(top(run).into_string().as_bytes())?;
    out.write_all(b"<main>")?;
    out.write_all(overview::render(run, "#").into_string().as_bytes())?;
    out.write_all(sheet::render(run).into_string().as_bytes())?;
    out.write_all(consistency::render(run).into_string().as_bytes())?;
    let written = island::write(run, cases, cap, out)?;
    out.write_all(table(run, &written).into_string().as_bytes())?;
    write!(out, "</main>{}", foot(run, cap, &written).into_string())?;
    writeln!(out, "<script>{SCRIPT}</script></body></html>")
}

/// How a run stands: its verdict, a card for each lane, the charts, and the figures that only some kinds of runners have.
///
/// `links` is what an address begins with that leads to the cases behind a figure; filters follow it.
pub fn overview(run: &RunView, links: &str) -> Markup {
    html! { (overview::render(run, links)) (sheet::render(run)) }
}

/// How many characters of a text are kept, by how many texts there may be.
fn text_cap(run: &RunView) -> usize {
    let (_, results) = run.errors();
    // A prompt, a reply, an expectation and the evidence.
    let texts = results.clamp(1, MOST_ROWS) * 4;
    usize::try_from(TEXT_BUDGET / texts).unwrap_or(MOST_TEXT).clamp(LEAST_TEXT, MOST_TEXT)
}

fn head(run: &RunView) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{STYLE_DIGEST}'; script-src 'sha256-{SCRIPT_DIGEST}'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    );
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="no-referrer";
            // An empty picture keeps browsers from asking a server for one.
            link rel="icon" href="data:,";
            title { (Conclusion::of(run).word()) ": " (one_line(&run.suite, 60)) " – Probity" }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn top(run: &RunView) -> Markup {
    let ended = run.finished_ms.map(shown_time);
    html! {
        header.top {
            a.skip href="#cases" { "Skip to the cases" }
            div.title {
                span.brand { "Probity" }
                h1 dir="auto" { (one_line(&run.suite, 80)) }
            }
            dl.meta {
                div { dt { "Run" } dd { code title=(run.run_id) { (run.short) } } }
                div { dt { "Began" } dd { (shown_time(run.started_ms)) } }
                @if let Some(ended) = ended {
                    div { dt { "Ended" } dd { (ended) } }
                }
                div { dt { "State" } dd { (run.status) } }
                @if let Some(imported) = &run.imported {
                    div { dt { "Imported from" } dd dir="auto" { (one_line(&imported.to_string(), 80)) } }
                }
            }
            button #theme type="button" aria-label="Switch between light and dark" title="Light or dark" hidden {
                "◐"
            }
        }
    }
}

/// The noun for so many results.
fn results(count: u64) -> &'static str {
    if count == 1 { "result" } else { "results" }
}

/// A time in UTC for people.
pub fn shown_time(ms: i64) -> String {
    time(ms).replace('T', " ").replace('Z', " UTC")
}

/// The filters and the table. Until the script takes over, it shows what is worth a look first.
fn table(run: &RunView, written: &Written) -> Markup {
    let single = run.lanes.len() == 1;
    html! {
        section #cases .panel aria-labelledby="cases-title" {
            div.bar {
                h2 #cases-title { "Cases" }
                p #count role="status" aria-live="polite" { (written.rows) " " (results(written.rows)) }
            }
            noscript {
                p.note {
                    "Filters, sorting and the details of a case need JavaScript. Here are the first "
                    (written.first.len()) " of " (written.rows)
                    " " (results(written.rows)) ", those that did not pass before the others."
                }
            }
            form #filters role="search" hidden {
                input #q name="q" type="search" placeholder="Filter by text  ( / )" autocomplete="off"
                    spellcheck="false" aria-label="Filter by text";
                @for (name, label) in [
                    ("verdict", "Verdict"), ("class", "Class"), ("lane", "Lane"),
                    ("category", "Category"), ("tag", "Tag"),
                ] {
                    select id=(name) name=(name) aria-label=(label) { option value="" { (label) } }
                }
                button #clear type="button" { "Clear" }
            }
            div.scroll {
                table #table .single[single] {
                    thead {
                        tr {
                            @for (key, label) in COLUMNS {
                                th scope="col" class={ "c-" (key) } data-key=(key) { (label) }
                            }
                        }
                    }
                    tbody #rows { @for row in &written.first { (static_row(row)) } }
                }
            }
            p #none .note hidden { "Nothing matches these filters." }
            nav #pager aria-label="Pages" hidden {
                button #first type="button" aria-label="First page" { "«" }
                button #back type="button" aria-label="Previous page" { "‹" }
                span #page {}
                button #next type="button" aria-label="Next page" { "›" }
                button #last type="button" aria-label="Last page" { "»" }
            }
        }
        div #detail role="dialog" aria-labelledby="detail-title" tabindex="-1" hidden {}
    }
}

/// The table's columns: the script's names of them, and what people read.
const COLUMNS: [(&str, &str); 9] = [
    ("verdict", "Verdict"),
    ("id", "Case"),
    ("lane", "Lane"),
    ("class", "Class"),
    ("category", "Category"),
    ("reason", "Reason or prompt"),
    ("ms", "Latency"),
    ("tokens", "Tokens"),
    ("cost", "Cost"),
];

fn static_row(row: &Row) -> Markup {
    html! {
        tr {
            td.c-verdict {
                span class={ "pill " (row.verdict) } { (row.verdict) }
                @if let Some(counted) = row.counted { span.sub-mark { "case: " (counted) } }
            }
            td.c-id dir="auto" { (row.id) }
            td.c-lane dir="auto" { (row.lane) }
            td.c-class { span class={ "dot " (row.class) } {} (row.class) }
            td.c-category { (row.category) }
            td.c-reason dir="auto" { (row.text) }
            td.c-ms { (row.latency_ms) " ms" }
            td.c-tokens { @if row.tokens > 0 { (row.tokens) } }
            td.c-cost { @if let Some(cost) = row.cost_usd { (dollars(cost)) } }
        }
    }
}

fn foot(run: &RunView, cap: usize, written: &Written) -> Markup {
    html! {
        footer {
            p {
                "Probity " (one_line(&run.probity_version, 40)) ". Texts are cut after " (cap)
                " characters each; " code { "probity show " (run.short) " CASE" } " has them in full."
                @if written.left_out > 0 {
                    " " (written.left_out) " results are left out of the table, those that passed first; "
                    "the figures count them all."
                }
            }
            p.keys {
                kbd { "/" } " filter  " kbd { "↑" } " " kbd { "↓" } " move  " kbd { "Enter" } " open  "
                kbd { "←" } " " kbd { "→" } " other cases  " kbd { "Esc" } " close"
            }
        }
    }
}

#[cfg(test)]
mod tests;
