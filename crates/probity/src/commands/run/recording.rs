//! Every answer of a run, for later replays.

use std::io;

use probity_core::record::CaseRecord;
use probity_grade::again::is_of_scorer;
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
            // A case that asked others about its one answer has all that is known of that itself.
            let answers = case.asked.iter().filter(|it| !is_of_scorer(it)).count();
            if written.is_ok() && answers > 1 {
                written = add_all(&mut writer, &case);
            } else if written.is_ok() {
                written = writer.add(&Answer {
                    backend: &lane.lane.backend,
                    case_id: &case.case_id,
                    repeat: case.repeat,
                    request: &case.request,
                    reply: case.reply.as_deref(),
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

/// Every answer of a case that asked for several. Scorers are asked again by a replay.
fn add_all(writer: &mut RecordingWriter<OutputFile>, case: &CaseRecord) -> io::Result<()> {
    let answers = case.asked.iter().filter(|it| it.reply.is_some() && !is_of_scorer(it));
    for asked in answers {
        writer.add(&Answer {
            backend: &asked.backend,
            case_id: &format!("{}/{}", case.case_id, asked.role),
            repeat: case.repeat,
            request: &asked.request,
            reply: asked.reply.as_deref(),
            error: None,
            stop_reason: None,
            model: asked.model.as_deref(),
            latency_ms: asked.latency_ms,
            ttft_ms: None,
            usage: asked.usage,
        })?;
    }
    Ok(())
}
