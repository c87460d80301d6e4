//! The figures: how the run stands, a card for each lane, the charts.

use maud::{Markup, html};
use probity_core::{
    classification::Verdict,
    derived::shown,
    dollars::dollars,
    gate::{GateOutcome, GateStatus, percent},
    metrics::{Metrics, Verdicts},
    opinion::JudgeFigures,
    view::{LaneReport, RunView},
};

use super::{charts, results};
use crate::{
    conclusion::{self, Conclusion},
    plain::one_line,
    text::{estimated, means, millis, shown_interval, told},
};

/// Names of flaky cases and known failures that passed.
const MOST_NAMES: usize = 6;

/// `links` is what an address begins with that leads to the cases behind a figure.
pub(super) fn render(run: &RunView, links: &str) -> Markup {
    let concluded = Conclusion::of(run);
    let mark = match concluded {
        Conclusion::Passed => "✓",
        Conclusion::Warned => "!",
        Conclusion::Failed | Conclusion::Unsound => "✕",
    };
    html! {
        section class={ "standing " (concluded.as_str()) } aria-label="Verdict" {
            span.mark aria-hidden="true" { (mark) }
            p { strong { (concluded.word()) } span { (conclusion::sentence(run)) "." } }
            @if let Some(means) = means(run) { p.means { (means) } }
        }
        section.cards aria-label="Lanes" {
            @for (at, report) in run.lanes.iter().enumerate() { (card(at, report, links)) }
        }
        (charts::render(run, links))
    }
}

fn card(at: usize, report: &LaneReport, links: &str) -> Markup {
    let LaneReport { lane, metrics, gates, .. } = report;
    let Verdicts { pass, fail, error, undecided } = metrics.all.verdicts;
    let verdicts =
        [(Verdict::Pass, pass), (Verdict::Fail, fail), (Verdict::Error, error)].into_iter();
    let verdicts = verdicts.chain((undecided > 0).then_some((Verdict::Undecided, undecided)));
    let number = at + 1;
    html! {
        article.card {
            header {
                h2 dir="auto" { (one_line(&report.title(), 80)) }
                p.sub dir="auto" {
                    (one_line(&lane.backend_kind, 30))
                    @if let Some(model) = &lane.model { " · " (one_line(model, 60)) }
                    @if lane.replayed { " · replayed" }
                    @if let Some(tool) = &lane.imported { " · imported from " (one_line(tool, 30)) }
                }
            }
            div.rate {
                b { (percent(pass, pass + fail)) }
                span {
                    @if let Some(interval) = metrics.interval {
                        "95 % CI " (shown_interval(interval))
                        @if metrics.is_clustered { " (grouped)" }
                    } @else { "nothing to judge" }
                }
            }
            (charts::interval(report))
            ul.verdicts {
                @for (verdict, count) in verdicts {
                    li { a href={ (links) "lane=" (number) "&verdict=" (verdict) } {
                        b class=(verdict.as_str()) { (count) } " " (verdict)
                    } }
                }
                li.planned { (metrics.results()) " of " (lane.planned) " " (results(lane.planned)) }
            }
            @if let Some(told) = told(report) {
                p.note { (told) }
            }
            @if !gates.is_empty() {
                ul.gates { @for gate in gates { (gate_line(gate)) } }
            }
            ul.classes {
                @for (class, count) in metrics.all.classes.iter().filter(|(_, count)| *count > 0) {
                    li { a href={ (links) "lane=" (number) "&class=" (class) } {
                        span class={ "dot " (class) } {} (class) " " b { (count) }
                    } }
                }
            }
            (figures(metrics))
            (steadiness(metrics))
            (workers(metrics))
        }
    }
}

/// What each worker did, so that one slow machine is seen.
fn workers(metrics: &Metrics) -> Markup {
    html! {
        @if !metrics.workers.is_empty() {
            details.workers {
                summary { (metrics.workers.len()) " workers" }
                table {
                    thead { tr {
                        th { "worker" } th.number { "results" } th.number { "no reply" }
                        th.number { "median" } th.number { "p95" }
                    } }
                    tbody { @for (name, worker) in &metrics.workers { tr {
                        td { (name) } td.number { (worker.results) } td.number { (worker.errors) }
                        @match worker.latency {
                            Some(it) => { td.number { (millis(it.p50)) } td.number { (millis(it.p95)) } }
                            None => { td {} td {} }
                        }
                    } } }
                }
            }
        }
    }
}

fn gate_line(gate: &GateOutcome) -> Markup {
    let (class, word) = match gate.status {
        GateStatus::Pass => ("pass", "pass"),
        GateStatus::Empty => ("empty", "n/a"),
        GateStatus::Warn => ("warn", "warn"),
        GateStatus::Fail => ("fail", "fail"),
    };
    html! { li { span class={ "pill " (class) } { (word) } span { (gate.sentence()) } } }
}

fn figures(metrics: &Metrics) -> Markup {
    let mut figures: Vec<(String, String)> = Vec::new();
    if let Some(latency) = &metrics.latency {
        figures.push(("median".to_owned(), millis(latency.p50)));
        figures.push(("p95".to_owned(), millis(latency.p95)));
        figures.push(("p99".to_owned(), millis(latency.p99)));
    }
    if let Some(ttft) = &metrics.ttft {
        figures.push(("first token".to_owned(), millis(ttft.p50)));
        figures.push(("first token p95".to_owned(), millis(ttft.p95)));
    }
    if let Some(per_second) = metrics.tokens_per_second {
        figures.push(("tokens/s".to_owned(), format!("{per_second:.1}")));
    }
    figures.push(("calls".to_owned(), metrics.calls.to_string()));
    if metrics.input_tokens + metrics.output_tokens > 0 {
        let told = |tokens: u64| format!("{tokens}{}", estimated(metrics));
        figures.push(("tokens in".to_owned(), told(metrics.input_tokens)));
        figures.push(("tokens out".to_owned(), told(metrics.output_tokens)));
    }
    if metrics.priced > 0 {
        let cost = format!("{}{}", dollars(metrics.cost_usd), estimated(metrics));
        figures.push(("cost".to_owned(), cost));
    }
    let tries = metrics.repeats.iter().filter_map(|it| it.by_tries.last());
    for tries in tries.filter(|it| it.k > 1) {
        figures.push((format!("pass@{}", tries.k), format!("{:.1} %", tries.any * 100.0)));
        figures.push((format!("pass^{}", tries.k), format!("{:.1} %", tries.all * 100.0)));
    }
    if let Some(JudgeFigures { shared, unanimous, kappa, repeated, flipped, .. }) = &metrics.judges
    {
        if *shared > 0 {
            figures.push(("judges agree".to_owned(), percent(*unanimous, *shared)));
        }
        if let Some(kappa) = kappa {
            figures.push(("judges' kappa".to_owned(), format!("{kappa:.2}")));
        }
        if *repeated > 0 {
            figures.push(("judge noise".to_owned(), percent(*flipped, *repeated)));
        }
    }
    if metrics.cached > 0 {
        figures.push(("from the cache".to_owned(), metrics.cached.to_string()));
    }
    if metrics.policy_hits > 0 {
        figures.push(("policy hits".to_owned(), metrics.policy_hits.to_string()));
    }
    for figure in metrics.derived() {
        let value = figure.value.map_or_else(|why| format!("n/a: {why}"), shown);
        figures.push((one_line(&figure.name, 60), one_line(&value, 120)));
    }
    html! { dl.figures { @for (name, value) in figures { div { dt { (name) } dd { (value) } } } } }
}

/// Flaky cases, and known failures that passed.
fn steadiness(metrics: &Metrics) -> Markup {
    let flaky = metrics.repeats.as_ref().map_or(&[][..], |it| &it.flaky);
    let passes = &metrics.unexpected_passes;
    html! {
        @if !flaky.is_empty() {
            p.names {
                b { (flaky.len()) " flaky:" }
                @for it in flaky.iter().take(MOST_NAMES) {
                    " " code dir="auto" { (one_line(&it.case_id, 40)) } " " (it.passed) "/" (it.judged)
                }
                @if flaky.len() > MOST_NAMES { " and " (flaky.len() - MOST_NAMES) " more" }
            }
        }
        @if !passes.is_empty() {
            p.names {
                b { (passes.len()) " known to fail, and passed:" }
                @for id in passes.iter().take(MOST_NAMES) {
                    " " code dir="auto" { (one_line(id, 40)) }
                }
                @if passes.len() > MOST_NAMES { " and " (passes.len() - MOST_NAMES) " more" }
            }
        }
    }
}
