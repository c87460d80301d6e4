//! Judging without asking: how many lines a CPU-second is enough for.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::Path,
};

use crate::{
    classify::{command, per_second},
    engine::table::{Figure, Target, head, line},
    measure,
    mixed::{self, Kind},
};

/// What is measured: the lines, the command, how many of them a round has, and what is wanted.
struct Work {
    what: &'static str,
    kind: Kind,
    words: &'static [&'static str],
    unit: Unit,
    target: Target,
}

#[derive(Clone, Copy)]
enum Unit {
    Lines,
    Megabytes,
}

const CLASSIFY: &[&str] = &["classify", "-", "-o", "/dev/null", "--quiet", "-j", "1"];

const WORKS: &[Work] = &[
    Work {
        what: "`classify`, mixed results of 830 bytes: lines",
        kind: Kind::Results,
        words: CLASSIFY,
        unit: Unit::Lines,
        target: Target::AtLeast(100_000.0),
    },
    Work {
        what: "`check policy`, all three: MB",
        kind: Kind::Texts,
        words: &["check", "policy", "--jsonl"],
        unit: Unit::Megabytes,
        target: Target::AtLeast(50.0),
    },
    Work {
        what: "`check json --level repair`: MB",
        kind: Kind::Json,
        words: &["check", "json", "--level", "repair", "--jsonl"],
        unit: Unit::Megabytes,
        target: Target::AtLeast(60.0),
    },
    Work {
        what: "`check command` with `against`: pairs",
        kind: Kind::Pairs,
        words: &["check", "command", "--jsonl"],
        unit: Unit::Lines,
        target: Target::AtLeast(80_000.0),
    },
    Work {
        what: "`check refusal`: lines",
        kind: Kind::Texts,
        words: &["check", "refusal", "--jsonl"],
        unit: Unit::Lines,
        target: Target::None,
    },
    Work {
        what: "`check error`: lines",
        kind: Kind::Errors,
        words: &["check", "error", "--jsonl"],
        unit: Unit::Lines,
        target: Target::None,
    },
];

/// Measures each on `count` lines, three times.
pub(crate) fn run(probity: &Path, count: usize) -> io::Result<()> {
    println!("{}, a CPU-second, median of 3 (least–most)\n", crate::engine::machine());
    head();
    rows(probity, count)
}

/// The lines of the table.
pub(crate) fn rows(probity: &Path, count: usize) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("lines.jsonl");
    for Work { what, kind, words, unit, target } in WORKS {
        let bytes = mixed::write(*kind, count, &mut BufWriter::new(File::create(&path)?))?;
        let mut figure = Figure::default();
        for _ in 0..3 {
            let mut command = command(probity);
            command.args(*words).stdin(File::open(&path)?);
            let cpu = measure::run(&mut command)?.cpu.as_secs_f64();
            figure.push(match unit {
                Unit::Lines => per_second(count, cpu),
                Unit::Megabytes => per_second(bytes, cpu) / 1e6,
            });
        }
        line(what, target, 0, &figure);
    }
    Ok(())
}
