//! The program's side of a keeper.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, BufWriter, Write as _},
    mem::MaybeUninit,
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Child, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::{
    execution::{Command, Execution, Limits, Look, Output},
    protocol::{self, Errand, Job, Load, Report, Request, Seen, receive, receive_json, send_json},
    sandbox::{Engine, Failure, Stopper, Visit},
    tree::send_tree,
    world::Prepared,
};

/// How long a keeper may take beyond the limit of a command: to put the world together, to list its changes.
const GRACE: Duration = Duration::from_mins(1);

/// How many trees a keeper holds before those that are not in use go.
const MOST_TREES: usize = 48;

/// Executes in namespaces, by a keeper that is started when needed and again if it dies.
#[derive(Debug)]
pub(crate) struct Namespaces {
    program: PathBuf,
    live: Mutex<Option<Arc<Live>>>,
}

impl Namespaces {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, live: Mutex::new(None) }
    }

    fn live(&self) -> Result<Arc<Live>, Failure> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = &*live {
            return Ok(Arc::clone(live));
        }
        let started = Arc::new(Live::start(&self.program).map_err(Failure::Setup)?);
        *live = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Forgets a keeper that does not answer as it should. The next execution starts another.
    fn forget(&self, dead: &Arc<Live>) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.as_ref().is_some_and(|live| Arc::ptr_eq(live, dead)) {
            *live = None;
        }
    }
}

impl Engine for Namespaces {
    fn visit<'s>(&'s self, prepared: &Prepared) -> Result<Box<dyn Visit + 's>, Failure> {
        let live = self.live()?;
        match live.visit(prepared) {
            Ok((tree, connection)) => {
                let connection = BufReader::new(connection);
                let prepared = prepared.clone();
                let stopped = Arc::default();
                Ok(Box::new(Guest { host: self, live, tree, connection, prepared, stopped }))
            }
            Err(failure) => {
                if matches!(failure, Failure::Died(_)) {
                    self.forget(&live);
                }
                Err(failure)
            }
        }
    }
}

/// A visit of a world that a keeper holds.
#[derive(Debug)]
struct Guest<'s> {
    host: &'s Namespaces,
    live: Arc<Live>,
    /// Keeps the tree from being removed.
    tree: Arc<u32>,
    connection: BufReader<UnixStream>,
    prepared: Prepared,
    /// Whether somebody has ended it.
    stopped: Arc<AtomicBool>,
}

impl Guest<'_> {
    /// Sends a request, and reads what is answered.
    fn ask<T>(
        &mut self,
        request: &Request,
        time: Duration,
        read: impl FnOnce(&mut BufReader<UnixStream>) -> io::Result<Result<T, String>>,
    ) -> Result<T, Failure> {
        let ask = || {
            self.connection.get_ref().set_read_timeout(Some(time.saturating_add(GRACE)))?;
            send_json(self.connection.get_mut(), request)?;
            read(&mut self.connection)
        };
        match ask() {
            Ok(answer) => answer.map_err(Failure::Setup),
            Err(_) if self.stopped.load(Ordering::Relaxed) => {
                Err(Failure::Died("the session was ended".to_owned()))
            }
            Err(error) => {
                self.host.forget(&self.live);
                Err(died(error))
            }
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        // A tree without a digest is that of a world that is being made: nobody asks for it again.
        if self.prepared.digest.is_empty() {
            let _ = self.connection.get_ref().shutdown(Shutdown::Both);
            // A keeper that is gone has no tree either.
            let _ = self.live.unload(*self.tree);
        }
    }
}

impl Visit for Guest<'_> {
    fn execute(
        &mut self,
        command: &Command,
        directory: Option<&str>,
        limits: &Limits,
    ) -> Result<Execution, Failure> {
        let job = Job {
            command: command.clone(),
            limits: *limits,
            tree: *self.tree,
            directory: directory.unwrap_or(&self.prepared.directory).to_owned(),
            variables: self.prepared.variables.clone(),
            processes: self.prepared.processes.clone(),
        };
        self.ask(&Request::Execute(Box::new(job)), limits.time, |from| {
            let report: Report = match receive_json::<Result<_, String>>(from)? {
                Ok(report) => report,
                Err(why) => return Ok(Err(why)),
            };
            Ok(Ok(report.with([receive(from)?, receive(from)?])))
        })
    }

    fn look(&mut self, paths: &[String]) -> Result<Vec<Look>, Failure> {
        let time = Duration::ZERO;
        self.ask(&Request::Look(paths.to_vec()), time, |from| {
            if let Err(why) = receive_json::<Result<(), String>>(from)? {
                return Ok(Err(why));
            }
            let look = |_| {
                let Seen { entry, content } = receive_json(from)?;
                let content = match content {
                    Some(total) => Some(Output { bytes: receive(from)?, total }),
                    None => None,
                };
                Ok(Look { entry, content })
            };
            paths.iter().map(look).collect::<io::Result<_>>().map(Ok)
        })
    }

    fn stopper(&self) -> Stopper {
        // Without another descriptor the session ends when its command does.
        Stopper::new(self.connection.get_ref().try_clone().ok(), Arc::clone(&self.stopped))
    }
}

/// A keeper that runs.
#[derive(Debug)]
struct Live {
    process: Mutex<Child>,
    control: UnixStream,
    trees: Mutex<Trees>,
}

/// The trees that a keeper holds, by the digests of their worlds.
#[derive(Debug, Default)]
struct Trees {
    held: BTreeMap<String, Held>,
    next: u32,
    uses: u64,
}

#[derive(Debug)]
struct Held {
    /// Shared with the executions that use it.
    number: Arc<u32>,
    used: u64,
}

impl Live {
    fn start(program: &PathBuf) -> Result<Self, String> {
        let start = || -> io::Result<(Child, UnixStream)> {
            let (control, theirs) = UnixStream::pair()?;
            let process = std::process::Command::new(program)
                .arg0(protocol::KEEPER)
                .env_clear()
                .stdin(OwnedFd::from(theirs))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            Ok((process, control))
        };
        let (process, mut control) = start()
            .map_err(|error| format!("starting the keeper {}: {error}", program.display()))?;
        let process = Mutex::new(process);
        let live = |control| Self { process, control, trees: Mutex::default() };
        let answer = control
            .set_read_timeout(Some(GRACE))
            .and_then(|()| receive_json::<Result<(), String>>(&mut control));
        let live = live(control);
        match answer {
            Ok(ready) => ready.map(|()| live),
            Err(error) => Err(format!("the keeper {} says nothing: {error}", program.display())),
        }
    }

    fn visit(&self, prepared: &Prepared) -> Result<(Arc<u32>, UnixStream), Failure> {
        let tree = self.tree(prepared)?;
        let connection = self.connect(Errand::Visit).map_err(died)?;
        Ok((tree, connection))
    }

    /// The number of the world's tree, which is sent first if the keeper does not have it.
    fn tree(&self, prepared: &Prepared) -> Result<Arc<u32>, Failure> {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        trees.uses += 1;
        let used = trees.uses;
        if let Some(held) = trees.held.get_mut(&prepared.digest) {
            held.used = used;
            return Ok(Arc::clone(&held.number));
        }
        if trees.held.len() >= MOST_TREES {
            self.unload_idle(&mut trees)?;
        }
        trees.next += 1;
        let number = Arc::new(trees.next);
        if self.load(*number, prepared).is_err() {
            // Perhaps for want of room.
            self.unload_idle(&mut trees)?;
            let _ = self.unload(*number);
            self.load(*number, prepared)?;
        }
        if !prepared.digest.is_empty() {
            let held = Held { number: Arc::clone(&number), used };
            trees.held.insert(prepared.digest.clone(), held);
        }
        Ok(number)
    }

    fn load(&self, number: u32, prepared: &Prepared) -> Result<(), Failure> {
        let connection = self.connect(Errand::Load).map_err(died)?;
        connection.set_read_timeout(Some(GRACE)).map_err(died)?;
        let mut to = BufWriter::new(connection.try_clone().map_err(died)?);
        let sent = send_json(&mut to, &Load { tree: number })
            .and_then(|()| send_tree(&mut to, &prepared.tree))
            .and_then(|()| to.flush());
        let answer = receive_json::<Result<(), String>>(&mut BufReader::new(connection));
        let world = |why: String| Failure::World { name: prepared.name.clone(), why };
        match (sent, answer) {
            (_, Ok(Err(why))) => Err(world(why)),
            (Ok(()), Ok(Ok(()))) => Ok(()),
            (Err(error), _) => Err(world(error.to_string())),
            (Ok(()), Err(error)) => Err(died(error)),
        }
    }

    /// Has the older half of the trees removed, as far as no execution uses them.
    fn unload_idle(&self, trees: &mut Trees) -> Result<(), Failure> {
        let mut idle: Vec<(u64, String)> = trees
            .held
            .iter()
            .filter(|(_, held)| Arc::strong_count(&held.number) == 1)
            .map(|(digest, held)| (held.used, digest.clone()))
            .collect();
        idle.sort_unstable();
        idle.truncate(MOST_TREES / 2);
        for (_, digest) in idle {
            if let Some(held) = trees.held.remove(&digest) {
                self.unload(*held.number)?;
            }
        }
        Ok(())
    }

    fn unload(&self, tree: u32) -> Result<(), Failure> {
        let unload = || -> io::Result<Result<(), String>> {
            let mut connection = self.connect(Errand::Unload)?;
            connection.set_read_timeout(Some(GRACE))?;
            send_json(&mut connection, &Load { tree })?;
            receive_json(&mut connection)
        };
        unload().map_err(died)?.map_err(Failure::Setup)
    }

    /// A connection to a process that does this errand.
    fn connect(&self, errand: Errand) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let descriptors = [theirs.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let byte = [errand.byte()];
        sendmsg(&self.control, &[io::IoSlice::new(&byte)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(ours)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Neither can fail in a way that anything could be done about: it is gone, or it goes when the socket closes.
        let _ = process.kill();
        let _ = process.wait();
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is for `map_err`")]
fn died(error: io::Error) -> Failure {
    Failure::Died(error.to_string())
}
