//! What earlier processes found out about pairs of commands.
//!
//! What is kept is the judgement and not the executions it rests on: worlds are made anew for each process, with times that
//! count from its start, and an execution of yesterday beside one of today would differ in nothing but that. A judgement holds
//! as long as all that it was made of is the same: both texts, all worlds, limits, this program, and the utilities.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::Effect;
use crate::{Command, Keeper, Limits, World};

/// Raised when judgements are made in another way than before.
const FORMAT: &str = "1";
/// Where judgements are, below the prepared worlds.
const FOLDER: &str = "effects";
/// A judgement is made anew after this.
const LASTING: Duration = Duration::from_hours(7 * 24);
/// Judgements that are kept, at most; each takes less than 4 KiB.
const MOST: usize = 10_000;
/// Of how many that are written one looks at all that are there.
const SWEEPS: u32 = 64;
/// A longer one is not kept.
const LARGEST: usize = 64 << 10;
/// What begins the names of files that are being written.
const DRAFT: &str = ".draft-";

/// Programs and texts whose effect is a matter of when they run.
const OF_THE_HOUR: &[&str] =
    &["at", "cal", "date", "last", "lastlog", "ncal", "ps", "top", "uptime", "w", "who"];
const OF_THE_HOUR_IN_TEXT: &[&str] = &["%(", "EPOCH", "SECONDS", "RANDOM"];

/// Directories of the host in which something changes whenever programs or libraries are installed.
const INSTALLED: &[&str] = &[
    "/bin",
    "/etc/alternatives",
    "/lib",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/sbin",
];
/// Where commands in worlds find their programs.
const SEARCHED: &[&str] = &["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];

static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// What a judgement is made of.
pub(super) struct Grounds<'g> {
    pub(super) texts: [&'g str; 2],
    pub(super) commands: &'g [Command; 2],
    pub(super) programs: &'g BTreeSet<String>,
    pub(super) worlds: &'g [World],
    pub(super) limits: &'g Limits,
    pub(super) means: String,
}

impl Grounds<'_> {
    /// The name of the judgement; none if it would be another one at another time.
    pub(super) fn name(&self) -> Option<String> {
        let Self { texts, commands, programs, worlds, limits, means } = self;
        let of_the_hour = OF_THE_HOUR.iter().any(|it| programs.contains(*it))
            || OF_THE_HOUR_IN_TEXT.iter().any(|it| texts.iter().any(|text| text.contains(it)));
        if of_the_hour {
            return None;
        }
        let this = facts(&Keeper::this_program().program);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let installed: Vec<Option<Facts>> = INSTALLED.iter().map(|it| facts(it.as_ref())).collect();
        let utilities: Vec<Option<Facts>> =
            programs.iter().map(String::as_str).chain(["bash"]).map(utility).collect();
        let made_of = (
            (FORMAT, env!("CARGO_PKG_VERSION"), this, kernel, means),
            (commands, worlds, crate::world::builtin::all(), limits),
            (installed, utilities),
        );
        // Plain data is always JSON.
        let bytes = serde_json::to_vec(&made_of).ok()?;
        Some(blake3::hash(&bytes).to_hex()[..40].to_owned())
    }
}

/// What tells a file from another one, and from what it was.
type Facts = (u64, u64, u64, i64, i64);

fn facts(path: &Path) -> Option<Facts> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

fn utility(name: &str) -> Option<Facts> {
    SEARCHED.iter().find_map(|it| facts(&Path::new(it).join(name)))
}

/// A judgement as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    effect: Effect,
    likeness: Option<f64>,
}

/// Judgements on the disk.
pub(super) struct Kept {
    folder: PathBuf,
    now: SystemTime,
}

impl Kept {
    pub(super) fn new(cache: &Path, now: SystemTime) -> Self {
        Self { folder: cache.join(FOLDER), now }
    }

    /// A judgement that was made before. What cannot be read is none.
    pub(super) fn get(&self, name: &str) -> Option<Effect> {
        let path = self.folder.join(name);
        if !self.is_fresh(&path, LASTING) {
            return None;
        }
        let written: Written = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let Written { name: own, effect, likeness } = written;
        (own == name).then_some(Effect { likeness, ..effect })
    }

    /// Keeps a judgement. It is there as a whole or not at all, also if this process is killed; of two that write the same
    /// one the last wins. Without a disk nothing is kept.
    pub(super) fn put(&self, name: &str, effect: &Effect) {
        let written =
            Written { name: name.to_owned(), effect: effect.clone(), likeness: effect.likeness };
        let Ok(bytes) = serde_json::to_vec(&written) else { return };
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        if bytes.len() > LARGEST || self.write(name, &bytes, number).is_err() {
            return;
        }
        if number.is_multiple_of(SWEEPS) {
            self.sweep();
        }
    }

    fn write(&self, name: &str, bytes: &[u8], number: u32) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let draft = self.folder.join(format!("{DRAFT}{}-{number}", std::process::id()));
        let moved =
            fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, self.folder.join(name)));
        if moved.is_err() {
            let _ = fs::remove_file(&draft);
        }
        moved
    }

    fn is_fresh(&self, path: &Path, lasting: Duration) -> bool {
        let changed = fs::metadata(path).and_then(|it| it.modified());
        // What is younger than this process was made by another one meanwhile.
        changed.is_ok_and(|it| {
            self.now.duration_since(it).is_ok_and(|age| age < lasting) || it > self.now
        })
    }

    /// Removes what is too old, what was never finished, and the oldest of too many.
    fn sweep(&self) {
        let mut all: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(changed) = entry.metadata().and_then(|it| it.modified()) else { continue };
            let path = entry.path();
            let is_draft = entry.file_name().to_string_lossy().starts_with(DRAFT);
            let lasting = if is_draft { Duration::from_hours(1) } else { LASTING };
            if !self.is_fresh(&path, lasting) {
                let _ = fs::remove_file(&path);
            } else if !is_draft {
                all.push((changed, path));
            }
        }
        all.sort();
        let surplus = all.len().saturating_sub(MOST);
        for (_, path) in all.iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;

    fn effect() -> Effect {
        Effect {
            verdict: Verdict::SameEffect,
            reason: "why".to_owned(),
            world: Some("w".to_owned()),
            difference: None,
            caveat: Some("c".to_owned()),
            agreed: vec!["w".to_owned()],
            silent: Vec::new(),
            likeness: Some(1.0),
            is_lasting: false,
        }
    }

    fn name_of(texts: [&str; 2]) -> Option<String> {
        let commands = texts.map(|it| Command::Shell(it.to_owned()));
        let programs = texts.iter().filter_map(|it| it.split(' ').next()).map(str::to_owned);
        let grounds = Grounds {
            texts,
            commands: &commands,
            programs: &programs.collect(),
            worlds: &[],
            limits: &Limits::default(),
            means: "none".to_owned(),
        };
        grounds.name()
    }

    #[test]
    fn a_judgement_is_read_back_and_belongs_to_its_pair() {
        let folder = tempfile::tempdir().unwrap();
        // What was written since a process began is fresh to it.
        let now = SystemTime::UNIX_EPOCH;
        let kept = Kept::new(folder.path(), now);
        let name = name_of(["cat a", "cat b"]).unwrap();
        assert_eq!(kept.get(&name), None);
        kept.put(&name, &effect());
        assert_eq!(kept.get(&name), Some(effect()));
        assert_ne!(name_of(["cat b", "cat a"]).unwrap(), name);
        assert_eq!(name_of(["cat a", "cat b"]).unwrap(), name);
        let later = Kept::new(folder.path(), now + Duration::from_hours(200 * 365 * 24));
        assert_eq!(later.get(&name), None);
        // What was cut off, or lies under another name, is none.
        let path = folder.path().join(FOLDER).join(&name);
        fs::copy(&path, path.with_file_name("other")).unwrap();
        assert_eq!(kept.get("other"), None);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(kept.get(&name), None);
        later.sweep();
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).unwrap().count(), 0);
    }

    #[test]
    fn what_depends_on_the_hour_has_no_name() {
        for text in ["date +%e", "ps aux", "printf '%(%H)T'", "echo $RANDOM", "echo $SECONDS"] {
            assert_eq!(name_of([text, "cat a"]), None, "{text}");
        }
    }
}
