//! Hostile commands in the sandbox, put together at random: whatever they do, the host is what it was, and nothing of them stays.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use super::{
    Campaign, Shot,
    room::{Lab, Room},
};

pub(super) const CAMPAIGN: Campaign = Campaign {
    name: "sandbox",
    about: "hostile commands in the sandbox, put together at random: the host is what it was",
    kinds: &[ESCAPED, LEFT, STUCK, CRASH],
    short: 12,
    long: 1000,
    threads: 3,
    shoot,
};

const ESCAPED: &str = "escaped";
const LEFT: &str = "left behind";
const STUCK: &str = "not ended";
const CRASH: &str = "crash";

/// `HOST` is a folder of the host in which everybody may do everything; `NAP` a number of seconds that no one else sleeps.
const PARTS: &[&str] = &[
    "rm -rf HOST",
    "echo evil > HOST/new",
    "echo evil >> HOST/file",
    "ln -sf HOST/file l; echo evil > l",
    "cp /bin/sh HOST/sh",
    "cat HOST/secret",
    "tar cf - HOST",
    "chmod -R 777 HOST",
    "mv HOST /tmp/x",
    "touch /etc/evil /usr/evil /root/evil",
    "rm -rf /* --no-preserve-root",
    "find / -delete",
    "mount -t tmpfs x /mnt",
    "mount --bind / /mnt && rm -rf /mnt/tmp",
    "umount -a",
    "unshare -Urm sh -c 'mount --bind / /mnt; rm -rf /mnt/HOST'",
    "chroot / rm -rf HOST",
    "mknod d b 8 0; cat d",
    "kill -9 -1",
    "killall -9 bash",
    "setsid nohup sleep NAP &",
    "(setsid sh -c 'trap \"\" TERM HUP; sleep NAP' &) &",
    "sleep NAP",
    ":(){ :|:& };: & sleep 1",
    "perl -e 'fork while 1' & sleep 1",
    "head -c 2G /dev/zero > big",
    "yes | head -c 300M > /dev/shm/x",
    "tail /dev/zero",
    "cat /proc/*/environ",
    "cat /proc/1/root/HOST/secret",
    "ls -la /proc/1/fd; cat /proc/1/fd/*",
    "echo b > /proc/sysrq-trigger",
    "echo c > /proc/sys/kernel/core_pattern",
    "exec 3<>/dev/tcp/127.0.0.1/22; cat <&3",
    "curl -s http://127.0.0.1:1",
    "nc -l -p 12345 &",
    "perl -e 'use POSIX; POSIX::setuid(0); system(q(id))'",
    "sudo -n id",
    "crontab -l; echo '* * * * * touch HOST/cron' | crontab -",
    "perl -e 'syscall(101, 16, 1, 0, 0)'",
    "perl -e 'kill 9, $_ for 2..400'",
    "ulimit -n 1; ls",
    "exec 1>&- 2>&-; sleep 1",
    "kill -STOP $$",
    "exit 77",
    "printf '\\033[2J\\377\\000'",
    "yes",
    "dd if=/dev/urandom bs=1M count=50",
    "cd ..; cd ..; cd ..; ls; rm -rf ./*",
    "git clean -xfd /; rm -rf ~ .",
];

/// How a part is wrapped.
const WRAPS: &[&str] = &[
    "PART",
    "PART",
    "PART",
    "(PART) &",
    "sh -c 'PART'",
    "echo \"PART\" | bash",
    "eval \"PART\"",
    "for i in 1 2 3; do PART; done",
    "if true; then PART; fi",
    "{ PART; } 2>&1 | cat",
    "trap 'PART' EXIT",
    "nohup bash -c \"PART\" > /dev/null 2>&1 &",
    "x=$(PART)",
    "env -i /bin/bash -c \"PART\"",
];

fn shoot(lab: &Lab, shot: &mut Shot) -> io::Result<()> {
    let room = Room::new(lab)?;
    let host = room.root().join("host");
    make(&host)?;
    let nap = format!("{}", 40_000_000 + shot.number);
    let count = shot.random.usize(1..5);
    let parts: Vec<String> = (0..count)
        .map(|_| {
            let part = *shot.choose(PARTS);
            let wrap = *shot.choose(WRAPS);
            // A quote within quotes would only be a mistake.
            let wrap = if part.contains(['\'', '"']) { "PART" } else { wrap };
            wrap.replace("PART", part)
        })
        .collect();
    let command =
        parts.join("\n").replace("HOST", &host.display().to_string()).replace("NAP", &nap);
    let before = state(&host)?;
    let ran = room.run(&["sandbox", "--json", "--timeout", "1500ms", &command])?;
    if ran.code == Some(3) && ran.out.is_empty() {
        shot.skip("no sandbox");
        return Ok(());
    }
    let what = || command.escape_debug().to_string();
    let is_told = serde_json::from_str::<serde_json::Value>(&ran.out).is_ok();
    shot.expect(is_told || ran.is_late, CRASH, || format!("{}: {}", what(), ran.tail()));
    shot.expect(!ran.is_late && ran.took < Duration::from_secs(40), STUCK, || {
        format!("{}: {:?}", what(), ran.took)
    });
    shot.expect(!ran.is_crash(), CRASH, || format!("{}: {}", what(), ran.tail()));
    let after = state(&host)?;
    shot.expect(after == before, ESCAPED, || format!("{}: {after:?}", what()));
    shot.expect(!ran.out.contains("the secret of the host"), ESCAPED, || {
        format!("{}: it was read", what())
    });
    let sleeping = sleeping(&nap);
    shot.expect(sleeping.is_empty(), LEFT, || format!("{}: {sleeping:?}", what()));
    let left = room.temporary();
    shot.expect(left.is_empty(), LEFT, || format!("{}: {left:?}", what()));
    Ok(())
}

fn make(host: &Path) -> io::Result<()> {
    fs::create_dir(host)?;
    for (name, text) in [("file", "as it was\n"), ("secret", "the secret of the host\n")] {
        fs::write(host.join(name), text)?;
        fs::set_permissions(host.join(name), fs::Permissions::from_mode(0o666))?;
    }
    fs::set_permissions(host, fs::Permissions::from_mode(0o777))
}

/// What a command could have changed.
fn state(host: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(host)? {
        let path = entry?.path();
        let mode = fs::metadata(&path)?.permissions().mode();
        found.push(format!("{} {mode:o} {:?}", path.display(), fs::read(&path)?));
    }
    found.sort();
    for file in [
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
        "/etc/passwd",
        "/etc/hosts",
        "/proc/mounts",
    ] {
        found.push(format!("{file} {:?}", fs::read_to_string(file)?.len()));
    }
    for evil in ["/etc/evil", "/usr/evil", "/root/evil", "/tmp/x"] {
        found.push(format!("{evil} {}", Path::new(evil).exists()));
    }
    Ok(found)
}

/// Processes whose command line has a text. They get a moment to end.
fn sleeping(text: &str) -> Vec<String> {
    let begun = std::time::Instant::now();
    loop {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            if words.starts_with("sleep ") && words.contains(text) {
                found.push(format!("{} {words}", entry.file_name().to_string_lossy()));
            }
        }
        if found.is_empty() || begun.elapsed() > Duration::from_secs(5) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
