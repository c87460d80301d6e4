//! The pages, and what they have in common.

pub(crate) mod case;
pub(crate) mod cases;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod grid;
pub(crate) mod live;
pub(crate) mod parts;
pub(crate) mod people;
pub(crate) mod problem;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod suite;
pub(crate) mod suites;
pub(crate) mod trends;

use maud::{DOCTYPE, Markup, html};
use probity_report::{html::shown_time, plain::one_line};
use probity_store::RunRow;

use crate::address;

/// Which part of the site a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Runs,
    Compare,
    Trends,
    Suites,
    Doctor,
    None,
}

/// Which page of a run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Overview,
    Cases,
    Grid,
    /// One of its cases.
    Case,
}

/// A whole page.
pub(crate) fn page(part: Part, title: &str, content: &Markup) -> Markup {
    let links = [
        (Part::Runs, "/", "Runs"),
        (Part::Compare, "/compare", "Compare"),
        (Part::Trends, "/trends", "Trends"),
        (Part::Suites, "/suites", "Suites"),
        (Part::Doctor, "/doctor", "Doctor"),
    ];
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (one_line(title, 100)) " – Probity" }
                link rel="stylesheet" href="/assets/report.css";
                link rel="stylesheet" href="/assets/web.css";
                link rel="stylesheet" href="/assets/people.css";
                // Before the page is drawn, so that it does not flash in the other colours.
                script src="/assets/web.js" {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.site {
                    a.brand href="/" { "Probity" }
                    nav aria-label="Site" {
                        @for (of, href, name) in links {
                            a href=(href) aria-current=[(of == part).then_some("page")] { (name) }
                        }
                    }
                    button #theme type="button" aria-label="Switch between light and dark" title="Light or dark" hidden { "◐" }
                }
                main #main { (content) }
            }
        }
    }
}

/// The beginning of every page of a run: what it is, and where else one can go.
pub(crate) fn run_head(run: &RunRow, lanes: usize, tab: Tab) -> Markup {
    let tabs = [
        (Tab::Overview, address::run(&run.run_id), "Overview"),
        (Tab::Cases, address::cases(&run.run_id), "Cases"),
        (Tab::Grid, format!("{}/grid", address::run(&run.run_id)), "Grid"),
    ];
    html! {
        div.head {
            div.title {
                p.crumbs { a href="/" { "Runs" } " / " code { (run.short()) } }
                h1 dir="auto" { (one_line(&run.suite, 100)) }
            }
            dl.meta {
                div { dt { "Began" } dd { (shown_time(run.started_ms)) } }
                @if let Some(ended) = run.finished_ms { div { dt { "Took" } dd { (parts::took(ended - run.started_ms)) } } }
                div { dt { "State" } dd { (parts::status(run.status)) } }
                div { dt { "Lanes" } dd { (lanes) } }
                @if let Some(from) = &run.info.rescored_from {
                    div { dt { "Judged again from" } dd { a href=(address::run(from)) { code { (one_line(from, 24)) } } } }
                }
                @if let Some(imported) = &run.info.imported {
                    div { dt { "Imported from" } dd dir="auto" { (one_line(&imported.to_string(), 60)) } }
                }
            }
            nav.tabs aria-label="Pages of this run" {
                @for (of, href, name) in tabs {
                    a href=(href) aria-current=[(of == tab).then_some("page")] { (name) }
                }
            }
        }
    }
}
