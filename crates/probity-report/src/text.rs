//! What the terminal shows of a run: what is wrong first, then figures, the verdict last.

pub(crate) mod consistency;
mod failing;
mod lane;
mod lanes;
mod matrix;
mod since;
mod table;
mod verdict;

use std::{fmt::Write as _, io};

use anstyle::Style;
use probity_core::{
    classification::Verdict,
    dollars::dollars,
    gate::GateStatus,
    metrics::Metrics,
    record::{CallError, Lane, LaneKey, LaneStatus},
    view::{Cases, LaneReport, RunView},
};

pub(crate) use probity_core::figures::shown_interval;

use crate::{
    palette::{Tint, WARN},
    plain::{columns, counted, one_line, wrapped},
};
pub use since::{Flips, Since};

const GOOD: Style = Tint::of_verdict(Verdict::Pass).style();
const BAD: Style = Tint::of_verdict(Verdict::Fail).style().bold();
const SO_SO: Style = WARN.style();
const TITLE: Style = Style::new().bold();

/// The width of a terminal that does not say how wide it is.
pub const USUAL_WIDTH: usize = 80;

/// A run, and how much of it the terminal shows.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The run.
    pub run: &'a RunView,
    /// Its cases.
    pub cases: &'a dyn Cases,
    /// What has flipped since an earlier run.
    pub since: Option<&'a Since>,
    /// The suite as it is named on the command line; none if that is not known.
    pub suite: Option<&'a str>,
    /// The command that goes on with the run.
    pub resume: Option<&'a str>,
    /// The exit code that follows; none where it says nothing about the run.
    pub exit_code: Option<u8>,
    /// Columns.
    pub width: usize,
    /// How much is said.
    pub extent: Extent,
}

/// How much is said of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What one wants to know after a run: several lanes are rows of one table.
    Brief,
    /// All figures of each lane, and more of the cases that did not pass.
    Full,
}

impl<'a> Page<'a> {
    /// All that is known of a run, for a terminal of the usual width.
    pub fn full(run: &'a RunView, cases: &'a dyn Cases) -> Self {
        let (extent, width) = (Extent::Full, USUAL_WIDTH);
        Self { run, cases, since: None, suite: None, resume: None, exit_code: None, width, extent }
    }

    /// What a lane is called beside the others: what all have in common is left out.
    fn label(&self, report: &LaneReport) -> String {
        lane_label(&report.lane, self.run.lanes.iter().map(|it| &it.lane))
    }

    fn has_several_lanes(&self) -> bool {
        self.run.lanes.len() > 1
    }
}

/// What a lane is called beside the others: what all have in common is left out.
pub fn lane_label<'a>(lane: &Lane, all: impl IntoIterator<Item = &'a Lane>) -> String {
    let LaneKey { runner, variant, backend } = lane.key();
    let (mut same_runner, mut same_backend) = (true, true);
    for other in all {
        same_runner &= other.runner == runner;
        same_backend &= other.backend == backend;
    }
    match variant {
        None if same_runner => backend.to_owned(),
        Some(variant) if same_runner && same_backend => variant.to_owned(),
        Some(variant) if same_runner => format!("{variant} on {backend}"),
        None | Some(_) if same_backend => lane.key().task(),
        None | Some(_) => lane.key().to_string(),
    }
}

/// The summary of a run, with colours for terminals that have them.
pub fn render(page: &Page<'_>) -> io::Result<String> {
    let run = page.run;
    let imported = run.imported.as_ref().map(|it| one_line(&format!(", imported from {it}"), 120));
    let mut text = format!(
        "run {} of {}: {}{}\n",
        run.run_id,
        one_line(&run.suite, 60),
        run.status,
        imported.unwrap_or_default()
    );
    failing::write(&mut text, page)?;
    if let Some(since) = page.since {
        since::write(&mut text, page, since);
    }
    if page.has_several_lanes() {
        lanes::write(&mut text, page);
        matrix::write(&mut text, run, page.width);
    }
    for report in &run.lanes {
        match page.extent {
            Extent::Brief if page.has_several_lanes() => {
                lane::write_rest(&mut text, report, page.width);
            }
            Extent::Brief | Extent::Full => lane::write(&mut text, report, page.width),
        }
    }
    if let Some(means) = means(run) {
        let _ = writeln!(text, "\n{means}");
    }
    for found in &run.consistency {
        consistency::write(&mut text, &run.short, found);
    }
    if let Some(against) = &run.against {
        text.push_str(&against.text);
    }
    write_gates(&mut text, page);
    verdict::write(&mut text, page);
    Ok(text)
}

/// The two means of the pass rates, where there are several.
pub fn means(run: &RunView) -> Option<String> {
    let (micro, macro_) = (run.micro_mean()?, run.macro_mean()?);
    let [micro, macro_] = [micro, macro_].map(|mean| format!("{:.1} %", mean * 100.0));
    let several = run.lanes.len() > 1;
    several.then(|| format!("mean pass rate: {micro} over results, {macro_} over lanes"))
}

/// The gates, those that do not hold first.
fn write_gates(text: &mut String, page: &Page<'_>) {
    let gates = page.run.lanes.iter().flat_map(|it| it.gates.iter().map(move |gate| (it, gate)));
    let mut gates: Vec<_> = gates.collect();
    if gates.is_empty() {
        return;
    }
    gates.sort_by_key(|(_, gate)| std::cmp::Reverse(gate.status));
    let _ = writeln!(text, "\n{TITLE}gates{TITLE:#}");
    let is_terse = page.extent == Extent::Brief && page.has_several_lanes();
    for (report, outcome) in &gates {
        let (style, word) = match outcome.status {
            GateStatus::Pass | GateStatus::Empty if is_terse => continue,
            GateStatus::Pass => (GOOD, "pass"),
            GateStatus::Empty => (SO_SO, "n/a"),
            GateStatus::Warn => (SO_SO, "warn"),
            GateStatus::Fail => (BAD, "FAIL"),
        };
        let sentence = outcome.sentence();
        let label = match page.has_several_lanes() {
            true => one_line(&page.label(report), 60),
            false => String::new(),
        };
        let between = match columns(&label) + columns(&sentence) + 9 > page.width {
            _ if label.is_empty() => "",
            true => ":\n         ",
            false => ": ",
        };
        let line = format!("  {style}{word:<4}{style:#} {label}{between}{sentence}\n");
        text.push_str(&wrapped(&line, page.width));
    }
    let count = |status: GateStatus| gates.iter().filter(|(_, it)| it.status == status).count();
    let others = [
        (count(GateStatus::Pass), GOOD, "pass", ""),
        (count(GateStatus::Empty), SO_SO, "n/a", " had nothing to judge, which is allowed"),
    ];
    for (count, style, word, why) in others.into_iter().filter(|it| is_terse && it.0 > 0) {
        let gates = counted(count, "gate");
        let _ = writeln!(text, "  {style}{word:<4}{style:#} {gates}{why}");
    }
}

/// What a lane used.
pub fn spent(metrics: &Metrics) -> String {
    let mut text = counted(metrics.calls, "call");
    if metrics.cached > 0 {
        let _ = write!(text, ", {} from the cache", counted(metrics.cached, "answer"));
    }
    if metrics.replayed > 0 {
        let _ = write!(text, ", {} from a recording", counted(metrics.replayed, "answer"));
    }
    if metrics.input_tokens + metrics.output_tokens > 0 {
        let estimated = estimated(metrics);
        let (input, output) = (metrics.input_tokens, metrics.output_tokens);
        let _ = write!(text, ", {input} tokens in, {output} out{estimated}");
    }
    if metrics.priced > 0 {
        let _ = write!(text, ", {}{}", dollars(metrics.cost_usd), estimated(metrics));
    }
    text
}

/// What stands behind tokens and dollars that were, at least in part, estimated.
pub fn estimated(metrics: &Metrics) -> &'static str {
    if metrics.estimated > 0 { " (estimated)" } else { "" }
}

/// What there is to say about a lane that did not come to its end.
pub fn told(report: &LaneReport) -> Option<String> {
    let status = report.status.as_ref()?;
    let cut = match report.aborted {
        0 => String::new(),
        1 => "; 1 case was cut off".to_owned(),
        count => format!("; {count} cases were cut off"),
    };
    let text = match status {
        LaneStatus::Complete => return None,
        LaneStatus::FailFast { reason, permanent } => {
            let what = report.error.as_ref().map_or_else(|| reason.clone(), CallError::sentence);
            let kind = if *permanent { "a permanent error" } else { "a transient error" };
            let advice = report.error.as_ref().and_then(CallError::advice);
            let advice = advice.map(|it| format!("; {it}")).unwrap_or_default();
            format!("stopped by {kind}, again and again: {}{advice}", one_line(&what, 300))
        }
        LaneStatus::Skipped { reason } => {
            format!("skipped: a backend that it needs was given up: {}", one_line(reason, 200))
        }
        LaneStatus::Budget { reason } => format!("stopped by the budget: {reason}"),
        LaneStatus::Decided { gates, reason } => {
            return Some(format!("stopped: the gates are decided ({}), {reason}", gates.as_str()));
        }
        LaneStatus::Interrupted => "interrupted".to_owned(),
        LaneStatus::TimedOut { reason } => format!("stopped: {}", one_line(reason, 200)),
        LaneStatus::GaveUp { reason } => {
            format!("aborted by the program itself: {}", one_line(reason, 200))
        }
        LaneStatus::Broken { reason } => format!("broken: {}", one_line(reason, 200)),
    };
    Some(text + &cut)
}

/// A time that was reckoned.
pub fn millis(value: f64) -> String {
    match value.max(0.0).round() {
        value if value < 1000.0 => format!("{value}ms"),
        value => format!("{:.2}s", value / 1000.0),
    }
}

/// How fast tokens came.
pub(crate) fn speed(per_second: f64) -> String {
    format!("{per_second:.1} tokens/s")
}

#[cfg(test)]
mod tests;
