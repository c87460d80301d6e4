//! Worlds: what a command finds when it starts.

mod archive;
pub mod builtin;
mod generate;
pub mod plant;
mod prepare;
mod read;
mod value;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

pub(crate) use prepare::fresh_folder;
pub use prepare::{Preparation, PrepareError, Setup, remove};
pub use read::{ReadError, read};

/// Whose commands run where a world does not say.
pub const USER: &str = "ada";
/// The number of the user whose commands run; everything in a world belongs to them.
pub const USER_ID: u32 = 1000;
/// The number of their group. It is another one, so that `id -u` and `id -g` do not say the same.
pub const GROUP_ID: u32 = 1500;

/// A world as data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct World {
    /// How cases and reports call it.
    pub name: String,
    /// What it is good for, in a sentence.
    pub about: String,
    /// Its names have blanks, quotes or dashes in them, over which careless commands stumble. What only such a world shows
    /// is a caveat.
    pub odd: bool,
    /// Whose commands run.
    pub user: String,
    /// The group of that user.
    pub group: String,
    /// The directory where commands start.
    pub directory: String,
    /// Environment variables, beside those that every world has.
    pub variables: BTreeMap<String, String>,
    /// Users beside root and the one whose commands run.
    pub users: Vec<User>,
    /// Groups beside those of the users.
    pub groups: Vec<Group>,
    /// Files, directories and links, in the order in which they are made.
    pub files: Vec<File>,
    /// A shell text that runs once and makes what data cannot say.
    pub setup: Option<String>,
    /// What runs when a command starts, each a program with arguments.
    pub processes: Vec<Vec<String>>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// The number, also of the group of that name.
    pub id: u32,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The number.
    pub id: u32,
    /// Names of its members.
    #[serde(default)]
    pub members: Vec<String>,
}

/// Something at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    /// From the root, or from the directory where commands start. Directories above it are made.
    pub path: String,
    /// What there is.
    pub content: Content,
    /// Its permission bits; 755 for directories and 644 for files if not given.
    pub mode: Option<u32>,
    /// How many seconds ago it was changed.
    pub age: Option<i64>,
    /// How many seconds ago it was read; as [`File::age`] if not given.
    pub accessed: Option<i64>,
}

impl File {
    /// What is made without a wish for anything else.
    pub fn new(path: impl Into<String>, content: Content) -> Self {
        Self { path: path.into(), content, mode: None, age: None, accessed: None }
    }
}

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A directory.
    Directory,
    /// A file with these bytes.
    Bytes(Vec<u8>),
    /// A file of that many bytes, all zero, that takes no room.
    Sparse(u64),
    /// A file with that many bytes that look random and are the same for the same seed.
    Noise {
        /// How many.
        size: u64,
        /// Where they begin.
        seed: u64,
    },
    /// A file with generated lines.
    Lines {
        /// What they look like.
        form: LineForm,
        /// How many.
        count: u32,
        /// Where they begin.
        seed: u64,
    },
    /// A symbolic link.
    Link(String),
    /// Another name of a file that was made before.
    Hard(String),
}

impl Content {
    /// A text file.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }
}

/// What generated lines look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineForm {
    /// Words.
    Prose,
    /// The log of a web server.
    Access,
    /// The log of a system.
    Syslog,
    /// Columns with commas between them, under a line of their names.
    Csv,
    /// Columns with tabs between them.
    Tsv,
    /// One number a line.
    Numbers,
}

/// A world as a tree on the disk that executions read and never write to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The name of the world.
    pub name: String,
    /// The digest of all that makes it: its data and the versions of the tools that it was made with.
    pub digest: String,
    /// The tree. It becomes everything under `/` that is not of the host (`/usr`, `/bin`, `/lib…` are).
    pub tree: PathBuf,
    /// The directory where the command starts, as the world sees it.
    pub directory: String,
    /// The environment variables, all of them.
    pub variables: BTreeMap<String, String>,
    /// What runs when the command starts, each a program with arguments.
    pub processes: Vec<Vec<String>>,
}

/// The variable that names the folder of prepared worlds.
pub const VARIABLE: &str = "PROBITY_WORLDS";

/// Where the environment says that prepared worlds are kept: `PROBITY_WORLDS`, else `probity/worlds` in the user's cache, else
/// in the folder for temporary files.
pub fn cache_folder(variables: &BTreeMap<OsString, OsString>) -> PathBuf {
    let set = |name: &str| {
        let value = variables.get(OsStr::new(name)).filter(|it| !it.is_empty());
        value.map(PathBuf::from).filter(|it| it.is_absolute())
    };
    let cache = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let folder = set(VARIABLE).or_else(|| Some(cache()?.join("probity").join("worlds")));
    folder.unwrap_or_else(|| std::env::temp_dir().join("probity-worlds"))
}

#[cfg(test)]
mod tests;
