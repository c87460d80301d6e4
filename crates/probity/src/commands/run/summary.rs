//! What a run came to, read from its records.

use std::{fmt::Write as _, io};

use probity_core::{classification::Primary, record::LaneStatus};
use probity_run::recording::{Answer, RecordingWriter};
use probity_store::{LaneView, Reader, RunRow, StoreError, Tally};

use super::store_failure;
use crate::{clock, exit::Exit, failure::Failure, output::OutputFile, terminal::one_line};

/// The counts of a run.
pub(crate) struct Summary {
    run: RunRow,
    lanes: Vec<(LaneView, Tally, u64)>,
}

impl Summary {
    pub(crate) fn read(reader: &Reader, run: &RunRow) -> Result<Self, StoreError> {
        let lanes = reader.lanes(run)?.into_iter().map(|lane| {
            let (tally, aborted) = (reader.tally(&lane)?, reader.aborted(&lane)?);
            Ok((lane, tally, aborted))
        });
        Ok(Self { run: run.clone(), lanes: lanes.collect::<Result<_, StoreError>>()? })
    }

    /// The counts of all lanes together.
    pub(crate) fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.lanes.iter().for_each(|(_, tally, _)| total.add(tally));
        total
    }

    /// Whether every lane came to its end.
    pub(crate) fn is_complete(&self) -> bool {
        self.lanes
            .iter()
            .all(|(lane, ..)| lane.status.as_ref().is_some_and(LaneStatus::is_complete))
    }

    /// A run that is not whole, or has too many errors, is no basis for anything.
    pub(crate) fn exit(&self, max_error_rate: f64) -> Exit {
        let total = self.total();
        let sound = self.is_complete()
            && total.total() > 0
            && total.locked_out == 0
            && !is_degraded(&total, max_error_rate);
        if sound { Exit::Success } else { Exit::Aborted }
    }

    /// The summary for people, at most 80 columns wide but for long names.
    pub(crate) fn render(&self, max_error_rate: f64) -> String {
        let mut text =
            format!("run {} of {}: {}\n", self.run.run_id, self.run.suite, self.run.status);
        for (lane, tally, aborted) in &self.lanes {
            let info = &lane.lane;
            let model = info.model.as_deref().map(|model| format!(" ({})", one_line(model, 40)));
            let replayed = if info.replayed { ", replayed from a recording" } else { "" };
            let _ = writeln!(
                text,
                "\n{} on {}{}{replayed}",
                info.runner,
                info.backend,
                model.unwrap_or_default()
            );
            let _ = writeln!(
                text,
                "  {} of {} cases: {}",
                tally.total(),
                info.planned,
                verdicts(tally)
            );
            let classes = Primary::ALL.into_iter().filter(|it| tally.classes.get(*it) > 0);
            let classes: Vec<String> =
                classes.map(|it| format!("{} {it}", tally.classes.get(it))).collect();
            let _ = writeln!(text, "  classes: {}", classes.join(", "));
            let _ = writeln!(text, "  {}", spent(tally));
            if let Some(status) = lane.status.as_ref().and_then(|status| told(status, *aborted)) {
                let _ = writeln!(text, "  {status}");
            }
        }
        let total = self.total();
        if total.error > 0 {
            let (count, run) = (total.error, self.run.short());
            let _ = writeln!(
                text,
                "\nended in an error: {count}; ask them again with --retry-errors {run}"
            );
        }
        if total.locked_out > 0 {
            let count = total.locked_out;
            let _ = writeln!(
                text,
                "the key or the account: {count} of these, so the run is no basis for anything"
            );
        }
        if is_degraded(&total, max_error_rate) {
            let (rate, most) = (percent(total.error, total.total()), max_error_rate * 100.0);
            let _ = writeln!(
                text,
                "degraded: {rate} of the cases ended in an error, more than {most} %"
            );
        }
        text
    }
}

fn is_degraded(tally: &Tally, max_error_rate: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
    let (errors, total) = (tally.error as f64, tally.total() as f64);
    errors > total * max_error_rate
}

fn verdicts(tally: &Tally) -> String {
    let Tally { pass, fail, error, .. } = tally;
    let scored = pass + fail;
    let rate = if scored > 0 {
        format!(" ({} of those judged)", percent(*pass, scored))
    } else {
        String::new()
    };
    format!("{pass} pass, {fail} fail, {error} error{rate}")
}

fn spent(tally: &Tally) -> String {
    let mut text = format!("{} calls", tally.calls);
    if tally.cached > 0 {
        let _ = write!(text, ", {} answers from the cache", tally.cached);
    }
    if tally.replayed > 0 {
        let _ = write!(text, ", {} answers from a recording", tally.replayed);
    }
    if tally.input_tokens + tally.output_tokens > 0 {
        let _ = write!(text, ", {} tokens in, {} out", tally.input_tokens, tally.output_tokens);
    }
    if tally.priced > 0 {
        let _ = write!(text, ", ${:.4}", tally.cost_usd);
    }
    text
}

/// What there is to say about a lane that did not come to its end.
fn told(status: &LaneStatus, aborted: u64) -> Option<String> {
    let cut = match aborted {
        0 => String::new(),
        1 => "; 1 case was cut off".to_owned(),
        count => format!("; {count} cases were cut off"),
    };
    let text = match status {
        LaneStatus::Complete => return None,
        LaneStatus::FailFast { reason, permanent: true } => {
            format!("given up: {} (no retry can mend that)", one_line(reason, 200))
        }
        LaneStatus::FailFast { reason, permanent: false } => {
            format!("given up: {} (it may pass)", one_line(reason, 200))
        }
        LaneStatus::Skipped { reason } => {
            format!("skipped: the backend was given up before: {}", one_line(reason, 200))
        }
        LaneStatus::Budget { reason } => format!("stopped by the budget: {reason}"),
        LaneStatus::Interrupted => "interrupted".to_owned(),
        LaneStatus::Broken { reason } => format!("broken: {}", one_line(reason, 200)),
    };
    Some(text + &cut)
}

fn percent(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 cases")]
    let share = part as f64 / whole.max(1) as f64 * 100.0;
    format!("{share:.1} %")
}

/// Writes every answer of a run down, in the order of lanes and cases.
pub(super) fn write_recording(
    reader: &Reader,
    run: &RunRow,
    file: OutputFile,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new("failed to write the recording").because(error);
    let at = clock::shown(clock::now_ms());
    let mut writer = RecordingWriter::new(file, &run.run_id, &at).map_err(failed)?;
    for lane in reader.lanes(run).map_err(store_failure)? {
        let mut written = Ok(());
        reader
            .cases(&lane, |case| {
                if written.is_ok() {
                    written = writer.add(&Answer {
                        backend: &lane.lane.backend,
                        case_id: &case.case_id,
                        repeat: case.repeat,
                        system: case.system.as_deref(),
                        prompt: &case.prompt,
                        reply: case.reply.as_deref(),
                        error: case.error.as_ref(),
                        stop_reason: case.stop_reason.as_deref(),
                        model: case.model.as_deref(),
                        latency_ms: case.latency_ms,
                        usage: case.usage,
                    });
                }
                Ok(())
            })
            .map_err(store_failure)?;
        written.map_err(failed)?;
    }
    writer.finish().map_err(failed)?.finish()
}
