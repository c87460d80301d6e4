//! The program's side of a keeper.

use std::{
    collections::BTreeMap,
    io::{self, BufReader, BufWriter, Write as _},
    net::{Shutdown, TcpListener},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    descriptor,
    execution::{Command, Execution, Limits, Look, Output},
    gateway,
    protocol::{self, Errand, Job, Load, Report, Request, Seen, receive, receive_json, send_json},
    sandbox::{Engine, Failure, Openings, Stopper, Visit},
    tree::{Unsent, send_tree},
    world::Prepared,
};

/// How long a keeper may take beyond the limit of a command: to put the world together, to list its changes, to take a
/// part of a tree.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// How many bytes of trees a keeper holds before those that are not in use go.
const MOST_HELD: u64 = 256 << 20;

/// Executes in namespaces, by a keeper that is started when needed and again if it dies.
#[derive(Debug)]
pub(crate) struct Namespaces {
    program: PathBuf,
    patience: Duration,
    live: Mutex<Option<Arc<Live>>>,
}

impl Namespaces {
    pub(crate) fn new(program: PathBuf, patience: Duration) -> Self {
        Self { program, patience, live: Mutex::new(None) }
    }

    fn live(&self) -> Result<Arc<Live>, Failure> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live) = live.as_ref().filter(|live| !live.has_ended()) {
            return Ok(Arc::clone(live));
        }
        let started = Live::start(&self.program, self.patience).map_err(Failure::Setup)?;
        let started = Arc::new(started);
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
    fn visit<'s>(
        &'s self,
        prepared: &Prepared,
        openings: &Openings,
    ) -> Result<Box<dyn Visit + 's>, Failure> {
        let paths = openings.paths.iter().map(|path| text_of(path)).collect::<Result<_, _>>()?;
        let live = self.live()?;
        let (live, visit) = match live.visit(prepared) {
            // It was about to end, and nothing is lost: another can be asked.
            Err(Failure::Died(_)) if live.has_ended() => {
                let live = self.live()?;
                let visit = live.visit(prepared);
                (live, visit)
            }
            visit => (live, visit),
        };
        if matches!(visit, Err(Failure::Died(_))) {
            self.forget(&live);
        }
        let (tree, connection) = visit?;
        let (connection, prepared) = (BufReader::new(connection), prepared.clone());
        let (gateway, stopped) = (None, Arc::default());
        let mut guest =
            Guest { host: self, live, tree, connection, prepared, paths, gateway, stopped };
        if let Some(gateway) = &openings.gateway {
            let opened = guest.open().and_then(|listener| {
                gateway.open(listener).map_err(|error| Failure::Setup(error.to_string()))
            });
            guest.gateway = Some(opened?);
        }
        Ok(Box::new(guest))
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
    paths: Vec<String>,
    gateway: Option<gateway::Open>,
    /// Whether somebody has ended it.
    stopped: Arc<AtomicBool>,
}

impl Guest<'_> {
    /// Has a way out made. What listens there is in the world, who accepts is here.
    fn open(&mut self) -> Result<TcpListener, Failure> {
        self.ask(&Request::Open, Duration::ZERO, |from| {
            // Nothing is in the buffer: an answer comes only to a request.
            let (_, listener) = descriptor::receive(from.get_ref())?;
            let answer: Result<(), String> = receive_json(from)?;
            let none = || io::Error::other("there is no socket with the answer");
            match answer {
                Ok(()) => Ok(Ok(listener.ok_or_else(none)?.into())),
                Err(why) => Ok(Err(why)),
            }
        })
    }

    /// Sends a request, and reads what is answered.
    fn ask<T>(
        &mut self,
        request: &Request,
        time: Duration,
        read: impl FnOnce(&mut BufReader<UnixStream>) -> io::Result<Result<T, String>>,
    ) -> Result<T, Failure> {
        let patience = self.live.patience;
        let ask = || {
            self.connection.get_ref().set_read_timeout(Some(time.saturating_add(patience)))?;
            self.connection.get_ref().set_write_timeout(Some(patience))?;
            send_json(self.connection.get_mut(), request)?;
            read(&mut self.connection)
        };
        match ask() {
            Ok(answer) => answer.map_err(Failure::Setup),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Err(Failure::Setup(error.to_string()))
            }
            Err(_) if self.stopped.load(Ordering::Relaxed) => {
                Err(Failure::Died("the session was ended".to_owned()))
            }
            Err(error) => {
                // What may still come would be taken for an answer to something else.
                let _ = self.connection.get_ref().shutdown(Shutdown::Both);
                // If the process of this visit is gone, others can go on.
                if !is_gone(&error) || self.live.has_ended() {
                    self.host.forget(&self.live);
                }
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
            may_be_gone: directory.is_none(),
            variables: self.prepared.variables.clone(),
            processes: self.prepared.processes.clone(),
            paths: self.paths.clone(),
            is_open: self.gateway.is_some(),
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
    patience: Duration,
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
    /// Bytes that it takes.
    room: u64,
}

/// Why a tree was not loaded.
enum Unloaded {
    /// It cannot be read.
    Unread(String),
    /// The keeper cannot write it.
    Refused(String),
    Died(Failure),
}

impl Unloaded {
    fn of(self, world: &str) -> Failure {
        match self {
            Self::Unread(why) | Self::Refused(why) => {
                Failure::World { name: world.to_owned(), why }
            }
            Self::Died(failure) => failure,
        }
    }
}

impl Live {
    fn start(program: &PathBuf, patience: Duration) -> Result<Self, String> {
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
        let live = |control| Self { process, control, patience, trees: Mutex::default() };
        let answer = control
            .set_read_timeout(Some(patience))
            .and_then(|()| control.set_write_timeout(Some(patience)))
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
        trees.next += 1;
        let number = Arc::new(trees.next);
        let room = match self.load(*number, prepared) {
            // Perhaps for want of room.
            Err(Unloaded::Refused(_)) if !trees.held.is_empty() => {
                self.unload_idle(&mut trees, 0).map_err(died)?;
                self.load(*number, prepared)
            }
            other => other,
        };
        let room = room.map_err(|unloaded| unloaded.of(&prepared.name))?;
        if !prepared.digest.is_empty() {
            let held = Held { number: Arc::clone(&number), used, room };
            trees.held.insert(prepared.digest.clone(), held);
            self.unload_idle(&mut trees, MOST_HELD).map_err(died)?;
        }
        Ok(number)
    }

    /// Sends a tree. Returns how much room it takes.
    fn load(&self, number: u32, prepared: &Prepared) -> Result<u64, Unloaded> {
        let died = |error| Unloaded::Died(died(error));
        let connection = self.connect(Errand::Load).map_err(died)?;
        let mut to = BufWriter::new(connection.try_clone().map_err(died)?);
        let sent = send_json(&mut to, &Load { tree: number })
            .map_err(Unsent::Lost)
            .and_then(|()| send_tree(&mut to, &prepared.tree))
            .and_then(|room| to.flush().map(|()| room).map_err(Unsent::Lost));
        if sent.is_err() {
            // Nothing more comes, also if the keeper waits for it.
            let _ = connection.shutdown(Shutdown::Write);
        }
        let answer = receive_json::<Result<(), String>>(&mut BufReader::new(connection));
        match (sent, answer) {
            (Err(Unsent::Unread { path, source }), _) => {
                Err(Unloaded::Unread(format!("{}: {source}", path.display())))
            }
            (_, Ok(Err(why))) => Err(Unloaded::Refused(why)),
            (Ok(room), Ok(Ok(()))) => Ok(room),
            (Err(Unsent::Lost(error)), _) | (Ok(_), Err(error)) => Err(died(error)),
        }
    }

    /// Has trees removed that no execution uses, those that were not used for longest first, until all together are at
    /// most `most` bytes.
    fn unload_idle(&self, trees: &mut Trees, most: u64) -> io::Result<()> {
        while trees.held.values().map(|held| held.room).sum::<u64>() > most {
            let idle = trees.held.iter().filter(|(_, held)| Arc::strong_count(&held.number) == 1);
            let oldest = idle.min_by_key(|(_, held)| held.used).map(|(digest, _)| digest.clone());
            let Some(held) = oldest.and_then(|digest| trees.held.remove(&digest)) else { break };
            self.unload(*held.number)?;
        }
        Ok(())
    }

    /// Has a tree removed. A keeper that cannot do so is of no use any more.
    fn unload(&self, tree: u32) -> io::Result<()> {
        let mut connection = self.connect(Errand::Unload)?;
        send_json(&mut connection, &Load { tree })?;
        receive_json::<Result<(), String>>(&mut connection)?.map_err(io::Error::other)
    }

    /// Whether its process has ended.
    fn has_ended(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(process.try_wait(), Ok(None))
    }

    /// A connection to a process that does this errand.
    fn connect(&self, errand: Errand) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(self.patience))?;
        ours.set_write_timeout(Some(self.patience))?;
        descriptor::send(&self.control, errand.byte(), Some(theirs.as_fd()))?;
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

fn text_of(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().filter(|text| text.starts_with('/'));
    let wrong = || Failure::Setup(format!("{} cannot be shared", path.display()));
    text.map(str::to_owned).ok_or_else(wrong)
}

/// Whether there is nobody at the other end any more.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    [Kind::UnexpectedEof, Kind::BrokenPipe, Kind::ConnectionReset].contains(&error.kind())
}

#[expect(clippy::needless_pass_by_value, reason = "it is for `map_err`")]
fn died(error: io::Error) -> Failure {
    Failure::Died(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, time::Instant};

    use super::*;

    /// Says that it is ready, and never anything else.
    const STUCK: &str =
        "#!/bin/sh\nprintf '\\013\\000\\000\\000{\"Ok\":null}' >&0\nexec sleep 1000\n";

    #[test]
    fn a_keeper_that_is_stuck_does_not_hold_the_program_up() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("keeper");
        fs::write(&program, STUCK).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        // More than the kernel keeps for who does not read.
        fs::write(tree.join("large"), vec![b'x'; 16 << 20]).unwrap();
        let engine = Namespaces::new(program, Duration::from_millis(200));
        let prepared = Prepared {
            name: "large".to_owned(),
            digest: "large".to_owned(),
            tree,
            directory: "/".to_owned(),
            variables: BTreeMap::new(),
            processes: Vec::new(),
        };
        let start = Instant::now();
        assert!(matches!(engine.visit(&prepared, &Openings::default()), Err(Failure::Died(_))));
        let live = engine.live().unwrap();
        assert!(live.unload(7).is_err());
        // What fits is taken, and never answered.
        let mut guest = Guest {
            host: &engine,
            tree: Arc::new(1),
            connection: BufReader::new(live.connect(Errand::Visit).unwrap()),
            prepared,
            live,
            paths: Vec::new(),
            gateway: None,
            stopped: Arc::default(),
        };
        let long = Command::Shell("x".repeat(16 << 20));
        let brief = Limits { time: Duration::ZERO, ..Limits::default() };
        assert!(matches!(guest.execute(&long, None, &brief), Err(Failure::Died(_))));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
