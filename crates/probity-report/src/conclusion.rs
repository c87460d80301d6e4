//! How a run stands, in a word and a sentence: what the first line of a report says.

use std::fmt::Write as _;

use probity_core::{
    gate::{GateStatus, percent, percent_beside},
    metrics::Verdicts,
    record::LaneStatus,
    view::{Against, LaneReport, RunView},
};

use crate::text;

/// What a run comes to, by the same rules as the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every gate holds; or there is none, and nothing failed.
    Passed,
    /// A gate holds only just; or there is none, and something failed.
    Warned,
    /// A gate does not hold.
    Failed,
    /// The run is not whole, or has too many errors: its results are not usable.
    Unsound,
}

impl Conclusion {
    /// That of a run.
    pub fn of(run: &RunView) -> Self {
        let (_, results) = run.errors();
        let sound = run.is_sound()
            && results > 0
            && run.locked_out() == 0
            && !run.is_degraded()
            && !run.decides_nothing();
        let is_worse = run.against.as_ref().is_some_and(|it| !it.reasons.is_empty());
        match run.gate_status() {
            _ if !sound => Self::Unsound,
            _ if is_worse => Self::Failed,
            Some(GateStatus::Fail) => Self::Failed,
            Some(GateStatus::Pass | GateStatus::Empty) => Self::Passed,
            None if totals(run).pass == totals(run).total() => Self::Passed,
            Some(GateStatus::Warn) | None => Self::Warned,
        }
    }

    /// The sign for it.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Passed => "✅",
            Self::Warned => "⚠️",
            Self::Failed | Self::Unsound => "❌",
        }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Warned => "Warning",
            Self::Failed => "Failed",
            Self::Unsound => "No result",
        }
    }

    /// The name used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warned => "warned",
            Self::Failed => "failed",
            Self::Unsound => "unsound",
        }
    }
}

/// Why a run stands as it does, in a sentence without a period.
pub fn sentence(run: &RunView) -> String {
    let (reason, counts) = parts(run);
    format!("{reason}; {counts}")
}

/// Why a run stands as it does, and how many cases passed.
pub(crate) fn parts(run: &RunView) -> (String, String) {
    let gates = || run.lanes.iter().flat_map(|lane| &lane.gates);
    let count = |status: GateStatus| gates().filter(|gate| gate.status == status).count();
    let (failed, warned, all) = (count(GateStatus::Fail), count(GateStatus::Warn), gates().count());
    let Verdicts { pass, fail, error, undecided } = totals(run);
    let judged = format!("{pass} of {} passed ({})", pass + fail, percent(pass, pass + fail));
    let mut errors = match error {
        0 => String::new(),
        _ => format!(", {error} could not be judged"),
    };
    if undecided > 0 {
        let _ = write!(errors, ", {undecided} undecided");
    }
    let worse = match &run.against {
        Some(Against { name, reasons, .. }) if !reasons.is_empty() => {
            format!("worse than the baseline `{name}` ({}); ", reasons.join("; "))
        }
        Some(_) | None => String::new(),
    };
    let of_gates = match (Conclusion::of(run), all) {
        (Conclusion::Unsound, _) => return (unsound(run), format!("{judged}{errors}")),
        (_, 0) => "no gate is declared".to_owned(),
        (Conclusion::Failed, 1) if failed == 1 => "the gate failed".to_owned(),
        (Conclusion::Failed, _) if failed == 0 => format!("none of {all} gates failed"),
        (Conclusion::Failed, _) => format!("{failed} of {all} gates failed"),
        (Conclusion::Warned, 1) => "the gate warns".to_owned(),
        (Conclusion::Warned, _) => format!("{warned} of {all} gates warn"),
        (Conclusion::Passed, 1) => "the gate passed".to_owned(),
        (Conclusion::Passed, _) => format!("all {all} gates passed"),
    };
    (format!("{worse}{of_gates}"), format!("{judged}{errors}"))
}

/// Why the results of a run are not usable.
fn unsound(run: &RunView) -> String {
    let (errors, results) = run.errors();
    let unsound = |it: &&LaneReport| !it.status.as_ref().is_some_and(LaneStatus::is_sound);
    let told = || run.lanes.iter().find(unsound).and_then(text::told);
    if results == 0 {
        told().unwrap_or_else(|| "nothing was run".to_owned())
    } else if run.locked_out() > 0 {
        format!("the key or the account was refused {} times", run.locked_out())
    } else if run.decides_nothing() {
        "no case has a criterion, so nothing was decided".to_owned()
    } else if !run.is_sound() {
        told().unwrap_or_else(|| format!("the run is {}", run.status))
    } else {
        let found = percent_beside(errors, results, run.max_error_rate);
        // A product of floats is off in its last digits.
        let most = (run.max_error_rate * 1e11).round() / 1e9;
        format!("{found} of the cases ended in an error, more than {most} %")
    }
}

/// Counts of all lanes.
fn totals(run: &RunView) -> Verdicts {
    let mut sum = Verdicts::default();
    run.lanes.iter().for_each(|it| sum.merge(it.metrics.all.verdicts));
    sum
}
