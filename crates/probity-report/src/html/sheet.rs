//! The figures that only some kinds of runners have.

use maud::{Markup, html};
use probity_core::{
    figures::{Sheet, Table},
    view::RunView,
};

use crate::plain::one_line;

pub(super) fn render(run: &RunView) -> Markup {
    html! {
        @for report in &run.lanes {
            @if let Some(figures) = &report.metrics.figures {
                (section(&report.title(), &figures.sheet()))
            }
        }
    }
}

fn section(title: &str, sheet: &Sheet) -> Markup {
    html! {
        section.panel.sheet {
            div.bar { h2 dir="auto" { (one_line(title, 80)) } }
            dl {
                @for (name, value) in &sheet.facts {
                    dt { (name) } dd dir="auto" { (one_line(value, 200)) }
                }
            }
            @if !sheet.notices.is_empty() {
                details open[sheet.notices.len() <= 12] {
                    summary { (sheet.notices.len()) " worth a look" }
                    ul {
                        @for (about, message) in &sheet.notices {
                            li {
                                b dir="auto" { (one_line(about, 80)) } ": "
                                span dir="auto" { (one_line(message, 300)) }
                            }
                        }
                    }
                }
            }
            div.tables {
                @for it in sheet.tables.iter().filter(|it| !it.rows.is_empty()) { (table(it)) }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table class={ "pairs" @if table.is_grid { " grid" } } {
                caption dir="auto" { (one_line(&table.title, 80)) }
                thead { tr { @for name in &table.head { th scope="col" { (name) } } } }
                tbody {
                    @for (at, row) in table.rows.iter().enumerate() {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 { th scope="row" dir="auto" { (one_line(cell, 80)) } }
                                @else { td class=[shade(table, at, column, cell)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What was chosen rightly and what wrongly, in a table of both.
fn shade(table: &Table, row: usize, column: usize, cell: &str) -> Option<&'static str> {
    match (table.is_grid && cell != "0", column == row + 1) {
        (false, _) => None,
        (true, true) => Some("right"),
        (true, false) => Some("wrong"),
    }
}
