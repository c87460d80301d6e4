//! A program that stays up: one line goes in, one line comes out.

use std::{io, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{Command, Group, Launch, NoProgram, Room, guard, pipes::Captured, signals};

/// Bytes that a program may write for one answer, whatever else it prints included.
const LONGEST_ANSWER: usize = 8 << 20;
/// Bytes of standard error that are kept.
const LAST_WORDS: usize = 16 << 10;

/// A program that runs. Dropped, it is killed with all that it started.
#[derive(Debug)]
pub(crate) struct Service {
    // First, so that the group is killed before the leader is given up.
    group: Group,
    child: tokio::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Tells that some child has ended.
    ends: Signal,
    errors: JoinHandle<Vec<u8>>,
    _room: Room,
}

/// Why there was no answer. The program is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("it ended")]
    Ended,
    #[error("it wrote more than {} MiB for one answer", LONGEST_ANSWER >> 20)]
    TooMuch,
}

impl Service {
    /// Starts a program that may have so many bytes. Its standard input is ours, whatever the command
    /// says.
    pub(crate) fn start(command: Command, memory: Option<u64>) -> Result<Self, NoProgram> {
        signals::heed_ignored();
        guard::ready();
        let Command { program, args, env, stdin: _, room } = command;
        let launch = Launch { program, args, env, stdin: Stdio::piped(), work: room.work() };
        let ends = signal(SignalKind::child()).map_err(NoProgram::Signals)?;
        let mut child = launch.spawn()?;
        let group = Group::of(&child);
        group.limit_memory(memory);
        let missing = || NoProgram::Lost(io::Error::other("it has no pipes"));
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let mut stderr = child.stderr.take().ok_or_else(missing)?;
        let errors = tokio::spawn(async move {
            let mut kept = Captured::new(LAST_WORDS);
            let mut buffer = vec![0; 4 << 10];
            while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
                kept.take_ends(&buffer[..read]);
            }
            kept.into_bytes()
        });
        Ok(Self { group, child, stdin, stdout, ends, errors, _room: room })
    }

    /// Whether it has ended, so that there is nobody to ask.
    pub(crate) fn has_ended(&self) -> bool {
        self.group.has_ended()
    }

    /// Writes a line and reads lines until one of them is the answer.
    ///
    /// Not cancel-safe: a program whose answer was not waited for must not be asked again.
    pub(crate) async fn ask<T>(
        &mut self,
        line: &[u8],
        mut answer: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<T, NoAnswer> {
        let Self { group, stdin, stdout, ends, .. } = self;
        // At the same time: a program may print before it has read all.
        let write = async {
            let written = async {
                stdin.write_all(line).await?;
                stdin.flush().await
            };
            // One that does not read may have answered all the same.
            let _ = written.await;
            std::future::pending::<()>().await;
        };
        let read = async {
            let mut left = LONGEST_ANSWER;
            let mut found = Vec::new();
            loop {
                found.clear();
                let mut bounded = (&mut *stdout).take(left as u64 + 1);
                let read = bounded.read_until(b'\n', &mut found).await.unwrap_or(0);
                match read {
                    0 => return Err(NoAnswer::Ended),
                    _ if read > left => return Err(NoAnswer::TooMuch),
                    _ => left -= read,
                }
                if let Some(answer) = answer(&found) {
                    return Ok(answer);
                }
            }
        };
        // What it started may hold the pipe for longer than it lives.
        let ended = async {
            group.ended(ends).await;
            sleep(super::DRAIN).await;
        };
        tokio::select! {
            biased;
            answer = read => answer,
            () = ended => Err(NoAnswer::Ended),
            () = write => Err(NoAnswer::Ended),
        }
    }

    /// Ends the program and says what it wrote to standard error last.
    pub(crate) async fn last_words(self) -> String {
        let Self { mut group, mut child, stdin, stdout, ends: _, errors, _room } = self;
        drop((stdin, stdout));
        group.signal(rustix::process::Signal::KILL);
        let _ = timeout(super::REAP, child.wait()).await;
        group.gone();
        let written = timeout(super::DRAIN, errors).await;
        let written = written.ok().and_then(Result::ok).unwrap_or_default();
        String::from_utf8_lossy(&written).trim().to_owned()
    }
}
