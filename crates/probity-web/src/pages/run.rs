//! One run.

use std::collections::BTreeMap;

use maud::{Markup, html};
use probity_core::{failure::ErrorKind, record::RunStatus};
use probity_grade::errors::fingerprint;
use probity_report::{
    conclusion::Conclusion,
    html::overview,
    plain::{one_line, shell_word},
};
use probity_store::{Reader, RunRow, ScoreBars, Trouble};

use super::{
    Part, Tab,
    live::{Progress, fragment},
    page,
    parts::{command, count, grouped, percent},
    people, run_head,
};
use crate::{
    address::{self, encoded},
    load::{self, Run},
    problem::Problem,
    site::Site,
};

/// Errors that are shown.
const MOST_ERRORS: usize = 12;

pub(crate) fn make(site: &Site, reader: &Reader, name: &str) -> Result<Markup, Problem> {
    let row = reader.find(name)?;
    let content = match row.status {
        RunStatus::Running => going_on(reader, &row)?,
        RunStatus::Complete | RunStatus::Decided | RunStatus::Incomplete | RunStatus::Killed => {
            ended(site, reader, name)?
        }
    };
    Ok(page(Part::Runs, &format!("{} {}", row.suite, row.short()), &content))
}

/// A run that goes on: its figures change by the second, and there is no verdict yet.
fn going_on(reader: &Reader, row: &RunRow) -> Result<Markup, Problem> {
    let progress = Progress::read(reader, row)?;
    Ok(html! {
        (run_head(row, progress.lanes.len(), Tab::Overview))
        section #live .panel.live aria-label="Progress" data-live={ (address::run(&row.run_id)) "/live" } {
            (fragment(row, &progress))
        }
        p.aside { "The verdict and all figures follow when the run has ended. " a href=(address::cases(&row.run_id)) { "Cases so far" } }
        script src="/assets/live.js" defer {}
    })
}

fn ended(site: &Site, reader: &Reader, name: &str) -> Result<Markup, Problem> {
    let run = load::run(site, reader, name)?;
    let details = site.details(reader, &run.row, &run.lanes)?;
    let links = format!("{}?", address::cases(&run.row.run_id));
    let said = site.people(reader, &run.row, &run.lanes)?;
    let previous = reader.runs_before(&run.row, &run.row.suite, 1)?.into_iter().next();
    Ok(html! {
        (run_head(&run.row, run.lanes.len(), Tab::Overview))
        (overview(&run.view, &links))
        (next(&run))
        (errors(&run, &details.troubles))
        (scores(&details.bars, &links))
        (people::of_run(&run.row.run_id, run.row.short(), &said.1))
        @if let Some(previous) = previous {
            p.aside {
                a href={ "/compare?runs=" (encoded(&previous.run_id)) "," (encoded(&run.row.run_id)) } {
                    "Compare with the run before (" code { (previous.short()) } ")"
                }
                " · "
                a href={ (links) "flipped=" (encoded(&previous.run_id)) } { "cases that flipped since then" }
                " · " a href={ "/trends?suite=" (encoded(&run.row.suite)) } { "trend of the suite" }
            }
        }
    })
}

/// The command that helps most now.
fn next(run: &Run) -> Markup {
    let view = &run.view;
    let short = run.row.short();
    let suite = shell_word(run.row.info.suite_path.as_deref().unwrap_or(&run.row.suite));
    let (errors, _) = view.errors();
    let is_ours = view.imported.is_none();
    let line = match () {
        () if is_ours && !view.is_sound() => Some(format!("probity run {suite} --resume {short}")),
        () if is_ours && errors > 0 && Conclusion::of(view) != Conclusion::Failed => {
            Some(format!("probity run {suite} --retry-errors {short}"))
        }
        () => None,
    };
    html! {
        @if let Some(line) = line { section.panel.next { h2 { "Go on with" } (command(&line)) } }
    }
}

/// Errors that are alike.
struct Alike<'a> {
    kind: ErrorKind,
    message: &'a str,
    case_id: &'a str,
    count: u64,
}

fn errors(run: &Run, troubles: &[Trouble]) -> Markup {
    let mut alike: BTreeMap<String, Alike<'_>> = BTreeMap::new();
    for Trouble { kind, message, count, case_id } in troubles {
        alike
            .entry(fingerprint(*kind, message))
            .and_modify(|it| it.count += count)
            .or_insert(Alike { kind: *kind, message, case_id, count: *count });
    }
    let mut alike: Vec<Alike<'_>> = alike.into_values().collect();
    alike.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.message.cmp(b.message)));
    let more = alike.len().saturating_sub(MOST_ERRORS);
    let cases = address::cases(&run.row.run_id);
    html! {
        @if !alike.is_empty() {
            section.panel.errors {
                div.bar { h2 { "Errors" } p.note { a href={ (cases) "?verdict=error" } { "all of them" } } }
                ul {
                    @for it in alike.iter().take(MOST_ERRORS) {
                        li {
                            span.pill.error { (it.kind) } " " b { (grouped(it.count)) " × " }
                            code dir="auto" { (one_line(it.message, 300)) } " "
                            a href={ (cases) "/" (encoded(it.case_id)) } { "an example" }
                        }
                    }
                    @if more > 0 { li.note { "and " (count(more as u64, "other kind", "other kinds")) } }
                }
            }
        }
    }
}

fn scores(all: &[ScoreBars], links: &str) -> Markup {
    html! {
        @if !all.is_empty() {
            section.panel.scores {
                div.bar { h2 { "Scores" } p.note { "how many results have a score in each tenth from 0 to 1" } }
                div.histograms { @for it in all { (histogram(it, links)) } }
            }
        }
    }
}

fn histogram(scores: &ScoreBars, links: &str) -> Markup {
    let most = scores.bars.iter().copied().max().unwrap_or(1).max(1);
    let total: u64 = scores.bars.iter().sum();
    html! {
        figure {
            figcaption dir="auto" { (one_line(&scores.name, 60)) " " span.note { (grouped(total)) } }
            svg.histogram width="100%" height="64" role="group" aria-label={ "scores of " (one_line(&scores.name, 60)) } {
                @for (at, bar) in scores.bars.iter().enumerate() {
                    @let share = probity_core::metrics::share(*bar, most).unwrap_or(0.0);
                    @let height = 2.0 + 56.0 * share;
                    a href={ (links) "score=" (encoded(&scores.name)) "&min=0." (at) "&max=" (below(at)) } {
                        title { "0." (at) " to " (upper(at)) ": " (bar) }
                        rect class={ @if *bar > 0 { "filled" } @else { "track" } } x=(percent(place(at))) width="9%"
                            y=(format!("{:.1}", 60.0 - height)) height=(format!("{height:.1}")) rx="2" {}
                    }
                }
            }
        }
    }
}

fn place(at: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "one of ten")]
    let at = at as f64;
    at / 10.0 + 0.005
}

/// The highest value of a bar: the next one begins with a tenth of its own.
fn below(at: usize) -> String {
    if at == 9 { "1".to_owned() } else { format!("0.{at}99999") }
}

fn upper(at: usize) -> String {
    if at == 9 { "1".to_owned() } else { format!("0.{}", at + 1) }
}
