//! The few calls of the kernel and of the C library that have no safe wrapper. All `unsafe` of the program is here.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
};

use rustix::process::Pid;

/// Which side of a fork this is.
pub(super) enum Side {
    Child,
    Parent { child: Pid, pidfd: OwnedFd },
}

/// Forks. `namespaces` are those that the child starts in (`CLONE_NEW…`).
#[expect(
    unsafe_code,
    reason = "no safe wrapper: a child of several threads could find locks that nobody gives back"
)]
pub(super) fn fork(namespaces: libc::c_int) -> io::Result<Side> {
    let flags = namespaces | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: RawFd = -1;
    // SAFETY: without a stack and without CLONE_VM the child gets a copy of this process and goes on here. The keeper
    // has checked that it is the only thread (`keeper::alone`) and starts none, so the copy is a whole one.
    // `pidfd` is where CLONE_PIDFD writes to, and outlives the call.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags),
            0_usize,
            &raw mut pidfd,
            0_usize,
            0_usize,
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        pid => {
            let child = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let child = child.ok_or_else(|| io::Error::other("clone gave no process id"))?;
            // SAFETY: the call has just made it, and nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Side::Parent { child, pidfd })
        }
    }
}

/// Has all threads share a few heaps, which keep what was freed of long texts for the next ones.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "no safe wrapper: they are a matter of the C library alone")]
pub(crate) fn share_heaps() {
    for (what, value) in [
        (libc::M_ARENA_MAX, HEAPS),
        (libc::M_MMAP_THRESHOLD, LARGEST_IN_HEAP),
        (libc::M_TRIM_THRESHOLD, MOST_UNUSED),
    ] {
        // SAFETY: it takes two numbers, and changes how memory is handed out later, under the lock of the heap.
        unsafe { libc::mallopt(what, value) };
    }
}

/// Threads are given one of them in turn. With a single one, those that read, ask and record wait for each other, which is an eighth
/// of a run without latency; a third one and more cost memory and save nothing.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;
/// Texts beyond this are given back to the kernel at once, in bytes.
#[cfg(target_env = "gnu")]
const LARGEST_IN_HEAP: libc::c_int = 4 << 20;
/// What the heap may keep at its end that nobody uses, in bytes.
#[cfg(target_env = "gnu")]
const MOST_UNUSED: libc::c_int = 32 << 20;

/// Leaves for namespaces of its own.
#[expect(
    unsafe_code,
    reason = "unsharing the table of files would pull it from under other threads"
)]
pub(super) fn unshare(namespaces: rustix::thread::UnshareFlags) -> io::Result<()> {
    // SAFETY: no caller asks for CLONE_FILES, and there is one thread.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }.map_err(io::Error::from)
}

/// Becomes a program. Comes back only if that fails.
#[expect(unsafe_code, reason = "no safe wrapper")]
pub(super) fn exec(program: &CStr, argv: &[CString], variables: &[CString]) -> io::Error {
    let list = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, variables) = (list(argv), list(variables));
    // SAFETY: both lists end with a null, and what they point to lives until the call is over.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), variables.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends this process at once. Nothing of the parent, of which it is a copy, is flushed or dropped a second time.
#[expect(
    unsafe_code,
    reason = "no safe wrapper that leaves out what the parent has registered for its own end"
)]
pub(super) fn leave(code: i32) -> ! {
    // SAFETY: it has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Closes all descriptors from `first` on.
#[expect(unsafe_code, reason = "closes descriptors of whoever owns them")]
pub(super) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called where no value owns a descriptor from `first` on that is used afterwards: at the start of the keeper,
    // and right before a process becomes a program.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
    done(result)
}

/// Lets signals that Rust or the caller ignores have their usual effect again.
#[expect(unsafe_code, reason = "no safe wrapper: handlers may be anything")]
pub(super) fn default_signals() {
    for signal in
        [libc::SIGPIPE, libc::SIGCHLD, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP]
    {
        // SAFETY: the default action is not code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it writes the whole set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set has just been written; the old one is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    id_map: u64,
}

/// Sets flags of a mount and of all below it.
#[expect(unsafe_code, reason = "no safe wrapper")]
pub(super) fn restrict_mount(path: &CStr, flags: u64) -> io::Result<()> {
    let attributes = MountAttributes { set: flags, clear: 0, propagation: 0, id_map: 0 };
    // SAFETY: path and attributes live until the call is over, and the size is that of the attributes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    done(result)
}

/// Puts this process and all that it starts behind a filter of system calls. Calls that the filter leaves open are asked
/// about at the descriptor that it returns.
#[expect(unsafe_code, reason = "no safe wrapper")]
pub(super) fn install_filter(program: &mut [libc::sock_filter]) -> io::Result<OwnedFd> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    // SAFETY: the program has `len` instructions and lives until the call is over; the kernel checks what it does.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let fd = RawFd::try_from(result).map_err(io::Error::other)?;
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the call has just made it, and nobody else owns it.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// The next system call that somebody waits for at this listener: its ticket and its number.
#[expect(unsafe_code, reason = "no safe wrapper")]
pub(super) fn asked_call(listener: impl AsFd) -> io::Result<(u64, i32)> {
    let mut question = std::mem::MaybeUninit::<libc::seccomp_notif>::zeroed();
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one question of this size, and wants it zeroed before.
    let result = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_RECV, question.as_mut_ptr()) };
    done(libc::c_long::from(result))?;
    // SAFETY: zeroed, then written; all its fields are whole numbers.
    let question = unsafe { question.assume_init() };
    Ok((question.id, question.data.nr))
}

/// Answers that a system call failed.
#[expect(unsafe_code, reason = "no safe wrapper")]
pub(super) fn refuse_call(listener: impl AsFd, ticket: u64, errno: i32) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp { id: ticket, val: 0, error: -errno, flags: 0 };
    let fd = listener.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one answer of this size.
    let result = unsafe { libc::ioctl(fd, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    done(libc::c_long::from(result))
}

fn done(result: libc::c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
