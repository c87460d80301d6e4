//! Every answer of a run, for later replays.

use std::io;

use probity_core::record::{Asked, CaseRecord};
use probity_grade::internal::again::is_of_scorer;
use probity_run::recording::{Answer, RecordingWriter};
use probity_store::{Reader, RunRow};

use crate::{clock, failure::Failure, output::OutputFile};

/// Writes every answer of a run down, in the order of lanes and cases.
pub(super) fn write(reader: &Reader, run: &RunRow, file: OutputFile) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new("failed to write the recording").because(error);
    let at = clock::shown(clock::now_ms());
    let mut writer = RecordingWriter::new(file, &run.run_id, &at).map_err(failed)?;
    for lane in reader.lanes(run)? {
        let mut written = Ok(());
        reader.cases(&lane, |case| {
            if written.is_ok() && !is_one_answer(&case) {
                written = add_all(&mut writer, &case);
            } else if written.is_ok() {
                written = writer.add(&Answer {
                    backend: &lane.lane.backend,
                    case_id: &case.case_id,
                    repeat: case.repeat,
                    request: &case.request,
                    reply: case.reply.as_deref(),
                    tool_calls: &[],
                    reasoning: case.reasoning.as_deref(),
                    logprobs: None,
                    error: case.error.as_ref().filter(|_| case.reply.is_none()),
                    stop_reason: case.stop_reason.as_deref(),
                    model: case.model.as_deref(),
                    latency_ms: case.latency_ms,
                    ttft_ms: case.ttft_ms,
                    usage: case.usage,
                });
            }
            Ok(())
        })?;
        written.map_err(failed)?;
    }
    writer.finish().map_err(failed)?.finish()
}

/// Whether a question went to a backend.
fn is_of_backend(asked: &Asked) -> bool {
    !is_of_scorer(asked) && !asked.is_of_sandbox()
}

/// Whether a case has one answer, of which its record has all that is known.
fn is_one_answer(case: &CaseRecord) -> bool {
    let mut answers = case.asked.iter().filter(|it| is_of_backend(it));
    let first = answers.next();
    answers.next().is_none()
        && first.is_none_or(|it| it.tool_calls.is_empty() && it.logprobs.is_none())
}

/// Every answer of a case that asked for several. Scorers are asked again by a replay.
fn add_all(writer: &mut RecordingWriter<OutputFile>, case: &CaseRecord) -> io::Result<()> {
    for asked in case.asked.iter().filter(|it| is_of_backend(it)) {
        // The error that the case ended in is that of its last question.
        let error = case.error.as_ref().filter(|_| asked.error.is_some());
        if asked.reply.is_none() && error.is_none() {
            continue;
        }
        writer.add(&Answer {
            backend: &asked.backend,
            case_id: &format!("{}/{}", case.case_id, asked.role),
            repeat: case.repeat,
            request: &asked.request,
            reply: asked.reply.as_deref(),
            tool_calls: &asked.tool_calls,
            reasoning: asked.reasoning.as_deref(),
            logprobs: asked.logprobs.as_ref(),
            error,
            stop_reason: asked.stop_reason.as_deref(),
            model: asked.model.as_deref(),
            latency_ms: asked.latency_ms,
            ttft_ms: None,
            usage: asked.usage,
        })?;
    }
    Ok(())
}
