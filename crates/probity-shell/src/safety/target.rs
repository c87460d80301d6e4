//! Where an operand points: root, home, system, the working directory, temporary, a device, another machine.
//!
//! Paths are read as text: `/./`, `//`, `a/..` and a trailing `/*` are undone, and nothing is asked of a file system.

mod guarded;

use std::ops::{BitOr, BitOrAssign};

use guarded::{etc, has_extension, home, is_history, secret_name, system};

use crate::field::{self, CLOSE, OPEN, OPEN_QUOTED, STAR, TILDE};

/// A set of classes of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Classes(u32);

macro_rules! classes {
    ($($constant:ident $name:literal $bit:literal;)*) => {
        impl Classes {
            $(pub(super) const $constant: Self = Self(1 << $bit);)*

            /// The class of that name.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$constant),)*
                    _ => None,
                }
            }
        }
    };
}

classes! {
    ROOT "root" 0;             // `/`
    HOME "home" 1;             // a whole home directory
    SYSTEM "system" 2;         // /etc, /usr, /boot ...
    DEVICE "device" 3;         // /dev/sda
    PARENT "parent" 4;         // `..`
    CWD "cwd" 5;               // `.`, `*`
    PERSONAL "personal" 6;     // something in a home directory
    ELSEWHERE "elsewhere" 7;   // an absolute path, or one beside the working directory
    LOCAL "local" 8;           // something in the working directory
    BUILD "build" 9;           // what a build makes again
    TEMPORARY "temporary" 10;  // /tmp/x
    SINK "sink" 11;            // /dev/null and other harmless devices
    REMOTE "remote" 12;        // host:path, a URL
    SECRET "secret" 13;        // keys, passwords, tokens
    STARTUP "startup" 14;      // what a login runs
    HISTORY "history" 15;      // a shell's history
    LOG "log" 16;              // system logs
    REPOSITORY "repository" 17; // .git
    UNKNOWN "unknown" 18;      // a value that is not in the text
    UNSET "unset" 19;          // a value that makes it root or home if it is empty
    SOCKET "socket" 20;        // /dev/tcp/...
    RAW "raw" 21;              // memory and kernel controls: /dev/mem, /proc/sysrq-trigger
    CORE "core" 22;            // system directories that programs do not write to: /etc, /usr, /boot
    KEYS "keys" 23;            // a directory of keys: ~/.ssh
    HASHES "hashes" 24;        // hashed passwords: /etc/shadow
    PRIVATE_KEY "private-key" 25; // ~/.ssh/id_rsa
    CREDENTIALS "credentials" 26; // what logs a tool or a browser in: ~/.aws/credentials
    SCHEDULE "schedule" 27;    // what cron runs
    RIGHTS "rights" 28;        // who may do what: /etc/sudoers, /etc/pam.d
    LOGIN_KEYS "login-keys" 29; // ~/.ssh/authorized_keys
    UNIT "unit" 30;            // what the service manager or the desktop starts
}

impl Classes {
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Classes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Classes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What a build, a package manager or a test run makes again, by name.
const BUILD_NAMES: &[&str] = &[
    ".angular",
    ".astro",
    ".build",
    ".cache",
    ".dart_tool",
    ".docusaurus",
    ".eggs",
    ".expo",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".sass-cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vite",
    ".webpack",
    "__pycache__",
    "_build",
    "bower_components",
    "build",
    "cmake-build-debug",
    "coverage",
    "deriveddata",
    "dist",
    "htmlcov",
    "node_modules",
    "obj",
    "out",
    "storybook-static",
    "target",
    "tmp",
    "temp",
    "venv",
];

/// Names that mean the same wherever they stand.
const PLAIN_BUILD_NAMES: &[&str] = &[
    ".mypy_cache",
    ".next",
    ".nuxt",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".turbo",
    "__pycache__",
    "deriveddata",
    "node_modules",
];

const SYSTEM_NAMES: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Volumes",
    "Windows",
    "bin",
    "boot",
    "cores",
    "efi",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "usr",
    "var",
];

const SINKS: &[&str] = &[
    "fd", "full", "null", "ptmx", "pts", "random", "stderr", "stdin", "stdout", "tty", "urandom",
    "zero",
];

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Root,
    Home,
    Here,
    /// So many directories above the working directory.
    Above,
    /// A value that is not known.
    Value {
        guarded: bool,
        temporary: bool,
    },
}

/// The classes of `text`, seen from the directory `cwd` (empty: wherever the command is run).
pub(super) fn classify(text: &str, cwd: &str) -> Classes {
    if text.is_empty() {
        return Classes::default();
    }
    if text.contains("://") {
        return Classes::REMOTE;
    }
    if let Some((host, path)) = text.split_once(':')
        && host.len() > 1
        && !host.contains(['/', OPEN, OPEN_QUOTED, TILDE, '='])
    {
        let path = match path {
            // What is copied there goes below it.
            "/tmp" | "/tmp/" | "/var/tmp" | "/var/tmp/" => Classes::TEMPORARY,
            _ if path.starts_with(['/', TILDE]) => classify_path(path, ""),
            _ => Classes::default(),
        };
        return Classes::REMOTE | path;
    }
    classify_path(text, cwd)
}

fn classify_path(text: &str, cwd: &str) -> Classes {
    let mut names: Vec<&str> = Vec::new();
    let rooted = |it: &str| it.starts_with(['/', TILDE, OPEN, OPEN_QUOTED]);
    let mut base = Base::Here;
    if !cwd.is_empty() && !rooted(text) {
        base = follow(base, cwd, &mut names);
    }
    base = follow(base, text, &mut names);
    // `/etc/*` is all of `/etc`.
    let mut wild = false;
    while names.last().is_some_and(|it| is_wild(it)) {
        names.pop();
        wild = true;
    }
    let classes = match base {
        Base::Root => absolute(&names, wild),
        Base::Home => home(&names),
        Base::Here => relative(&names),
        Base::Above if names.is_empty() => Classes::PARENT,
        Base::Above => Classes::ELSEWHERE,
        Base::Value { temporary: true, .. } if !names.contains(&"..") => Classes::TEMPORARY,
        Base::Value { guarded: false, .. } if names.is_empty() && (wild || text.ends_with('/')) => {
            Classes::UNSET | Classes::UNKNOWN
        }
        Base::Value { .. } => Classes::UNKNOWN,
    };
    // If a part of the path is a link, `..` leads somewhere else than the text says.
    let leaves = || text.split('/').any(|it| it == "..");
    match classes.meets(Classes::TEMPORARY | Classes::BUILD) && leaves() {
        true => Classes::ELSEWHERE,
        false => classes,
    }
}

/// `*`, `.*`, `*.*`, `**`, `.[!.]*`, `?*`: everything in a directory.
fn is_wild(name: &str) -> bool {
    name.contains(STAR) && !name.chars().any(char::is_alphanumeric)
        || name.contains(STAR) && name.starts_with(field::BRACKET) && name.contains("a-z")
}

fn follow<'p>(mut base: Base, path: &'p str, names: &mut Vec<&'p str>) -> Base {
    let mut rest = path;
    if let Some(after) = path.strip_prefix('/') {
        (base, rest) = (Base::Root, after);
        names.clear();
    } else if path.starts_with([OPEN, OPEN_QUOTED]) {
        let end = path.find(CLOSE).map_or(path.len(), |at| at + CLOSE.len_utf8());
        let name = path[..end].trim_matches([OPEN, OPEN_QUOTED, CLOSE]);
        base = Base::Value { guarded: name.ends_with(":?"), temporary: names_temporary(name) };
        rest = &path[end..];
        names.clear();
        if !rest.is_empty() && !rest.starts_with('/') {
            names.push("");
        }
    } else if let Some(after) = path.strip_prefix(TILDE) {
        names.clear();
        base = Base::Home;
        // `~name` is a home directory too, `~+` and `~-` are not known.
        rest = after.find('/').map_or("", |at| &after[at..]);
    }
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => base = up(base, names),
            name => names.push(name),
        }
    }
    base
}

fn up(base: Base, names: &mut Vec<&str>) -> Base {
    if names.last().is_some_and(|it| *it != "..") {
        names.pop();
        return base;
    }
    match base {
        Base::Root => Base::Root,
        Base::Home => {
            names.push("home");
            Base::Root
        }
        Base::Here | Base::Above => Base::Above,
        Base::Value { .. } => {
            names.push("..");
            base
        }
    }
}

fn names_temporary(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(|it: char| !it.is_ascii_alphabetic()).any(|word| {
        matches!(word, "tmp" | "temp" | "tmpdir" | "tempdir" | "tmpfile" | "tempfile" | "workdir")
    })
}

fn is_unknown(name: &str) -> bool {
    name.starts_with([OPEN, OPEN_QUOTED]) && name.ends_with(CLOSE)
}

fn absolute(names: &[&str], wild: bool) -> Classes {
    let Some(first) = names.first().copied() else { return Classes::ROOT };
    if names.iter().all(|it| is_unknown(it)) {
        return Classes::UNSET | Classes::UNKNOWN;
    }
    if first.contains([STAR, field::ANY, field::BRACKET]) {
        return Classes::ROOT;
    }
    match (first, names.get(1).copied().unwrap_or_default()) {
        ("tmp", "") if !wild => Classes::SYSTEM,
        ("tmp", _) => Classes::TEMPORARY,
        ("var", "tmp" | "folders") | ("dev", "shm") | ("private", "tmp")
            if names.len() > 2 || wild =>
        {
            Classes::TEMPORARY
        }
        ("private", "var") if matches!(names.get(2), Some(&("tmp" | "folders"))) => {
            Classes::TEMPORARY
        }
        ("dev", "") | ("usr", "local") => Classes::SYSTEM,
        ("dev", "tcp" | "udp") => Classes::SOCKET,
        ("dev", "mem" | "kmem" | "port") | ("proc", "sysrq-trigger" | "kcore") => {
            Classes::RAW | Classes::SYSTEM
        }
        ("dev", name) if SINKS.contains(&name) || name.starts_with("tty") => Classes::SINK,
        ("dev", _) => Classes::DEVICE,
        ("home" | "Users", _) if names.len() <= 2 => Classes::HOME,
        ("home" | "Users", _) => home(&names[2..]),
        ("root", _) => home(&names[1..]) | Classes::SYSTEM,
        // One log among others: not the machine.
        ("var", "log") if names.len() > 2 => Classes::LOG | Classes::ELSEWHERE,
        ("var", "log") => Classes::LOG | Classes::SYSTEM,
        ("etc", name) => etc(name, names),
        _ if !system(names).is_empty() => system(names),
        (name, "") if SYSTEM_NAMES.contains(&name) => Classes::SYSTEM | Classes::CORE,
        (
            "bin" | "boot" | "efi" | "lib" | "lib32" | "lib64" | "proc" | "sbin" | "sys" | "usr"
            | "System",
            _,
        ) => Classes::SYSTEM | Classes::CORE,
        (name, _) if SYSTEM_NAMES.contains(&name) => Classes::SYSTEM,
        _ => plain(names, Classes::ELSEWHERE),
    }
}

/// What a path outside of the system directories is, by its names.
fn plain(names: &[&str], otherwise: Classes) -> Classes {
    let last = names.last().copied().unwrap_or_default();
    let is_build = || PLAIN_BUILD_NAMES.iter().any(|it| it.eq_ignore_ascii_case(last));
    match () {
        () if !secret_name(last).is_empty() => otherwise | secret_name(last),
        () if last == ".git" => otherwise | Classes::REPOSITORY,
        () if is_build() => Classes::BUILD,
        () => otherwise,
    }
}

fn relative(names: &[&str]) -> Classes {
    let Some(first) = names.first().copied() else { return Classes::CWD };
    let last = names.last().copied().unwrap_or_default();
    let is_build = |name: &str| {
        BUILD_NAMES.iter().any(|it| it.eq_ignore_ascii_case(name))
            || name.contains('.') && has_extension(&name.to_ascii_lowercase(), "egg-info")
    };
    let trace = if is_history(last) { Classes::HISTORY } else { Classes::default() };
    if is_build(first)
        || names.len() > 1 && is_build(last)
        || (last.starts_with(STAR) && is_litter(last))
    {
        return Classes::BUILD;
    }
    if names.iter().all(|it| is_unknown(it)) {
        return Classes::UNKNOWN;
    }
    plain(names, Classes::LOCAL) | trace
}

/// Whether a pattern names only what editors, compilers and runs leave behind.
pub(super) fn is_litter(pattern: &str) -> bool {
    let pattern = pattern.trim_start_matches(['*', STAR]);
    matches!(
        pattern,
        ".pyc"
            | ".pyo"
            | ".o"
            | ".obj"
            | ".class"
            | ".swp"
            | ".swo"
            | "~"
            | ".DS_Store"
            | "Thumbs.db"
            | ".gcda"
            | ".gcno"
            | ".elc"
            | ".aux"
    ) || BUILD_NAMES.contains(&pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, cwd: &str, expected: Classes) {
        let marked = path.replace('~', &TILDE.to_string()).replace('*', &STAR.to_string());
        let found = classify(&marked, &cwd.replace('~', &TILDE.to_string()));
        assert!(found.meets(expected), "{path} in {cwd:?}: {found:?}, not {expected:?}");
    }

    #[test]
    fn spellings_of_root_are_root() {
        for path in ["/", "//", "/.", "/./", "/*", "/usr/..", "/..", "/.*", "/tmp/../*"] {
            check(path, "", Classes::ROOT);
        }
        check("*", "/", Classes::ROOT);
    }

    #[test]
    fn spellings_of_home_are_home() {
        for path in ["~", "~/", "~/*", "~/x/..", "/home/ada", "/home/ada/*", "~ada"] {
            check(path, "", Classes::HOME);
        }
        check(".", "~", Classes::HOME);
        check("~/..", "", Classes::HOME);
    }

    #[test]
    fn places_are_told_apart() {
        check("/etc/nginx", "", Classes::SYSTEM);
        check("/tmp/x", "", Classes::TEMPORARY);
        check("/tmp", "", Classes::SYSTEM);
        check("/tmp/", "", Classes::SYSTEM);
        check("/tmp/*", "", Classes::TEMPORARY);
        check("/tmp/../etc", "", Classes::SYSTEM);
        check("/tmp/a/../b", "", Classes::ELSEWHERE);
        check("x", "/tmp", Classes::TEMPORARY);
        check("/dev/sda1", "", Classes::DEVICE);
        check("/dev/null", "", Classes::SINK);
        check("./*", "", Classes::CWD);
        check("..", "", Classes::PARENT);
        check("../other", "", Classes::ELSEWHERE);
        check("src", "", Classes::LOCAL);
        check("./build", "", Classes::BUILD);
        check("packages/web/node_modules", "", Classes::BUILD);
        check("host:/etc", "", Classes::REMOTE | Classes::SYSTEM);
        check("~/.ssh/id_rsa", "", Classes::SECRET);
        check("/etc/shadow", "", Classes::SECRET);
    }
}
