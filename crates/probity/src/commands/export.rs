//! `probity export`: what a run teaches.

use std::{fmt::Write as _, path::Path};

use probity_core::view::RunView;
use probity_report::training::{self, Written};
use probity_store::{Reader, RunRow, StoredCases};

use super::{baseline::Against, project::settings_alone, run::store_failure, runs::open};
use crate::{
    cli::report::{ExportArgs, ExportKind},
    exit::Exit,
    failure::Failure,
    output::OutputFile,
    printer::Printer,
};

pub(super) fn run(args: &ExportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let settings = settings_alone(&args.place)?;
    let reader = open(&args.place)?;
    let run = reader.find(&args.run).map_err(store_failure)?;
    if let ExportKind::Issue = args.kind {
        let against = Against::load(&args.baseline, &settings, args.force)?;
        return draft(args, &against.drafts(&reader, &run)?, printer);
    }
    let view = reader.view(&run, settings.max_error_rate).map_err(store_failure)?;
    let Written { lines, without_answer } = match &args.output {
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            let written = write_pairs(args, &reader, &run, &view, &mut file)
                .map_err(|error| Failure::write(path, error))?;
            file.finish()?;
            written
        }
        None => {
            let mut out = Printer::data();
            let written = write_pairs(args, &reader, &run, &view, &mut out);
            written
                .and_then(|it| std::io::Write::flush(&mut out).map(|()| it))
                .map_err(|error| Failure::write(Path::new("standard output"), error))?
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
        Some(path) => {
            let mut file = OutputFile::create(path)?;
            std::io::Write::write_all(&mut file, text.as_bytes())
                .map_err(|error| Failure::write(path, error))?;
            file.finish()?;
        }
    }
    Ok(Exit::Success)
}

fn write_pairs(
    args: &ExportArgs,
    reader: &Reader,
    run: &RunRow,
    view: &RunView,
    out: &mut dyn std::io::Write,
) -> std::io::Result<Written> {
    let cases = StoredCases::of(reader, run).map_err(std::io::Error::other)?;
    match args.kind {
        ExportKind::Chat => training::chat(view, &cases, args.corrected, out),
        ExportKind::Preferences => training::preferences(view, &cases, out),
        ExportKind::Issue => unreachable!("a draft is no list of pairs"),
    }
}
