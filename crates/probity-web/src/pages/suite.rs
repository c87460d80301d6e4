//! One suite and its datasets.

use std::{collections::BTreeMap, fmt::Display, path::Path};

use maud::{Markup, html};
use probity_core::{
    metrics::share,
    problem::{Place, Problem, Severity},
    visible::safe,
};
use probity_grade::internal::lint::LintFinding;
use probity_load::dataset::Stats;
use probity_report::{
    html::shown_time,
    plain::{one_line, shell_word},
};

use super::{
    Part, page,
    parts::{command, count, empty, grouped, percent},
    suites::totals,
};
use crate::{
    address::{self, encoded, with_query},
    suites::{Listed, State},
    survey::{Findings, Problems, RunnerSurvey, Survey},
};

/// Rows of a table of counts.
const ROWS: usize = 12;
/// Problems of a file that are shown.
const MOST_SHOWN: usize = 30;

pub(crate) fn render(suite: &Listed, state: &State) -> Markup {
    let file = suite.file.as_deref().unwrap_or(Path::new(""));
    let content = html! {
        (head(suite, file, state))
        @match state {
            State::Read(survey) => (survey_of(survey, file.parent().unwrap_or(file))),
            State::Reading => div data-reload {
                (empty("Being read", &html! {
                    p { "The datasets of this suite are being read. This page shows what is in them as soon as that is known." }
                    p { a href=(address::suite(file)) { "Look again" } }
                }))
            },
            State::Gone | State::Unnamed => (empty("The file is gone", &html! {
                p { "Runs in the store name this file, which is not there any more:" }
                p { code dir="auto" { (safe(&file.display().to_string())) } }
                p { a href=(runs_of(suite)) { "Its runs" } " are still there." }
            })),
        }
    };
    page(Part::Suites, &suite.name, &content)
}

fn runs_of(suite: &Listed) -> String {
    with_query("/", [("suite", suite.name.clone())])
}

fn head(suite: &Listed, file: &Path, state: &State) -> Markup {
    let doctor = with_query("/doctor", [("suite", file.display().to_string())]);
    html! {
        div.head {
            div.title {
                p.crumbs { a href="/suites" { "Suites" } " / " code dir="auto" { (one_line(&file.display().to_string(), 200)) } }
                h1 dir="auto" { (one_line(&suite.name, 100)) }
            }
            dl.meta {
                @if let State::Read(survey) = state {
                    div { dt { "Cases" } dd { (grouped(survey.cases() as u64)) } }
                    div { dt { "Problems" } dd { (totals(survey)) } }
                }
                div { dt { "Runs" } dd { a href=(runs_of(suite)) { (grouped(suite.runs)) } } }
                @if let Some(latest) = &suite.latest {
                    div { dt { "Latest" } dd { a href=(address::run(&latest.run_id)) { (shown_time(latest.started_ms)) } } }
                }
            }
            nav.tabs aria-label="Pages about this suite" {
                a href=(address::suite(file)) aria-current="page" { "Contents" }
                a href=(runs_of(suite)) { "Runs" }
                @if suite.runs > 0 { a href={ "/trends?suite=" (encoded(&suite.name)) } { "Trend" } }
                a href=(doctor) { "Backends" }
            }
        }
    }
}

fn survey_of(survey: &Survey, folder: &Path) -> Markup {
    html! {
        (problems("What is wrong with the suite file", &survey.problems, folder))
        @if survey.runners.is_empty() && survey.problems.errors == 0 {
            (empty("Nothing to ask", &html! { p { "The suite has no runner. Runners say which cases are asked of which backends, under " code { "[[runners]]" } "." } }))
        }
        @for runner in &survey.runners { (runner_of(runner, folder)) }
        @if !survey.backends.is_empty() {
            section.panel.backend-list {
                div.bar { h2 { "Backends" } }
                div.scroll tabindex="0" role="region" aria-label="Backends" { table.points {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "Model" } } }
                    tbody { @for it in &survey.backends {
                        tr {
                            td dir="auto" { (one_line(&it.name, 60)) }
                            td { (it.kind) }
                            td dir="auto" { @match &it.model { Some(model) => (one_line(model, 80)), None => span.none { "its default" } } }
                        }
                    } }
                } }
            }
        }
    }
}

fn runner_of(runner: &RunnerSurvey, folder: &Path) -> Markup {
    let Stats { categories, tags, difficulties, criteria, commands, .. } = &runner.stats;
    html! {
        section.panel.runner {
            div.bar {
                h2 dir="auto" { (one_line(&runner.name, 80)) }
                p.note { (runner.kind) " on " span dir="auto" { (one_line(&runner.backends.join(", "), 120)) } }
            }
            dl.facts {
                @if !runner.dataset.is_empty() { div { dt { "Dataset" } dd dir="auto" { (one_line(&runner.dataset.join(", "), 300)) } } }
                @if runner.stats.cases > 0 {
                    div { dt { "Cases" } dd { (grouped(runner.stats.cases as u64)) } }
                    div { dt { "Prompts" } dd { (grouped((runner.stats.prompt_characters / runner.stats.cases) as u64)) " characters on average, " (grouped(runner.stats.longest_prompt as u64)) " at most" } }
                }
            }
            @if let Some(why) = &runner.unread { p.unread { "Not read: " (safe(why)) "." } }
            @if runner.dataset.is_empty() { p.unread { "It has no dataset: what it asks is its own affair." } }
            div.counts {
                (counts("By category", categories, runner.stats.without_category))
                (counts("By tag", tags, 0))
                (counts("By difficulty", difficulties, if difficulties.is_empty() { 0 } else { runner.stats.without_difficulty }))
                (counts("Decided by", criteria, 0))
                (counts("By command", commands, 0))
            }
        }
        (problems(&format!("What is wrong with the dataset of {}", one_line(&runner.name, 80)), &runner.problems, folder))
        (findings(runner, &runner.findings, folder))
    }
}

/// Names with how many cases have them, the most frequent first.
fn counts<K: Display + Ord>(title: &str, names: &BTreeMap<K, usize>, without: usize) -> Markup {
    let mut rows: Vec<(&K, usize)> = names.iter().map(|(name, count)| (name, *count)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let most = rows.iter().map(|it| it.1).max().unwrap_or(1).max(without) as u64;
    let bar = |count: usize| percent(share(count as u64, most).unwrap_or(0.0));
    html! {
        @if !rows.is_empty() {
            div.count-table {
                h3 { (title) }
                table {
                    tbody {
                        @for (name, count) in rows.iter().take(ROWS) { (counted(&html! { (one_line(&name.to_string(), 80)) }, *count, &bar(*count))) }
                        @if without > 0 { (counted(&html! { span.none { "without" } }, without, &bar(without))) }
                    }
                }
                @if rows.len() > ROWS { p.note { "and " (grouped((rows.len() - ROWS) as u64)) " more" } }
            }
        }
    }
}

fn counted(name: &Markup, count: usize, width: &str) -> Markup {
    html! {
        tr {
            th scope="row" dir="auto" { (name) }
            td.number { (grouped(count as u64)) }
            td.length aria-hidden="true" { svg width="100%" height="8" { rect.filled x="0" y="0" width=(width) height="8" rx="2" {} } }
        }
    }
}

fn problems(title: &str, problems: &Problems, folder: &Path) -> Markup {
    let more = problems.count().saturating_sub(MOST_SHOWN.min(problems.first.len()));
    html! {
        @if problems.count() > 0 {
            section.panel.problems {
                div.bar { h2 dir="auto" { (title) } p.note { (count(problems.count() as u64, "problem", "problems")) } }
                ol { @for it in problems.first.iter().take(MOST_SHOWN) { (problem(it, folder)) } }
                @if more > 0 { p.note.more { "and " (grouped(more as u64)) " more" } }
            }
        }
    }
}

/// A problem in its place. Files are named from the folder of the suite on.
pub(crate) fn problem(problem: &Problem, folder: &Path) -> Markup {
    let Problem { severity, code, message, file, place, case_id, help } = problem;
    let (tone, word) = match severity {
        Severity::Error => ("fail", "error"),
        Severity::Warning => ("warn", "warning"),
    };
    let file =
        Path::new(&**file).strip_prefix(folder).map_or(&**file, |it| it.to_str().unwrap_or(file));
    html! {
        li {
            p.what dir="auto" { span class={ "pill " (tone) } { (word) } " " (one_line(message, 600)) " " span.tag { (code) } }
            p.where-at dir="auto" {
                code { (one_line(file, 200)) @if let Some(place) = place { ":" (place.line) ":" (place.column) } }
                @if let Some(id) = case_id { " in case " code { (one_line(id, 100)) } }
            }
            @if let Some(place) = place { (source(place)) }
            @if let Some(help) = help { p.note dir="auto" { (one_line(help, 400)) } }
        }
    }
}

/// The line that a problem is about, with what is wrong in it marked.
fn source(place: &Place) -> Markup {
    let Place { line, source, highlight, .. } = place;
    let part = |range: std::ops::Range<usize>| source.get(range).unwrap_or_default();
    html! {
        pre.source dir="auto" {
            span.line-number { (line) }
            (safe(part(0..highlight.start)))
            mark { (safe(part(highlight.clone()))) }
            (safe(part(highlight.end..source.len())))
        }
    }
}

fn findings(runner: &RunnerSurvey, findings: &Findings, folder: &Path) -> Markup {
    let more = findings.count().saturating_sub(MOST_SHOWN.min(findings.first.len()));
    // Whoever copies the command may stand anywhere.
    let file = |it: &String| shell_word(&folder.join(it).display().to_string());
    let files: Vec<_> = runner.dataset.iter().map(file).collect();
    html! {
        @if findings.count() > 0 || runner.linted < runner.stats.cases {
            section.panel.problems {
                div.bar {
                    h2 dir="auto" { "What is probably wrong with the dataset of " (one_line(&runner.name, 80)) }
                    p.note { @for (at, (code, number)) in findings.counts.iter().enumerate() { @if at > 0 { " · " } (code) " " (grouped(*number as u64)) } }
                }
                ol.compact { @for LintFinding { code, case_id, message } in findings.first.iter().take(MOST_SHOWN) {
                    li { p.what dir="auto" { code { (one_line(case_id, 100)) } ": " (one_line(message, 300)) " " span.tag { (code) } } }
                } }
                @if more > 0 || runner.linted < runner.stats.cases { p.note.more {
                    @if more > 0 { "and " (grouped(more as u64)) " more. " }
                    @if runner.linted < runner.stats.cases { "Only the first " (grouped(runner.linted as u64)) " cases were looked at. " }
                    "All of them:"
                } (command(&format!("probity dataset lint {}", files.join(" ")))) }
            }
        }
    }
}
