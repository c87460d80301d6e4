//! How long it takes until the program has started.

use std::{io, path::Path};

use crate::{classify::command, measure};

const RUNS: usize = 51;

/// Prints the median wall time of `--version`.
pub(crate) fn run(probity: &Path) -> io::Result<()> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        times.push(measure::run(command(probity).arg("--version"))?.wall);
    }
    times.sort();
    let (median, slowest) = (times[RUNS / 2], times[RUNS - 1]);
    println!(
        "probity --version: median {:.1} ms, slowest {:.1} ms of {RUNS}",
        median.as_secs_f64() * 1e3,
        slowest.as_secs_f64() * 1e3
    );
    Ok(())
}
