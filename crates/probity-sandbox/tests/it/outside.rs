//! What of the host a command does not see.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::net::{UnixListener, UnixStream},
};

use probity_sandbox::{Command, Limits, Sandbox, execution::End, world::Prepared};

use crate::common::{Playground, keeper, text};

/// What a world has of its own under `/`, and what is the host's.
const ROOT: [&str; 15] = [
    "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys",
    "tmp", "usr", "var",
];

#[test]
fn nothing_under_the_root_of_the_host_is_shared_but_its_tools() {
    let world = Playground::new("root", |_| {});
    let listed = text(&world.shell("ls -A /").stdout.bytes);
    let listed: BTreeSet<&str> = listed.lines().collect();
    let known = BTreeSet::from(ROOT);
    assert!(listed.is_subset(&known), "{:?}", listed.difference(&known));
    let empty = world.shell("ls -A /run /sys /home | sort -u | tr '\\n' ' '");
    assert_eq!(text(&empty.stdout.bytes).trim(), "/home: /run: /sys: user");
}

/// A descriptor that this process would hand on to all that it starts.
fn inherited() -> fs::File {
    let file = fs::File::open("/etc/passwd").expect("a file");
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).expect("a descriptor");
    file
}

#[test]
fn no_descriptor_of_the_host_gets_into_a_world() {
    let _inherited = inherited();
    let sandbox = Sandbox::open(&keeper()).expect("these tests need namespaces");
    let world = Playground::new("descriptors", |_| {});
    let processes = vec![vec!["sleep".to_owned(), "1000".to_owned()]];
    let prepared = Prepared { processes, ..world.prepared.clone() };
    let look = "for p in $$ $(pgrep sleep); do ls -x /proc/$p/fd; done";
    let mut session = sandbox.enter(&prepared).expect("a session");
    // The second command is started by a process that has answered before.
    for _ in 0..2 {
        let command = Command::Shell(look.to_owned());
        let execution = session.execute(&command, None, &Limits::default()).expect("an execution");
        let seen = text(&execution.stdout.bytes);
        let lines: Vec<Vec<&str>> =
            seen.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
        assert_eq!(lines, [["0", "1", "2"], ["0", "1", "2"]]);
    }
}

#[test]
fn sockets_of_the_host_are_not_reached_by_their_paths() {
    let host = tempfile::tempdir().expect("a directory");
    let path = host.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    UnixStream::connect(&path).expect("the host itself reaches it");
    listener.accept().expect("a connection");
    let world = Playground::new("sockets", |_| {});
    let connect = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, sockaddr_un(q({}))) ? q(in) : $!'",
        path.display()
    );
    let execution = world.shell(&connect);
    assert_eq!(text(&execution.stdout.bytes), "No such file or directory");
    assert_eq!(execution.end, End::Exit(0));
    listener.set_nonblocking(true).expect("a listener");
    assert!(listener.accept().is_err());
    let found =
        world.shell("find / -xdev -type s 2> /dev/null; find /usr /run /tmp -type s 2> /dev/null");
    assert_eq!(text(&found.stdout.bytes), "", "a socket is seen");
}
