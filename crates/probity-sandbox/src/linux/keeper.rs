//! The keeper: a process with one thread that forks for each errand.
//!
//! It has no rights beyond those of an ordinary user, whoever started it. It ends when the program that it serves does,
//! and all that it started ends with it.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::ExitCode,
};

use rustix::{
    process::{DumpableBehavior, Pid, WaitOptions},
    thread::UnshareFlags,
};

use super::{Doing as _, NOBODY, base, load, supervisor, sys};
use crate::{
    descriptor,
    protocol::{Errand, send_json},
};

/// Serves the program at the other end of standard input until it is gone.
pub(crate) fn keep() -> ExitCode {
    // What the program had open is none of our business, and no process of a world may inherit the control.
    if sys::close_from(3).is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3) else {
        return ExitCode::FAILURE;
    };
    let mut control = UnixStream::from(control);
    let ready = prepare();
    if send_json(&mut control, &ready).is_err() || ready.is_err() {
        return ExitCode::FAILURE;
    }
    let this = rustix::process::getpid();
    loop {
        reap();
        match errand(&control) {
            Ok(Some((errand, connection))) => dispatch(errand, connection, this),
            Ok(None) => return ExitCode::SUCCESS,
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

fn prepare() -> Result<(), String> {
    alone()?;
    // Leaves the terminal, so that ^C there is a matter of the program alone. A leader of a group is refused; it has done so.
    let _ = rustix::process::setsid();
    sys::default_signals();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    std::env::set_current_dir("/").doing("changing to /")?;
    if rustix::process::geteuid().is_root() && is_mapped("uid_map") && is_mapped("gid_map") {
        become_nobody().doing("giving up the rights of root")?;
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
        .doing("making a user namespace (unshare)")?;
    map_ids((user, user), (group, group))?;
    base::build()
}

/// Forking is safe only in a process with one thread.
fn alone() -> Result<(), String> {
    let threads = fs::read_dir("/proc/self/task").doing("counting threads in /proc/self/task")?;
    match threads.count() {
        1 => Ok(()),
        count => Err(format!(
            "the keeper has {count} threads: it has to be started first thing in `main`"
        )),
    }
}

/// Whether there is a `nobody` to become. In a user namespace with one user there is none, and its root has no rights outside.
fn is_mapped(map: &str) -> bool {
    let Ok(map) = fs::read_to_string(format!("/proc/self/{map}")) else { return true };
    map.lines().any(|line| {
        let numbers: Vec<u64> =
            line.split_ascii_whitespace().filter_map(|it| it.parse().ok()).collect();
        match numbers[..] {
            [first, _, count] => (first..first + count).contains(&u64::from(NOBODY)),
            _ => false,
        }
    })
}

fn become_nobody() -> rustix::io::Result<()> {
    let (user, group) =
        (rustix::process::Uid::from_raw(NOBODY), rustix::process::Gid::from_raw(NOBODY));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    rustix::thread::set_thread_res_uid(user, user, user)?;
    // Otherwise our own entries in /proc would belong to root.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
}

/// Says who is who in a new user namespace: inside and outside, for the user and for the group.
pub(super) fn map_ids(user: (u32, u32), group: (u32, u32)) -> Result<(), String> {
    fs::write("/proc/self/setgroups", "deny").doing("writing /proc/self/setgroups")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", user.0, user.1))
        .doing("writing /proc/self/uid_map")?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", group.0, group.1))
        .doing("writing /proc/self/gid_map")
}

/// The next errand; nothing if the program is gone.
fn errand(control: &UnixStream) -> io::Result<Option<(Errand, OwnedFd)>> {
    let (byte, connection) = match descriptor::receive(control) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        received => received?,
    };
    match (Errand::of(byte), connection) {
        (Some(errand), Some(connection)) => Ok(Some((errand, connection))),
        _ => Err(io::Error::other("not an errand")),
    }
}

/// Forks a process for the errand. If that fails, the program sees that its connection is closed.
fn dispatch(errand: Errand, connection: OwnedFd, this: Pid) {
    if let Ok(sys::Side::Child) = sys::fork(0) {
        if die_with(this).is_err() {
            sys::leave(1);
        }
        let connection = UnixStream::from(connection);
        let outcome = match errand {
            Errand::Visit => supervisor::serve(connection, this),
            Errand::Load => load::serve(connection),
            Errand::Unload => load::unload(connection),
        };
        sys::leave(i32::from(outcome.is_err()));
    }
}

/// Buries the processes of errands that are done.
fn reap() {
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}

/// Dies together with the process that started this one, which is `parent`. Has to be asked for again after each change of
/// credentials.
pub(super) fn die_with(parent: Pid) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .doing("binding to the life of the parent")?;
    match rustix::process::getppid() == Some(parent) {
        true => Ok(()),
        false => Err("the parent is gone".to_owned()),
    }
}

/// Opens a directory so that it stays reachable whatever is mounted over it.
pub(super) fn open_directory(path: &str) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())
}
