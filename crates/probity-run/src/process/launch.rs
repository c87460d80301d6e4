//! Starts a program, or says what exactly keeps it from starting.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::io::Errno;
use tokio::process::{Child, Command};

use super::guard;

/// Why no process was made.
#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    /// Nowhere on the path.
    #[error("the program `{name}` is not installed: looked for in {}", path_list(.looked_in))]
    Missing {
        /// What was looked for.
        name: String,
        /// Where.
        looked_in: Vec<PathBuf>,
    },
    /// There is no file of that name.
    #[error("there is no program `{}`", .path.display())]
    NoFile {
        /// Where it should be.
        path: PathBuf,
    },
    /// A directory, or a file that may not be run.
    #[error("`{}` is {what}", .path.display())]
    NotExecutable {
        /// Where it is.
        path: PathBuf,
        /// What it is instead of a program.
        what: &'static str,
    },
    /// Its first line names a program that is not there.
    #[error("`{}` needs the interpreter `{interpreter}`, which is not there{}", .path.display(), .hint)]
    NoInterpreter {
        /// The script.
        path: PathBuf,
        /// What its first line names.
        interpreter: String,
        /// What may be wrong.
        hint: &'static str,
    },
    /// It is to run in the sandbox and cannot.
    #[error("`{}` cannot run in the sandbox: {why}", .path.display())]
    NoSandbox {
        /// The program.
        path: PathBuf,
        /// What is in the way.
        why: String,
    },
    /// The working directory vanished.
    #[error("the working directory `{}` is not there", .path.display())]
    NoDirectory {
        /// Where it was.
        path: PathBuf,
    },
    /// The arguments and variables are too long together.
    #[error("the arguments and variables of `{}` are too long for the system: {bytes} bytes", .path.display())]
    TooLong {
        /// The program.
        path: PathBuf,
        /// Bytes of all of them.
        bytes: usize,
    },
    /// An argument with a zero in it.
    #[error("an argument of `{}` has a zero byte in it, which no argument can have", .path.display())]
    Zero {
        /// The program.
        path: PathBuf,
    },
    /// Something else.
    #[error("failed to start `{}`: {source}", .path.display())]
    Other {
        /// The program.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No place to run it in.
    #[error("failed to write to `{}`: {source}", .path.display())]
    Room {
        /// Where it should have been.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its end could not be heard of.
    #[error("failed to listen for ends of programs: {0}")]
    Signals(#[source] io::Error),
    /// The task that held it is gone. The program is as well.
    #[error("the program was lost: {0}")]
    Lost(#[source] io::Error),
}

impl NoProgram {
    /// Whether no file descriptor was left, which says nothing about the program.
    pub(crate) fn is_out_of_files(&self) -> bool {
        match self {
            Self::Other { source, .. }
            | Self::Room { source, .. }
            | Self::Signals(source)
            | Self::Lost(source) => is_out_of_files(source),
            Self::Missing { .. }
            | Self::NoFile { .. }
            | Self::NotExecutable { .. }
            | Self::NoInterpreter { .. }
            | Self::NoSandbox { .. }
            | Self::NoDirectory { .. }
            | Self::TooLong { .. }
            | Self::Zero { .. } => false,
        }
    }
}

/// Whether we had no file descriptor left.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

fn path_list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "an empty `PATH`".to_owned();
    }
    let shown: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    shown.join(", ")
}

/// Finds a program: a path as it is, a name in the directories of `path`.
///
/// Paths are taken from `base`, since programs run in a directory of their own.
pub fn find(name: &str, path: Option<&OsStr>, base: &Path) -> Result<PathBuf, NoProgram> {
    if name.contains('/') {
        return runnable(base.join(name));
    }
    let looked_in: Vec<PathBuf> = path
        .map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        // An empty entry is the working directory, which is none of ours.
        .filter(|dir| !dir.as_os_str().is_empty())
        .map(|dir| base.join(dir))
        .collect();
    let mut refused = None;
    for dir in &looked_in {
        match runnable(dir.join(name)) {
            Ok(found) => return Ok(found),
            Err(NoProgram::NoFile { .. }) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| NoProgram::Missing { name: name.to_owned(), looked_in }))
}

fn runnable(path: PathBuf) -> Result<PathBuf, NoProgram> {
    match std::fs::metadata(&path) {
        Err(_) => Err(NoProgram::NoFile { path }),
        Ok(data) if data.is_dir() => {
            Err(NoProgram::NotExecutable { path, what: "a directory, not a program" })
        }
        Ok(data) if data.permissions().mode() & 0o111 == 0 => {
            Err(NoProgram::NotExecutable { path, what: "not executable" })
        }
        Ok(_) => can_be_run(path),
    }
}

/// Looks at how a file begins, so that what cannot be run is told without starting it.
fn can_be_run(path: PathBuf) -> Result<PathBuf, NoProgram> {
    match interpreter(&path) {
        Some(line) if line.starts_with('/') && !Path::new(&line).exists() => {
            Err(no_interpreter(path, &line))
        }
        None if is_mere_text(&path) => {
            Err(NoProgram::NotExecutable { path, what: "no program that this system can run" })
        }
        Some(_) | None => Ok(path),
    }
}

/// Everything that a process is made from.
#[derive(Debug)]
pub struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<OsString, OsString>,
    pub(super) stdin: Stdio,
    pub(super) work: PathBuf,
}

impl Launch {
    /// Makes the process, the leader of a group of its own.
    #[expect(clippy::disallowed_methods, reason = "here, with everything that goes with it")]
    pub(super) fn spawn(self) -> Result<Child, NoProgram> {
        let Self { program, args, env, stdin, work } = self;
        let spawned = Command::new(&program)
            .args(&args)
            .env_clear()
            .envs(&env)
            .env(guard::MARK, guard::mark())
            .current_dir(&work)
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // If the runtime ends first.
            .kill_on_drop(true)
            .spawn();
        spawned.map_err(|source| {
            let size = |text: &OsStr| text.len() + 1;
            let bytes = args.iter().map(|it| size(it)).sum::<usize>()
                + env.iter().map(|(name, value)| size(name) + size(value)).sum::<usize>();
            explain(program, &work, bytes, source)
        })
    }
}

/// One word of the system stands for many things: the file and the directory tell.
fn explain(path: PathBuf, work: &Path, bytes: usize, source: io::Error) -> NoProgram {
    let is = |kind: io::ErrorKind| source.kind() == kind;
    let not_found = is(io::ErrorKind::NotFound) || is(io::ErrorKind::NotADirectory);
    let interpreter = if not_found { interpreter(&path) } else { None };
    if is(io::ErrorKind::ArgumentListTooLong) {
        NoProgram::TooLong { path, bytes }
    } else if is(io::ErrorKind::InvalidInput) {
        NoProgram::Zero { path }
    } else if not_found && !work.is_dir() {
        NoProgram::NoDirectory { path: work.to_owned() }
    } else if not_found && !path.exists() {
        NoProgram::NoFile { path }
    } else if let Some(line) = interpreter {
        no_interpreter(path, &line)
    } else if is(io::ErrorKind::PermissionDenied) {
        NoProgram::NotExecutable { path, what: "not executable for us" }
    } else if source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) {
        NoProgram::NotExecutable { path, what: "no program that this system can run" }
    } else {
        NoProgram::Other { path, source }
    }
}

fn no_interpreter(path: PathBuf, line: &str) -> NoProgram {
    let hint = match line.ends_with('\r') {
        true => " (its first line ends with a carriage return)",
        false => "",
    };
    NoProgram::NoInterpreter { path, interpreter: line.trim_end().to_owned(), hint }
}

/// The interpreter that a script's first line names, with a carriage return if it has one.
fn interpreter(path: &Path) -> Option<String> {
    first_line(path)?.into_iter().next()
}

/// The words of a script's first line: its interpreter, and what that is told.
pub(crate) fn first_line(path: &Path) -> Option<Vec<String>> {
    let beginning = beginning(path)?;
    let line = beginning.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let line = line.trim_start_matches([' ', '\t']);
    Some(line.split([' ', '\t']).map(ToOwned::to_owned).collect())
}

/// Whether a file is text, and no program of whatever format the system knows.
fn is_mere_text(path: &Path) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    beginning(path).is_some_and(|beginning| beginning.iter().all(is_text))
}

/// None of a file that may be run and not read.
fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut beginning = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut beginning).ok()?;
    Some(beginning)
}
