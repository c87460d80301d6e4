//! `suite_summary.json` beside the store: what became of each runner, after every run.

use std::path::{Path, PathBuf};

use probity_core::view::RunView;
use probity_report::Format;

use super::Porcelain;
use crate::{
    cli::run::RunArgs, exit::Exit, failure::Failure, output::OutputFile, printer::Printer,
};

/// The name of the file.
const NAME: &str = "suite_summary.json";

/// Writes the summary of a run. The run is what it is, whether or not it can be written.
pub(super) fn write(store: &Path, view: &RunView, printer: &Printer) {
    let path = path(store);
    let written = OutputFile::create(&path).and_then(|mut file| {
        probity_report::summary::write(view, &mut file)
            .map_err(|error| Failure::write(&path, error))?;
        file.finish()
    });
    if written.is_err() {
        printer.note(&format!("no summary could be written to `{}`", path.display()));
    }
}

/// Takes the summary of an earlier run away: whoever finds one after a crash must not take it for
/// that of the run that crashed.
pub(super) fn forget(store: &Path) {
    // One that cannot be removed is replaced when the run ends.
    let _ = std::fs::remove_file(path(store));
}

/// Says beside the store why there is no summary of a run. One that is there is of this run,
/// because that of an earlier one was taken away.
pub(super) fn write_failure(store: &Path, why: &str) {
    let path = path(store);
    if !path.exists() {
        // Scripts are told by the exit code as well.
        let _ = OutputFile::write(&path, &probity_report::summary::of_failure("", why));
    }
}

fn path(store: &Path) -> PathBuf {
    store.with_file_name(NAME)
}

impl Porcelain {
    /// Sees to it that no summary of an earlier run stands for one that never was.
    pub(super) fn summarise(&self, args: &RunArgs, outcome: &Result<Exit, Failure>) {
        let Err(failure) = outcome else { return };
        if self.summarised || args.dry_run {
            return;
        }
        // A suite that cannot be read does not say where its store is.
        let usual =
            args.place.store.clone().unwrap_or_else(|| PathBuf::from(".probity/probity.db"));
        let store = match self.result_file.as_str() {
            "" => usual,
            known => PathBuf::from(known),
        };
        let suite = args.suite.file_name().unwrap_or_default().to_string_lossy();
        let text = probity_report::summary::of_failure(&suite, &failure.to_string());
        let beside = Some(path(&store)).filter(|it| it.parent().is_some_and(Path::is_dir));
        let asked = args.outputs.iter().filter(|it| Format::of(it) == Some(Format::Summary));
        for path in beside.iter().chain(asked) {
            // Scripts are told by the exit code as well.
            let _ = OutputFile::write(path, &text);
        }
    }
}
