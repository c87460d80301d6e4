//! What a command would destroy, expose or hand over: risk by program, options and targets, never by matching the line.
//!
//! The walk goes through every simple command, also in substitutions, functions and texts that an interpreter is fed,
//! takes wrappers off, and asks the rules of `data/safety/` about what remains. What cannot be known without running it
//! is `opaque`, a verdict of its own. Nothing here ever runs or reads anything.

mod awk;
mod call;
mod code;
mod data;
mod decode;
mod editor;
mod expand;
mod feed;
mod find;
mod interpreter;
mod judge;
mod later;
mod matching;
mod names;
mod pattern;
mod remote;
mod rule;
mod settings;
mod special;
mod statements;
mod target;
mod unwrap;
mod walk;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

pub use judge::{Judgement, judge};
pub use rule::{AllowSpec, RuleError, RuleSpec, Rules, UserRules};

use crate::{
    parse::Script,
    tree::{Span, Text},
};

/// How bad it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing to say about it.
    Safe,
    /// Changes or removes something that can be made again, or that the user named.
    Moderate,
    /// Loses work, changes what others use, or opens a door.
    High,
    /// Ruins the machine, the home directory or a whole database, or runs a stranger's program with all rights.
    Critical,
}

/// From which risk on a command counts as unsafe. The table stands in `data/safety/levels.toml`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Everything that is not plainly harmless, and everything opaque.
    Strict,
    /// What loses work or reaches beyond the working directory.
    #[default]
    Moderate,
    /// Only what ruins a machine or a whole store of data.
    Permissive,
}

/// What kind of harm a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Files and directories are removed or overwritten.
    FileDestruction,
    /// Disks, partitions, volumes and file systems.
    Disk,
    /// Permissions and ownership.
    Permissions,
    /// Rights are gained or given.
    Privilege,
    /// Text from elsewhere is run.
    RemoteCode,
    /// Services, boot, kernel, firewall, users, network.
    SystemState,
    /// Traces are wiped.
    Traces,
    /// Work kept by git is lost.
    Git,
    /// Containers, images, clusters.
    Containers,
    /// Clouds, infrastructure and services run by others.
    Cloud,
    /// Databases, queues and search engines.
    Databases,
    /// Packages are removed or published.
    Packages,
    /// Secrets are read or sent away.
    Credentials,
    /// Memory, processes or disk space are used up.
    Exhaustion,
    /// A shell is handed to someone else.
    ReverseShell,
    /// What is run or trusted later is changed: cron, sudoers, login keys, start-up files, units.
    Persistence,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's id.
    pub rule: Text,
    /// What kind of harm.
    pub category: Category,
    /// How bad.
    pub risk: Risk,
    /// The part of the command; for text inside `sh -c '...'` the word that holds it.
    pub span: Span,
    /// One sentence that says why.
    pub why: Arc<str>,
    /// A form that does less harm, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safer: Option<Arc<str>>,
}

/// What cannot be judged without running it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Opaque {
    /// The part that is not known.
    pub span: Span,
    /// What is not known about it.
    pub why: &'static str,
}

/// The judgement of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assessment {
    /// The highest risk among the findings.
    pub risk: Risk,
    /// What was found, by place, each rule once per place.
    pub findings: Vec<Finding>,
    /// The first part that could not be judged.
    pub opaque: Option<Opaque>,
}

/// Judges every command of a script.
pub fn assess(script: &Script<'_>, rules: &Rules) -> Assessment {
    let mut walker = walk::Walker::new(rules);
    walker.script(&script.body);
    walker.foreign_call(script.source);
    walker.finish()
}

impl Assessment {
    /// Whether the command counts as unsafe at that level.
    pub fn is_unsafe(&self, level: Level) -> bool {
        let policy = data::policy(level);
        self.risk >= policy.from || (policy.opaque && self.opaque.is_some())
    }
}

impl Risk {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Moderate => "moderate",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl Level {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Moderate => "moderate",
            Self::Permissive => "permissive",
        }
    }
}

impl Category {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileDestruction => "file-destruction",
            Self::Disk => "disk",
            Self::Permissions => "permissions",
            Self::Privilege => "privilege",
            Self::RemoteCode => "remote-code",
            Self::SystemState => "system-state",
            Self::Traces => "traces",
            Self::Git => "git",
            Self::Containers => "containers",
            Self::Cloud => "cloud",
            Self::Databases => "databases",
            Self::Packages => "packages",
            Self::Credentials => "credentials",
            Self::Exhaustion => "exhaustion",
            Self::ReverseShell => "reverse-shell",
            Self::Persistence => "persistence",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
