//! Workflow commands of GitHub Actions: what stands beside a pull request's files.
//!
//! A command is one line; whatever could begin another is written by its number.

use std::{
    fmt::{self, Write as _},
    io,
};

use probity_core::{
    classification::Verdict,
    gate::GateStatus,
    record::{CaseRecord, Lane},
    view::{Cases, RunView},
};

use crate::{
    conclusion::{self, Conclusion},
    plain::one_line,
};

/// Bytes of a step's summary that GitHub takes.
pub const SUMMARY_LIMIT: usize = 1 << 20;
/// Cases that are told of: GitHub shows ten warnings of a step.
pub const MOST_CASES: usize = 10;
/// Characters of a message.
const MOST_MESSAGE: usize = 300;

/// Where a case stands in a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
}

/// The commands for a run: errors for gates that fail and for a run that is no basis, warnings
/// for gates that hold only just and for the first cases that did not pass, a notice of known
/// failures that passed.
pub fn commands(
    run: &RunView,
    cases: &dyn Cases,
    locate: &dyn Fn(&Lane, &str) -> Option<Place>,
) -> io::Result<String> {
    let mut text = String::new();
    if Conclusion::of(run) == Conclusion::Unsound {
        let title = format!("{}: no result", one_line(&run.suite, 60));
        write_command(&mut text, "error", None, &title, &conclusion::sentence(run));
    }
    let mut warnings = 0;
    for lane in &run.lanes {
        for gate in &lane.gates {
            let (command, word) = match gate.status {
                GateStatus::Pass | GateStatus::Empty => continue,
                GateStatus::Warn => ("warning", "warns"),
                GateStatus::Fail => ("error", "failed"),
            };
            warnings += usize::from(gate.status == GateStatus::Warn);
            let title = format!("gate {word}: {}", one_line(&lane.title(), 60));
            write_command(&mut text, command, None, &title, &gate.sentence());
        }
    }
    let mut room = MOST_CASES.saturating_sub(warnings);
    for verdict in [Verdict::Fail, Verdict::Error] {
        for (at, lane) in run.lanes.iter().enumerate() {
            if room == 0 {
                break;
            }
            cases.each(at, &mut |case| {
                let known = lane.lane.judging.known_failures.contains(&case.case_id);
                if room > 0 && case.verdict == verdict && !known {
                    room -= 1;
                    let place = locate(&lane.lane, &case.case_id);
                    write_case(&mut text, &lane.title(), case, place);
                }
                Ok(())
            })?;
        }
    }
    for lane in &run.lanes {
        let passes = &lane.metrics.unexpected_passes;
        if !passes.is_empty() {
            let names: Vec<String> = passes.iter().take(10).map(|it| one_line(it, 60)).collect();
            let title = format!("known to fail, and passed: {}", one_line(&lane.title(), 60));
            let message = format!("{} in all: {}", passes.len(), names.join(", "));
            write_command(&mut text, "notice", None, &title, &message);
        }
    }
    Ok(text)
}

fn write_case(text: &mut String, lane: &str, case: &CaseRecord, place: Option<Place>) {
    let class = case.error.as_ref().map_or(case.class.as_str(), |it| it.kind.as_str());
    let (id, lane) = (one_line(&case.case_id, 80), one_line(lane, 60));
    let repeat = match case.repeat {
        0 => String::new(),
        n => format!(" (repeat {n})"),
    };
    let title = format!("{class}: {id}{repeat}");
    let message = format!("{lane}: {}", one_line(&case.why(), MOST_MESSAGE));
    write_command(text, "warning", place, &title, &message);
}

fn write_command(
    text: &mut String,
    command: &str,
    place: Option<Place>,
    title: &str,
    message: &str,
) {
    let _ = write!(text, "::{command} ");
    if let Some(Place { file, line }) = place {
        let _ = write!(text, "file={},", Property(&file));
        if let Some(line) = line {
            let _ = write!(text, "line={line},");
        }
    }
    let _ = writeln!(text, "title={}::{}", Property(title), Data(message));
}

/// What stands after the second `::`.
struct Data<'t>(&'t str);

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, "%\r\n", f)
    }
}

/// The value of a property.
struct Property<'t>(&'t str);

impl fmt::Display for Property<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, "%\r\n:,", f)
    }
}

fn escaped(text: &str, special: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    text.chars().try_for_each(|c| match special.contains(c) {
        true => write!(f, "%{:02X}", u32::from(c)),
        false => f.write_char(c),
    })
}

#[cfg(test)]
mod tests;
