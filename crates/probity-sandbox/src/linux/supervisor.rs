//! The process that puts a world together, starts a command in it, watches it and says what it did.
//!
//! It has a user namespace of its own and all rights in it, but none outside. The command sees nothing of it.

use std::{
    collections::BTreeSet,
    ffi::CString,
    io::{self, BufReader, Read as _},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    mount::{MountFlags, UnmountFlags},
    net::{AddressFamily, SocketFlags, SocketType},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
    thread::UnshareFlags,
};

use super::{
    Doing as _, base, calls,
    changes::{self, Layers},
    first::{self, Notice, Program, Start},
    keeper, load,
    memory::Meter,
    sys, way_out,
};
use crate::{
    descriptor,
    execution::{End, Limits, Output},
    protocol::{Job, Report, Request, Seen, receive_json, send, send_json},
    world::{GROUP_ID, USER_ID},
};

/// How long it may take to put a world together.
const SETTING_UP: Duration = Duration::from_secs(20);
/// How often the memory of the processes is counted.
const TICK: Duration = Duration::from_millis(50);
/// Bytes of a file that are shown to who looks at it.
const MOST_SEEN: u64 = 4 << 20;
/// How many bytes may be written for each file, directory or link that an execution may make.
const BYTES_FOR_INODE: u64 = 8 << 10;

/// The world of a visit.
#[derive(Default)]
enum World {
    /// Nothing was executed yet.
    #[default]
    Unmade,
    Made(Layers),
    /// It could not be put together, and is of no use to anybody.
    Broken(String),
}

/// Why nothing was executed.
enum Trouble {
    /// What was asked for cannot be done.
    Request(String),
    /// The world cannot be used.
    World(String),
}

/// Answers all requests of a visit.
pub(super) fn serve(connection: UnixStream, keeper: Pid) -> io::Result<()> {
    let mut requests = BufReader::new(connection.try_clone()?);
    let mut answers = connection;
    let mut world = World::default();
    let mut is_apart = false;
    loop {
        let request = match receive_json(&mut requests) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            request => request?,
        };
        match request {
            Request::Open => {
                let listener = match is_apart {
                    true => Err("something was executed already".to_owned()),
                    false => go_apart(keeper, &mut is_apart).and_then(|()| way_out::listen()),
                };
                descriptor::send(&answers, 0, listener.as_ref().ok().map(AsFd::as_fd))?;
                send_json(&mut answers, &listener.map(drop))?;
            }
            Request::Execute(job) => {
                let visit = Visit { keeper, caller: requests.get_ref().as_fd() };
                match execute(&job, &mut world, &mut is_apart, &visit) {
                    Ok((report, streams)) => {
                        send_json(&mut answers, &Ok::<_, String>(report))?;
                        streams.iter().try_for_each(|stream| send(&mut answers, stream))?;
                    }
                    Err(Trouble::Request(why)) => {
                        send_json(&mut answers, &Err::<Report, _>(why))?;
                    }
                    Err(Trouble::World(why)) => {
                        send_json(&mut answers, &Err::<Report, _>(&why))?;
                        world = World::Broken(why);
                    }
                }
            }
            Request::Look(paths) => match &world {
                World::Made(layers) => {
                    send_json(&mut answers, &Ok::<(), String>(()))?;
                    paths.iter().try_for_each(|path| look(path, layers, &mut answers))?;
                }
                World::Unmade => {
                    send_json(&mut answers, &Err::<(), _>("nothing was executed"))?;
                }
                World::Broken(why) => send_json(&mut answers, &Err::<(), _>(why))?,
            },
        }
    }
}

/// Says what a path is. This process is in the world itself, where nothing runs now.
fn look(path: &str, layers: &Layers, answers: &mut UnixStream) -> io::Result<()> {
    let entry = changes::entry(path, layers)?;
    let content = entry.as_ref().and_then(|_| content(path));
    let (bytes, total) = content.map_or((None, None), |it| (Some(it.bytes), Some(it.total)));
    send_json(answers, &Seen { entry, content: total })?;
    bytes.map_or(Ok(()), |bytes| send(answers, &bytes))
}

/// The beginning of a file; nothing if it is none.
fn content(path: &str) -> Option<Output> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let total = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let mut bytes = Vec::new();
    io::Read::take(file, MOST_SEEN).read_to_end(&mut bytes).ok()?;
    Some(Output { bytes, total })
}

/// Who has to be there for an execution to go on.
struct Visit<'v> {
    keeper: Pid,
    caller: BorrowedFd<'v>,
}

fn execute(
    job: &Job,
    world: &mut World,
    is_apart: &mut bool,
    visit: &Visit<'_>,
) -> Result<(Report, [Vec<u8>; 2]), Trouble> {
    let program = Program::new(&job.command, job).map_err(Trouble::Request)?;
    let is_new = matches!(world, World::Unmade);
    if is_new {
        go_apart(visit.keeper, is_apart).map_err(Trouble::World)?;
        *world = World::Made(mount_world(job).map_err(Trouble::World)?);
    }
    let layers = match world {
        World::Made(layers) => layers,
        World::Broken(why) => return Err(Trouble::World(why.clone())),
        World::Unmade => return Err(Trouble::World("there is no world".to_owned())),
    };
    let (running, mut streams) = start(job, &program, is_new).map_err(Trouble::World)?;
    let watched = Watch::new(running, &job.limits, visit.caller).until_end(&mut streams);
    if !is_new && !matches!(watched, Err(Trouble::World(_))) {
        rustix::mount::unmount("/proc", UnmountFlags::DETACH)
            .doing("unmounting /proc")
            .map_err(Trouble::World)?;
    }
    let Watched { end, ended, refused, took } = watched?;
    let changes = changes::list(layers, job.limits.disk)
        .doing("listing what has changed")
        .map_err(Trouble::Request)?;
    let totals = [streams[0].total, streams[1].total];
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let report = Report { end, totals, changes, ended, refused, began: layers.since, took_us };
    Ok((report, streams.map(|stream| stream.kept)))
}

/// Leaves for namespaces of its own, once.
fn go_apart(keeper: Pid, is_apart: &mut bool) -> Result<(), String> {
    if !*is_apart {
        sys::default_signals();
        leave_for_namespaces(keeper)?;
        *is_apart = true;
    }
    Ok(())
}

fn leave_for_namespaces(keeper: Pid) -> Result<(), String> {
    let outside = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let namespaces = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    sys::unshare(namespaces).doing("making namespaces")?;
    keeper::map_ids((USER_ID, outside.0), (GROUP_ID, outside.1))?;
    keeper::die_with(keeper)?;
    // If memory runs out, this is what the kernel should end first. Not all systems let one say so.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    rustix::system::sethostname(b"world").doing("naming the host")
}

/// Mounts everything but `/proc`, which belongs to processes that do not exist yet.
fn mount_world(job: &Job) -> Result<Layers, String> {
    let lower = load::place(job.tree);
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    // Nothing at all would mean as much as there is.
    let disk = job.limits.disk.max(1);
    let inodes = (disk / BYTES_FOR_INODE).max(1024);
    let size = CString::new(format!("mode=0755,size={disk},nr_inodes={inodes}"))
        .doing("options of the scratch")?;
    rustix::mount::mount("scratch", base::SCRATCH, "tmpfs", quiet, &*size)
        .doing("mounting a scratch in memory")?;
    let (upper, work) = (format!("{}/up", base::SCRATCH), format!("{}/work", base::SCRATCH));
    for directory in [&upper, &work] {
        std::fs::create_dir(directory).doing("making a directory in the scratch")?;
    }
    let points = base::make_points(&job.paths)?;
    let options = format!(
        "lowerdir={}:{}:{points},upperdir={upper},workdir={work},userxattr",
        lower.display(),
        base::LOWEST
    );
    let options = CString::new(options).doing("options of the overlay")?;
    rustix::mount::mount("world", base::ROOT, "overlay", quiet, &*options)
        .doing("mounting the overlay")?;
    base::mount_shared().doing("mounting what the host shares")?;
    base::mount_paths(&job.paths)?;
    let open = |path: &str| keeper::open_directory(path).doing(path);
    let lower = [open(&lower.to_string_lossy())?, open(base::LOWEST)?];
    let upper = open(&upper)?;
    let since = rustix::fs::fstat(&upper).doing("looking at the scratch")?.st_ctime;
    Ok(Layers { upper, lower, since })
}

/// What has been started.
struct Running {
    /// The first process of the world.
    process: OwnedFd,
    /// What it says.
    notices: OwnedFd,
}

fn start(job: &Job, program: &Program, is_new: bool) -> Result<(Running, [Stream; 2]), String> {
    let (notices, teller) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .doing("making a socket")?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).doing("making a pipe");
    let ((stdout, to_stdout), (stderr, to_stderr)) = (pipe()?, pipe()?);
    match sys::fork(libc::CLONE_NEWPID).doing("starting the first process")? {
        sys::Side::Child => {
            drop((notices, stdout, stderr));
            let start = Start { is_new, teller, stdout: to_stdout, stderr: to_stderr };
            first::run(job, program, &start)
        }
        sys::Side::Parent { pidfd, .. } => {
            let keep = usize::try_from(job.limits.output).unwrap_or(usize::MAX);
            let streams = [Stream::new(stdout, keep)?, Stream::new(stderr, keep)?];
            Ok((Running { process: pidfd, notices }, streams))
        }
    }
}

/// One of the streams of the command.
struct Stream {
    pipe: Option<OwnedFd>,
    keep: usize,
    kept: Vec<u8>,
    total: u64,
}

impl Stream {
    fn new(pipe: OwnedFd, keep: usize) -> Result<Self, String> {
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK).doing("setting up a pipe")?;
        Ok(Self { pipe: Some(pipe), keep, kept: Vec::new(), total: 0 })
    }

    /// Takes what is there, but not so much that others have to wait.
    fn take(&mut self, rounds: usize) {
        let mut buffer = [0; 16 << 10];
        for _ in 0..rounds {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) | Err(Errno::BADF) => self.pipe = None,
                Ok(length) => {
                    let room = self.keep.saturating_sub(self.kept.len()).min(length);
                    self.kept.extend_from_slice(&buffer[..room]);
                    self.total += length as u64;
                }
                Err(_) => return,
            }
        }
    }
}

/// The life of a command, from its start to its end.
struct Watch<'a> {
    running: Running,
    limits: &'a Limits,
    caller: BorrowedFd<'a>,
    /// Where refused calls are heard of.
    listener: Option<OwnedFd>,
    refused: BTreeSet<&'static str>,
    started: Option<(Instant, Meter)>,
    since: Instant,
    /// When memory was last counted.
    counted: Instant,
    killed: Option<End>,
    ended: Option<(End, Duration)>,
    /// What became of processes of the world.
    others: Vec<String>,
    gone: bool,
}

/// What was seen of it.
struct Watched {
    end: End,
    /// Processes of the world that are gone or stopped.
    ended: Vec<String>,
    refused: Vec<String>,
    took: Duration,
}

/// Who can wake the watch up, beside the streams.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waker {
    /// The first process has ended.
    Process,
    /// It has something to say.
    Notice,
    /// A system call is asked about.
    Call,
    /// The caller has left.
    Caller,
}

impl<'a> Watch<'a> {
    fn new(running: Running, limits: &'a Limits, caller: BorrowedFd<'a>) -> Self {
        Self {
            running,
            limits,
            caller,
            listener: None,
            refused: BTreeSet::new(),
            started: None,
            since: Instant::now(),
            counted: Instant::now(),
            killed: None,
            ended: None,
            others: Vec::new(),
            gone: false,
        }
    }

    fn until_end(mut self, streams: &mut [Stream; 2]) -> Result<Watched, Trouble> {
        let outcome = self.watch(streams);
        // Nothing runs in the world afterwards, however it went.
        let _ = pidfd_send_signal(&self.running.process, Signal::KILL);
        let _ = waitid(WaitId::PidFd(self.running.process.as_fd()), WaitIdOptions::EXITED);
        outcome?;
        // What they said is still in the pipes.
        while !self.gone && self.hear().is_ok() {}
        streams.iter_mut().for_each(|stream| stream.take(usize::MAX));
        let took = |from: &Option<(Instant, Meter)>| {
            from.as_ref().map_or(Duration::ZERO, |(at, _)| at.elapsed())
        };
        let world = |why: &str| Err(Trouble::World(why.to_owned()));
        let (end, took) = match (self.killed, self.ended) {
            (Some(end), _) if self.started.is_some() => (end, took(&self.started)),
            (_, Some(ended)) => ended,
            (Some(_), None) => return world("the world was not ready in time"),
            (None, None) => return world("the first process of the world died"),
        };
        let refused = self.refused.iter().map(|name| (*name).to_owned()).collect();
        Ok(Watched { end, ended: self.others, refused, took })
    }

    /// Until the first process has ended, and all others with it.
    fn watch(&mut self, streams: &mut [Stream; 2]) -> Result<(), Trouble> {
        loop {
            let woken = self.wait(streams).map_err(Trouble::World)?;
            streams.iter_mut().for_each(|stream| stream.take(16));
            if woken.contains(&Waker::Notice) {
                self.hear()?;
            }
            if woken.contains(&Waker::Call) {
                self.refuse();
            }
            self.check(woken.contains(&Waker::Caller));
            if woken.contains(&Waker::Process) {
                return Ok(());
            }
        }
    }

    fn wait(&self, streams: &[Stream; 2]) -> Result<Vec<Waker>, String> {
        let wakers = [
            (Waker::Process, Some(self.running.process.as_fd()), PollFlags::IN),
            (Waker::Notice, (!self.gone).then(|| self.running.notices.as_fd()), PollFlags::IN),
            (Waker::Call, self.listener.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (Waker::Caller, Some(self.caller), PollFlags::empty()),
        ];
        let wakers =
            wakers.iter().filter_map(|(waker, fd, flags)| Some((*waker, fd.as_ref()?, *flags)));
        let (wakers, mut polled): (Vec<_>, Vec<_>) =
            wakers.map(|(waker, fd, flags)| (waker, PollFd::new(fd, flags))).unzip();
        let pipes = streams.iter().filter_map(|stream| stream.pipe.as_ref());
        polled.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut polled, Some(&self.patience())) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(format!("waiting: {error}")),
        }
        let woken = wakers.into_iter().zip(&polled);
        Ok(woken.filter(|(_, fd)| !fd.revents().is_empty()).map(|(waker, _)| waker).collect())
    }

    /// How long nothing needs to be looked at.
    fn patience(&self) -> Timespec {
        let left = match &self.started {
            Some((at, _)) => self.limits.time.saturating_sub(at.elapsed()).min(TICK),
            None => SETTING_UP.saturating_sub(self.since.elapsed()),
        };
        Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() }
    }

    /// Hears what the first process has to say.
    fn hear(&mut self) -> Result<(), Trouble> {
        let heard = first::receive(&self.running.notices).doing("hearing of the first process");
        match heard.map_err(Trouble::World)? {
            Some(Notice::Failed(why)) => return Err(Trouble::World(why)),
            Some(Notice::Refused(why)) => return Err(Trouble::Request(why)),
            Some(Notice::Started(listener)) => {
                self.listener = Some(listener);
                let proc = keeper::open_directory("/proc")
                    .doing("opening the /proc of the world")
                    .map_err(Trouble::World)?;
                self.started = Some((Instant::now(), Meter::new(proc)));
            }
            Some(Notice::Ended(end, others)) => {
                let took = self.started.as_ref().map_or(Duration::ZERO, |(at, _)| at.elapsed());
                self.ended = Some((end, took));
                self.others = others;
            }
            None => self.gone = true,
        }
        Ok(())
    }

    /// Refuses a system call.
    fn refuse(&mut self) {
        let Some(listener) = &self.listener else { return };
        match sys::asked_call(listener) {
            Ok((ticket, number)) => {
                let name = calls::refused_name(number);
                self.refused.extend(name);
                let errno = if name.is_some() { libc::EPERM } else { libc::ENOSYS };
                // It fails if the asking process is gone by now.
                let _ = sys::refuse_call(listener, ticket, errno);
            }
            // The asking process is gone.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(_) => self.listener = None,
        }
    }

    /// Ends the world if it has used up what it may.
    fn check(&mut self, caller_left: bool) {
        if self.killed.is_some() || self.ended.is_some() {
            return;
        }
        let over = match &self.started {
            Some((at, _)) if at.elapsed() >= self.limits.time => Some(End::TimedOut),
            Some((_, meter)) if self.counted.elapsed() >= TICK => {
                self.counted = Instant::now();
                (meter.used() > self.limits.memory).then_some(End::OutOfMemory)
            }
            Some(_) => None,
            None => (self.since.elapsed() >= SETTING_UP).then_some(End::TimedOut),
        };
        let over = over.or(caller_left.then_some(End::TimedOut));
        if over.is_some() {
            self.killed = over;
            let _ = pidfd_send_signal(&self.running.process, Signal::KILL);
        }
    }
}
