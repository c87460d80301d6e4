//! `probity export`: what a run teaches.

mod foreign;
mod labels;
mod otlp;
#[cfg(feature = "parquet")]
mod tables;

use std::{fmt::Write as _, io};

use probity_core::view::RunView;
use probity_report::training::{self, Written};
use probity_store::StoredCases;

use foreign::Tool;

use super::{baseline::Against, project::settings_alone, report::refuse_inputs, runs::open};
use crate::{
    cli::export::{ExportArgs, ExportKind},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

pub(super) fn run(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    args.refuse_misplaced()?;
    match args.kind {
        ExportKind::Chat | ExportKind::Preferences | ExportKind::Issue => learnt(args, printer),
        ExportKind::Labels => labels::run(args, printer),
        ExportKind::Promptfoo => foreign::run(args, Tool::Promptfoo, printer),
        ExportKind::InspectLog => foreign::run(args, Tool::Inspect, printer),
        ExportKind::OpenaiEvals => foreign::run(args, Tool::OpenaiEvals, printer),
        ExportKind::Langfuse => foreign::run(args, Tool::Langfuse, printer),
        ExportKind::Otlp => otlp::run(args, printer),
        #[cfg(feature = "parquet")]
        ExportKind::Parquet | ExportKind::Arrow => tables::run(args, printer),
        #[cfg(not(feature = "parquet"))]
        ExportKind::Parquet | ExportKind::Arrow => Err(Failure::new("this build writes no tables")
            .hint("released binaries do, and `cargo build --features parquet` makes one")),
    }
}

/// What a run teaches: pairs for training, or a draft about what got worse.
fn learnt(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(args.run()?)?;
    refuse_inputs(&reader, &run, None, args.output.as_slice())?;
    if args.kind == ExportKind::Issue {
        let against = Against::load(&args.baseline, &settings, args.force)?;
        return draft(args, &against.drafts(&reader, &run)?, printer);
    }
    let view = reader.view(&run, settings.max_error_rate)?;
    let cases = StoredCases::of(&reader, &run)?;
    write(args, &view, printer, |out| match args.kind == ExportKind::Chat {
        true => training::chat(&view, &cases, args.corrected, out),
        false => training::preferences(&view, &cases, out),
    })
}

/// Writes pairs where they are wanted, and says how many.
fn write(
    args: &ExportArgs,
    view: &RunView,
    printer: &Printer,
    pairs: impl FnOnce(&mut dyn io::Write) -> io::Result<Written>,
) -> Result<Exit, Failure> {
    let Written { lines, without_answer } = match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            let written = pairs(&mut file).map_err(|error| Failure::write(path, error))?;
            file.finish()?;
            written
        }
        None => {
            let mut out = Printer::data();
            let written = pairs(&mut out).and_then(|it| io::Write::flush(&mut out).map(|()| it));
            written.map_err(Failure::output)?
        }
    };
    let mut told = format!("{lines} lines");
    if without_answer > 0 {
        let _ = write!(
            told,
            "; {without_answer} results have no right answer to show and are left out"
        );
    }
    if view.is_replayed() {
        told.push_str("; answers come from a recording");
    }
    printer.note(&told);
    Ok(Exit::Success)
}

fn draft(args: &ExportArgs, text: &str, printer: &Printer) -> Result<Exit, Failure> {
    if text.is_empty() {
        printer.note("nothing got worse, so there is nothing to write about");
        return Ok(Exit::Success);
    }
    match &args.output {
        None => printer.show(text)?,
        Some(path) => OutputFile::write(path, text)?,
    }
    Ok(Exit::Success)
}
