//! Ends the programs when we cannot: after a `kill -9` of our own process.
//!
//! `PR_SET_PDEATHSIG` would take `unsafe` code, and would end only the launcher of a
//! program that has one. Instead one small shell waits at a pipe. It is told every
//! group that begins and ends; when the pipe closes, for whatever reason, it kills the
//! groups that have not ended. A program that had just begun, and of which the guard was
//! not told yet, is found by a mark in its environment where the system shows that, and so is what it starts meanwhile.
//! Without a shell there is no guard and nothing else changes.

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
PATH=/usr/bin:/bin
rounds=0
# Whoever is found may have started another one meanwhile.
while [ $rounds -lt 50 ] && files=$(grep -lsaF "$1" /proc/[0-9]*/environ); [ -n "$files" ]; do
  for file in $files; do
    process=${file#/proc/}
    kill -KILL "${process%/environ}"
  done
  rounds=$((rounds + 1)) files=
done
"#;

/// The variable that marks every program that we start, and what these start.
pub(super) const MARK: &str = "PROBITY_MARK";

/// The value of the mark: no two processes have the same.
pub(super) fn mark() -> &'static str {
    static VALUE: LazyLock<String> =
        LazyLock::new(|| format!("{}-{:016x}", std::process::id(), fastrand::u64(..)));
    &VALUE
}

static GUARD: LazyLock<Mutex<Option<ChildStdin>>> = LazyLock::new(|| Mutex::new(start()));

fn start() -> Option<ChildStdin> {
    let mut guard = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "probity-guard", &format!("{MARK}={}", mark())])
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
