//! Two builds of the program on the same work, in turn: what got cheaper, and what got dearer.
//!
//! CPU time, and memory, do not depend on what else a machine does as much as time by the clock does; and of two programs that
//! take turns, neither has the quieter machine.

use std::{fs, io, path::Path};

use super::{cpu_ms, project::Project, server::Server, table::Figure};
use crate::cost::Ran;

/// A long text, in bytes.
const LONG: usize = 100 << 10;

/// One kind of work.
struct Work {
    what: &'static str,
    latency_ms: u64,
    cases: usize,
    make: fn(&Server) -> io::Result<Project>,
    words: &'static [&'static str],
    of: fn(&Ran, usize) -> f64,
    digits: usize,
}

const WORKS: &[Work] = &[
    Work {
        what: "10,000 cases, 50 ms, 64 in flight: CPU ms a case",
        latency_ms: 50,
        cases: 10_000,
        make: |server| Project::new(10_000, &[("fake", server)]),
        words: &[],
        of: cpu_ms,
        digits: 4,
    },
    Work {
        what: "20,000 cases, 0 ms: CPU ms a case",
        latency_ms: 0,
        cases: 20_000,
        make: |server| Project::new(20_000, &[("fake", server)]),
        words: &[],
        of: cpu_ms,
        digits: 4,
    },
    Work {
        what: "the same with `--cache`, which is empty: CPU ms a case",
        latency_ms: 0,
        cases: 20_000,
        make: |server| Project::new(20_000, &[("fake", server)]),
        words: &["--cache"],
        of: cpu_ms,
        digits: 4,
    },
    Work {
        what: "10,000 cases, 50 ms, 1,000 in flight: seconds",
        latency_ms: 50,
        cases: 10_000,
        make: |server| Project::in_flight(10_000, 1000, server),
        words: &[],
        of: |ran, _| ran.wall.as_secs_f64(),
        digits: 2,
    },
    Work {
        what: "1,000 runners of 10 cases with `--parallel`, 0 ms: CPU ms a case",
        latency_ms: 0,
        cases: 10_000,
        make: |server| Project::runners(1000, 10, server),
        words: &["--parallel"],
        of: cpu_ms,
        digits: 4,
    },
    Work {
        what: "1,000 cases, 100 KiB in and out, 0 ms: CPU ms a case",
        latency_ms: 0,
        cases: 1000,
        make: |server| Project::long(1000, LONG, server),
        words: &[],
        of: cpu_ms,
        digits: 3,
    },
    Work {
        what: "the same: peak memory, MiB",
        latency_ms: 0,
        cases: 1000,
        make: |server| Project::long(1000, LONG, server),
        words: &[],
        of: |ran, _| ran.peak_mib,
        digits: 0,
    },
    Work {
        what: "200 cases, 1 MiB in and out, 0 ms: peak memory, MiB",
        latency_ms: 0,
        cases: 200,
        make: |server| Project::long(200, 1 << 20, server),
        words: &[],
        of: |ran, _| ran.peak_mib,
        digits: 0,
    },
    Work {
        what: "1 case, 0 ms: CPU ms",
        latency_ms: 0,
        cases: 1,
        make: |server| Project::new(1, &[("fake", server)]),
        words: &[],
        of: cpu_ms,
        digits: 1,
    },
];

/// Measures everything with both, and prints a line as soon as it is known.
pub(crate) fn run(old: &Path, new: &Path, fake_model: &Path, repeats: usize) -> io::Result<()> {
    let programs = [fs::canonicalize(old)?, fs::canonicalize(new)?];
    println!("{}, median of {repeats} (least–most)\n", super::machine());
    println!("| measurement | old | new | new / old |");
    println!("|---|--:|--:|--:|");
    for work in WORKS {
        let Work { what, cases, words, digits, .. } = *work;
        let server = Server::start(fake_model, work.latency_ms)?;
        let mut figures = [Figure::default(), Figure::default()];
        for _ in 0..repeats {
            for (program, figure) in programs.iter().zip(&mut figures) {
                let project = (work.make)(&server)?;
                let ran = project.run(program, words, cases)?;
                figure.push((work.of)(&ran, cases));
            }
        }
        let [old, new] = &figures;
        let ratio = new.median() / old.median();
        println!("| {what} | {old:.digits$} | {new:.digits$} | {ratio:.2} |");
    }
    Ok(())
}
