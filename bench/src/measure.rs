//! Runs a program and says what it cost.

use std::{
    io,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeVal,
};

/// What a run cost.
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// The largest of all children so far, in KiB.
    pub(crate) peak_kib: i64,
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> io::Result<Cost> {
    let before = children()?;
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let wall = start.elapsed();
    let after = children()?;
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    let cpu = cpu(&after).saturating_sub(cpu(&before));
    Ok(Cost { wall, cpu, peak_kib: after.max_rss() })
}

pub(crate) fn children() -> io::Result<Usage> {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_err(io::Error::from)
}

pub(crate) fn cpu(usage: &Usage) -> Duration {
    duration(usage.user_time()) + duration(usage.system_time())
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
