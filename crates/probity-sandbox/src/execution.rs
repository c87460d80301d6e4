//! What is executed, within which limits, and what came of it.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// What is executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A text that `bash` reads.
    Shell(String),
    /// A program and its arguments, with a text as its standard input. The others have an empty one.
    Fed {
        /// The program and its arguments.
        argv: Vec<String>,
        /// What it reads.
        stdin: String,
    },
}

/// Address space of a process. Java, Node and Go reserve many times what they use; what is used counts anyway.
pub const ADDRESS_SPACE: u64 = 64 << 30;

/// What an execution may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Time by the clock.
    pub time: Duration,
    /// CPU time of a process.
    pub cpu: Duration,
    /// Memory of all processes together, in bytes.
    pub memory: u64,
    /// Address space of a process, in bytes. Some programs reserve much more than they use.
    pub space: u64,
    /// Bytes that may be written into the world in all.
    pub disk: u64,
    /// Bytes in one file.
    pub file: u64,
    /// Processes and threads at a time.
    pub processes: u32,
    /// Open files of a process.
    pub descriptors: u32,
    /// Bytes kept of each output stream; the rest is counted and dropped.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            cpu: Duration::from_secs(5),
            memory: 1 << 30,
            space: ADDRESS_SPACE,
            disk: 64 << 20,
            file: 16 << 20,
            processes: 64,
            descriptors: 256,
            output: 1 << 20,
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// How it ended.
    pub end: End,
    /// What it wrote.
    pub stdout: Output,
    /// What it complained of.
    pub stderr: Output,
    /// What is different in the world now, ordered by path.
    pub changes: Vec<Change>,
    /// Processes of the world that are gone or stopped, each with what became of it.
    #[serde(default)]
    pub ended: Vec<String>,
    /// What the command tried and was not let do, as far as that can be seen.
    pub refused: Vec<String>,
    /// When its world was entered, in seconds since 1970: what was changed since then was changed by it.
    pub began: i64,
    /// Microseconds from its start to its end.
    pub took_us: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at its time limit.
    TimedOut,
    /// It was killed because its processes together used more memory than they may.
    OutOfMemory,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("killed at its time limit"),
            Self::OutOfMemory => f.write_str("killed for its memory"),
        }
    }
}

/// What a stream carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The bytes kept.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub total: u64,
}

/// What a path of the world is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// What there is; nothing if the path leads nowhere.
    pub entry: Option<Entry>,
    /// The bytes of a file, also of one that a link leads to.
    pub content: Option<Output>,
}

/// A path that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path from the root of the world, with a leading slash. What is not UTF-8 is escaped.
    pub path: String,
    /// What was there; nothing if it was created.
    pub before: Option<Entry>,
    /// What is there; nothing if it was deleted.
    pub after: Option<Entry>,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A file, a directory, a link…
    pub kind: EntryKind,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner and group, as the world sees them.
    pub owner: (u32, u32),
    /// How many names a file has; 0 for what is no file. Writing to a file with several names parts it from the others, so
    /// this only tells two worlds apart.
    pub links: u64,
    /// Seconds since 1970 of its last change.
    pub modified: i64,
}

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum EntryKind {
    /// A file with its length and the BLAKE3 digest of its bytes.
    File {
        /// In bytes.
        size: u64,
        /// In hexadecimal.
        digest: String,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Where it points.
        target: String,
    },
    /// A pipe, a socket, a device.
    Special {
        /// Which of these.
        what: String,
    },
}
