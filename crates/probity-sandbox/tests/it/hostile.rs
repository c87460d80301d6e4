//! Commands that mean harm. Each ends within its limits, leaves no process behind, and the host is what it was.

use std::{
    fmt::Write as _,
    fs,
    io::Read as _,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use probity_sandbox::{
    Execution, Limits,
    execution::{Change, End},
};

use crate::common::{Playground, lines, sandbox, text};

/// What must be true of an execution.
#[derive(Clone, Copy)]
enum Must {
    /// It ends in time, and no more is asked.
    End,
    /// It runs into its time limit.
    TimeOut,
    /// It is killed for its memory, or told that there is none.
    LackMemory,
    /// It says this on standard output, and nothing else.
    Say(&'static str),
    /// This system call is refused.
    BeRefused(&'static str),
    /// It changes something, but at most this many paths.
    Change(usize),
}

use Must::{BeRefused, Change as AtMost, End as Ends, LackMemory, Say, TimeOut};

/// `$HOST` is a file of the host that everybody may read and write, `PORT` a port and `NAME` an abstract socket where the
/// host listens. System calls are made by their numbers on x86-64.
const COMMANDS: &[(&str, &str, Must)] = &[
    ("a fork bomb", ":(){ :|:& };:; wait", Ends),
    ("a fork bomb that waits", "perl -e 'while (1) { fork }'", TimeOut),
    (
        "children that nobody buries",
        "perl -e '$SIG{CHLD}=sub{}; for (1..5000) { my $p = fork; exit 0 if defined $p && !$p }' ; echo done",
        Ends,
    ),
    (
        "filling the disk with one file",
        "head -c 1G /dev/zero > big; stat -c %s big",
        Say("16777216\n"),
    ),
    (
        "filling the disk with many files",
        "for i in $(seq 50); do head -c 15M /dev/zero > f$i; done 2>&1 | grep -c 'No space'",
        Ends,
    ),
    (
        "filling the inodes",
        "perl -e 'for (1..200000) { open(F, q(>), qq(f$_)) or last } print $! ? q(full) : q(room)'",
        Say("full"),
    ),
    ("a sparse file of a terabyte", "truncate -s 1T f; ls f", Ends),
    ("many sparse files", "for i in $(seq 3000); do truncate -s 16M f$i; done", AtMost(3000)),
    (
        "directories without end",
        "perl -e 'for (1..20000) { mkdir q(x) x 200 and chdir q(x) x 200 or last }'",
        AtMost(8192),
    ),
    (
        "many descriptors",
        "perl -e 'my @f; while (open(my $f, q(<), q(/dev/null))) { push @f, $f } print scalar(@f) < 300 ? q(few) : q(many)'",
        Say("few"),
    ),
    ("killing everybody", "kill -9 -1; echo alive", Ends),
    ("stopping everybody", "kill -STOP -1; sleep 100", TimeOut),
    ("ignoring signals", "trap '' TERM INT HUP QUIT XCPU; while :; do sleep 1; done", TimeOut),
    ("a loop", "while :; do :; done", TimeOut),
    ("a loop of sixty", "for i in $(seq 60); do (while :; do :; done) & done; wait", TimeOut),
    ("an orphan", "(sleep 1000 &); nohup sleep 1000 > /dev/null 2>&1 & echo done", Say("done\n")),
    (
        "an orphan in a session of its own",
        "setsid -f setsid -f sleep 1000; echo done",
        Say("done\n"),
    ),
    ("much output", "yes", TimeOut),
    ("much output to both", "head -c 50M /dev/zero; head -c 50M /dev/zero >&2", Ends),
    ("memory of one process", "perl -e 'my $x = q(a) x (3 << 30); print length $x'", LackMemory),
    (
        "memory of many",
        "for i in $(seq 30); do perl -e 'my $x = q(a) x (150 << 20); sleep 100' & done; wait",
        LackMemory,
    ),
    ("huge arguments", "perl -e 'exec q(true), (q(x) x 100000) x 200 or print q(no)'", Say("no")),
    ("rebooting by /proc", "echo b > /proc/sysrq-trigger; echo $?", Say("1\n")),
    (
        "settings of the kernel",
        "for f in /proc/sys/kernel/{core_pattern,hostname,panic} /proc/sys/vm/drop_caches; do echo x > $f; done 2> /dev/null; echo $?",
        Say("1\n"),
    ),
    (
        "the first process",
        "cat /proc/1/environ /proc/1/maps /proc/1/root/etc/passwd; ls /proc/1/fd /proc/1/cwd/",
        Say(""),
    ),
    ("memory of the first process", "exec 3<> /proc/1/mem && echo open", Say("")),
    ("its own program", "cp /proc/self/exe x && : > /proc/self/exe; echo $?", Ends),
    (
        "other processes of the host",
        "ls -d /proc/[0-9]* | wc -l | awk '{ print ($1 < 10) }'",
        Say("1\n"),
    ),
    ("the root of others", "for p in /proc/[0-9]*; do cat $p/root/$HOST; done", Say("")),
    ("mounting", "mount -t tmpfs none /home", BeRefused("mount")),
    ("mounting anew", "mount -o remount,rw /usr; touch /usr/bin/evil", BeRefused("mount")),
    (
        "unmounting",
        "umount /usr; perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(166, $x, 2)'",
        BeRefused("umount2"),
    ),
    (
        "writing to the tools of the host",
        "touch /usr/bin/evil; rm -f /usr/bin/env; echo x >> /bin/ls; test -s /usr/bin/env && echo there",
        Say("there\n"),
    ),
    ("deleting everything", "rm -rf --no-preserve-root / 2> /dev/null; echo /home/*", Ends),
    ("namespaces within", "unshare -Urm true", BeRefused("unshare")),
    (
        "namespaces by clone",
        "perl -e 'syscall(56, 0x10000000 | 17, 0, 0, 0, 0)'",
        BeRefused("clone"),
    ),
    (
        "namespaces of others",
        "nsenter -t 1 -m true; perl -e 'syscall(308, 0, 0)'",
        BeRefused("setns"),
    ),
    ("another root", "perl -e 'chroot q(/)'", BeRefused("chroot")),
    ("ptrace", "perl -e 'syscall(101, 16, 1, 0, 0)'", BeRefused("ptrace")),
    (
        "reading memory of others",
        "perl -e 'syscall(310, 1, 0, 0, 0, 0, 0)'",
        BeRefused("process_vm_readv"),
    ),
    (
        "descriptors of others",
        "perl -e 'syscall(438, syscall(434, 1, 0), 0, 0)'",
        BeRefused("pidfd_getfd"),
    ),
    ("block devices", "mknod disk b 8 0; dd if=disk count=1; mknod c c 1 1; ls", Say("a\n")),
    ("disks of the host", "cat /dev/sda /dev/vda /dev/mem /dev/kmsg | wc -c", Say("0\n")),
    (
        "becoming root",
        "cp /bin/bash b; chmod 4755 b; ./b -p -c 'id -u'; su -c id; sudo -n id",
        Say("1000\n"),
    ),
    ("becoming root by a call", "perl -e '$> = 0; $< = 0; print $>'", Say("1000")),
    ("becoming root by a namespace", "perl -e 'syscall(126, 0, 0)'", BeRefused("capset")),
    (
        "links that change while they are followed",
        "(while :; do ln -sfn $HOST l; ln -sfn /home/user/a l; done) & for i in $(seq 300); do echo evil >> l; done 2> /dev/null; kill $!; rm -rf l; echo done",
        Ends,
    ),
    (
        "abstract sockets of the host",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, pack(q(Sa*), AF_UNIX, qq(\\0NAME))) ? q(in) : q(out)'",
        Say("out"),
    ),
    ("ports of the host", "exec 3<> /dev/tcp/127.0.0.1/PORT && echo in", Say("")),
    ("the network", "exec 3<> /dev/tcp/1.1.1.1/53 && echo in", Say("")),
    ("raw sockets", "perl -e 'print syscall(41, 17, 3, 0)'", BeRefused("socket")),
    ("sockets of the machine below", "perl -e 'print syscall(41, 40, 1, 0)'", BeRefused("socket")),
    (
        "io_uring",
        "perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(425, 8, $x)'",
        BeRefused("io_uring_setup"),
    ),
    ("keys", "perl -e 'syscall(250, 0, -3, 1)'", BeRefused("keyctl")),
    (
        "BPF",
        "perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(321, 0, $x, 100)'",
        BeRefused("bpf"),
    ),
    (
        "performance counters",
        "perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(298, $x, 0, -1, -1, 0)'",
        BeRefused("perf_event_open"),
    ),
    ("page faults", "perl -e 'syscall(323, 0)'", BeRefused("userfaultfd")),
    (
        "files by their number",
        "perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(304, -100, $x, 0)'",
        BeRefused("open_by_handle_at"),
    ),
    (
        "memory without a name",
        "perl -e 'my $x = q(/usr) . qq(\\0) x 200; syscall(319, $x, 0)'",
        BeRefused("memfd_create"),
    ),
    ("shared memory", "perl -e 'syscall(29, 0, 1 << 30, 0600)'", BeRefused("shmget")),
    ("modules", "perl -e 'syscall(175, 0, 0, 0)'", BeRefused("init_module")),
    ("the clock", "date -s 2001-01-01 > /dev/null", BeRefused("clock_settime")),
    ("the name of the host", "hostname evil", BeRefused("sethostname")),
    (
        "secrets of the host",
        "cat /etc/shadow /root/.bashrc /root/.ssh/* /home/*/.ssh/* $HOST",
        Say(""),
    ),
    (
        "a place in the queue",
        "nice -n -20 true; chrt -f 99 sh -c 'while :; do :; done'; renice -n -20 $$ ; echo done",
        Ends,
    ),
    (
        "namespaces by clone3",
        "perl -e 'my $a = pack(q(Q8), 0x10000000, 0, 0, 0, 17, 0, 0, 0); print syscall(435, $a, 64)'",
        Say("-1"),
    ),
    ("another machine", "perl -e 'print syscall(135, 8)'", BeRefused("personality")),
    (
        "trees of mounts",
        "perl -e 'my $p = qq(/usr\\0); syscall(428, -100, $p, 1); syscall(429, -100, $p, -100, $p, 0)'",
        BeRefused("open_tree"),
    ),
    (
        "a new file system",
        "perl -e 'my $p = qq(tmpfs\\0); syscall(430, $p, 0)'",
        BeRefused("fsopen"),
    ),
    (
        "typing into a terminal",
        "perl -e 'my $c = q(x); for (0..2) { open(my $f, qq(+<&=$_)) or next; ioctl($f, 0x5412, $c) }'",
        BeRefused("ioctl"),
    ),
    (
        "descriptors that leaked",
        "for f in /proc/self/fd/*; do readlink $f; done | grep -v -e pipe -e /dev/null -e /proc",
        Say(""),
    ),
    (
        "a way up",
        "perl -e 'my $p = qq(../../../../../..$HOST\\0); my $h = pack(q(QQQ), 0, 0, 0); print syscall(437, -100, $p, $h, 24)'; cat /proc/self/root/..$HOST",
        Say("-1"),
    ),
    (
        "pipes where files are looked for",
        "mkfifo p; ln -s p l; exec 3<> p; chmod 000 p; echo done",
        Say("done\n"),
    ),
    (
        "names that break lists",
        "printf x > $'a\\e[31m\\nb'; mkdir $'\\xff\\xfe'; printf y > $'\\xff\\xfe/\\x01'; ln -s $'\\n' $'l\\r'",
        AtMost(4),
    ),
    (
        "links that lead in circles",
        "ln -s x y; ln -s y x; ln -s . s; cat s/s/s/s/x; find -L . > /dev/null",
        AtMost(3),
    ),
    (
        "marks of the overlay",
        "mkdir d; echo x > d/f; perl -e 'my ($p, $v) = (qq(d\\0), q(y)); for my $n (qw(user trusted)) { my $m = qq($n.overlay.opaque\\0); syscall(188, $p, $m, $v, 1, 0) }'; mv d e; ls e",
        Say("f\n"),
    ),
    (
        "marks of what is gone",
        "perl -e 'my ($a, $b) = (qq(a\\0), qq(b\\0)); syscall(316, -100, $a, -100, $b, 4)'; mknod b c 0 0; cat a",
        Say("a\n"),
    ),
    (
        "clocks and events",
        "perl -e 'for (1..500) { syscall(283, 1, 0); syscall(284, 0, 0) } print q(done)'",
        Say("done"),
    ),
    (
        "watching the host",
        "perl -e 'my $i = syscall(253); my $p = qq(/usr\\0); for (1..20000) { syscall(254, $i, $p, 0xfff) } print q(done)'",
        Say("done"),
    ),
    (
        "full pipes",
        "perl -e 'my @p; while (pipe(my $r, my $w)) { push @p, $r, $w; fcntl($w, 1031, 1 << 20); fcntl($w, 4, 2048); syswrite($w, q(x) x (1 << 20)) } print @p < 300 ? q(few) : q(many)'",
        Say("few"),
    ),
    (
        "a network of its own",
        "ip link set lo up; exec 3<> /dev/tcp/127.0.0.1/PORT && echo in",
        Say(""),
    ),
    (
        "sockets of the kernel",
        "perl -e 'syscall(41, $_, 3, 0) for (38, 15, 29, 31, 44)'",
        BeRefused("socket"),
    ),
    (
        "signals for the first process",
        "perl -e 'my $p = syscall(434, 1, 0); syscall(424, $p, 9, 0, 0)'; kill -9 1; kill -SEGV 1; echo alive",
        Say("alive\n"),
    ),
    (
        "higher limits",
        "ulimit -n 100000; ulimit -u unlimited; ulimit -f unlimited; prlimit --pid $$ --fsize=unlimited; head -c 40M /dev/zero > f; test $(stat -c %s f) -le 16777216 && echo held",
        Say("held\n"),
    ),
    (
        "dying while others write",
        "(while :; do echo x >> f; done) & (while :; do mv f g; mv g f; done) & sleep 0.2; kill -9 $$",
        Ends,
    ),
    (
        "running away by forking",
        "perl -e 'while (1) { my $p = fork; if (defined $p && !$p) { setpgrp; next } exit if defined $p }'; echo done",
        Ends,
    ),
    (
        "accounts, quotas, ports",
        "perl -e 'my $p = qq(x\\0); for my $n (179, 163, 103, 172, 173, 155, 167, 169, 246, 320) { syscall($n, $p, 0, 0, 0) }'",
        BeRefused("iopl"),
    ),
];

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "system calls have other numbers")]
fn the_host_survives_hostile_commands() {
    attack();
}

/// The same where the keeper is an ordinary user.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "system calls have other numbers")]
fn the_host_survives_hostile_commands_of_an_ordinary_user() {
    crate::common::as_nobody("hostile::the_host_survives_hostile_commands");
}

fn attack() {
    let host = Host::new();
    let world =
        Playground::new("hostile", |home| fs::write(home.join("a"), "a\n").expect("a file"));
    let mark = world.mark().to_owned();
    let before = host.state();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, command, must)) =
                    COMMANDS.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    suffer(name, &host.fill_in(command), *must, &world);
                }
            });
        }
    });
    assert_eq!(host.state(), before);
    assert_eq!(processes_with(&mark), Vec::<String>::new(), "processes are left");
    host.check_victim();
    let after = world.shell("cat a; ls /usr/bin/env");
    assert_eq!(text(&after.stdout.bytes), "a\n/usr/bin/env\n", "the sandbox still works");
}

fn suffer(name: &str, command: &str, must: Must, world: &Playground) {
    // What ends by itself has time to do so on a busy machine.
    let time = match must {
        Ends | TimeOut => Duration::from_millis(2500),
        LackMemory | Say(_) | BeRefused(_) | AtMost(_) => Duration::from_secs(15),
    };
    let limits = Limits { time, memory: 512 << 20, space: 1 << 30, ..Limits::default() };
    let started = Instant::now();
    let execution = world.shell_within(command, &limits);
    let took = started.elapsed();
    assert!(took < time + Duration::from_secs(20), "{name} took {took:?}");
    assert!(execution.stdout.bytes.len() as u64 <= limits.output, "{name}");
    let said = text(&execution.stdout.bytes);
    let told = || {
        let stderr = text(&execution.stderr.bytes);
        format!(
            "{name}: {:?}, refused {:?}, said {said:?}, {stderr}",
            execution.end, execution.refused
        )
    };
    match must {
        Ends => {}
        TimeOut => assert_eq!(execution.end, End::TimedOut, "{}", told()),
        LackMemory => assert!(lacks_memory(&execution), "{}", told()),
        Say(words) => assert_eq!(said, words, "{}", told()),
        BeRefused(call) => {
            assert!(execution.refused.iter().any(|refused| refused == call), "{}", told());
        }
        AtMost(count) => {
            let all: &[Change] = &execution.changes;
            assert!(!all.is_empty() && all.len() <= count, "{}: {:?}", told(), lines(all).len());
        }
    }
}

fn lacks_memory(execution: &Execution) -> bool {
    execution.end == End::OutOfMemory || text(&execution.stderr.bytes).contains("Out of memory")
}

/// What a command could touch if nothing held it back.
struct Host {
    directory: tempfile::TempDir,
    file: PathBuf,
    port: TcpListener,
    socket: UnixListener,
    name: String,
    victim: std::sync::Mutex<Child>,
}

impl Host {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
        let file = directory.path().join("host");
        fs::write(&file, "host\n").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
        let port = TcpListener::bind("127.0.0.1:0").expect("a port");
        port.set_nonblocking(true).expect("a port that does not wait");
        let name = format!("probity-hostile-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let socket = UnixListener::bind_addr(&address).expect("an abstract socket");
        let victim = std::process::Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn();
        let victim = std::sync::Mutex::new(victim.expect("a victim"));
        Self { directory, file, port, socket, name, victim }
    }

    fn fill_in(&self, command: &str) -> String {
        let port = self.port.local_addr().expect("an address").port().to_string();
        let file = self.file.display().to_string();
        command.replace("$HOST", &file).replace("PORT", &port).replace("NAME", &self.name)
    }

    /// All of it as text. What cannot be read is no part of it.
    fn state(&self) -> String {
        let _ = &self.socket;
        let mut state = String::new();
        for file in [
            "/etc/passwd",
            "/etc/shadow",
            "/etc/hostname",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/hostname",
            "/proc/sys/kernel/panic",
            "/proc/self/mountinfo",
            "/proc/self/uid_map",
        ] {
            let digest = fs::read(file).map(|bytes| blake3::hash(&bytes)).ok();
            let _ = writeln!(state, "{file}: {digest:?}");
        }
        for directory in ["/", "/usr/bin", "/bin", "/dev", "/root", "/home", "/etc"] {
            let _ = writeln!(state, "{directory}: {:?}", listing(Path::new(directory)));
        }
        let file = fs::read_to_string(&self.file);
        let _ = write!(state, "{file:?} {:?}", listing(self.directory.path()));
        let mut visitor = [0; 1];
        let visited =
            self.port.accept().map(|(mut visitor_stream, _)| visitor_stream.read(&mut visitor));
        assert!(visited.is_err(), "somebody came through the port");
        state
    }

    fn check_victim(&self) {
        let mut victim = self.victim.lock().expect("a victim");
        assert_eq!(victim.try_wait().expect("a child"), None, "a process of the host was killed");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let victim = self.victim.get_mut().expect("a victim");
        let _ = victim.kill();
        let _ = victim.wait();
    }
}

/// Names, sizes, modes and times.
fn listing(directory: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut all: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let found = entry.metadata().ok()?;
            let size = if found.is_file() { found.len() } else { 0 };
            let name = entry.file_name();
            Some(format!("{} {size} {:o} {}", name.display(), found.mode(), found.uid()))
        })
        .collect();
    all.sort();
    all
}

/// Processes that have the mark of a world in their environment.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            text(&environment).contains(mark)
        })
        .map(|entry| text(&fs::read(entry.path().join("cmdline")).unwrap_or_default()))
        .collect()
}

#[test]
fn refused_calls_are_told_by_name() {
    let world = Playground::new("refused", |_| {});
    let execution = world.shell("mount -t tmpfs none /tmp; unshare -r true; true");
    assert_eq!(execution.refused, ["mount", "unshare"]);
    assert_eq!(execution.end, End::Exit(0));
    // Nothing of this process is left in the sandbox of all tests.
    assert_eq!(sandbox().means().to_string(), "namespaces");
}
