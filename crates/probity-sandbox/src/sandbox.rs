//! The sandbox as programs use it.

use std::{
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, SystemTime},
};

use crate::{
    cache::{Cache, Key},
    execution::{ADDRESS_SPACE, Command, End, Execution, Limits, Look},
    gateway::Gateway,
    probe::{self, Means, Obstacle},
    world::{Preparation, PrepareError, Prepared, World},
};

/// The program that is started instead of this one.
static INSTEAD: OnceLock<PathBuf> = OnceLock::new();

/// The program that is started as keeper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    pub(crate) program: PathBuf,
}

impl Keeper {
    /// This program, whose `main` calls [`keep`](crate::keep) first; or the one that [`Keeper::use_instead`] names.
    pub fn this_program() -> Self {
        let usual = || PathBuf::from("/proc/self/exe");
        Self { program: INSTEAD.get().cloned().unwrap_or_else(usual) }
    }

    /// Names another program, where `main` is not ours: that of an interpreter. Only the first call counts.
    pub fn use_instead(program: impl Into<PathBuf>) {
        let _ = INSTEAD.set(program.into());
    }

    /// Another program whose `main` does so, such as `probity-keeper`.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into() }
    }
}

/// Nothing on this machine can keep a command from doing harm, so none is executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be executed on this machine: {}", .obstacles.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Unavailable {
    /// What is in the way of each means.
    pub obstacles: Vec<Obstacle>,
}

/// Why a command was not executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The tree of the world cannot be used.
    #[error("the world {name} cannot be used: {why}")]
    World {
        /// The name of the world.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The world could not be put together, or the command not be started in it.
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
    /// The process that watches over the command died, and the command with it. It can be tried again.
    #[error("the keeper of the sandbox died: {0}")]
    Died(String),
}

/// What the setup of a world may use.
const SETUP: Limits = Limits {
    time: Duration::from_secs(30),
    cpu: Duration::from_secs(30),
    memory: 1 << 30,
    space: ADDRESS_SPACE,
    disk: 256 << 20,
    file: 64 << 20,
    processes: 64,
    descriptors: 256,
    output: 256 << 20,
};

/// A way to execute.
pub(crate) trait Engine: std::fmt::Debug + Send + Sync {
    /// Executes one command in a world that nobody else sees.
    fn execute(
        &self,
        prepared: &Prepared,
        command: &Command,
        limits: &Limits,
    ) -> Result<Execution, Failure> {
        self.visit(prepared, &Openings::default())?.execute(command, None, limits)
    }

    /// Goes to a world that nobody else sees.
    fn visit<'s>(
        &'s self,
        prepared: &Prepared,
        openings: &Openings,
    ) -> Result<Box<dyn Visit + 's>, Failure>;
}

/// A visit of a world.
pub(crate) trait Visit: std::fmt::Debug + Send {
    fn execute(
        &mut self,
        command: &Command,
        directory: Option<&str>,
        limits: &Limits,
    ) -> Result<Execution, Failure>;

    fn look(&mut self, paths: &[String]) -> Result<Vec<Look>, Failure>;

    fn stopper(&self) -> Stopper;
}

/// What of this machine a session has beside its world and the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Openings {
    /// Files and directories that are found in the world where they are on this machine, and can be read there.
    pub paths: Vec<PathBuf>,
    /// What can be reached of the network.
    pub gateway: Option<Gateway>,
}

/// Ends a session from another thread: what runs in it is killed, and nothing more is executed.
#[derive(Debug)]
pub struct Stopper {
    connection: Option<UnixStream>,
    stopped: Arc<AtomicBool>,
}

impl Stopper {
    pub(crate) fn new(connection: Option<UnixStream>, stopped: Arc<AtomicBool>) -> Self {
        Self { connection, stopped }
    }

    /// Ends the session.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(connection) = &self.connection {
            // It fails if the session has ended already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// A world that commands are executed in one after the other, each finding what the ones before it left. No process
/// outlives its command. The world is thrown away in the end.
#[derive(Debug)]
pub struct Session<'s> {
    sandbox: &'s Sandbox,
    /// What talks to somebody outside mostly waits, and keeps nobody else from executing.
    is_waiting: bool,
    visit: Box<dyn Visit + 's>,
}

impl Session<'_> {
    /// Executes a command, in a directory other than that of the world if one is named. If commands before it removed that of
    /// the world, it starts at the root. The changes are those since the
    /// session began. How much may be written in all is decided by the limits of the first command.
    pub fn execute(
        &mut self,
        command: &Command,
        directory: Option<&str>,
        limits: &Limits,
    ) -> Result<Execution, Failure> {
        let _slot = (!self.is_waiting).then(|| self.sandbox.slots.take());
        self.visit.execute(command, directory, limits)
    }

    /// From now on nobody outside is waited for, so that what is executed counts as any other execution does.
    pub fn takes_slots(&mut self) {
        self.is_waiting = false;
    }

    /// Looks at paths of the world, after something was executed there. Links on the way are followed.
    pub fn look(&mut self, paths: &[String]) -> Result<Vec<Look>, Failure> {
        self.visit.look(paths)
    }

    /// What ends the session from another thread.
    pub fn stopper(&self) -> Stopper {
        self.visit.stopper()
    }
}

/// Executes commands. It can be used by many threads at once; as many executions run at a time as the machine is good for,
/// and the others wait.
#[derive(Debug)]
pub struct Sandbox {
    engine: Box<dyn Engine>,
    means: Means,
    slots: Slots,
    cache: Mutex<Cache>,
}

impl Sandbox {
    /// The best that this machine offers, tried out.
    pub fn open(keeper: &Keeper) -> Result<Self, Unavailable> {
        let (means, engine) = probe::best(keeper)?;
        let slots = available_parallelism().map_or(2, usize::from).saturating_mul(2);
        Ok(Self { engine, means, slots: Slots::new(slots), cache: Mutex::default() })
    }

    /// What keeps commands from doing harm.
    pub fn means(&self) -> Means {
        self.means
    }

    /// What the command does in this world. It is executed once: who asks again hears of the same execution. A world without a
    /// digest is still being made, and nothing about it is remembered.
    pub fn execute(
        &self,
        prepared: &Prepared,
        command: &Command,
        limits: &Limits,
    ) -> Result<Execution, Failure> {
        if prepared.digest.is_empty() {
            return self.execute_anew(prepared, command, limits);
        }
        let key = Key::new(prepared, command, limits);
        if let Some(execution) = self.cache().get(key) {
            return Ok(execution);
        }
        let execution = self.execute_anew(prepared, command, limits)?;
        // Whether time or memory suffice may be another matter the next time.
        if !matches!(execution.end, End::TimedOut | End::OutOfMemory) {
            self.cache().put(key, &execution);
        }
        Ok(execution)
    }

    /// Executes the command, also if that was done before.
    pub fn execute_anew(
        &self,
        prepared: &Prepared,
        command: &Command,
        limits: &Limits,
    ) -> Result<Execution, Failure> {
        let _slot = self.slots.take();
        self.engine.execute(prepared, command, limits)
    }

    /// Enters a world for several commands.
    pub fn enter(&self, prepared: &Prepared) -> Result<Session<'_>, Failure> {
        self.enter_with(prepared, &Openings::default())
    }

    /// Enters a world that has openings.
    pub fn enter_with(
        &self,
        prepared: &Prepared,
        openings: &Openings,
    ) -> Result<Session<'_>, Failure> {
        let visit = self.engine.visit(prepared, openings)?;
        Ok(Session { sandbox: self, is_waiting: openings.gateway.is_some(), visit })
    }

    /// Makes a world, whose setup runs in this sandbox. Trees are kept in `cache`; ages of files count from `now`.
    pub fn prepare(
        &self,
        world: &World,
        cache: &Path,
        now: SystemTime,
    ) -> Result<Prepared, PrepareError> {
        let setup = |prepared: &Prepared, text: &str| self.set_up(prepared, text);
        world.prepare(&Preparation { cache, now, setup: &setup })
    }

    /// Runs the setup of a world that is being made.
    fn set_up(&self, prepared: &Prepared, text: &str) -> Result<Vec<u8>, String> {
        let command = Command::Shell(text.to_owned());
        let execution =
            self.execute_anew(prepared, &command, &SETUP).map_err(|failure| failure.to_string())?;
        let Execution { end, stdout, stderr, .. } = execution;
        match end {
            End::Exit(0) if stdout.bytes.len() as u64 == stdout.total => Ok(stdout.bytes),
            End::Exit(0) => Err(format!("it makes more than {} MiB", SETUP.output >> 20)),
            End::Exit(_) | End::Signal(_) | End::TimedOut | End::OutOfMemory => {
                let said = String::from_utf8_lossy(&stderr.bytes);
                Err(format!("{end}: {}", said.trim_end()))
            }
        }
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many executions may run at a time.
#[derive(Debug)]
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Slots {
    fn new(free: usize) -> Self {
        Self { free: Mutex::new(free), freed: Condvar::new() }
    }

    fn take(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Slot { slots: self }
    }
}

struct Slot<'a> {
    slots: &'a Slots,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.slots.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.slots.freed.notify_one();
    }
}
