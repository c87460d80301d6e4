//! Worlds: what a command finds when it starts.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// A world as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// How cases and reports call it.
    pub name: String,
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
