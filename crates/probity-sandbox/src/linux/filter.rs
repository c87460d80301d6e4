//! The filter of system calls, as a program for the kernel.

use std::{io, os::fd::OwnedFd};

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long};

use super::{calls, sys};

/// Where the number of a call, its architecture and its first argument are in what the kernel shows.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xC000_00F3;

/// From here on the calls of x86-64 are those of its 32-bit variant.
const OTHER_ABI: u32 = 0x4000_0000;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// The supervisor hears of it and refuses.
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// Puts this process behind the filter; returns where refused calls are heard of.
pub(super) fn install() -> io::Result<OwnedFd> {
    sys::install_filter(&mut program())
}

fn program() -> Vec<libc::sock_filter> {
    let mut program = vec![
        load(ARCHITECTURE),
        jump(BPF_JEQ, NATIVE, 1, 0),
        give(KILL),
        load(NUMBER),
        jump(BPF_JGE, OTHER_ABI, 0, 1),
        give(KILL),
    ];
    // The C library falls back on `clone`.
    program.extend(on(libc::SYS_clone3, &[give(libc::SECCOMP_RET_ERRNO | errno(libc::ENOSYS))]));
    program.extend(on(libc::SYS_clone, &clone_without_namespaces()));
    program.extend(on(libc::SYS_socket, &known_sockets()));
    program.extend(on(libc::SYS_ioctl, &no_typing_for_others()));
    program.extend(on(libc::SYS_personality, &usual_personality()));
    for number in calls::ALLOWED.iter().chain(calls::ALLOWED_EARLIER) {
        program.extend(on(*number, &[give(ALLOW)]));
    }
    program.push(give(ASK));
    program
}

fn clone_without_namespaces() -> Vec<libc::sock_filter> {
    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    vec![
        load(argument(0)),
        jump(BPF_JSET, namespaces.cast_unsigned(), 0, 1),
        give(ASK),
        give(ALLOW),
    ]
}

/// Unix and Internet sockets, which lead nowhere here, and the one that tells of network devices.
fn known_sockets() -> Vec<libc::sock_filter> {
    let mut program = vec![load(argument(0))];
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        program.extend([jump(BPF_JEQ, family.cast_unsigned(), 0, 1), give(ALLOW)]);
    }
    program.extend([
        jump(BPF_JEQ, libc::AF_NETLINK.cast_unsigned(), 1, 0),
        give(ASK),
        load(argument(2)),
        jump(BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 0, 1),
        give(ALLOW),
        give(ASK),
    ]);
    program
}

/// All but what puts characters into the input of a terminal.
fn no_typing_for_others() -> Vec<libc::sock_filter> {
    const TIOCLINUX: u32 = 0x541C;
    let typing = u32::try_from(libc::TIOCSTI).unwrap_or(u32::MAX);
    vec![
        load(argument(1)),
        jump(BPF_JEQ, typing, 1, 0),
        jump(BPF_JEQ, TIOCLINUX, 0, 1),
        give(ASK),
        give(ALLOW),
    ]
}

/// Asking for the personality, or setting the usual one.
fn usual_personality() -> Vec<libc::sock_filter> {
    vec![
        load(argument(0)),
        jump(BPF_JEQ, u32::MAX, 1, 0),
        jump(BPF_JEQ, 0, 0, 1),
        give(ALLOW),
        give(ASK),
    ]
}

/// Runs the block, which ends with a decision, if the call has this number.
fn on(number: c_long, block: &[libc::sock_filter]) -> Vec<libc::sock_filter> {
    // Numbers of calls and lengths of blocks are small.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let length = u8::try_from(block.len()).unwrap_or(u8::MAX);
    [&[jump(BPF_JEQ, number, 0, length)], block].concat()
}

/// The lower half of an argument; flags and numbers have no more.
const fn argument(index: u32) -> u32 {
    ARGUMENTS + 8 * index
}

const fn errno(number: i32) -> u32 {
    number.cast_unsigned() & libc::SECCOMP_RET_DATA
}

fn load(offset: u32) -> libc::sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

fn give(decision: u32) -> libc::sock_filter {
    statement(BPF_RET | BPF_K, decision, 0, 0)
}

fn jump(test: u32, with: u32, yes: u8, no: u8) -> libc::sock_filter {
    statement(BPF_JMP | test | BPF_K, with, yes, no)
}

fn statement(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    // Codes have eight bits.
    libc::sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
}
