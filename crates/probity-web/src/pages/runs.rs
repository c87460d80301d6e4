//! All runs.

use std::{collections::BTreeMap, path::Path};

use maud::{Markup, html};
use probity_core::{dollars::dollars, gate::percent, metrics::Verdicts, record::RunStatus};
use probity_report::{html::shown_time, plain::one_line};
use probity_store::{LaneView, Reader, RunRow, Standing};

use super::{
    Part, page,
    parts::{class_bar, command, empty, grouped, sparkline, status},
};
use crate::{
    address::{self, with_query},
    filter::RunFilter,
    load::{self, Runs},
    problem::Problem,
    site::Site,
};

/// Runs that a line of rates goes back to.
const HISTORY: usize = 10;

/// Tags to choose from.
const MOST_TAGS: usize = 200;

/// Which suites, backends and tags there are to choose from.
struct Choices {
    suites: Vec<String>,
    backends: Vec<String>,
    tags: Vec<String>,
}

pub(crate) fn make(site: &Site, reader: &Reader, filter: &RunFilter) -> Result<Markup, Problem> {
    let runs = load::runs(site, reader, filter)?;
    let choices = Choices {
        suites: reader.suites()?,
        backends: reader.backends()?,
        tags: reader.tags(MOST_TAGS)?,
    };
    if choices.suites.is_empty() {
        return Ok(before_the_first(Part::Runs, &site.options.store));
    }
    let histories = histories(site, reader, &runs)?;
    let content = html! {
        div.head { div.title { h1 { "Runs" } } }
        (filters(filter, &choices))
        @if runs.runs.is_empty() {
            (empty("No run matches", &html! { p { a href="/" { "Show all runs" } } }))
        } @else {
            form.panel method="get" action="/compare" {
                (table(&runs, &histories))
                div.below {
                    button type="submit" data-needs="2" { "Compare the ticked runs" }
                    (pager(filter, &runs))
                }
            }
        }
    };
    Ok(page(Part::Runs, "Runs", &content))
}

/// What is shown before there is a run.
pub(crate) fn before_the_first(part: Part, store: &Path) -> Markup {
    let content = html! {
        p { "Runs show up here as soon as they begin. Start one in the folder of a suite:" }
        (command("probity run"))
        p { "There is no suite yet? This writes one that needs neither a server nor a key:" }
        (command("probity init"))
        p.note { "The store is " code { (one_line(&store.display().to_string(), 300)) } ". Reload this page after the run has begun." }
    };
    page(part, "No runs yet", &empty("No runs yet", &content))
}

/// For each run the rates of its suite up to it, the oldest first.
fn histories(
    site: &Site,
    reader: &Reader,
    runs: &Runs,
) -> Result<BTreeMap<String, Vec<f64>>, Problem> {
    let mut by_suite: BTreeMap<&str, Vec<(&RunRow, Option<f64>)>> = BTreeMap::new();
    for (row, _, standing) in &runs.runs {
        by_suite.entry(&row.suite).or_default().push((row, standing.verdicts.rate()));
    }
    let mut histories = BTreeMap::new();
    for (suite, shown) in by_suite {
        let mut rates: Vec<Option<f64>> = shown.iter().map(|(_, rate)| *rate).collect();
        let earlier = shown.last().map(|(row, _)| reader.runs_before(row, suite, HISTORY));
        for row in earlier.transpose()?.unwrap_or_default() {
            rates.push(site.standing(reader, &row)?.verdicts.rate());
        }
        for (at, (row, _)) in shown.iter().enumerate() {
            let back = rates[at..].iter().take(HISTORY).flatten().copied();
            let mut history: Vec<f64> = back.collect();
            history.reverse();
            histories.insert(row.run_id.clone(), history);
        }
    }
    Ok(histories)
}

fn filters(filter: &RunFilter, choices: &Choices) -> Markup {
    let select = |name: &str, label: &str, set: Option<&String>, all: &[String]| {
        html! {
            @if all.len() > 1 || set.is_some() {
                select name=(name) aria-label=(label) class=[set.map(|_| "set")] {
                    option value="" { (label) }
                    @if let Some(it) = set.filter(|it| !all.contains(it)) { option value=(it) selected { (one_line(it, 60)) } }
                    @for it in all { option value=(it) selected[set == Some(it)] { (one_line(it, 60)) } }
                }
            }
        }
    };
    html! {
        form.filters method="get" action="/" role="search" data-auto {
            input name="q" type="search" value=[filter.text.as_ref()] placeholder="Name of a run or a suite" aria-label="Name of a run or a suite" autocomplete="off";
            (select("suite", "Suite", filter.suite.as_ref(), &choices.suites))
            (select("backend", "Backend", filter.backend.as_ref(), &choices.backends))
            (select("tag", "Tag", filter.tag.as_ref(), &choices.tags))
            label { "from " input name="since" type="date" value=[filter.since.map(|it| it.to_string())]; }
            label { "to " input name="until" type="date" value=[filter.until.map(|it| it.to_string())]; }
            button type="submit" { "Filter" }
            @if filter.is_set() { a.clear href="/" { "Clear" } }
        }
    }
}

fn table(runs: &Runs, histories: &BTreeMap<String, Vec<f64>>) -> Markup {
    html! {
        table.runs {
            thead { tr {
                th scope="col" { span.unseen { "Compare" } }
                th scope="col" { "Run" }
                th scope="col" { "Began" }
                th scope="col" { "State" }
                th.number scope="col" { "Passed" }
                th.wide scope="col" { "Results" }
                th scope="col" { "Trend" }
                th.number scope="col" { "Cost" }
            } }
            tbody data-rows {
                @for (row, lanes, standing) in &runs.runs {
                    (run_row(row, lanes, standing, histories.get(&row.run_id).map_or(&[][..], Vec::as_slice)))
                }
            }
        }
    }
}

fn run_row(row: &RunRow, lanes: &[LaneView], standing: &Standing, history: &[f64]) -> Markup {
    let Verdicts { pass, error, .. } = standing.verdicts;
    let planned: u64 = lanes.iter().map(|it| it.lane.planned).sum();
    let whole = if row.status == RunStatus::Running { planned } else { 0 };
    html! {
        tr {
            td.tick { input type="checkbox" name="run" value=(row.run_id) aria-label={ "Compare " (row.short()) }; }
            td.name {
                a href=(address::run(&row.run_id)) data-main dir="auto" { (one_line(&row.suite, 60)) }
                span.sub { code { (row.short()) } " · " span dir="auto" { (backends(lanes)) } }
            }
            td.when { time datetime=(probity_core::evaluation::time(row.started_ms)) { (shown_time(row.started_ms)) } }
            td.state-cell { (status(row.status)) }
            td.number.rate-cell { b { (percent(pass, standing.verdicts.judged())) } }
            td.wide {
                (class_bar(&standing.classes, whole, 8))
                span.sub {
                    (grouped(pass)) " of " (grouped(standing.verdicts.judged())) " passed"
                    @if error > 0 { ", " (grouped(error)) " " (if error == 1 { "error" } else { "errors" }) }
                    @if whole > standing.classes.total() { ", " (grouped(whole - standing.classes.total())) " to come" }
                }
            }
            td.spark-cell { (sparkline(history)) }
            td.number.cost { @if standing.priced > 0 { (dollars(standing.cost_usd)) } @else { span.none { "–" } } }
        }
    }
}

/// The backends of a run, each once.
fn backends(lanes: &[LaneView]) -> String {
    let mut names: Vec<&str> = lanes.iter().map(|it| it.lane.backend.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    one_line(&names.join(", "), 60)
}

fn pager(filter: &RunFilter, runs: &Runs) -> Markup {
    let first = RunFilter { after: None, ..filter.clone() };
    let next = runs.next.map(|after| RunFilter { after: Some(after), ..filter.clone() });
    html! {
        nav.pages aria-label="Pages" {
            @if filter.after.is_some() { a href=(with_query("/", first.pairs())) { "« Latest" } }
            @if let Some(next) = next { a rel="next" href=(with_query("/", next.pairs())) { "Earlier runs ›" } }
        }
    }
}
