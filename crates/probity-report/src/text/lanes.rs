//! Several lanes as rows of one table.

use std::fmt::Write as _;

use probity_core::{
    dollars::dollars,
    gate::percent,
    metrics::{Metrics, Verdicts},
    view::LaneReport,
};

use super::{
    Extent, Page, TITLE, millis, shown_interval,
    table::{Column, drop_spare, fit, line, width_of},
};
use crate::plain::fitted;

/// Runners on backends, a row each. Names are cut where the terminal is too narrow for them;
/// where it is wide enough, the model has a column, too.
pub(super) fn write(text: &mut String, page: &Page<'_>) {
    let mut columns = columns(page);
    let models = names("model", page, |it| it.lane.model.clone().unwrap_or_default());
    if models.cells.iter().any(|it| !it.is_empty()) {
        let place = columns.iter().take_while(|it| it.is_name).count();
        columns.insert(place, models);
        if width_of(&columns) > page.width {
            columns.remove(place);
        }
    }
    drop_spare(&mut columns, page.width);
    fit(&mut columns, page.width);
    for more in speeds(page) {
        columns.push(more);
        if width_of(&columns) > page.width {
            columns.pop();
        }
    }
    text.push('\n');
    let rows = page.run.lanes.len();
    let _ = writeln!(text, "{TITLE}{}{TITLE:#}", line(&columns, None));
    for row in 0..rows {
        let _ = writeln!(text, "{}", line(&columns, Some(row)));
    }
    if page.extent == Extent::Brief {
        let _ = writeln!(text, "  more about each: probity show {}", page.run.short);
    }
}

fn columns(page: &Page<'_>) -> Vec<Column> {
    let lanes = &page.run.lanes;
    let spared = |spare: u8, head: &'static str, of: &dyn Fn(&LaneReport) -> String| Column {
        head: head.into(),
        cells: lanes.iter().map(of).collect(),
        is_name: false,
        spare,
    };
    let figures = |head, of: &dyn Fn(&LaneReport) -> String| spared(0, head, of);
    let none = || "-".to_owned();
    let verdicts = |it: &LaneReport| it.metrics.all.verdicts;
    let latency = |of: fn(&probity_core::metrics::Latency) -> f64| {
        move |it: &LaneReport| {
            it.metrics.latency.as_ref().map_or_else(none, |latency| millis(of(latency)))
        }
    };
    let counted = match lanes.iter().any(|it| it.lane.repeat > 1) {
        true => "answers",
        false => "cases",
    };
    let mut columns = vec![names("runner", page, |it| it.lane.runner.clone())];
    if lanes.iter().all(|it| it.lane.runner == lanes[0].lane.runner) {
        columns[0].spare = 3;
    }
    if lanes.iter().any(|it| it.lane.variant.is_some()) {
        columns.push(names("variant", page, |it| it.lane.variant.clone().unwrap_or_default()));
    }
    columns.extend([
        names("backend", page, |it| it.lane.backend.clone()),
        figures(counted, &|it| match (it.cases(), it.planned()) {
            (cases, planned) if cases == planned => cases.to_string(),
            (cases, planned) => format!("{cases}/{planned}"),
        }),
        figures("passed", &|it| {
            let Verdicts { pass, fail, .. } = verdicts(it);
            percent(pass, pass + fail)
        }),
        spared(1, "95 % CI", &|it| it.metrics.interval.map_or_else(none, shown_interval)),
        figures("errors", &|it| it.metrics.all.unjudged.to_string()),
    ]);
    if lanes.iter().any(|it| verdicts(it).undecided > 0) {
        columns.push(figures("undecided", &|it| verdicts(it).undecided.to_string()));
    }
    columns.push(spared(2, "p50", &latency(|it| it.p50)));
    columns.push(spared(4, "p95", &latency(|it| it.p95)));
    if lanes.iter().any(|it| it.metrics.priced > 0) {
        columns.push(figures("cost", &|it| match it.metrics.priced {
            0 => none(),
            _ => dollars(it.metrics.cost_usd),
        }));
    }
    columns
}

/// What is known of streamed replies, for terminals that are wide enough.
fn speeds(page: &Page<'_>) -> impl Iterator<Item = Column> {
    let figures = |head: &'static str, of: fn(&Metrics) -> Option<String>| {
        let cells: Vec<_> = page.run.lanes.iter().map(|it| of(&it.metrics)).collect();
        cells.iter().any(Option::is_some).then(|| Column {
            head: head.into(),
            cells: cells.into_iter().map(|it| it.unwrap_or_else(|| "-".to_owned())).collect(),
            is_name: false,
            spare: 0,
        })
    };
    let first = figures("first token", |it| it.ttft.map(|it| millis(it.p50)));
    let speed = figures("tokens/s", |it| it.tokens_per_second.map(|it| format!("{it:.1}")));
    first.into_iter().chain(speed)
}

fn names(head: &'static str, page: &Page<'_>, of: impl Fn(&LaneReport) -> String) -> Column {
    let cells = page.run.lanes.iter().map(|it| fitted(&of(it), 44)).collect();
    Column { head: head.into(), cells, is_name: true, spare: 0 }
}
