//! Where a shot is made: the program, and a folder of its own with an empty home, so that nothing of this machine matters and all that
//! is left behind is found.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Nothing that is asked of the program takes longer, however busy the machine is.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// What all shots of a campaign share.
pub(super) struct Lab {
    pub(super) probity: PathBuf,
    pub(super) seed: u64,
    /// Whether there is little time.
    pub(super) is_short: bool,
}

impl Lab {
    pub(super) fn open(seed: u64, is_short: bool) -> io::Result<Self> {
        Ok(Self { probity: super::program()?, seed, is_short })
    }

    /// A program that the workspace builds beside this one.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.probity.with_file_name(name)
    }
}

/// A folder for one shot. It goes away with everything in it.
pub(super) struct Room<'a> {
    lab: &'a Lab,
    folder: TempDir,
    commands: AtomicU64,
    variables: Vec<(String, String)>,
}

/// How a command ended, and what it said.
pub(super) struct Ran {
    /// Its exit code; none if a signal ended it, or we did because it took too long.
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) is_late: bool,
    pub(super) out: String,
    pub(super) err: String,
    pub(super) took: Duration,
}

/// A command that goes on.
pub(super) struct Running {
    pub(super) child: Child,
    begun: Instant,
    out: PathBuf,
    err: PathBuf,
}

impl<'a> Room<'a> {
    pub(super) fn new(lab: &'a Lab) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("campaign-").tempdir()?;
        for name in ["work", "home", "tmp", "said"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { lab, folder, commands: AtomicU64::new(0), variables: Vec::new() })
    }

    /// The same, where commands also see this variable.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A path in the folder that commands are run in.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(super) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> io::Result<()> {
        let path = self.path(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read(self.path(name))
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The program with these words.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.any(self.lab.probity.as_os_str());
        command.args(words);
        command
    }

    /// Any program, with an environment in which nothing is set that it does not need.
    pub(super) fn any(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.path(""));
        for (name, folder) in [("HOME", "home"), ("TMPDIR", "tmp")] {
            command.env(name, self.folder.path().join(folder));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).env("LANG", "C.UTF-8");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The program under a limit of the shell: `ulimit -n 40`.
    pub(super) fn limited(&self, limit: &str, words: &[&str]) -> Command {
        let mut command = self.any(OsStr::new("bash"));
        command.arg("-c").arg(format!("{limit}; exec \"$0\" \"$@\""));
        command.arg(&self.lab.probity).args(words);
        command
    }

    pub(super) fn run(&self, words: &[&str]) -> io::Result<Ran> {
        self.start(self.command(words))?.end()
    }

    /// Runs what has to work, so that the shot has something to aim at.
    pub(super) fn prepare(&self, words: &[&str]) -> io::Result<Ran> {
        let ran = self.run(words)?;
        match ran.code {
            Some(0 | 1) => Ok(ran),
            _ => {
                Err(io::Error::other(format!("{words:?} ended with {}: {}", ran.ending(), ran.err)))
            }
        }
    }

    /// Starts a command. What it says goes to files, so that nobody has to read it meanwhile.
    pub(super) fn start(&self, mut command: Command) -> io::Result<Running> {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let said = |name: &str| self.folder.path().join("said").join(format!("{number}.{name}"));
        let (out, err) = (said("out"), said("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
        Ok(Running { child: command.spawn()?, begun: Instant::now(), out, err })
    }

    /// Processes that belong to this room: their environment or working directory names it. They are
    /// given a moment to end.
    pub(super) fn orphans(&self) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let found = processes_of(self.folder.path());
            if found.is_empty() || begun.elapsed() > Duration::from_secs(10) {
                return found;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Files that were never completed.
    pub(super) fn partials(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.path(""), &mut |path| {
            if path.extension().is_some_and(|it| it == "partial") {
                found.push(path.display().to_string());
            }
        });
        found
    }

    /// What is left in the folder for temporary files.
    pub(super) fn temporary(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("tmp"));
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Room<'_> {
    /// Makes what is left in the folder for temporary files look an hour old.
    pub(super) fn age_temporary(&self) -> io::Result<()> {
        for name in self.temporary() {
            let mut command = self.any(OsStr::new("touch"));
            command.args(["-d", "1 hour ago"]).arg(self.folder.path().join("tmp").join(name));
            command.status()?;
        }
        Ok(())
    }
}

impl Running {
    pub(super) fn signal(&self, signal: Signal) {
        // One that has ended is not hit.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// What it has written to standard output so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Waits for the end, or until so long after the start.
    pub(super) fn ends_within(&mut self, time: Duration) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let left = time.saturating_sub(self.begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(left.min(Duration::from_millis(2)));
        }
    }

    /// Waits for the end. What takes too long is killed.
    pub(super) fn end(mut self) -> io::Result<Ran> {
        let status = self.ends_within(PATIENCE)?;
        let is_late = status.is_none();
        let status = match status {
            Some(status) => status,
            None => {
                self.child.kill()?;
                self.child.wait()?
            }
        };
        let said =
            |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Ran {
            code: status.code().filter(|_| !is_late),
            signal: status.signal(),
            is_late,
            out: said(&self.out)?,
            err: said(&self.err)?,
            took: self.begun.elapsed(),
        })
    }
}

impl Ran {
    /// How it ended, in words.
    pub(super) fn ending(&self) -> String {
        match (self.is_late, self.code, self.signal) {
            (true, ..) => "no end".to_owned(),
            (_, Some(code), _) => format!("exit code {code}"),
            (_, None, Some(signal)) => format!("signal {signal}"),
            (_, None, None) => "an unknown end".to_owned(),
        }
    }

    /// Whether it ended in a way that no program of ours may: a panic, an abort, a fault.
    pub(super) fn is_crash(&self) -> bool {
        self.code == Some(101)
            || self.err.contains("panicked at")
            || self.err.contains("overflowed its stack")
            || matches!(self.signal, Some(4 | 6 | 7 | 8 | 11))
    }

    /// The value of a line `KEY=VALUE`.
    pub(super) fn key(&self, key: &str) -> Option<&str> {
        self.out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// The last words of what it said, for a finding.
    pub(super) fn tail(&self) -> String {
        let line = self.err.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or_default();
        format!("{} ({line})", self.ending())
    }
}

fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let has = |text: &[u8]| text.windows(needle.len()).any(|it| it == needle);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let (name, path) = (entry.file_name(), entry.path());
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let read = |file: &str| fs::read(path.join(file)).unwrap_or_default();
        let place = fs::read_link(path.join("cwd")).unwrap_or_default();
        let command = read("cmdline");
        // A process that has ended has neither.
        if has(&read("environ")) || place.starts_with(folder) {
            let words = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(format!("{} {words}", name.to_string_lossy()));
        }
    }
    found
}

/// Every file of a folder and the folders in it.
pub(in crate::campaign) fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(it) if it.is_dir() => walk(&path, see),
            _ => see(&path),
        }
    }
}
