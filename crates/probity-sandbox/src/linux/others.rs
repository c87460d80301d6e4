//! Processes of a world that run beside the command, and what becomes of them: who ends one has done something.

use std::{fs, thread, time::Duration};

use rustix::process::{Pid, WaitOptions};

use super::first::end_of;
use crate::execution::End;

/// How often a process is looked at that may be about to end, and how long in between.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The processes, in the order in which they were started.
#[derive(Default)]
pub(super) struct Others(Vec<Other>);

struct Other {
    command: String,
    pid: Pid,
    end: Option<End>,
}

impl Others {
    pub(super) fn add(&mut self, command: String, pid: Pid) {
        self.0.push(Other { command, pid, end: None });
    }

    /// A process has ended.
    pub(super) fn buried(&mut self, pid: Pid, end: End) {
        if let Some(other) = self.0.iter_mut().find(|it| it.pid == pid) {
            other.end = Some(end);
        }
    }

    /// Waits for those that the command has sent a signal to: they end a moment later than it does.
    pub(super) fn settle(&mut self) {
        for _ in 0..LOOKS {
            while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                self.buried(pid, end_of(status));
            }
            if !self.0.iter().any(|it| it.end.is_none() && is_about_to_end(it.pid)) {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    /// What became of those that are not as they were.
    pub(super) fn ended(&self) -> Vec<String> {
        let told = |it: &Other| match it.end {
            Some(end) => Some(format!("`{}`: {end}", it.command)),
            None if state(it.pid)?.0 == 'T' => Some(format!("`{}`: stopped", it.command)),
            None => None,
        };
        self.0.iter().filter_map(told).collect()
    }
}

/// What waits for something and has no signal to take stays as it is.
fn is_about_to_end(pid: Pid) -> bool {
    state(pid).is_some_and(|(state, is_signalled)| is_signalled || !matches!(state, 'S' | 'T'))
}

/// The letter of its state, and whether a signal waits for it.
fn state(pid: Pid) -> Option<(char, bool)> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let field = |name: &str| status.lines().find_map(|it| it.strip_prefix(name)).map(str::trim);
    let waits = |name: &str| field(name).is_some_and(|it| it.bytes().any(|it| it != b'0'));
    Some((field("State:")?.chars().next()?, waits("SigPnd:") || waits("ShdPnd:")))
}
