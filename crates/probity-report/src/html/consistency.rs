//! How far backends agree: pairs in a table, divergences in a list.

use std::fmt::Write as _;

use maud::{Markup, html};
use probity_core::{
    consistency::{Consistency, Divergence, DivergenceKind, Group},
    gate::percent,
    view::RunView,
    visible::safe,
};

use crate::{
    plain::{capped, one_line},
    text::{
        consistency::{counted, of_repeat, reasons},
        shown_interval,
    },
};

/// Characters of a command that are shown.
const MOST_COMMAND: usize = 2_000;
/// Bytes of an id that a link names; no dataset has longer ones.
const MOST_ID: usize = 512;

pub(super) fn render(run: &RunView) -> Markup {
    html! { @for found in &run.consistency { (section(run, found)) } }
}

fn section(run: &RunView, found: &Consistency) -> Markup {
    let total = found.diverge.total();
    html! {
        section.panel.agreement aria-label="Agreement of backends" {
            div.bar {
                h2 dir="auto" { "Agreement of backends: " (one_line(&found.task(), 60)) }
            }
            p.note { (counted(found)) @for line in reasons(found) { "; " (line) } "." }
            div.scroll tabindex="0" { (pairs(found)) }
            @if total > 0 {
                details open[total <= 10] {
                    summary { (total) @if total == 1 { " divergence" } @else { " divergences" } }
                    @for kind in DivergenceKind::ALL { (kind_list(run, found, kind)) }
                    @if found.unlisted() > 0 {
                        p.note { "and " (found.unlisted()) " more that are not listed" }
                    }
                }
            }
        }
    }
}

fn pairs(found: &Consistency) -> Markup {
    html! {
        table.pairs {
            thead {
                tr {
                    @for name in ["Backends", "Agreement", "95 % interval", "Equal", "Compared", "Unknown"] {
                        th scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for pair in &found.pairs {
                    tr {
                        th scope="row" dir="auto" {
                            (one_line(&found.backends[pair.backends[0]], 60)) " and "
                            (one_line(&found.backends[pair.backends[1]], 60))
                        }
                        td { b { (percent(pair.equal, pair.compared)) } }
                        td { (pair.interval().map_or_else(|| "n/a".to_owned(), shown_interval)) }
                        td { (pair.equal) }
                        td { (pair.compared) }
                        td { (pair.unknown) }
                    }
                }
            }
        }
    }
}

fn kind_list(run: &RunView, found: &Consistency, kind: DivergenceKind) -> Markup {
    let words = match kind {
        DivergenceKind::Mixed => "One passes, another fails",
        DivergenceKind::Failing => "None passes",
        DivergenceKind::Passing => "All pass: more than one right answer",
    };
    let of_kind = || found.divergences.iter().filter(|it| it.kind == kind);
    html! {
        @if of_kind().next().is_some() {
            h3 { (words) }
            ul.divergences { @for it in of_kind() { (divergence(run, found, it)) } }
        }
    }
}

fn divergence(run: &RunView, found: &Consistency, divergence: &Divergence) -> Markup {
    let Divergence { case_id, repeat, kind: _, groups, without } = divergence;
    html! {
        li {
            p.case dir="auto" { (one_line(case_id, 128)) (of_repeat(found, *repeat)) }
            dl {
                @for group in groups { (group_row(run, found, divergence, group)) }
                @for (at, why) in without {
                    dt { span.pill { "none" } span dir="auto" { (one_line(&found.backends[*at], 60)) } }
                    dd.note { (why.as_str().replace('_', " ")) }
                }
            }
        }
    }
}

fn group_row(run: &RunView, found: &Consistency, divergence: &Divergence, group: &Group) -> Markup {
    html! {
        dt {
            span class={ "pill " (group.outcome()) } { (group.outcome()) }
            @for (place, (at, _)) in group.members.iter().enumerate() {
                @if place > 0 { "," }
                " " a dir="auto" href=[link(run, found, *at, divergence)] {
                    (one_line(&found.backends[*at], 60))
                }
            }
        }
        dd {
            code dir="auto" { (safe(&capped(&group.command, MOST_COMMAND))) }
            @if group.cut > 0 { span.note { "… (" (group.cut) " more characters)" } }
            @if !group.parsed { span.note { " (cannot be read as shell)" } }
        }
    }
}

/// Where the page shows the answer of a backend.
fn link(run: &RunView, found: &Consistency, backend: usize, of: &Divergence) -> Option<String> {
    if of.case_id.len() > MOST_ID {
        return None;
    }
    let wanted = found.lane(backend);
    let lane = run.lanes.iter().position(|it| it.lane.key() == wanted)? + 1;
    let mut link = format!("#case={lane}.{}.", of.repeat);
    for byte in of.case_id.bytes() {
        let _ = match byte.is_ascii_alphanumeric() {
            true => write!(link, "{}", char::from(byte)),
            false => write!(link, "%{byte:02X}"),
        };
    }
    Some(link)
}
