//! `probity import`: another tool's configuration as a suite with its datasets, and its results as a run.

mod results;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use probity_import::{
    ImportError, Note, Notes, Options, Origin, Outcome, import,
    results::Read,
    write::{SUITE, Written, anchored, render},
};
use probity_report::plain::shell_word;
use serde::Serialize;

use super::{dataset::counted, project::Reading};
use crate::{
    cli::import::ImportArgs, environment::Environment, exit::Exit, failure::Failure,
    output::OutputFile, printer::Printer,
};

/// Notes that are shown; `--json` has all.
const MOST_SHOWN: usize = 100;

pub(super) fn run(args: &ImportArgs, printer: &Printer) -> Result<Exit, Failure> {
    if let Some(read) = read_results(args)? {
        // How a suite is read that is another tool's configuration.
        let no_suite = args.suite.is_none();
        refuse_idle(
            "results are stored, and nothing is written",
            &[
                ("--output", args.output.is_some()),
                ("--documents", args.documents.is_some()),
                ("--allow-outside", args.allow_outside && no_suite),
                ("--lossy", args.lossy && no_suite),
            ],
        )?;
        return results::run(args, read, printer);
    }
    refuse_idle(
        "it is about results, and these are none",
        &[
            ("--suite", args.suite.is_some()),
            ("--decide-by", args.decide_by.is_some()),
            ("--store", args.place.store.is_some()),
            ("--env-file", args.place.env_file.is_some()),
        ],
    )?;
    let options = Options {
        from: args.from.map(Origin::from),
        allow_outside: args.allow_outside,
        suite_folder: args.output.as_deref(),
        documents: args.documents.as_deref(),
        variable: Some(Environment::of_process),
    };
    let folder = target(args);
    let made = make_room(&folder)?;
    let outcome = match import(&args.path, &options) {
        Ok(outcome) => outcome,
        Err(error) => {
            if made {
                // Nothing is left behind; if that fails, it is empty anyway.
                let _ = fs::remove_dir(&folder);
            }
            if !args.json {
                return Err(failure(error, printer));
            }
            print_json(&FailedReport::of(&error, &args.path))?;
            return Err(failed(error));
        }
    };
    let written = render(&outcome.draft, "");
    let paths = write(&folder, &written, args.force)?;
    match args.json {
        true => print_json(&Report::of(&outcome, &paths))?,
        false => {
            show_notes(&outcome.notes, printer);
            printer.show(&told(&outcome, &folder, &paths))?;
        }
    }
    Ok(match outcome.notes.losses() == 0 || args.lossy {
        true => Exit::Success,
        false => Exit::Failed(1),
    })
}

/// An option that would do nothing is a misunderstanding.
fn refuse_idle(why: &str, flags: &[(&str, bool)]) -> Result<(), Failure> {
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::new(format!("`{flag}` does nothing here: {why}"))),
    }
}

/// The results of a tool, if the file holds any.
fn read_results(args: &ImportArgs) -> Result<Option<Read>, Failure> {
    if args.from.is_some() || !args.path.is_file() {
        return Ok(None);
    }
    let options = probity_import::results::Options { decided_by: args.decide_by.clone() };
    let read = probity_import::results::read(&args.path, &options);
    read.map_err(|error| Failure::new("the results cannot be imported").because(error))
}

/// Makes the folder that is written to, because paths that start from it lead through it. Whether it was
/// made.
fn make_room(folder: &Path) -> Result<bool, Failure> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(false);
    }
    fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    Ok(true)
}

fn print_json(report: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::new("failed to write the report").because(error))?;
    writeln!(Printer::data(), "{text}").map_err(Failure::output)
}

/// Why nothing was written, for scripts.
#[derive(Serialize)]
struct FailedReport<'a> {
    config: &'a Path,
    error: String,
    lost: usize,
    notes: Vec<&'a Note>,
}

impl<'a> FailedReport<'a> {
    fn of(error: &'a ImportError, config: &'a Path) -> Self {
        let notes = match error {
            ImportError::Shape { notes, .. } => Some(notes),
            ImportError::Unreadable(_) | ImportError::Io { .. } => None,
        };
        Self {
            config,
            error: error.to_string(),
            lost: notes.map_or(0, Notes::losses),
            notes: notes.into_iter().flat_map(Notes::iter).collect(),
        }
    }
}

/// What was written, for scripts.
#[derive(Serialize)]
struct Report<'a> {
    from: Origin,
    config: &'a Path,
    suite: Option<&'a PathBuf>,
    files: &'a [PathBuf],
    read: &'a [PathBuf],
    backends: usize,
    runners: usize,
    cases: usize,
    lost: usize,
    notes: Vec<&'a Note>,
}

impl<'a> Report<'a> {
    fn of(outcome: &'a Outcome, files: &'a [PathBuf]) -> Self {
        let Outcome { origin, draft, notes, files: read, config, .. } = outcome;
        Self {
            from: *origin,
            config,
            suite: files.first(),
            files,
            read,
            backends: draft.backends.len(),
            runners: draft.runners.len(),
            cases: draft.datasets.iter().map(|it| it.cases.len()).sum(),
            lost: notes.losses(),
            notes: notes.iter().collect(),
        }
    }
}

/// A configuration of another tool as a suite.
pub(super) struct AsSuite {
    pub(super) text: String,
    /// What problems call it.
    pub(super) name: Arc<str>,
    /// The folder that paths start from: that of the configuration.
    pub(super) folder: PathBuf,
}

/// Imports a configuration that was named as a suite. Its datasets are kept beside the store, where they
/// stay the same as long as the configuration does.
pub(super) fn as_suite(
    path: &Path,
    reading: &Reading<'_>,
    store: &Path,
) -> Result<AsSuite, Failure> {
    let Reading { printer, foreign, .. } = *reading;
    let options = Options {
        allow_outside: foreign.allow_outside,
        variable: Some(Environment::of_process),
        ..Options::default()
    };
    let outcome = import(path, &options).map_err(|error| failure(error, printer))?;
    show_notes(&outcome.notes, printer);
    let losses = outcome.notes.losses();
    if losses > 0 && !foreign.lossy {
        let lost = counted(losses, "thing");
        return Err(Failure::new(format!("{lost} of `{}` cannot be carried over", path.display()))
            .hint(
                "--lossy takes what is left; `probity import` writes a suite to complete by hand",
            ));
    }
    let room = room(&outcome.config, store)?;
    let draft = anchored(&outcome.draft, &outcome.suite_folder);
    let written = render(&draft, &format!("{}/", room.display()));
    for (name, text) in &written.files {
        let path = room.join(name);
        // One that has not changed is left alone, for whoever watches it.
        if fs::read_to_string(&path).is_ok_and(|it| it == *text) {
            continue;
        }
        let folder = path.parent().unwrap_or(&room);
        fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
        OutputFile::write(&path, text)?;
    }
    // Not the name of a YAML file: what problems are about is TOML.
    let name = format!("{} (imported)", path.display()).into();
    Ok(AsSuite { text: written.suite, name, folder: outcome.suite_folder })
}

/// The folder for what a configuration becomes.
fn room(config: &Path, store: &Path) -> Result<PathBuf, Failure> {
    let beside = store.parent().unwrap_or(Path::new(""));
    let digest = blake3::hash(config.as_os_str().as_encoded_bytes()).to_hex();
    let stem = config.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let room = beside.join("imported").join(format!("{stem}-{}", &digest[..8]));
    std::path::absolute(&room).map_err(|error| Failure::write(&room, error))
}

/// Why nothing was imported, after what was found out until then.
pub(super) fn failure(error: ImportError, printer: &Printer) -> Failure {
    if let ImportError::Shape { notes, .. } = &error {
        show_notes(notes, printer);
    }
    failed(error)
}

fn failed(error: ImportError) -> Failure {
    Failure::new("the file cannot be imported").because(error)
}

/// The folder that is written to.
fn target(ImportArgs { path, output, .. }: &ImportArgs) -> PathBuf {
    match output {
        Some(folder) => folder.clone(),
        None if path.is_dir() => path.clone(),
        None => path.parent().unwrap_or(Path::new("")).to_owned(),
    }
}

/// Writes all files, the suite first. Nothing is overwritten unless that is wanted.
fn write(folder: &Path, written: &Written, force: bool) -> Result<Vec<PathBuf>, Failure> {
    let suite = (SUITE, written.suite.as_str());
    let others = written.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let files: Vec<(PathBuf, &str)> = std::iter::once(suite)
        .chain(others)
        .map(|(name, text)| (folder.join(name), text))
        .collect();
    let in_the_way = files.iter().map(|it| &it.0).find(|it| it.symlink_metadata().is_ok());
    if let Some(path) = in_the_way.filter(|_| !force) {
        return Err(Failure::new(format!("`{}` exists already", path.display()))
            .hint("--force overwrites it; -o DIR writes to another folder"));
    }
    for (path, text) in &files {
        let folder = path.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
        OutputFile::write(path, text)?;
    }
    Ok(files.into_iter().map(|it| it.0).collect())
}

/// What was not carried over first, then what was assumed.
pub(super) fn show_notes(notes: &Notes, printer: &Printer) {
    let lost = notes.iter().filter(|it| it.lost);
    let assumed = notes.iter().filter(|it| !it.lost);
    for (at, note) in lost.chain(assumed).enumerate() {
        if at == MOST_SHOWN {
            let more = notes.iter().count() - MOST_SHOWN;
            printer.note(&format!("… and {}; --json lists all", counted(more, "further note")));
            return;
        }
        let Note { at: place, what, advice, lost, .. } = note;
        let kind = if *lost { "not carried over" } else { "note" };
        let advice = if advice.is_empty() { String::new() } else { format!(" ({advice})") };
        printer.note(&format!("{place}: {kind}: {what}{advice}{}", note.elsewhere()));
    }
}

fn told(outcome: &Outcome, folder: &Path, paths: &[PathBuf]) -> String {
    let draft = &outcome.draft;
    let cases: usize = draft.datasets.iter().map(|it| it.cases.len()).sum();
    let counts = [
        counted(draft.backends.len(), "backend"),
        counted(draft.runners.len(), "runner"),
        counted(cases, "case"),
    ];
    let suite = shell_word(&folder.join(SUITE).display().to_string());
    let lost = match outcome.notes.losses() {
        0 => "everything was carried over".to_owned(),
        lost => format!("{} not carried over", counted(lost, "thing")),
    };
    let shown: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    format!(
        "{}\n{} from {}: {lost}\nrun it with: probity run {suite}\n",
        shown.join("\n"),
        counts.join(", "),
        outcome.origin.as_str(),
    )
}
