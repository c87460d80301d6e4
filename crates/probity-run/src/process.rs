//! Runs a program once: limits, caps, and nothing of it left behind. Unix only.
//!
//! A program is the leader of its own process group. Whatever happens to the call, its
//! end, a limit, a future that is dropped, the whole group is gone afterwards and the
//! leader reaped. Until then a task of its own holds it, so that the caller can go away
//! at any moment. What leaves the group on purpose (`setsid`) is out of reach.

mod guard;
mod launch;
mod pipes;
mod room;
pub(crate) mod service;
mod signals;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    pin::pin,
    process::{ExitStatus, Stdio},
    sync::LazyLock,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::{
    process::Child,
    signal::unix::{SignalKind, signal},
    sync::{oneshot, watch},
};

pub use launch::{Launch, NoProgram, find};
pub(crate) use launch::{first_line, is_out_of_files};
use pipes::{Captured, Pipes};
pub use room::{OwnFolder, Room};

/// The longest argument that Linux takes, in bytes: 128 KiB with the zero at its end.
pub const LONGEST_ARGUMENT: usize = 131_071;
/// How long the pipes of a program that has ended are read, if somebody holds them open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a killed program may take to vanish; longer ones hang in the kernel.
const REAP: Duration = Duration::from_secs(5);

/// Directories and processes that are being put away, counted.
static BUSY: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// What is run.
#[derive(Debug)]
pub struct Command {
    /// The file, as [`find`] found it.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// All variables that it sees.
    pub env: BTreeMap<OsString, OsString>,
    /// What it reads.
    pub stdin: Stdin,
    /// Where it runs; it is removed when the program is gone.
    pub room: Room,
}

/// What a program reads.
#[derive(Debug)]
pub enum Stdin {
    /// Nothing.
    Null,
    /// Bytes through a pipe. A program need not read them.
    Bytes(Vec<u8>),
    /// A file.
    File(File),
}

/// What a program may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time until it is told to end.
    pub time: Duration,
    /// The time from then until it is killed.
    pub kill_grace: Duration,
    /// Bytes of standard output; whoever writes more is ended.
    pub stdout: usize,
    /// Bytes of standard error; of more, the beginning and the end are kept.
    pub stderr: usize,
    /// Bytes of memory that each of its processes may have; none for no limit.
    pub memory: Option<u64>,
}

impl Limits {
    /// The usual caps: 8 MiB of standard output, 1 MiB of standard error, no limit of memory.
    pub fn new(time: Duration, kill_grace: Duration) -> Self {
        Self { time, kill_grace, stdout: 8 << 20, stderr: 1 << 20, memory: None }
    }
}

/// A program that came to its end.
#[derive(Debug)]
pub struct Finished {
    /// Who ended it.
    pub end: End,
    /// Its exit code or signal; none if the kernel would not let go of it.
    pub status: Option<ExitStatus>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// The exit code.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The name of the signal that ended it.
    pub fn signal(&self) -> Option<String> {
        self.status.and_then(|status| status.signal()).map(probity_core::failure::signal_name)
    }
}

/// Who ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody, it ended.
    Itself,
    /// We, for the time it took.
    Time,
    /// We, for what it wrote.
    Output,
}

/// Runs a program to its end.
///
/// If the future is dropped, the program is ended in the background; see [`drained`].
/// An error means that no process was made.
pub async fn run(command: Command, limits: Limits) -> Result<Finished, NoProgram> {
    signals::heed_ignored();
    guard::ready();
    let Command { program, args, env, stdin, room } = command;
    let (stdin, bytes) = match stdin {
        Stdin::Null => (Stdio::null(), None),
        Stdin::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
        Stdin::File(file) => (Stdio::from(file), None),
    };
    let launch = Launch { program, args, env, stdin, work: room.work() };
    // From before the start, so that no end is missed.
    let ends = signal(SignalKind::child()).map_err(NoProgram::Signals)?;
    let mut child = launch.spawn()?;
    let group = Group::of(&child);
    group.limit_memory(limits.memory);
    let pipes = Pipes::of(&mut child, bytes);
    let (_keep, dropped) = oneshot::channel::<()>();
    let held = Held { group, child, ends, limits, room };
    let task = tokio::spawn(held.see_through(pipes, dropped));
    match task.await {
        Ok(finished) => Ok(finished),
        Err(error) => Err(NoProgram::Lost(io::Error::other(error))),
    }
}

/// Waits until everything that was given up is gone too, but not for ever.
///
/// Returns whether it is. To be called before the program ends, while the runtime lives.
pub async fn drained(limit: Duration) -> bool {
    let mut count = BUSY.subscribe();
    let none = count.wait_for(|count| *count == 0);
    tokio::time::timeout(limit, none).await.is_ok_and(|it| it.is_ok())
}

/// A program that runs, and all that is needed to end it.
struct Held {
    // First, so that the group is killed before the leader is given up.
    group: Group,
    child: Child,
    ends: tokio::signal::unix::Signal,
    limits: Limits,
    room: Room,
}

impl Held {
    async fn see_through(mut self, pipes: Pipes, dropped: oneshot::Receiver<()>) -> Finished {
        let Limits { time, kill_grace, stdout, stderr, memory: _ } = self.limits;
        let (mut out, mut err) = (Captured::new(stdout), Captured::new(stderr));
        let end = {
            let mut talk = pin!(pipes.exchange(&mut out, &mut err));
            let mut talked = false;
            let mut limit = pin!(tokio::time::sleep(time));
            let mut dropped = dropped;
            let end = loop {
                // All of these can be given up and taken up again.
                tokio::select! {
                    biased;
                    // The sender is never used, only dropped.
                    _ = &mut dropped => break End::Time,
                    within = &mut talk, if !talked => match within {
                        true => talked = true,
                        false => { talked = true; break End::Output }
                    },
                    () = self.group.ended(&mut self.ends) => break End::Itself,
                    () = &mut limit => break End::Time,
                }
            };
            let ended = match end {
                End::Itself => true,
                End::Time | End::Output => {
                    self.group.signal(Signal::TERM);
                    // A stopped process would not hear it.
                    self.group.signal(Signal::CONT);
                    let ended = self.group.ended(&mut self.ends);
                    let mut ended = pin!(tokio::time::timeout(kill_grace, ended));
                    loop {
                        tokio::select! {
                            biased;
                            ended = &mut ended => break ended.is_ok(),
                            // Whoever writes last words must not be held up by us.
                            _ = &mut talk, if !talked => talked = true,
                        }
                    }
                }
            };
            if ended && !talked {
                // What it wrote last is on its way, unless a child of it keeps the pipe.
                let _ = tokio::time::timeout(DRAIN, talk).await;
            }
            end
        };
        // Also after a good end: nothing that it started may stay.
        self.group.signal(Signal::KILL);
        let status = tokio::time::timeout(REAP, self.child.wait()).await;
        self.group.gone();
        let status = status.ok().and_then(Result::ok);
        drop(self.room);
        Finished { end, status, stdout: out.into_bytes(), stderr: err.into_bytes() }
    }
}

/// A process group whose leader has not been reaped, so that its number is its own.
#[derive(Debug)]
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            guard::watch_over(leader);
        }
        Self { leader }
    }

    /// Bounds the memory of the leader and of what it starts from now on, where the system can. What
    /// is reserved and not used does not count.
    fn limit_memory(&self, bytes: Option<u64>) {
        #[cfg(target_os = "linux")]
        if let (Some(leader), Some(_)) = (self.leader, bytes) {
            use rustix::process::{Resource, Rlimit, prlimit};
            // Fails if it has ended, or has a lower limit already.
            let _ =
                prlimit(Some(leader), Resource::Data, Rlimit { current: bytes, maximum: bytes });
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // Fails if nobody is left, which is as well.
            let _ = kill_process_group(leader, signal);
        }
    }

    /// Waits until the leader has ended, and leaves it to be reaped. Cancel-safe.
    async fn ended(&self, ends: &mut tokio::signal::unix::Signal) {
        while !self.has_ended() {
            if ends.recv().await.is_none() {
                return;
            }
        }
    }

    /// Whether the leader has ended; it is left to be reaped.
    fn has_ended(&self) -> bool {
        let Some(leader) = self.leader else { return true };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // An error says that there is nothing to wait for.
        !matches!(waitid(WaitId::Pid(leader), look), Ok(None))
    }

    /// The leader is reaped: the number may mean somebody else from now on.
    fn gone(&mut self) {
        if let Some(leader) = self.leader.take() {
            guard::let_go(leader);
        }
    }
}

impl Drop for Group {
    /// The runtime ends before the program: there is no time for grace.
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.gone();
    }
}

/// Something that [`drained`] waits for.
#[derive(Debug)]
pub(crate) struct Count;

impl Count {
    pub(crate) fn up() -> Self {
        BUSY.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        BUSY.send_modify(|count| *count = count.saturating_sub(1));
    }
}
