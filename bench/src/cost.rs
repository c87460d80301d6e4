//! What one program costs, by a process that waits for nothing else.
//!
//! The kernel keeps one peak of memory for all children of a process together. So the
//! bench starts itself once more for each program it measures, as `probity-bench cost
//! PROGRAM ARGUMENTS`, and that one has a single child.

use std::{
    env, io,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::measure;

/// What comes before the figures in the output.
const MARK: &str = "\nWALL_US=";

/// A program that came to a good end.
pub(crate) struct Ran {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_mib: f64,
    /// What it printed.
    pub(crate) output: String,
}

impl Ran {
    /// The value of a `KEY=VALUE` line.
    pub(crate) fn key(&self, key: &str) -> Option<&str> {
        self.output.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Runs a program in a folder, and says what it alone has cost.
pub(crate) fn of(program: &Path, folder: &Path, words: &[&str]) -> io::Result<Ran> {
    let output = Command::new(env::current_exe()?)
        .arg("cost")
        .arg(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = text.rsplit_once(MARK).and_then(|(said, figures)| {
        let mut figures = figures.split_ascii_whitespace().map(str::parse::<u32>);
        let mut next = || figures.next()?.ok();
        Some((said.to_owned(), next()?, next()?, next()?))
    });
    match figures {
        Some((output, wall, cpu, peak_kib)) => Ok(Ran {
            wall: Duration::from_micros(wall.into()),
            cpu: Duration::from_micros(cpu.into()),
            peak_mib: f64::from(peak_kib) / 1024.0,
            output,
        }),
        None => {
            let said = String::from_utf8_lossy(&output.stderr);
            let words = words.join(" ");
            Err(io::Error::other(format!("`{} {words}`: {text}{said}", program.display())))
        }
    }
}

/// The other side: runs the program that the command line names.
pub(crate) fn run(mut words: impl Iterator<Item = std::ffi::OsString>) -> io::Result<()> {
    let program = words.next().ok_or_else(|| io::Error::other("which program?"))?;
    let start = Instant::now();
    let status = Command::new(program).args(words).status()?;
    let wall = start.elapsed();
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    let usage = measure::children()?;
    let cpu = measure::cpu(&usage);
    println!("{MARK}{} {} {}", wall.as_micros(), cpu.as_micros(), usage.max_rss());
    Ok(())
}
