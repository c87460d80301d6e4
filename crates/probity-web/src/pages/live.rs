//! How far a run has come.

use maud::{Markup, html};
use probity_core::{
    crew::Crew,
    gate::percent,
    record::{LaneStatus, RunStatus},
    view::LaneReport,
};
use probity_report::{
    plain::{one_line, shell_word},
    text::told,
};
use probity_store::{Failing, LaneView, Reader, RunRow, Standing, Waited};

use super::parts::{class_bar, class_legend, command, grouped, millis, pill, status};
use crate::{address, problem::Problem};

/// Failures that are shown.
const LAST: usize = 8;

/// How far a run has come.
pub(crate) struct Progress {
    pub(crate) lanes: Vec<LaneProgress>,
    pub(crate) failing: Vec<Failing>,
    pub(crate) waits: Vec<Waited>,
    /// How its workers stand, while it goes on.
    pub(crate) crew: Option<Crew>,
    /// The command that goes on with a run that did not come to its end.
    pub(crate) next: Option<String>,
}

pub(crate) struct LaneProgress {
    pub(crate) view: LaneView,
    pub(crate) standing: Standing,
    /// Why it ended early.
    pub(crate) told: Option<String>,
}

impl Progress {
    pub(crate) fn read(reader: &Reader, run: &RunRow) -> Result<Self, Problem> {
        let lanes = reader.lanes(run)?;
        let all: Vec<&LaneView> = lanes.iter().collect();
        let (failing, waits) = (reader.last_failures(&all, LAST)?, reader.waits(&all)?);
        let mut of_lanes = Vec::with_capacity(lanes.len());
        for view in lanes {
            let (standing, told) = (reader.standing(&view)?, early_end(reader, &view)?);
            of_lanes.push(LaneProgress { view, standing, told });
        }
        let next = resume(run, &of_lanes);
        let crew = match run.status {
            RunStatus::Running => reader.crew(run)?.map(|(_, crew)| crew),
            RunStatus::Complete
            | RunStatus::Decided
            | RunStatus::Incomplete
            | RunStatus::Killed => None,
        };
        Ok(Self { lanes: of_lanes, failing, waits, crew, next })
    }
}

fn early_end(reader: &Reader, view: &LaneView) -> Result<Option<String>, Problem> {
    let Some(status) = view.status.clone().filter(|it| !it.is_complete()) else { return Ok(None) };
    // What is told needs no figures.
    Ok(told(&LaneReport {
        lane: view.lane.clone(),
        status: Some(status),
        aborted: reader.aborted(view)?,
        error: reader.last_error(view)?,
        metrics: probity_core::metrics::Metrics::default(),
        gates: Vec::new(),
    }))
}

fn resume(run: &RunRow, lanes: &[LaneProgress]) -> Option<String> {
    let is_sound = |it: &LaneProgress| it.view.status.as_ref().is_some_and(LaneStatus::is_sound);
    let is_open = run.status != RunStatus::Running && !lanes.iter().all(is_sound);
    (is_open && run.info.imported.is_none()).then(|| {
        let suite = run.info.suite_path.as_deref().unwrap_or(&run.suite);
        format!("probity run {} --resume {}", shell_word(suite), run.short())
    })
}

/// The part of a page that changes while a run goes on.
pub(crate) fn fragment(run: &RunRow, progress: &Progress) -> Markup {
    let done: u64 = progress.lanes.iter().map(|it| it.standing.classes.total()).sum();
    let planned: u64 = progress.lanes.iter().map(|it| it.view.lane.planned).sum();
    html! {
        div.bar {
            h2 { "Progress" }
            p { b { (grouped(done)) " of " (grouped(planned)) } " " (status(run.status)) }
        }
        div.lanes { @for (at, lane) in progress.lanes.iter().enumerate() { (lane_row(run, at, lane)) } }
        @if let Some(crew) = &progress.crew { (workers(crew)) }
        @if !progress.waits.is_empty() {
            div.waits {
                h3 { "Backing off" }
                ul { @for it in &progress.waits { (waited(progress, it)) } }
            }
        }
        @if !progress.failing.is_empty() {
            div.last {
                h3 { "Last failures" }
                ul { @for it in &progress.failing { (failed(run, progress, it)) } }
            }
        }
        @if let Some(next) = &progress.next {
            div.next { h3 { "Go on with" } (command(next)) }
        }
    }
}

/// Who works for the run, and what waits for them.
fn workers(crew: &Crew) -> Markup {
    html! {
        div.crew {
            h3 { "Workers" }
            p {
                (grouped(crew.in_flight())) " calls at work, " (grouped(crew.backlog)) " waiting, "
                (grouped(crew.redelivered)) " delivered again"
            }
            table {
                thead { tr {
                    th { "worker" } th.number { "at work" } th.number { "slots" }
                    th.number { "done" } th.number { "calls/s" }
                } }
                tbody { @for it in &crew.workers { tr {
                    td dir="auto" { (one_line(&it.name, 80)) }
                    td.number { (grouped(it.in_flight)) } td.number { (grouped(it.slots)) }
                    td.number { (grouped(it.done)) } td.number { (format!("{:.1}", it.rate)) }
                } } }
            }
        }
    }
}

fn lane_row(run: &RunRow, at: usize, lane: &LaneProgress) -> Markup {
    let LaneProgress { view, standing, told } = lane;
    let verdicts = standing.verdicts;
    let links = format!("{}?lane={}&", address::cases(&run.run_id), at + 1);
    html! {
        div.lane-progress {
            div.lane-head {
                b dir="auto" { (one_line(&view.lane.key().to_string(), 80)) }
                span {
                    (grouped(standing.classes.total())) " of " (grouped(view.lane.planned)) " · "
                    (percent(verdicts.pass, verdicts.judged())) " passed"
                }
            }
            (class_bar(&standing.classes, view.lane.planned, 14))
            (class_legend(&standing.classes, &links))
            @if let Some(told) = told { p.told dir="auto" { (one_line(told, 500)) } }
        }
    }
}

fn waited(progress: &Progress, waited: &Waited) -> Markup {
    let backend = &progress.lanes[waited.lane].view.lane.backend;
    html! {
        li {
            b dir="auto" { (one_line(backend, 60)) } ": " (waited.error.kind)
            @if let Some(status) = waited.error.status { " (HTTP " (status) ")" }
            ", waited " (millis(waited.wait_ms)) ", " (waited.count) " of the latest results. "
            span.note dir="auto" { (one_line(&waited.error.message, 200)) }
        }
    }
}

fn failed(run: &RunRow, progress: &Progress, it: &Failing) -> Markup {
    let href = address::case(&run.run_id, &it.record.case_id, it.lane, it.record.repeat);
    html! {
        li {
            (pill(it.record.verdict)) " "
            a href=(href) dir="auto" { (one_line(&it.record.case_id, 80)) } " "
            @if progress.lanes.len() > 1 {
                span.note dir="auto" { (one_line(&progress.lanes[it.lane].view.lane.backend, 40)) " " }
            }
            span.why dir="auto" { (one_line(&it.record.why(), 200)) }
        }
    }
}
