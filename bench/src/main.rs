//! Measures what the documentation claims, on the machine it runs on.
//!
//! `cargo build --release && cargo run --release -p probity-bench -- classify`
//!
//! Every figure is a ratio taken within one run, so that it can be compared
//! between machines that are not alike.

#![expect(clippy::print_stdout, reason = "printing figures is what this program is for")]

mod campaign;
mod classify;
mod cost;
mod decide;
mod engine;
mod follow;
mod hostile;
mod import;
mod measure;
mod mixed;
mod offline;
mod rescore;
mod sandbox;
mod scale;
mod scorer;
mod script;
mod shell;
mod simulate;
mod startup;
mod view;
mod watch;

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

const USAGE: &str = "\
usage: probity-bench WHAT [N]
  classify [N]  N stored results (1,000,000): results per CPU-second, peak memory,
                the same output on one thread and on all
  validate [N]  N cases (1,000,000): cases per CPU-second and peak memory
  hostile       time for 1 MiB against 2 MiB of texts made to hurt
  shell [N]     N commands (300,000): what each judgement costs, commands per
                CPU-second, time for 1 MiB against half of it
  decide [N]    N runs of each kind (3,000): how often deciding a gate early is wrong, which
                must not be more than alpha, and the calls that it saves
  rescore [N]   `probity rescore` on N stored results (100,000) and on a fifth of them: results per
                CPU-minute and peak memory
  sandbox [N]   N executions of `true` (500): median time, executions a second on all cores, CPU time, memory
  scale [N] [--workers N] [--seed N] [--record]
                N cases (10,000,000) on a modelled fleet of workers with faults, in simulated time: what the loop costs,
                memory, depth of the queue, time to recover
  simulate [--seeds N] [--seed S] [--seconds T]
                whole runs in N worlds (2,000) in simulated time, with kills, bad disks, stops and every fault of servers: what
                must be true of each run is checked, and a seed that is wrong is told of in one line
  script [N]    N runs of each of five scripts (100,000): assertions per CPU-second
  scorer [N]    `probity run` of N cases (20,000) that a Python function in one process judges: cases
                per second
  import [N]    `probity import` of a table of N tests (5,000), and of one twice as long: wall time
  view [N]      `probity view` on a store of N runs (1,000) with 1,000 results each: time to the first byte of
                each page, its size, peak memory
  follow [N]    `probity run` N times (5) while 100 pages of `probity view` follow it, and N times alone: CPU and
                wall time
  offline [N]   N mixed lines of 830 bytes (100,000): what a CPU-second is enough for, of `classify` and each detector
  lines KIND [N]
                prints N of these lines (1,000): results, texts, json, errors or pairs
  figures [N] [--cases N]
                every figure of the documentation that has a target, each N times (3), and a run of so many
                cases (1,000,000); `bench/run` builds and installs what it needs
  watch PROGRAM [--save FILE] [--against FILE-OR-PROGRAM]
                what fixed work costs, in instructions by valgrind or in CPU time: saves it, or says what got slower by more
                than 5 %, and fails then
  startup       wall time of `probity --version`
  engine [N]    `probity run` against fake servers, beside oha, N times (3): time, CPU,
                memory and bytes a case; `bench/run` builds and installs what it needs
  versus OLD NEW [N]
                two builds of the program against fake servers in turn, N times (3): CPU time, memory, and the ratio of both
  campaign NAME [--seed S] [--shots N | --seconds T] [--short]
                attacks that can be repeated: `campaign list` names them, `campaign all --short` makes a few shots of each;
                docs/reliability.md
The program measured is target/release/probity, or the one PROBITY names.";

/// What the command line names: two programs, and how often each is run. The fake server lies beside the newer one.
fn versus(words: &[OsString]) -> io::Result<()> {
    let [old, new, rest @ ..] = words else {
        return Err(io::Error::other("which two programs?"));
    };
    let new = PathBuf::from(new);
    let repeats = rest.first().and_then(|it| it.to_str()?.parse().ok()).unwrap_or(3);
    engine::versus::run(Path::new(old), &new, &new.with_file_name("probity-fake-model"), repeats)
}

/// Prints lines of a kind.
fn lines(words: &[String]) -> io::Result<()> {
    let kind = words.first().and_then(|it| mixed::Kind::named(it));
    let kind = kind.ok_or_else(|| io::Error::other("results, texts, json, errors or pairs?"))?;
    let count = words.get(1).and_then(|it| it.parse().ok()).unwrap_or(1000);
    mixed::write(kind, count, &mut io::BufWriter::new(io::stdout().lock())).map(drop)
}

/// How often each figure is taken, and how many cases a long run has.
fn figures(probity: &Path, words: &[String]) -> io::Result<()> {
    let number = |text: &String| text.replace(['_', ','], "").parse().ok();
    let repeats = words.first().and_then(number).unwrap_or(3);
    let at = words.iter().position(|it| it == "--cases");
    let cases = at.and_then(|at| number(words.get(at + 1)?)).unwrap_or(1_000_000);
    engine::figures::run(probity, repeats, cases)
}

fn main() -> ExitCode {
    if let Some(exit) = probity_sandbox::keep() {
        return exit;
    }
    let campaign: Vec<String> = env::args().skip(2).collect();
    if env::args().nth(1).is_some_and(|it| it == "campaign") {
        return campaign::run(&campaign);
    }
    let mut words = env::args().skip(1);
    let what = words.next().unwrap_or_default();
    let count = words.next().and_then(|word| word.replace(['_', ','], "").parse().ok());
    let probity = env::var_os("PROBITY")
        .map_or_else(|| PathBuf::from("target/release/probity"), PathBuf::from);
    let outcome = match what.as_str() {
        "classify" => classify::classify(&probity, count.unwrap_or(1_000_000)),
        "validate" => classify::validate(&probity, count.unwrap_or(1_000_000)),
        "hostile" => hostile::run(&probity),
        "shell" => shell::run(&probity, count.unwrap_or(300_000)),
        "decide" => return decide::run(count.unwrap_or(3000)),
        "rescore" => rescore::run(&probity, count.unwrap_or(100_000)),
        "sandbox" => sandbox::run(count.unwrap_or(500)),
        "scale" => scale::run(&env::args().skip(2).collect::<Vec<_>>()),
        "simulate" => simulate::run(&env::args().skip(2).collect::<Vec<_>>()),
        "script" => script::run_all(count.unwrap_or(100_000)),
        "scorer" => scorer::run(&probity, count.unwrap_or(20_000)),
        "import" => import::run(&probity, count.unwrap_or(5000)),
        "view" => view::run(&probity, count.unwrap_or(1000)),
        "follow" => follow::run(&probity, count.unwrap_or(5)),
        "offline" => offline::run(&probity, count.unwrap_or(100_000)),
        "lines" => lines(&env::args().skip(2).collect::<Vec<_>>()),
        "figures" => figures(&probity, &env::args().skip(2).collect::<Vec<_>>()),
        "watch" => match watch::run(&env::args_os().skip(2).collect::<Vec<_>>()) {
            Ok(exit) => return exit,
            Err(error) => Err(error),
        },
        "startup" => startup::run(&probity),
        "engine" => engine::run(&probity, count.unwrap_or(3)),
        "versus" => versus(&env::args_os().skip(2).collect::<Vec<_>>()),
        "cost" => cost::run(env::args_os().skip(2)),
        _ => {
            println!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error} (is {} built?)", probity.display());
            ExitCode::FAILURE
        }
    }
}
