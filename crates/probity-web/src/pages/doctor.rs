//! Whether backends can be asked.

use std::path::Path;

use maud::{Markup, html};
use probity_core::{checkup::Checkup, visible::safe};
use probity_report::plain::{one_line, shell_word};

use super::{
    Part, page,
    parts::{command, empty},
    suite::problem,
};
use crate::{suites::Listed, survey::Examined};

/// What is shown if there is no suite to look at.
pub(crate) fn without_suite() -> Markup {
    let content = html! {
        p { "There is no suite in the folder where this was started, and no run names one that is still there. This writes one:" }
        (command("probity init"))
    };
    page(Part::Doctor, "Doctor", &empty("No suite to look at", &content))
}

pub(crate) fn render(suites: &[&Listed], file: &Path, examined: &Examined) -> Markup {
    let path = shell_word(&file.display().to_string());
    let content = html! {
        div.head { div.title { h1 { "Doctor" } } }
        (chooser(suites, file))
        @match examined {
            Examined::Backends(backends) if backends.is_empty() => (empty("No backends", &html! {
                p { "The suite describes no backend. Each has a table of its own: " code { "[backends.NAME]" } "." }
            })),
            Examined::Backends(backends) => {
                (standing(backends))
                div.cards { @for it in backends { (card(it)) } }
            },
            Examined::Unusable(problems) => section.panel.problems {
                div.bar { h2 { "The suite cannot be used" } }
                ol { @for it in problems.first.iter().take(20) { (problem(it, file.parent().unwrap_or(file))) } }
            },
            Examined::Failed(why) => (empty("This cannot be shown", &html! { p dir="auto" { (safe(why)) } })),
        }
        section.panel.next {
            h2 { "Ask them" }
            p.note { "This page asks nobody and starts nothing. These commands do: the first asks servers for their models and programs for their versions, the second makes one real call to each backend, which may cost money." }
            (command(&format!("probity doctor {path}")))
            (command(&format!("probity doctor {path} --call")))
        }
    };
    page(Part::Doctor, "Doctor", &content)
}

fn chooser(suites: &[&Listed], file: &Path) -> Markup {
    html! {
        form.filters method="get" action="/doctor" data-auto {
            select.wide name="suite" aria-label="Suite" {
                @for it in suites {
                    @if let Some(of) = &it.file {
                        option value=(of.display()) selected[of == file] { (one_line(&of.display().to_string(), 120)) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn standing(backends: &[Checkup]) -> Markup {
    let bad: Vec<&str> =
        backends.iter().filter(|it| !it.is_sound()).map(|it| it.backend.as_str()).collect();
    html! {
        @match bad.is_empty() {
            true => div.standing.passed { strong { "Ready" } p { "Nothing stands in the way of asking, as far as can be seen from here." } },
            false => div.standing.failed { strong { "Not ready" } p dir="auto" { "Cannot be asked: " (one_line(&bad.join(", "), 300)) } },
        }
    }
}

fn card(checkup: &Checkup) -> Markup {
    html! {
        section.panel.card.checkup {
            h2 dir="auto" { (one_line(&checkup.backend, 80)) " " span.tag { (checkup.kind) } }
            dl {
                @for it in &checkup.findings {
                    div.bad[it.is_trouble] {
                        dt { (it.name) }
                        dd dir="auto" { @if it.is_trouble { span.pill.fail { "problem" } " " } (safe(&it.text)) }
                    }
                }
            }
        }
    }
}
