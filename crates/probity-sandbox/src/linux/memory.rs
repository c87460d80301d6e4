//! How much memory the processes of a world use together. Limits of the kernel for an ordinary user count one process each.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, openat};

/// The processes of a world, through its `/proc`.
pub(super) struct Meter {
    proc: OwnedFd,
    page: u64,
}

impl Meter {
    /// `proc` is the `/proc` of the world.
    pub(super) fn new(proc: OwnedFd) -> Self {
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        Self { proc, page }
    }

    /// Bytes in memory. Pages that processes share count for each of them.
    pub(super) fn used(&self) -> u64 {
        let Ok(entries) = Dir::read_from(&self.proc) else { return 0 };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_bytes().first().is_some_and(u8::is_ascii_digit))
            .map(|entry| self.of(&entry.file_name().to_string_lossy()))
            .sum()
    }

    fn of(&self, process: &str) -> u64 {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.proc, format!("{process}/statm"), flags, Mode::empty()) else {
            return 0;
        };
        let mut line = [0; 128];
        let length = rustix::io::read(file.as_fd(), &mut line).unwrap_or(0);
        let line = String::from_utf8_lossy(&line[..length]);
        let resident =
            line.split_ascii_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
        resident.unwrap_or(0) * self.page
    }
}
