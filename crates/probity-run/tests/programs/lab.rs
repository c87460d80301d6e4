//! Scripts, and a look at the processes that they leave.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use probity_core::{record::CallError, request::Request};
use probity_grade::Rules;
use probity_load::suite::{BackendConfig, BackendKind};
use probity_run::backend::{
    Reply,
    program::{Program, Surroundings},
};
use tempfile::TempDir;

/// Long enough for a busy machine, and never waited for in full.
pub(crate) const LONG: Duration = Duration::from_mins(1);

static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);

/// A directory with scripts.
pub(crate) struct Lab {
    dir: TempDir,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) kill_grace: Duration,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", dir.path().display());
        let mut env = BTreeMap::new();
        env.insert("PATH".into(), path.into());
        env.insert("HOME".into(), dir.path().into());
        Self { dir, env, kill_grace: LONG }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a script for `sh`; `@lab@` in it is the directory of the lab.
    pub(crate) fn script(&self, name: &str, body: &str) -> PathBuf {
        let body = body.replace("@lab@", &self.dir.path().display().to_string());
        self.file(name, &format!("#!/bin/sh\n{body}\n"), 0o755)
    }

    pub(crate) fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub(crate) fn program(&self, config: &BackendConfig) -> Program {
        let surroundings = Surroundings {
            env: self.env.clone(),
            base: self.dir.path().to_owned(),
            kill_grace: self.kill_grace,
        };
        Program::new(config, surroundings, &RULES).unwrap()
    }

    /// Asks a command with a prompt.
    pub(crate) async fn ask(&self, command: &[&str], prompt: &str) -> Result<Reply, CallError> {
        self.program(&command_config(command)).ask(&question(prompt), LONG).await
    }

    /// Waits for a file that a script writes, and reads a process id from it.
    pub(crate) async fn pid(&self, name: &str) -> i32 {
        let path = self.path(name);
        let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
        eventually("a script writes its process id", || read().is_some()).await;
        read().unwrap()
    }
}

pub(crate) fn command_config(command: &[&str]) -> BackendConfig {
    let command = command.iter().map(|&arg| arg.to_owned()).collect();
    BackendConfig { command, ..BackendConfig::new("b", BackendKind::Command) }
}

pub(crate) fn question(prompt: &str) -> Request {
    Request::new(None, prompt)
}

/// Waits for a fact.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(LONG, wait).await;
    assert!(waited.is_ok(), "in vain: {what}");
}

/// A line of the table of processes.
struct Entry {
    state: String,
    parent: i32,
    group: i32,
}

fn processes() -> Vec<Entry> {
    let entry = |path: &Path| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name before it may have anything in it.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.to_owned();
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Entry { state, parent, group })
    };
    let dirs = fs::read_dir("/proc").unwrap().filter_map(|dir| Some(dir.ok()?.path()));
    dirs.filter_map(|dir| entry(&dir)).collect()
}

/// How many of a group live. Whom the first process does not reap is dead all the same.
pub(crate) fn alive(group: i32) -> usize {
    processes().iter().filter(|it| it.group == group && it.state != "Z").count()
}

/// How many dead processes we have not reaped.
pub(crate) fn zombies() -> usize {
    let ours = i32::try_from(std::process::id()).unwrap();
    processes().iter().filter(|it| it.parent == ours && it.state == "Z").count()
}
