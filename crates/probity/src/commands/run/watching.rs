//! `probity run --watch`: runs again what a changed file is part of.
//!
//! Each run is a process of its own, as if somebody had typed the command again. It writes down which files
//! it has read and in which state, so that a change during the run is noticed as well.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use probity_load::{
    function::split_name,
    inputs::{self, Files, Inputs, Stamp},
    suite::{Start, Suite},
};
use probity_run::process::OwnFolder;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch::Receiver;

use super::Project;
use crate::{cli::run::RunArgs, exit::Exit, failure::Failure, printer::Printer, program, signals};

/// How often files are looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Runs, waits for a change, and runs again, until a signal ends it.
pub(super) fn run(args: &RunArgs, printer: &Printer) -> Result<Exit, Failure> {
    let failed = |error| Failure::new("failed to start the run").because(error);
    let folder = OwnFolder::new().map_err(failed)?;
    let list = folder.path().join("inputs.json");
    let stopped = signals::run_begins();
    let mut known = Inputs::default();
    let mut touched = BTreeSet::new();
    loop {
        // A list that is left would be taken for that of the next run.
        let _ = fs::remove_file(&list);
        let mut command = program::again().map_err(failed)?;
        command.args(arguments(args, &list, &touched)).stdin(Stdio::null());
        let status = finished(start(&mut command).map_err(failed)?, &stopped).map_err(failed)?;
        if *stopped.borrow() {
            return Ok(exit_of(status));
        }
        let read = read(&list).unwrap_or_else(|| only_suite(&args.suite));
        match touched.is_empty() {
            true => known = read,
            false => known.renew(read),
        }
        let count = known.paths().count();
        let files = if count == 1 { "file" } else { "files" };
        printer.note(&format!("watching {count} {files}; press Ctrl-C to end"));
        let Some(changed) = change(&known, &stopped) else { return Ok(exit_of(status)) };
        printer.note(&format!("{} changed", named(&changed)));
        touched = known.touched_by(&changed);
        // A run that fails before it reads them is not repeated until they change again.
        known.look_again(&changed);
    }
}

/// Runs what a suite says, and writes down which files that has read.
pub(super) fn listing_inputs(
    path: &Path,
    run: impl FnOnce() -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    inputs::listen();
    let outcome = run();
    if let Some(inputs) = inputs::take() {
        let text = serde_json::to_vec(&inputs).map_err(std::io::Error::from);
        let written = text.and_then(|text| fs::write(path, text));
        written.map_err(|error| Failure::write(path, error))?;
    }
    outcome
}

/// Programs and functions are inputs, too.
pub(super) fn note_programs(project: &Project) {
    let Suite { backends, runners, scorers, folder, .. } = &project.suite;
    inputs::note_files(folder, backends.iter().flat_map(|it| &it.command));
    inputs::note_files(folder, runners.iter().flat_map(|it| &it.command));
    for scorer in scorers {
        match &scorer.start {
            Start::Command(words) => inputs::note_files(folder, words),
            Start::Python(named) | Start::Node(named) => inputs::note(&file_of(named, folder)),
        }
    }
    let functions = backends.iter().filter(|it| it.kind.is_function());
    let files = functions.filter_map(|it| it.file.as_deref());
    files.for_each(|named| inputs::note(&file_of(named, folder)));
}

fn file_of(named: &str, folder: &Path) -> PathBuf {
    folder.join(split_name(named).0)
}

/// The command line of one run.
fn arguments(args: &RunArgs, list: &Path, touched: &BTreeSet<String>) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        program::arguments().into_iter().filter(|it| it != "--watch").collect();
    let options = all.iter().position(|it| it == "--").unwrap_or(all.len());
    let mut ours: Vec<OsString> = vec!["--inputs".into(), list.into()];
    if !args.no_cache && !args.cache {
        ours.push("--cache".into());
    }
    ours.extend(touched.iter().flat_map(|it| ["--touched".into(), it.into()]));
    all.splice(options..options, ours);
    all
}

/// Starts a run in a group of its own, so that it gets a Ctrl-C from us alone.
fn start(command: &mut Command) -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let child = command.process_group(0).spawn()?;
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    signals::set_last_words(Box::new(move |_| interrupt(id)));
    Ok(child)
}

fn interrupt(child: Option<Pid>) {
    if let Some(id) = child {
        // It may have ended by itself.
        let _ = kill_process(id, Signal::INT);
    }
}

/// Waits for the end of a run. A signal to us is passed on.
fn finished(mut child: Child, stopped: &Receiver<bool>) -> std::io::Result<ExitStatus> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            signals::forget_last_words();
            return Ok(status);
        }
        if *stopped.borrow() && !is_told {
            is_told = true;
            interrupt(id);
        }
        thread::sleep(PERIOD / 4);
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match status.code() {
        Some(0) => Exit::Success,
        Some(2) => Exit::Usage,
        Some(130) | None => Exit::Interrupted,
        Some(3) => Exit::Aborted,
        Some(code) => Exit::Failed(u8::try_from(code).unwrap_or(1)),
    }
}

fn read(list: &Path) -> Option<Inputs> {
    serde_json::from_slice(&fs::read(list).ok()?).ok()
}

/// What is watched after a run that ended before it could say what it had read.
fn only_suite(suite: &Path) -> Inputs {
    Inputs { shared: Files::from([(suite.to_owned(), Stamp::of(suite))]), ..Inputs::default() }
}

/// Waits until files have changed and are no longer being written to. None if a signal comes first.
fn change(known: &Inputs, stopped: &Receiver<bool>) -> Option<BTreeSet<PathBuf>> {
    let mut before = BTreeSet::new();
    let mut stamps = Vec::new();
    while !*stopped.borrow() {
        let changed: BTreeSet<PathBuf> = known.changed().map(Path::to_owned).collect();
        let now: Vec<Option<Stamp>> = changed.iter().map(|it| Stamp::of(it)).collect();
        if !changed.is_empty() && changed == before && now == stamps {
            return Some(changed);
        }
        (before, stamps) = (changed, now);
        thread::sleep(PERIOD);
    }
    None
}

/// The names of some files.
fn named(files: &BTreeSet<PathBuf>) -> String {
    let here = env::current_dir().unwrap_or_default();
    let name = |path: &PathBuf| path.strip_prefix(&here).unwrap_or(path).display().to_string();
    let first: Vec<String> = files.iter().take(3).map(name).collect();
    let more = files.len() - first.len();
    match more {
        0 => first.join(", "),
        _ => format!("{} and {more} more", first.join(", ")),
    }
}
