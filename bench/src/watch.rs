//! What got slower: what a program costs on fixed work, against a file of counts or against another program.
//!
//! Instructions, as valgrind counts them, are nearly the same however busy a machine is, so that a twentieth more is a finding and
//! not noise. Commands that ask the kernel for the time do not run in valgrind; of these the CPU time counts, the least of
//! several runs. What both leave out is waiting: `engine` and `versus` measure that.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Read as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use crate::{
    cost,
    engine::{fake_model, project::Project, server::Server},
    mixed::{self, Kind},
};

/// More than this is slower.
const MOST: f64 = 1.05;

/// How the first line of a file of counts begins.
const MARK: &str = "# instructions";

/// Lines and cases of a measurement; valgrind takes fifty times as long as the program.
const LINES: usize = 2000;
const CASES: usize = 20_000;
/// How often CPU time is measured.
const TIMES: usize = 9;

/// Commands that do next to nothing: what starting costs.
const STARTS: &[(&str, &[&str])] = &[
    ("start: --version", &["--version"]),
    ("start: check json", &["check", "json", "--text", "{\"a\": 1}"]),
    (
        "start: check refusal",
        &["check", "refusal", "--text", "I'm sorry, but I can't help with that."],
    ),
    ("start: check error", &["check", "error", "--status", "429", "--text", "slow down"]),
    ("start: check policy", &["check", "policy", "--text", "call me at 555-0100"]),
];

/// Commands on many lines, each with what it is given.
const STREAMS: &[(&str, Kind, &[&str])] = &[
    (
        "a line: classify",
        Kind::Results,
        &["classify", "-", "-o", "/dev/null", "--quiet", "-j", "1"],
    ),
    ("a line: check refusal", Kind::Texts, &["check", "refusal", "--jsonl"]),
    ("a line: check policy", Kind::Texts, &["check", "policy", "--jsonl"]),
    ("a line: check json, repair", Kind::Json, &["check", "json", "--level", "repair", "--jsonl"]),
    ("a line: check error", Kind::Errors, &["check", "error", "--jsonl"]),
];

/// Commands that do next to nothing, by CPU time.
const TIMED_STARTS: &[(&str, &[&str])] = &[
    ("ns of CPU: check command", &["check", "command", "ls -la | grep x"]),
    ("ns of CPU: check command, against", &["check", "command", "ls -la", "--against", "ls -a -l"]),
];

/// Commands on a store with the run of [`CASES`] cases, after it.
const STORED: &[(&str, &[&str])] = &[
    ("ns of CPU a case: run --resume, nothing left", &["run", "--resume", "--quiet"]),
    ("ns of CPU a case: report, JSON", &["report", "-o", "report.json"]),
    ("ns of CPU a case: bless", &["bless"]),
    ("ns of CPU a case: gate against a baseline", &["gate", "--baseline", "main"]),
    ("ns of CPU a case: compare with itself", &["compare", "latest", "latest"]),
];

type Counts = BTreeMap<String, u64>;

/// `watch PROGRAM [--save FILE] [--against FILE-OR-PROGRAM]`. Fails if something got slower.
pub(crate) fn run(words: &[OsString]) -> io::Result<ExitCode> {
    let usage = || io::Error::other("watch PROGRAM [--save FILE] [--against FILE-OR-PROGRAM]");
    let [program, options @ ..] = words else { return Err(usage()) };
    let (mut save, mut against) = (None, None);
    for option in options.chunks(2) {
        match option {
            [name, value] if name == "--save" => save = Some(PathBuf::from(value)),
            [name, value] if name == "--against" => against = Some(PathBuf::from(value)),
            _ => return Err(usage()),
        }
    }
    // The server is the same for both, so that only the programs differ.
    let program = fs::canonicalize(program)?;
    let server = Server::start(&fake_model()?, 0)?;
    let old = against.map(|it| counts_of(&it, &server)).transpose()?;
    let new = measure(&program, &server)?;
    if let Some(path) = save {
        fs::write(path, written(&new))?;
    }
    match old {
        Some(old) => Ok(compare(&old, &new)),
        None => {
            new.iter().for_each(|(what, count)| println!("{count:>13}  {what}"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints both, and what got slower.
fn compare(old: &Counts, new: &Counts) -> ExitCode {
    println!("| instructions, or CPU time | old | new | new / old |");
    println!("|---|--:|--:|--:|");
    let mut slower = Vec::new();
    for (what, count) in new {
        let Some(before) = old.get(what) else {
            println!("| {what} | | {count} | |");
            continue;
        };
        let ratio = float(*count) / float((*before).max(1));
        println!("| {what} | {before} | {count} | {ratio:.3} |");
        if ratio > MOST {
            slower.push(format!("{what}: {:.1} % more", (ratio - 1.0) * 100.0));
        }
    }
    for what in old.keys().filter(|it| !new.contains_key(*it)) {
        slower.push(format!("{what}: not measured any more"));
    }
    if slower.is_empty() {
        println!("\nnothing got slower by more than 5 %");
        return ExitCode::SUCCESS;
    }
    println!("\nslower by more than 5 %:");
    slower.iter().for_each(|it| println!("  {it}"));
    ExitCode::FAILURE
}

/// The counts of a file, or of a program.
fn counts_of(path: &Path, server: &Server) -> io::Result<Counts> {
    let mut start = [0; MARK.len()];
    let is_file = File::open(path)?.read_exact(&mut start).is_ok() && start == MARK.as_bytes();
    match is_file {
        true => read(&fs::read_to_string(path)?),
        false => measure(&fs::canonicalize(path)?, server),
    }
}

fn written(counts: &Counts) -> String {
    let lines = counts.iter().map(|(what, count)| format!("{count}\t{what}\n"));
    format!(
        "{MARK}, as `probity-bench watch PROGRAM --save FILE` counts them\n{}",
        lines.collect::<String>()
    )
}

fn read(text: &str) -> io::Result<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (count, what) = line.split_once('\t')?;
            Some((what.to_owned(), count.parse().ok()?))
        })
        .collect::<Option<Counts>>()
        .ok_or_else(|| io::Error::other("each line is a count, a tab and what was counted"))
}

/// Everything, for one program.
fn measure(program: &Path, server: &Server) -> io::Result<Counts> {
    let mut counts = Counts::new();
    let folder = tempfile::tempdir()?;
    for (what, words) in STARTS {
        counts.insert((*what).to_owned(), instructions(program, folder.path(), words, None)?);
    }
    let lines = folder.path().join("lines.jsonl");
    for (what, kind, words) in STREAMS {
        mixed::write(*kind, LINES, &mut BufWriter::new(File::create(&lines)?))?;
        let count = instructions(program, folder.path(), words, Some(&lines))?;
        counts.insert((*what).to_owned(), count / LINES as u64);
    }
    for (what, words) in TIMED_STARTS {
        let least = (0..TIMES).map(|_| nanoseconds(program, folder.path(), words));
        counts.insert((*what).to_owned(), least_of(least)?);
    }
    let run = ["run", "--quiet"];
    let starts = (0..TIMES).map(|_| {
        let one = Project::new(1, &[("fake", server)])?;
        nanoseconds(program, one.path(), &run)
    });
    counts.insert("ns of CPU: run of one case".to_owned(), least_of(starts)?);
    let mut runs = Vec::new();
    for _ in 0..TIMES {
        let many = Project::new(CASES, &[("fake", server)])?;
        let spent = nanoseconds(program, many.path(), &run)?;
        runs.push((many, spent));
    }
    let a_case = |spent: u64| spent / CASES as u64;
    let of_runs = runs.iter().map(|(_, spent)| Ok(a_case(*spent)));
    counts.insert("ns of CPU a case: run".to_owned(), least_of(of_runs)?);
    let Some((project, _)) = runs.last() else { return Ok(counts) };
    for (what, words) in STORED {
        let least = (0..TIMES).map(|_| nanoseconds(program, project.path(), words).map(a_case));
        counts.insert((*what).to_owned(), least_of(least)?);
    }
    Ok(counts)
}

/// The least of several measurements: what else a machine does only adds.
fn least_of(mut all: impl Iterator<Item = io::Result<u64>>) -> io::Result<u64> {
    all.try_fold(u64::MAX, |least, it| Ok(least.min(it?)))
}

/// User and system time of a command.
fn nanoseconds(program: &Path, folder: &Path, words: &[&str]) -> io::Result<u64> {
    let spent = cost::of(program, folder, words)?.cpu.as_nanos();
    Ok(u64::try_from(spent).unwrap_or(u64::MAX))
}

/// How many instructions a command takes, in the program itself and not in the kernel.
fn instructions(
    program: &Path,
    folder: &Path,
    words: &[&str],
    input: Option<&Path>,
) -> io::Result<u64> {
    let input = input.map_or(Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(words)
        .current_dir(folder)
        .stdin(input)
        .stdout(Stdio::null())
        .output()
        .map_err(|error| io::Error::other(format!("valgrind does not start: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|it| it.split_once("Collected : ")?.1.trim().parse().ok());
    match (output.status.success(), count) {
        (true, Some(count)) => Ok(count),
        _ => Err(io::Error::other(format!("`{}`: {said}", words.join(" ")))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more digits")]
fn float(count: u64) -> f64 {
    count as f64
}
