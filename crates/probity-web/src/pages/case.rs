//! One result, with everything that is known of it.

mod evidence;
mod talk;

use maud::{Markup, html};
use probity_core::{
    classification::Verdict, dollars::dollars, evaluation::time, record::CaseRecord,
};
use probity_report::{
    html::shown_time,
    plain::{one_line, shell_word},
};

use probity_store::Reader;

use super::{
    Part, Tab, page,
    parts::{command, grouped, millis, pill},
    people, run_head,
};
use crate::{
    address::{self, encoded},
    edit::Editor,
    load::{self, Case},
    problem::Problem,
    query::Query,
};

/// What leads to the case before and after one.
const BESIDE: [(&str, &str, &str); 2] =
    [("prev", "‹", "Previous case"), ("next", "›", "Next case")];

/// Which of the results of a case is shown: those that are not named are the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    lane: Option<usize>,
    repeat: Option<u32>,
}

impl Which {
    pub(crate) fn read(query: &mut Query) -> Result<Self, Problem> {
        let lane = query.take_as("lane", "the number of a lane")?;
        Ok(Self { lane, repeat: query.take_as("repeat", "the number of a repeat")? })
    }

    /// The place of the result that is meant.
    pub(crate) fn find(self, case: &Case) -> Result<usize, Problem> {
        let shown = case.results.iter().position(|(lane, _, record)| self.is(*lane, record));
        shown.ok_or_else(|| {
            Problem::not_found(format!("the case `{}` has no such lane or repeat", case.id))
        })
    }

    fn is(self, lane: usize, record: &CaseRecord) -> bool {
        self.lane.is_none_or(|it| it == lane + 1)
            && self.repeat.is_none_or(|it| it == record.repeat + 1)
    }
}

pub(crate) fn make(
    reader: &Reader,
    run: &str,
    id: &str,
    which: Which,
    editor: Option<&Editor>,
) -> Result<Markup, Problem> {
    let case = &load::case(reader, run, id)?;
    let at = which.find(case)?;
    let (lane, view, record) = &case.results[at];
    let history = &reader.remarks(view, record)?;
    let neighbours = reader.neighbours(view, &case.id)?;
    let content = html! {
        (run_head(&case.row, case.lanes, Tab::Case))
        article.case {
            header.panel.case-head {
                div.case-title {
                    (pill(record.verdict))
                    h2 dir="auto" { (one_line(&case.id, 300)) }
                    nav.beside aria-label="Other cases" {
                        @for (id, (rel, sign, name)) in neighbours.iter().zip(BESIDE) {
                            @if let Some(id) = id {
                                a href=(address::case(&case.row.run_id, id, *lane, 0)) rel=(rel) title=(name) aria-label=(name) { (sign) }
                            }
                        }
                    }
                }
                p.d-tags {
                    span { span class={ "dot " (record.class) } {} (record.class) ", by the rule " code { (record.classification.rule) } }
                    @if let Some(category) = &record.case.category { span.tag dir="auto" { (one_line(category.as_str(), 60)) } }
                    @for tag in record.case.tags.iter().take(20) { span.tag dir="auto" { (one_line(tag, 60)) } }
                }
                @if record.verdict != Verdict::Pass { p.case-why dir="auto" { (one_line(&record.why(), 1000)) } }
                (others(case, at))
            }
            div.case-columns {
                div.case-main.d-body {
                    (talk::render(record))
                    (evidence::expected(record))
                    (evidence::scores(record))
                    (evidence::opinions(record))
                    (evidence::commands(record))
                    (attempts(record))
                    (talk::beside(record))
                    (evidence::details(record))
                }
                div.case-rail {
                (people::of_result(&people::OfResult { run_id: &case.row.run_id, lane: *lane, record, history, editor }))
                aside.case-side.panel {
                    (facts(&view.lane.key().to_string(), view.lane.model.as_deref(), record))
                    @if let Some(notes) = &record.case.notes { h3 { "Notes" } p dir="auto" { (one_line(notes, 600)) } }
                    h3 { "Run it alone" }
                    (command(&alone(case, at)))
                    h3 { "Everything, as JSON" }
                    p { a href={ "/api/v1/runs/" (encoded(&case.row.run_id)) "/cases/" (encoded(&case.id)) } { "all results of this case" } }
                }
                }
            }
        }
    };
    Ok(page(Part::Runs, &format!("{} {}", record.verdict, case.id), &content))
}

/// What other lanes and repeats made of the same case.
fn others(case: &Case, shown: usize) -> Markup {
    html! {
        @if case.results.len() > 1 {
            nav.others aria-label="Results of this case" {
                @for (at, (lane, view, record)) in case.results.iter().enumerate() {
                    a href=(address::case(&case.row.run_id, &case.id, *lane, record.repeat))
                        aria-current=[(at == shown).then_some("true")] dir="auto" {
                        span class={ "dot " (record.class) } {}
                        (one_line(&view.lane.key().to_string(), 60))
                        @if view.lane.repeat > 1 { " #" (record.repeat + 1) }
                        " " (pill(record.verdict))
                    }
                }
            }
        }
    }
}

fn facts(lane: &str, model: Option<&str>, record: &CaseRecord) -> Markup {
    let CaseRecord { usage, .. } = record;
    let estimated = if usage.estimated { " (estimated)" } else { "" };
    let tokens = (usage.total() > 0).then(|| {
        let [input, output] =
            [usage.input_tokens, usage.output_tokens].map(|it| grouped(it.unwrap_or(0)));
        format!("{input} in, {output} out{estimated}")
    });
    let facts = [
        ("Lane", Some(one_line(lane, 120))),
        ("Model", record.model.as_deref().or(model).map(|it| one_line(it, 120))),
        ("Latency", Some(millis(record.latency_ms))),
        ("First token", record.ttft_ms.map(millis)),
        ("Tokens/s", record.tokens_per_second.map(|it| format!("{it:.1}"))),
        ("With waits", (record.elapsed_ms != record.latency_ms).then(|| millis(record.elapsed_ms))),
        ("Calls", Some(record.calls.to_string())),
        ("Tokens", tokens),
        ("Cost", record.cost_usd.map(|it| format!("{}{estimated}", dollars(it)))),
        ("Answered by", Some(record.source.to_string())),
        ("Stopped by", record.stop_reason.as_deref().map(|it| one_line(it, 80))),
    ];
    html! {
        dl.facts {
            @for (name, value) in facts {
                @if let Some(value) = value { div { dt { (name) } dd dir="auto" { (value) } } }
            }
            div { dt { "Began" } dd { time datetime=(time(record.started_ms)) { (shown_time(record.started_ms)) } } }
        }
    }
}

/// The calls that failed, and what was waited for.
fn attempts(record: &CaseRecord) -> Markup {
    html! {
        @if !record.failures.is_empty() {
            h3 { @if record.failures.len() == 1 { "1 failed try" } @else { (record.failures.len()) " failed tries" } }
            div.scroll tabindex="0" { table {
                thead { tr { @for name in ["Try", "Error", "What was said", "Took", "Then"] { th scope="col" { (name) } } } }
                tbody {
                    @for failed in &record.failures {
                        tr {
                            td { (failed.attempt) }
                            td {
                                (failed.error.kind)
                                @if let Some(status) = failed.error.status { ", HTTP " (status) }
                                @if let Some(code) = failed.error.exit_code { ", exit " (code) }
                                @if let Some(signal) = &failed.error.signal { ", " (one_line(signal, 40)) }
                            }
                            td dir="auto" { (one_line(&failed.error.message, 500)) }
                            td.tight { (millis(failed.latency_ms)) }
                            td.tight { @match failed.retry_in_ms { Some(wait) => { "waited " (millis(wait)) }, None => "gave up" } }
                        }
                    }
                }
            } }
        }
    }
}

/// The command that runs this case and nothing else.
fn alone(case: &Case, at: usize) -> String {
    let (_, view, _) = &case.results[at];
    let suite = case.row.info.suite_path.as_deref().unwrap_or(&case.row.suite);
    // A comma ends an id there, and a star stands for any text.
    let id = case.id.replace(',', "*");
    let variant = view.lane.variant.as_ref().map(|it| format!(" --variant {}", shell_word(it)));
    format!(
        "probity run {} {} --backend {}{} --case {}",
        shell_word(suite),
        shell_word(&view.lane.runner),
        shell_word(&view.lane.backend),
        variant.unwrap_or_default(),
        shell_word(&id)
    )
}
