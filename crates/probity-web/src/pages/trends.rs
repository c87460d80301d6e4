//! How suites have done over time.

use maud::{Markup, html};
use probity_core::{dollars::dollars, gate::percent};
use probity_report::{
    html::shown_time,
    plain::one_line,
    trend::{Point, Trend},
};
use probity_store::Reader;

use super::{
    Part, page,
    parts::{self, empty},
};
use crate::{address, load, problem::Problem, site::Site};

const HEIGHT: f64 = 150.0;

pub(crate) fn make(
    site: &Site,
    reader: &Reader,
    name: Option<String>,
    most: usize,
) -> Result<Markup, Problem> {
    let suites = reader.suites()?;
    let latest = || reader.find("latest").ok().map(|it| it.suite);
    let name = name.or_else(latest).unwrap_or_default();
    let trends = match suites.contains(&name) {
        true => load::trends(site, reader, &name, most)?,
        false if suites.is_empty() => Vec::new(),
        false => return Err(Problem::not_found(format!("no run of `{name}` is in the store"))),
    };
    let content = html! {
        div.head { div.title { h1 { "Trends" } } }
        @if suites.is_empty() {
            (empty("No runs yet", &html! { p { "Trends show up here after the first runs of a suite." } }))
        } @else {
            form.filters method="get" action="/trends" data-auto {
                select name="suite" aria-label="Suite" {
                    @for it in &suites { option value=(it) selected[*it == name] { (one_line(it, 80)) } }
                }
                select name="limit" aria-label="How many runs" {
                    @for it in [20, 50, 100, 200] { option value=(it) selected[it == most] { "last " (it) " runs" } }
                }
                button type="submit" { "Show" }
            }
            @for trend in &trends { (lane(trend)) }
        }
    };
    Ok(page(Part::Trends, &format!("Trend of {name}"), &content))
}

fn lane(trend: &Trend) -> Markup {
    html! {
        section.panel.trend {
            div.bar { h2 dir="auto" { (one_line(&trend.title, 100)) } p.note { (parts::count(trend.points.len() as u64, "run", "runs")) } }
            (chart(&trend.points))
            details open[trend.points.len() <= 12] {
                summary { "Every run" }
                div.scroll tabindex="0" { table.points {
                    thead { tr { @for name in ["Run", "Began", "Passed", "95 %", "Errors", "Cost", "Remarks"] { th scope="col" { (name) } } } }
                    tbody {
                        @for (at, point) in trend.points.iter().enumerate().rev() {
                            (row(point, at.checked_sub(1).map(|it| &trend.points[it])))
                        }
                    }
                } }
            }
        }
    }
}

fn row(point: &Point, before: Option<&Point>) -> Markup {
    let metrics = &point.report.metrics;
    let verdicts = metrics.all.verdicts;
    html! {
        tr {
            td { a href=(address::run(&point.run)) { code { (point.run) } } }
            td { (shown_time(point.started_ms)) }
            td { b { (percent(verdicts.pass, verdicts.judged())) } }
            td { @if let Some(it) = metrics.interval { (format!("{:.1} to {:.1}", it.low * 100.0, it.high * 100.0)) } }
            td { @if verdicts.error > 0 { (verdicts.error) } }
            td { @if metrics.priced > 0 { (dollars(metrics.cost_usd)) } }
            td.note { (point.remarks(before).join(", ")) }
        }
    }
}

/// The rates as a line within the band of their intervals. Runs are equally far apart.
fn chart(points: &[Point]) -> Markup {
    let rates: Vec<(usize, f64)> = points
        .iter()
        .enumerate()
        .filter_map(|(at, it)| Some((at, it.report.metrics.all.verdicts.rate()?)))
        .collect();
    let x = |at: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred runs")]
        let (at, all) = (at as f64, (points.len().max(2) - 1) as f64);
        parts::percent(0.01 + 0.98 * at / all)
    };
    let y = |rate: f64| format!("{:.1}", 10.0 + (HEIGHT - 20.0) * (1.0 - rate));
    html! {
        div.chart {
            div.axis aria-hidden="true" { span { "100 %" } span { "50 %" } span { "0 %" } }
            svg width="100%" height=(HEIGHT) role="group" aria-label="Pass rate of each run, with its 95 % interval" {
                @for at in [0.0, 0.5, 1.0] { line.rule x1="0" x2="100%" y1=(y(at)) y2=(y(at)) {} }
                @for point in rates.windows(2) {
                    line.trend-line x1=(x(point[0].0)) y1=(y(point[0].1)) x2=(x(point[1].0)) y2=(y(point[1].1)) {}
                }
                @for (at, rate) in &rates {
                    @let point = &points[*at];
                    a href=(address::run(&point.run)) {
                        title { (point.run) ", " (shown_time(point.started_ms)) ": " (format!("{:.1} %", rate * 100.0)) }
                        @if let Some(it) = point.report.metrics.interval {
                            line.whisker x1=(x(*at)) x2=(x(*at)) y1=(y(it.high)) y2=(y(it.low)) {}
                        }
                        circle.trend-dot cx=(x(*at)) cy=(y(*rate)) r="4" {}
                    }
                }
            }
        }
    }
}
