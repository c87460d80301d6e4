//! The first process of a world: it finishes the world from within, gives up all rights, starts the command, and buries
//! what ends. When it ends itself, the kernel ends all others.

use std::{
    ffi::CString,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{MemfdFlags, Mode, OFlags, SealFlags, SeekFrom},
    io::Errno,
    mount::{MountFlags, UnmountFlags},
    net::{
        RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
    },
    pipe::{PipeFlags, pipe_with},
    process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus},
    thread::{CapabilitySet, CapabilitySets},
};
use serde::{Deserialize, Serialize};

use super::{Doing as _, base, filter, others::Others, sys, wall};
use crate::{
    descriptor,
    execution::{Command, End, Limits},
    protocol::Job,
};

/// What the first process has in hand.
pub(super) struct Start {
    /// Whether nothing was executed in this world before.
    pub(super) is_new: bool,
    pub(super) teller: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// What it tells.
pub(super) enum Notice {
    /// The world could not be finished.
    Failed(String),
    /// It is finished, but the command cannot be started in it.
    Refused(String),
    /// The command is about to start. Refused calls are heard of here.
    Started(OwnedFd),
    /// It has ended.
    /// It has ended, and so have some processes of the world.
    Ended(End, Vec<String>),
}

/// The same, without the descriptor.
#[derive(Serialize, Deserialize)]
enum Words {
    Failed(String),
    Refused(String),
    Started,
    Ended(End, Vec<String>),
}

pub(super) fn run(job: &Job, program: &Program, start: &Start) -> ! {
    let outcome = enter(start.is_new)
        .map_err(Words::Failed)
        .and_then(|()| live(program, job, start).map_err(Words::Refused));
    if let Err(words) = outcome {
        let _ = tell(&start.teller, &words, None);
        sys::leave(1);
    }
    sys::leave(0)
}

/// Finishes the world and moves into it.
fn enter(is_new: bool) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .doing("binding to the life of the supervisor")?;
    // Later commands mount theirs over that of the first: without one that is seen, the kernel would refuse another.
    let root = if is_new { base::ROOT } else { "" };
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    rustix::mount::mount("proc", format!("{root}/proc"), "proc", quiet, None)
        .doing("mounting /proc")?;
    if is_new {
        rustix::process::chdir(base::ROOT).doing("entering the world")?;
        rustix::process::pivot_root(".", ".").doing("moving into the world (pivot_root)")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH).doing("leaving the host behind")?;
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    Ok(())
}

/// Lives until the command has ended.
fn live(program: &Program, job: &Job, start: &Start) -> Result<(), String> {
    match rustix::process::chdir(&*job.directory) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) if job.may_be_gone => {
            rustix::process::chdir("/")
        }
        changed => changed,
    }
    .doing(&format!("changing to the directory {} of the world", job.directory))?;
    give_up_rights().doing("giving up capabilities")?;
    wall::enclose(job.is_open).doing("enclosing the world (Landlock)")?;
    let listener = filter::install().doing("filtering system calls (seccomp)")?;
    tell(&start.teller, &Words::Started, Some(&listener)).doing("telling the supervisor")?;
    drop(listener);
    let mut others = Others::default();
    for argv in &job.processes {
        let pid = Program::new(&Command::Argv(argv.clone()), job)?.start_aside(&job.limits)?;
        others.add(argv.join(" "), pid);
    }
    let command = match sys::fork(0).doing("starting the command")? {
        sys::Side::Child => {
            // Its output is that of the command: who reads it wants to know.
            let why = program.become_it(&start.stdout, &start.stderr, &job.limits);
            let _ = rustix::io::write(rustix::stdio::stderr(), why.as_bytes());
            sys::leave(127)
        }
        sys::Side::Parent { child, .. } => child,
    };
    let end = bury_until(command, &mut others).doing("waiting for the command")?;
    others.settle();
    tell(&start.teller, &Words::Ended(end, others.ended()), None).doing("telling the supervisor")
}

fn give_up_rights() -> rustix::io::Result<()> {
    // Nobody may look into this process: the command has the same user.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::thread::clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        // A kernel may know fewer.
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Err(Errno::INVAL) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    rustix::thread::set_no_new_privs(true)
}

/// Waits for all that ends, until it is `command`.
fn bury_until(command: Pid, others: &mut Others) -> rustix::io::Result<End> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return Ok(end_of(status)),
            Ok(Some((pid, status))) => others.buried(pid, end_of(status)),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn end_of(status: WaitStatus) -> End {
    match status.terminating_signal() {
        Some(signal) => End::Signal(signal),
        None => End::Exit(status.exit_status().unwrap_or(-1)),
    }
}

/// A program and all that it takes to become it.
pub(super) struct Program {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    variables: Vec<CString>,
    /// What it reads; nothing if there is none.
    stdin: Option<OwnedFd>,
}

impl Program {
    pub(super) fn new(command: &Command, job: &Job) -> Result<Self, String> {
        let (argv, stdin) = match command {
            Command::Argv(argv) => (argv.clone(), None),
            Command::Shell(text) => (vec!["bash".to_owned(), "-c".to_owned(), text.clone()], None),
            Command::Fed { argv, stdin } => {
                (argv.clone(), Some(file_of(stdin).doing("making its standard input")?))
            }
        };
        let text = |word: String| CString::new(word).doing("a text for the command");
        let name = argv.first().filter(|name| !name.is_empty()).ok_or("the command is empty")?;
        let path = job.variables.get("PATH").map_or("/usr/bin:/bin", String::as_str);
        let candidates = match name.contains('/') {
            true => vec![text(name.clone())?],
            false => path
                .split(':')
                .map(|directory| text(format!("{directory}/{name}")))
                .collect::<Result<_, _>>()?,
        };
        let argv = argv.into_iter().map(text).collect::<Result<_, _>>()?;
        let variables = job.variables.iter().map(|(name, value)| text(format!("{name}={value}")));
        Ok(Self { candidates, argv, variables: variables.collect::<Result<_, _>>()?, stdin })
    }

    /// Turns this process into the program. Returns why it could not, as a line for people.
    fn become_it(&self, stdout: impl AsFd, stderr: impl AsFd, limits: &Limits) -> String {
        match connect(self.stdin.as_ref(), stdout, stderr).and_then(|()| limit(limits)) {
            Ok(()) => format!("{}: {}\n", self.argv[0].to_string_lossy(), self.exec()),
            Err(error) => format!("the command could not be set up: {error}\n"),
        }
    }

    fn exec(&self) -> String {
        let mut denied = None;
        for candidate in &self.candidates {
            let error = sys::exec(candidate, &self.argv, &self.variables);
            if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                denied = Some(error);
            }
        }
        denied.map_or_else(|| "command not found".to_owned(), |error| error.to_string())
    }

    /// Starts it beside the command, without input or output, and waits until it runs.
    fn start_aside(&self, limits: &Limits) -> Result<Pid, String> {
        let (running, starting) = pipe_with(PipeFlags::CLOEXEC).doing("making a pipe")?;
        let forked = sys::fork(0).doing("starting a process of the world")?;
        let sys::Side::Parent { child, .. } = forked else {
            let null =
                rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
            let why = match null.doing("opening /dev/null").and_then(|null| {
                connect_keeping(None, &null, &null).and_then(|()| limit(limits)).doing("setting up")
            }) {
                Ok(()) => format!("{}: {}", self.argv[0].to_string_lossy(), self.exec()),
                Err(why) => why,
            };
            let _ = rustix::io::write(&starting, why.as_bytes());
            sys::leave(127)
        };
        drop(starting);
        let mut why = [0; 512];
        match rustix::io::read(&running, &mut why).doing("waiting for a process of the world")? {
            0 => Ok(child),
            length => Err(format!(
                "a process of the world does not start: {}",
                String::from_utf8_lossy(&why[..length])
            )),
        }
    }
}

/// Gives this process the streams of the command and nothing else.
fn connect(stdin: Option<&OwnedFd>, stdout: impl AsFd, stderr: impl AsFd) -> io::Result<()> {
    connect_keeping(stdin, stdout, stderr)?;
    sys::close_from(3)
}

fn connect_keeping(
    stdin: Option<&OwnedFd>,
    stdout: impl AsFd,
    stderr: impl AsFd,
) -> io::Result<()> {
    rustix::process::setsid()?;
    match stdin {
        Some(stdin) => rustix::stdio::dup2_stdin(stdin)?,
        None => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
            rustix::stdio::dup2_stdin(&null)?;
        }
    }
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(())
}

/// A file in memory with this text, which nobody can change.
fn file_of(text: &str) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(rustix::fs::memfd_create("input", flags)?);
    io::Write::write_all(&mut file, text.as_bytes())?;
    rustix::fs::seek(&file, SeekFrom::Start(0))?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

fn limit(limits: &Limits) -> io::Result<()> {
    // Beside the processes of the command there are the supervisor and the first process.
    let processes = u64::from(limits.processes) + 2;
    let seconds = limits.cpu.as_secs() + u64::from(limits.cpu.subsec_nanos() > 0);
    for (resource, most) in [
        (Resource::As, limits.space),
        (Resource::Core, 0),
        (Resource::Fsize, limits.file),
        (Resource::Memlock, 64 << 10),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, u64::from(limits.descriptors)),
        (Resource::Nproc, processes),
        (Resource::Sigpending, 1024),
    ] {
        set(resource, most, most)?;
    }
    // A signal that can be caught comes first, as everywhere.
    set(Resource::Cpu, seconds, seconds + 1)
}

fn set(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let allowed = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(allowed)), maximum: Some(hard.min(allowed)) };
    rustix::process::setrlimit(resource, limit).map_err(io::Error::from)
}

fn tell(teller: impl AsFd, words: &Words, with: Option<&OwnedFd>) -> io::Result<()> {
    let words = serde_json::to_vec(words)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = with.map(AsFd::as_fd);
    if let Some(descriptor) = &descriptors {
        ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
    }
    sendmsg(teller, &[io::IoSlice::new(&words)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next notice; nothing if none will come any more.
pub(super) fn receive(notices: impl AsFd) -> io::Result<Option<Notice>> {
    let mut words = vec![0; 16 << 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [io::IoSliceMut::new(&mut words)];
    let received = recvmsg(notices, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let listener = descriptor::first(&mut ancillary);
    match (serde_json::from_slice(&words[..received.bytes])?, listener) {
        (Words::Failed(why), _) => Ok(Some(Notice::Failed(why))),
        (Words::Refused(why), _) => Ok(Some(Notice::Refused(why))),
        (Words::Started, Some(listener)) => Ok(Some(Notice::Started(listener))),
        (Words::Ended(end, others), _) => Ok(Some(Notice::Ended(end, others))),
        (Words::Started, None) => Err(io::Error::other("a notice lacks its descriptor")),
    }
}
