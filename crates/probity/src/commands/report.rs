//! `probity report`: a run in other forms.

use std::path::{Path, PathBuf};

use probity_core::{gate::GateStatus, view::RunView};
use probity_report::{Format, text};
use probity_store::{Reader, RunRow, StoredCases};

use super::{project::settings_alone, run::store_failure, runs::open};
use crate::{
    cli::report::{GatingArgs, ReportArgs},
    exit::Exit,
    failure::Failure,
    output::{OutputFile, refuse_same_file},
    printer::Printer,
};

pub(super) fn run(args: &ReportArgs, printer: &Printer) -> Result<Exit, Failure> {
    let reader = open(&args.place)?;
    let run = reader.find(&args.run).map_err(store_failure)?;
    let most = settings_alone(&args.place)?.max_error_rate;
    let paths: Vec<&Path> = args.outputs.iter().map(PathBuf::as_path).collect();
    refuse_same_file(&paths)?;
    let reports = Reports::create(&args.outputs)?;
    let view = reader.view(&run, most).map_err(store_failure)?;
    match args.outputs.is_empty() {
        true => printer.show(&text::render(&view))?,
        false => reports.write(&reader, &run, &view)?,
    }
    Ok(Exit::Success)
}

/// Reports that are going to be written. Whatever is wrong with their names is found out
/// before anything is paid for.
pub(super) struct Reports(Vec<(Format, PathBuf, OutputFile)>);

impl Reports {
    pub(super) fn create(paths: &[PathBuf]) -> Result<Self, Failure> {
        let create = |path: &PathBuf| {
            let format = Format::of(path).ok_or_else(|| {
                Failure::new(format!("`{}` has no ending that names a report", path.display()))
                    .hint(format!("reports end in {}", Format::endings()))
            })?;
            Ok((format, path.clone(), OutputFile::create(path)?))
        };
        paths.iter().map(create).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn write(
        self,
        reader: &Reader,
        run: &RunRow,
        view: &RunView,
    ) -> Result<(), Failure> {
        let cases = StoredCases::of(reader, run).map_err(store_failure)?;
        for (format, path, mut file) in self.0 {
            probity_report::write(format, view, &cases, &mut file)
                .map_err(|error| Failure::write(&path, error))?;
            file.finish()?;
        }
        Ok(())
    }
}

/// A run that is not whole, or has too many errors, is no basis for anything; then the gates
/// decide.
pub(super) fn exit_of(view: &RunView, gating: &GatingArgs) -> Exit {
    let (_, results) = view.errors();
    let sound = view.is_sound() && results > 0 && view.locked_out() == 0 && !view.is_degraded();
    match view.gate_status() {
        _ if !sound => Exit::Aborted,
        Some(GateStatus::Fail) => gating.failed(),
        Some(GateStatus::Pass | GateStatus::Empty | GateStatus::Warn) | None => Exit::Success,
    }
}
