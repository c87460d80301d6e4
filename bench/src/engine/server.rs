//! A fake model in a process of its own.

use std::{
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running server. It ends with this value, and with this program however that ends.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(program: &Path, latency_ms: u64) -> io::Result<Self> {
        // It stops when its input is closed, which nobody can keep the kernel from doing.
        let mut process = Command::new(program)
            .args(["--latency-ms", &latency_ms.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let server = Self { process, url };
        match server.url.is_empty() {
            true => Err(io::Error::other(format!("the fake server says {line:?}"))),
            false => Ok(server),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It fails only for a process that has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
