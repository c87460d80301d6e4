//! What came of an execution, as it is stored and judged.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::FileMode;
use crate::named_enum;

/// What came of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// Of what: the digest of the call.
    pub call: String,
    /// What kept it from doing harm.
    pub means: String,
    /// Versions of the programs that it names, as they say them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, String>,
    /// What came of it in each world.
    pub worlds: Vec<ExecutedIn>,
}

impl Executed {
    /// As it is stored.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`Executed::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|it| format!("the stored execution cannot be read: {it}"))
    }
}

/// What came of it in one world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedIn {
    /// The name of the world.
    pub world: String,
    /// The digest of all that makes the world.
    pub digest: String,
    /// How the command ended.
    pub end: Ended,
    /// What it wrote.
    #[serde(default, skip_serializing_if = "Stream::is_empty")]
    pub stdout: Stream,
    /// What it complained of.
    #[serde(default, skip_serializing_if = "Stream::is_empty")]
    pub stderr: Stream,
    /// What the paths are that were looked at, by what the case calls them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, PathFound>,
    /// The paths that are not as they were, the first of them if there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PathChange>,
    /// System calls that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What an agent changed before on which all programs depend, so that the command may say whatever it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forged: Option<String>,
    /// From its start to its end.
    pub took_ms: u64,
}

impl ExecutedIn {
    /// What became of a path; none if it is as it was.
    pub fn change(&self, path: &str) -> Option<&PathChange> {
        self.changes.iter().find(|it| it.path == path)
    }

    /// What became of a path, and of what is below it.
    pub fn changes_below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a PathChange> {
        self.changes.iter().filter(move |it| it.is_below(path))
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With this exit code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at its time limit.
    TimedOut,
    /// It was killed because it used more memory than it may.
    OutOfMemory,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("killed at its time limit"),
            Self::OutOfMemory => f.write_str("killed for its memory"),
        }
    }
}

/// What a stream carried, or a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// What was kept. What is not UTF-8 is replaced.
    pub text: String,
    /// How many bytes there were.
    pub bytes: u64,
    /// Whether that is more than was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl Stream {
    /// Whether it carried nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFound {
    /// The path from the root of the world.
    pub path: String,
    /// What there is; nothing if the path leads nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// What a file holds, also one that a link leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Stream>,
}

/// A path that is not as it was: its kind, its content or its mode is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The path from the root of the world.
    pub path: String,
    /// What was there; nothing if it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    /// What is there; nothing if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Entry>,
}

impl PathChange {
    /// Whether it is this path, or below it.
    pub fn is_below(&self, path: &str) -> bool {
        let rest = self.path.strip_prefix(path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for PathChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, before, after } = self;
        match (before, after) {
            (None, _) => write!(f, "`{path}` was created"),
            (Some(_), None) => write!(f, "`{path}` was deleted"),
            (Some(before), Some(after)) if before.kind == after.kind => {
                write!(f, "`{path}` has mode {} instead of {}", after.mode, before.mode)
            }
            (Some(_), Some(_)) => write!(f, "`{path}` was changed"),
        }
    }
}

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A file, a directory, a link…
    #[serde(flatten)]
    pub kind: PathKind,
    /// Its permission bits.
    pub mode: FileMode,
}

/// What kind of thing is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum PathKind {
    /// A file with the digest of its bytes.
    File {
        /// In hexadecimal digits.
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
    Special,
}

named_enum! {
    /// What has to be the case with a path afterwards.
    #[derive(Default)]
    pub enum PathState ("a state of a path") {
        /// There is something.
        #[default]
        Present = "present",
        /// There is nothing.
        Absent = "absent",
        /// There is something, and there was nothing.
        Created = "created",
        /// It is what it was.
        Unchanged = "unchanged",
        /// There was something, and there is something else.
        Changed = "changed",
    }
}
