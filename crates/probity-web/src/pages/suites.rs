//! All suites.

use maud::{Markup, html};
use probity_report::{html::shown_time, plain::one_line};

use super::{
    Part, page,
    parts::{command, count, empty, grouped},
};
use crate::{
    address::{self, encoded},
    suites::{Listed, State},
    survey::Survey,
};

pub(crate) fn render(suites: &[Listed], states: &[State]) -> Markup {
    let is_reading = states.iter().any(|it| matches!(it, State::Reading));
    let content = html! {
        div.head { div.title { h1 { "Suites" } } }
        @if suites.is_empty() {
            (none_yet())
        } @else {
            div.panel {
                table.runs.suites data-reload[is_reading] {
                    thead { tr {
                        th scope="col" { "Suite" }
                        th scope="col" { "File" }
                        th.number scope="col" { "Cases" }
                        th scope="col" { "Problems" }
                        th.number scope="col" { "Runs" }
                        th scope="col" { "Latest" }
                    } }
                    tbody data-rows { @for (suite, state) in suites.iter().zip(states) { (row(suite, state)) } }
                }
            }
        }
    };
    page(Part::Suites, "Suites", &content)
}

fn none_yet() -> Markup {
    empty(
        "No suites yet",
        &html! {
            p { "There is no suite in the folder where this was started, and no run in the store. This writes a suite that needs neither a server nor a key:" }
            (command("probity init"))
            p.note { "Then start " code { "probity view" } " again." }
        },
    )
}

fn row(suite: &Listed, state: &State) -> Markup {
    let runs = format!("/?suite={}", encoded(&suite.name));
    html! {
        tr {
            td.name {
                @match &suite.file {
                    Some(file) => a href=(address::suite(file)) data-main dir="auto" { (one_line(&suite.name, 60)) },
                    None => a href=(runs) data-main dir="auto" { (one_line(&suite.name, 60)) },
                }
                @if suite.is_here { " " span.tag { "this folder" } }
            }
            td.file dir="auto" {
                @match &suite.file {
                    Some(file) => code { (one_line(&file.display().to_string(), 160)) },
                    None => span.none { "not known" },
                }
            }
            td.number.cases { @if let State::Read(survey) = state { (grouped(survey.cases() as u64)) } @else { span.none { "–" } } }
            td.found { (found(state)) }
            td.number.count { @if suite.runs > 0 { a href=(runs) { (grouped(suite.runs)) } } @else { span.none { "none" } } }
            td.when {
                @match &suite.latest {
                    Some(latest) => a href=(address::run(&latest.run_id)) { time datetime=(probity_core::evaluation::time(latest.started_ms)) { (shown_time(latest.started_ms)) } },
                    None => span.none { "–" },
                }
            }
        }
    }
}

fn found(state: &State) -> Markup {
    html! {
        @match state {
            State::Unnamed => span.none { "–" },
            State::Gone => span.pill.warn { "file is gone" },
            State::Reading => span.none { "being read" },
            State::Read(survey) => (totals(survey)),
        }
    }
}

/// How much is wrong.
pub(crate) fn totals(survey: &Survey) -> Markup {
    let (errors, warnings) = (survey.errors() as u64, survey.warnings() as u64);
    html! {
        @if errors > 0 { span.pill.fail { (count(errors, "error", "errors")) } " " }
        @if warnings > 0 { span.pill.warn { (count(warnings, "warning", "warnings")) } }
        @if errors + warnings == 0 { span.pill.pass { "none" } }
    }
}
