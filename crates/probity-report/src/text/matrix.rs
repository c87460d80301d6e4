//! The pass rates of a runner by its variants and backends.

use std::fmt::Write as _;

use probity_core::{
    gate::percent,
    metrics::Verdicts,
    view::{LaneReport, RunView},
};

use super::{
    TITLE, shown_interval,
    table::{Column, fit, line, width_of},
};
use crate::plain::{fitted, one_line};

/// A table for each runner that has several variants: a row for each of them, a column for each
/// backend. Columns for which there is no room go below the others.
pub(super) fn write(text: &mut String, run: &RunView, width: usize) {
    for runner in distinct(&run.lanes, |it| Some(&it.lane.runner)) {
        let of_runner = |it: &&LaneReport| it.lane.runner == runner;
        let lanes: Vec<&LaneReport> = run.lanes.iter().filter(of_runner).collect();
        let variants = distinct(lanes.iter().copied(), |it| it.lane.variant.as_deref());
        if variants.len() < 2 {
            continue;
        }
        let title = format!("{}: pass rate (95 % CI)", one_line(runner, 60));
        let _ = writeln!(text, "\n{TITLE}{title}{TITLE:#}");
        let backends = distinct(lanes.iter().copied(), |it| Some(&it.lane.backend));
        let columns = backends.into_iter().map(|backend| {
            let cell = |variant: &&str| {
                let lane = |it: &&&LaneReport| {
                    it.lane.backend == backend && it.lane.variant.as_deref() == Some(*variant)
                };
                lanes.iter().find(lane).map_or_else(|| "-".to_owned(), |it| rate(it))
            };
            let cells = variants.iter().map(cell).collect();
            Column { head: fitted(backend, 44).into(), cells, is_name: false, spare: 0 }
        });
        let mut table = vec![names(&variants)];
        for column in columns {
            table.push(column);
            if table.len() > 2 && width_of(&table) > width {
                let last = table.pop();
                write_table(text, &mut table, width);
                table = std::iter::once(names(&variants)).chain(last).collect();
            }
        }
        write_table(text, &mut table, width);
    }
}

fn names(variants: &[&str]) -> Column {
    let cells = variants.iter().map(|it| fitted(it, 44)).collect();
    Column { head: "variant".into(), cells, is_name: true, spare: 0 }
}

fn write_table(text: &mut String, table: &mut [Column], width: usize) {
    fit(table, width);
    let rows = table.first().map_or(0, |it| it.cells.len());
    let _ = writeln!(text, "{TITLE}{}{TITLE:#}", line(table, None));
    for row in 0..rows {
        let _ = writeln!(text, "{}", line(table, Some(row)));
    }
}

fn rate(report: &LaneReport) -> String {
    let Verdicts { pass, fail, .. } = report.metrics.all.verdicts;
    let rate = percent(pass, pass + fail);
    match report.metrics.interval {
        Some(interval) => format!("{rate} ({})", shown_interval(interval)),
        None => rate,
    }
}

/// What there is, each once, in the order of the lanes.
fn distinct<'l>(
    lanes: impl IntoIterator<Item = &'l LaneReport>,
    of: fn(&'l LaneReport) -> Option<&'l str>,
) -> Vec<&'l str> {
    let mut all = Vec::new();
    for name in lanes.into_iter().filter_map(of) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}
