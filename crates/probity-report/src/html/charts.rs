//! Charts as SVG whose lengths are shares of the width, so that they fit every screen while
//! their text keeps its size.

use std::{collections::BTreeSet, fmt::Write as _};

use maud::{Markup, html};
use probity_core::{
    gate::{Bound, Metric, percent},
    metrics::{Latency, Metrics, Slice, Verdicts},
    view::{LaneReport, RunView},
};

use super::MOST_LABEL;
use crate::{
    MOST_CATEGORIES,
    plain::{capped, one_line},
    text::millis,
};

/// Lanes that stand side by side in a table of shares.
const MOST_LANES: usize = 6;
/// Tags that are listed, those with the most cases first.
const MOST_TAGS: usize = 12;

pub(super) fn render(run: &RunView, links: &str) -> Markup {
    let tags = tags(run, links);
    let categories = categories(run, links);
    html! {
        section.charts aria-label="Charts" {
            @if run.lanes.len() > 1 { (rates(run)) }
            (classes(run, links))
            @if run.lanes.iter().any(|lane| lane.metrics.latency.is_some()) {
                (latencies(run, "Latency: median, p95, p99", |it| it.latency))
            }
            @if run.lanes.iter().any(|lane| lane.metrics.ttft.is_some()) {
                (latencies(run, "Time to first token: median, p95, p99", |it| it.ttft))
            }
            @if !categories.is_empty() { (shares("Pass rate by category", run, &categories)) }
            @if !tags.is_empty() { (shares("Pass rate by tag", run, &tags)) }
        }
    }
}

/// The rate of a lane with its interval, and the limits that gates set for it.
pub(super) fn interval(report: &LaneReport) -> Markup {
    let metrics = &report.metrics;
    let Some(rate) = metrics.all.verdicts.rate() else { return html! {} };
    let limits = report
        .gates
        .iter()
        .filter(|it| it.gate.metric == Metric::PassRate && it.gate.category.is_none());
    let label =
        format!("passed {}", percent(metrics.all.verdicts.pass, metrics.all.verdicts.judged()));
    html! {
        svg.interval width="100%" height="22" role="img" aria-label=(label) {
            rect.track x="0" y="9" width="100%" height="4" rx="2" {}
            @if let Some(range) = metrics.interval {
                rect.range x=(share(range.low)) y="6" width=(share(range.high - range.low)) height="10" rx="3" {
                    title { "95 % interval" }
                }
            }
            @for limit in limits {
                @let (Bound::AtLeast(at) | Bound::AtMost(at)) = limit.gate.bound;
                line.limit x1=(share(at.to_f64())) x2=(share(at.to_f64())) y1="1" y2="21" {
                    title { (limit.gate) }
                }
            }
            line.rate-mark x1=(share(rate)) x2=(share(rate)) y1="3" y2="19" {}
        }
    }
}

fn rates(run: &RunView) -> Markup {
    html! {
        figure.panel {
            figcaption { "Pass rate with its 95 % interval" }
            div.rows {
                @for report in &run.lanes {
                    @let Verdicts { pass, fail, .. } = report.metrics.all.verdicts;
                    span.label dir="auto" { (one_line(&report.title(), 40)) }
                    (interval(report))
                    span.value { (percent(pass, pass + fail)) }
                }
            }
        }
    }
}

/// What the results of each lane are, as parts of one bar.
fn classes(run: &RunView, links: &str) -> Markup {
    html! {
        figure.panel {
            figcaption { "Results by class" }
            div.rows {
                @for report in &run.lanes {
                    @let total = report.metrics.all.classes.total();
                    span.label dir="auto" { (one_line(&report.title(), 40)) }
                    svg width="100%" height="18" role="img" aria-label=(described(report)) {
                        rect.track x="0" y="2" width="100%" height="14" rx="3" {}
                        @for part in parts(report) {
                            rect class={ "fill " (part.class) } x=(share(part.from)) y="2"
                                width=(share(part.width)) height="14" {
                                title { (part.class) ": " (part.count) }
                            }
                        }
                    }
                    span.value { (total) }
                }
            }
            (legend(run, links))
        }
    }
}

fn legend(run: &RunView, links: &str) -> Markup {
    let mut sum = probity_core::classification::Counts::default();
    run.lanes.iter().for_each(|lane| sum.merge(&lane.metrics.all.classes));
    html! {
        ul.classes {
            @for (class, count) in sum.iter().filter(|(_, count)| *count > 0) {
                li { a href={ (links) "class=" (class) } { span class={ "dot " (class) } {} (class) " " b { (count) } } }
            }
        }
    }
}

struct Part {
    class: &'static str,
    count: u64,
    from: f64,
    width: f64,
}

fn parts(report: &LaneReport) -> Vec<Part> {
    let classes = &report.metrics.all.classes;
    let total = classes.total();
    let of_total = |count: u64| probity_core::metrics::share(count, total).unwrap_or(0.0);
    let mut before = 0;
    let mut parts = Vec::new();
    for (class, count) in classes.iter().filter(|(_, count)| *count > 0) {
        parts.push(Part {
            class: class.as_str(),
            count,
            from: of_total(before),
            width: of_total(count),
        });
        before += count;
    }
    parts
}

fn described(report: &LaneReport) -> String {
    let parts: Vec<String> =
        parts(report).iter().map(|part| format!("{} {}", part.count, part.class)).collect();
    parts.join(", ")
}

/// Median, p95 and p99 of each lane on one scale.
fn latencies(run: &RunView, title: &str, times: fn(&Metrics) -> Option<Latency>) -> Markup {
    let longest = run.lanes.iter().filter_map(|lane| times(&lane.metrics)).map(|it| it.p99);
    let longest = longest.fold(1.0_f64, f64::max);
    html! {
        figure.panel {
            figcaption { (title) }
            div.rows {
                @for report in &run.lanes {
                    @if let Some(latency) = times(&report.metrics) {
                        @let at = |value: f64| share(0.01 + 0.98 * value / longest);
                        @let label = format!(
                            "median {}, p95 {}, p99 {}, longest {}",
                            millis(latency.p50), millis(latency.p95), millis(latency.p99), millis(latency.max)
                        );
                        span.label dir="auto" { (one_line(&report.title(), 40)) }
                        svg width="100%" height="18" role="img" aria-label=(label) {
                            title { (label) }
                            rect.track x="0" y="7" width="100%" height="4" rx="2" {}
                            line.spread x1=(at(latency.p50)) x2=(at(latency.p99)) y1="9" y2="9" {}
                            circle.p50 cx=(at(latency.p50)) cy="9" r="5" {}
                            circle.p95 cx=(at(latency.p95)) cy="9" r="4" {}
                            circle.p99 cx=(at(latency.p99)) cy="9" r="3" {}
                        }
                        span.value { (millis(latency.p50)) " · " (millis(latency.p95)) " · " (millis(latency.p99)) }
                    }
                }
            }
        }
    }
}

/// A name with the counts of each lane that has it.
struct Share {
    name: String,
    link: String,
    lanes: Vec<Option<Verdicts>>,
}

fn categories(run: &RunView, links: &str) -> Vec<Share> {
    let all: BTreeSet<_> = shown(run).flat_map(|lane| lane.metrics.categories.keys()).collect();
    all.into_iter()
        .take(MOST_CATEGORIES)
        .map(|category| Share {
            name: one_line(category.as_str(), 40),
            link: format!("{links}category={}", encoded(&capped(category.as_str(), MOST_LABEL))),
            lanes: shown(run)
                .map(|lane| lane.metrics.categories.get(category).map(|it: &Slice| it.verdicts))
                .collect(),
        })
        .collect()
}

fn tags(run: &RunView, links: &str) -> Vec<Share> {
    let mut sizes = std::collections::BTreeMap::<&String, u64>::new();
    for (tag, verdicts) in shown(run).flat_map(|lane| &lane.metrics.tags) {
        *sizes.entry(tag).or_default() += verdicts.total();
    }
    let mut tags: Vec<(&String, u64)> = sizes.into_iter().collect();
    tags.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    tags.into_iter()
        .take(MOST_TAGS)
        .map(|(tag, _)| Share {
            name: one_line(tag, 40),
            link: format!("{links}tag={}", encoded(&capped(tag, MOST_LABEL))),
            lanes: shown(run).map(|lane| lane.metrics.tags.get(tag).copied()).collect(),
        })
        .collect()
}

fn shown(run: &RunView) -> impl Iterator<Item = &LaneReport> {
    run.lanes.iter().take(MOST_LANES)
}

fn shares(title: &str, run: &RunView, shares: &[Share]) -> Markup {
    let more = run.lanes.len().saturating_sub(MOST_LANES);
    // A lane that has none of them needs no column.
    let has_any = |at: &usize| shares.iter().any(|it| it.lanes[*at].is_some());
    let columns: Vec<usize> = (0..shown(run).count()).filter(has_any).collect();
    html! {
        figure.panel.shares {
            figcaption { (title) @if more > 0 { ", without " (more) " more lanes" } }
            div.scroll tabindex="0" {
                table .many[columns.len() > 2] {
                    @if run.lanes.len() > 1 {
                        thead { tr { td {} @for at in &columns {
                            th scope="col" dir="auto" { (one_line(&run.lanes[*at].title(), 40)) }
                        } } }
                    }
                    tbody {
                        @for it in shares {
                            tr {
                                th scope="row" dir="auto" { a href=(it.link) { (it.name) } }
                                @for at in &columns { td { (share_cell(it.lanes[*at])) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn share_cell(verdicts: Option<Verdicts>) -> Markup {
    let Some(verdicts) = verdicts else { return html! { span.value { "–" } } };
    let Verdicts { pass, fail, error, undecided } = verdicts;
    html! { div {
        svg width="100%" height="8" aria-hidden="true" {
            rect.track x="0" y="1" width="100%" height="6" rx="3" {}
            @if let Some(rate) = verdicts.rate() {
                rect.fill.pass x="0" y="1" width=(share(rate)) height="6" rx="3" {}
            }
        }
        span.value {
            b { (percent(pass, pass + fail)) } " " (pass) "/" (pass + fail)
            @if error > 0 { ", " (error) " error" }
            @if undecided > 0 { ", " (undecided) " undecided" }
        }
    } }
}

/// A share as a length.
fn share(value: f64) -> String {
    format!("{:.3}%", value.clamp(0.0, 1.0) * 100.0)
}

/// A value in an address.
fn encoded(text: &str) -> String {
    let mut shown = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                shown.push(char::from(byte));
            }
            byte => {
                let _ = write!(shown, "%{byte:02X}");
            }
        }
    }
    shown
}
