//! Ends the programs when we cannot: after a `kill -9` of our own process.
//!
//! `PR_SET_PDEATHSIG` would take `unsafe` code, and would end only the launcher of a
//! program that has one. Instead one small shell waits at a pipe. It is told every
//! group that begins and ends; when the pipe closes, for whatever reason, it kills the
//! groups that have not ended. Without a shell there is no guard and nothing else changes.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    process::{ChildStdin, Command, Stdio},
    sync::{LazyLock, Mutex, PoisonError},
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    process::Pid,
};

/// Reads `+ GROUP` and `- GROUP`. The signals that end us must not end it before.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in
         *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
       esac ;;
  esac
done
for group in $groups; do kill -KILL "-$group"; done
"#;

static GUARD: LazyLock<Mutex<Option<ChildStdin>>> = LazyLock::new(|| Mutex::new(start()));

fn start() -> Option<ChildStdin> {
    let mut guard = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "probity-guard"])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let pipe = guard.stdin.take()?;
    // A guard that does not read must not hold us up.
    fcntl_setfl(&pipe, OFlags::NONBLOCK).ok()?;
    Some(pipe)
}

/// Starts the guard, so that it need not be started while a group is begun.
///
/// Between the start of a program and the word about it lies no more than a system call.
pub(super) fn ready() {
    LazyLock::force(&GUARD);
}

/// A group has begun.
pub(super) fn watch_over(leader: Pid) {
    tell('+', leader);
}

/// A group has ended.
pub(super) fn let_go(leader: Pid) {
    tell('-', leader);
}

fn tell(sign: char, leader: Pid) {
    let line = format!("{sign} {}\n", leader.as_raw_nonzero());
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pipe) = guard.as_mut() {
        // Whole or not at all: a line is far shorter than what a pipe takes in one piece.
        let _ = pipe.write_all(line.as_bytes());
    }
}
