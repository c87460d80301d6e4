//! From data to a tree on the disk.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use super::{
    Content, File, GROUP_ID, Prepared, USER_ID, World, archive,
    archive::{Member, MemberKind},
    generate,
};

/// Times in a world are relative to when it is made. A tree older than this is made anew.
const FRESH_SECONDS: u64 = 6 * 3600;

/// Which files every world has. A tree of an earlier version of the program is made anew when this changes.
const BASICS: &str = "2";

/// A tree that was not changed for so long is removed. A world may say that its root is some days old.
const STALE_SECONDS: u64 = 3 * 86_400;

/// Tools of the host on which it depends what a setup makes.
const SETUP_TOOLS: &[&str] = &["/usr/bin/bash", "/usr/bin/git", "/usr/bin/gzip", "/usr/bin/tar"];

/// Nobody can become root in a world, where everything belongs to the user anyway: `sudo` runs what it is given.
const SUDO: &str = "#!/bin/sh\nwhile :; do\n  case $1 in\n    -u | -g) shift 2 ;;\n    -*) shift ;;\n    *) break ;;\n  esac\ndone\nexec \"$@\"\n";

/// Around a setup: what it adds at the top, beside what the host shares, becomes the positional parameters.
const BEFORE: &str = "__before=$(ls -A /)";
const AFTER: &str = r#"cd /
set --
for __name in * .[!.]*; do
  test -e "$__name" || test -L "$__name" || continue
  printf '%s\n' "$__before" | grep -Fxq -e "$__name" || set -- "$@" "./$__name"
done"#;

/// What cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The disk.
    #[error("failed to make `{path}` of the world `{world}`")]
    Write {
        /// The world.
        world: String,
        /// The path on the disk.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its setup.
    #[error("the setup of the world `{world}` failed: {message}")]
    Setup {
        /// The world.
        world: String,
        /// What it said.
        message: String,
    },
}

/// Runs a shell text in a prepared world and gives what it wrote to standard output, or what went wrong.
pub type Setup<'s> = &'s dyn Fn(&Prepared, &str) -> Result<Vec<u8>, String>;

/// Where and when worlds are prepared.
pub struct Preparation<'p> {
    /// Where trees are kept.
    pub cache: &'p Path,
    /// The time that ages are counted from.
    pub now: SystemTime,
    /// Runs setups.
    pub setup: Setup<'p>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl World {
    /// The world as a tree, from the cache if it is there. Processes that prepare the same world at once get the same tree.
    pub fn prepare(&self, preparation: &Preparation<'_>) -> Result<Prepared, PrepareError> {
        let digest = self.digest(preparation.now);
        let place = preparation.cache.join(&digest);
        if !place.is_dir() {
            self.build(preparation, &place)?;
        }
        Ok(self.prepared(digest, place))
    }

    fn prepared(&self, digest: String, tree: PathBuf) -> Prepared {
        Prepared {
            name: self.name.clone(),
            digest,
            tree,
            directory: self.directory.clone(),
            variables: self.environment(),
            processes: self.processes.clone(),
        }
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = format!("/home/{}", self.user);
        let standard = [
            ("HOME", &*home),
            ("LANG", "C.UTF-8"),
            ("LOGNAME", &*self.user),
            ("PATH", "/opt/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
            ("SHELL", "/bin/bash"),
            ("TERM", "dumb"),
            ("TZ", "UTC"),
            ("USER", &*self.user),
        ];
        let standard = standard.map(|(name, value)| (name.to_owned(), value.to_owned()));
        standard.into_iter().chain(self.variables.clone()).collect()
    }

    /// What makes the tree, and the span of time that it is good for.
    fn digest(&self, now: SystemTime) -> String {
        let mut hasher = blake3::Hasher::new();
        let data = serde_json::to_vec(self).expect("a world is plain data");
        hasher.update(&data);
        hasher.update(BASICS.as_bytes());
        hasher.update(&(seconds(now) / i64::try_from(FRESH_SECONDS).unwrap_or(1)).to_le_bytes());
        for tool in SETUP_TOOLS.iter().filter(|_| self.setup.is_some()) {
            let found = fs::metadata(tool).ok();
            let facts = found.map(|it| (it.len(), it.modified().map_or(0, seconds)));
            hasher.update(format!("{tool}{facts:?}").as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Builds beside the place and moves it there: whoever comes second throws their own away.
    fn build(&self, preparation: &Preparation<'_>, place: &Path) -> Result<(), PrepareError> {
        let draft = fresh_folder(preparation.cache, "draft")
            .map_err(|source| self.failed(preparation.cache, source))?;
        let outcome = self.fill(preparation, &draft);
        let outcome = outcome.and_then(|()| match fs::rename(&draft, place) {
            Err(_) if place.is_dir() => Ok(()),
            other => other.map_err(|source| self.failed(place, source)),
        });
        if draft.is_dir() {
            remove(&draft);
        }
        sweep(preparation, place);
        outcome
    }

    fn fill(&self, preparation: &Preparation<'_>, tree: &Path) -> Result<(), PrepareError> {
        let mut writer =
            Writer { world: self, tree, now: seconds(preparation.now), later: Vec::new() };
        writer.basics()?;
        self.files.iter().try_for_each(|it| writer.file(it))?;
        writer.finish()?;
        let Some(setup) = &self.setup else { return Ok(()) };
        let before = self.prepared(String::new(), tree.to_owned());
        // Everything is handed back: what the setup deleted is gone, too.
        let names: Vec<_> = top_level(tree).map_err(|source| self.failed(tree, source))?;
        let text = format!(
            "set -e\nexec 3>&1 1>&2\n{BEFORE}\n{setup}\n{AFTER}\nexec tar --format=ustar --numeric-owner -cf - -- {} \"$@\" >&3",
            names.join(" ")
        );
        let failed = |message: String| PrepareError::Setup { world: self.name.clone(), message };
        let archive = (preparation.setup)(&before, &text).map_err(failed)?;
        let members = archive::members(&archive)
            .ok_or_else(|| failed("its tree is no archive that can be read".to_owned()))?;
        for name in names {
            remove(&tree.join(name));
        }
        writer.later.clear();
        members.iter().try_for_each(|it| writer.member(it))?;
        writer.finish()
    }

    fn failed(&self, path: &Path, source: io::Error) -> PrepareError {
        PrepareError::Write { world: self.name.clone(), path: path.to_owned(), source }
    }
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn top_level(tree: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(tree)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A folder in the cache that nobody uses, also no process of the same number in another container.
pub(crate) fn fresh_folder(cache: &Path, kind: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(cache)?;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = cache.join(format!(".{kind}-{}-{number}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes trees whose time is over, but for the one at `place`, and what processes that were killed have left.
fn sweep(preparation: &Preparation<'_>, place: &Path) {
    let is_ours = |name: &str| {
        let is_digest = name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit());
        is_digest || name.starts_with(".draft-") || name.starts_with(".planted-")
    };
    for entry in fs::read_dir(preparation.cache).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|it| it.modified());
        let age = changed.ok().and_then(|it| preparation.now.duration_since(it).ok());
        let is_old = age.is_some_and(|it| it.as_secs() > STALE_SECONDS);
        if is_old && entry.path() != place && entry.file_name().to_str().is_some_and(is_ours) {
            remove(&entry.path());
        }
    }
}

/// Removes a tree, also one with directories that may not be written to.
pub fn remove(path: &Path) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_dir() {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            remove(&entry.path());
        }
        let _ = fs::remove_dir(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Writes files; modes and times of directories come last, since writing into them changes both.
struct Writer<'w> {
    world: &'w World,
    tree: &'w Path,
    now: i64,
    later: Vec<(PathBuf, u32, Times)>,
}

#[derive(Clone, Copy)]
struct Times {
    accessed: i64,
    modified: i64,
}

impl Writer<'_> {
    /// Directories and files that every world has.
    fn basics(&mut self) -> Result<(), PrepareError> {
        let World { user, group, users, groups, .. } = self.world;
        let home = format!("/home/{user}");
        for (path, mode) in [
            ("/tmp", 0o1777),
            ("/var/tmp", 0o1777),
            ("/etc", 0o755),
            (&*home, 0o755),
            (&*self.world.directory, 0o755),
        ] {
            let file = File { mode: Some(mode), ..File::new(path, Content::Directory) };
            self.file(&file)?;
        }
        let mut passwd = format!(
            "root:x:0:0:root:/root:/bin/bash\n{user}:x:{USER_ID}:{GROUP_ID}:{user}:{home}:/bin/bash\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        );
        let mut list = format!("root:x:0:\n{group}:x:{GROUP_ID}:\nnogroup:x:65534:\n");
        for it in users.iter().filter(|it| it.name != *user) {
            let super::User { name, id } = it;
            let _ = writeln!(passwd, "{name}:x:{id}:{id}:{name}:/home/{name}:/bin/bash");
            let _ = writeln!(list, "{name}:x:{id}:");
        }
        for it in groups.iter().filter(|it| it.name != *group) {
            let _ = writeln!(list, "{}:x:{}:{}", it.name, it.id, it.members.join(","));
        }
        let sudo = File::new("/opt/bin/sudo", Content::text(SUDO));
        self.file(&File { mode: Some(0o755), ..sudo })?;
        self.file(&File::new("/etc/passwd", Content::text(passwd)))?;
        self.file(&File::new("/etc/group", Content::text(list)))
    }

    fn place(&self, path: &str) -> PathBuf {
        let from_root = match path.strip_prefix('/') {
            Some(rest) => rest.to_owned(),
            None => format!("{}/{path}", self.world.directory.trim_start_matches('/')),
        };
        // A world that was made for a command may have any text for a path.
        let parts = from_root.split('/').filter(|it| !matches!(*it, "" | "." | ".."));
        parts.fold(self.tree.to_owned(), |whole, part| whole.join(part))
    }

    fn file(&mut self, file: &File) -> Result<(), PrepareError> {
        let place = self.place(&file.path);
        let target =
            if let Content::Hard(target) = &file.content { Some(self.place(target)) } else { None };
        if let Some(target) = &target {
            self.stays_within(target)?;
        }
        let age = file.age.unwrap_or(86_400);
        let times =
            Times { modified: self.now - age, accessed: self.now - file.accessed.unwrap_or(age) };
        let usual = if file.content == Content::Directory { 0o755 } else { 0o644 };
        let mode = file.mode.unwrap_or(usual);
        self.write(&place, mode, times, |place| match &file.content {
            Content::Directory => fs::create_dir(place),
            Content::Bytes(bytes) => fs::write(place, bytes),
            Content::Sparse(size) => fs::File::create(place)?.set_len(*size),
            Content::Noise { size, seed } => fs::write(place, generate::noise(*size, *seed)),
            Content::Lines { form, count, seed } => {
                fs::write(place, generate::lines(*form, *count, *seed))
            }
            Content::Link(target) => symlink(target, place),
            Content::Hard(_) => fs::hard_link(target.as_deref().unwrap_or(place), place),
        })
    }

    fn member(&mut self, member: &Member) -> Result<(), PrepareError> {
        let path = format!("/{}", member.path.trim_end_matches('/'));
        let place = self.place(&path);
        let times = Times { modified: member.modified, accessed: member.modified };
        let target = match &member.kind {
            MemberKind::Hard(target) => Some(self.place(&format!("/{target}"))),
            MemberKind::File(_) | MemberKind::Directory | MemberKind::Link(_) => None,
        };
        if let Some(target) = &target {
            self.stays_within(target)?;
        }
        self.write(&place, member.mode, times, |place| match &member.kind {
            MemberKind::File(bytes) => fs::write(place, bytes),
            MemberKind::Directory => fs::create_dir(place),
            MemberKind::Link(target) => symlink(target, place),
            MemberKind::Hard(_) => fs::hard_link(target.as_deref().unwrap_or(place), place),
        })
    }

    fn write(
        &mut self,
        place: &Path,
        mode: u32,
        times: Times,
        make: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), PrepareError> {
        self.stays_within(place)?;
        let failed = |source| self.world.failed(place, source);
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).map_err(failed)?;
        }
        if !place.is_dir() {
            make(place).map_err(failed)?;
        }
        self.later.push((place.to_owned(), mode, times));
        Ok(())
    }

    /// Refuses a path that leads over a link: it could lead out of the tree, to files of the host.
    fn stays_within(&self, place: &Path) -> Result<(), PrepareError> {
        let within = place.ancestors().take_while(|it| *it != self.tree);
        for part in within {
            if fs::symlink_metadata(part).is_ok_and(|it| it.is_symlink()) {
                let why = io::Error::other(format!("`{}` is a link", part.display()));
                return Err(self.world.failed(place, why));
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), PrepareError> {
        for (place, mode, times) in std::mem::take(&mut self.later).into_iter().rev() {
            let failed = |source| self.world.failed(&place, source);
            let is_link = fs::symlink_metadata(&place).map_err(failed)?.is_symlink();
            set_times(&place, times).map_err(failed)?;
            if !is_link {
                fs::set_permissions(&place, fs::Permissions::from_mode(mode)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn set_times(place: &Path, times: Times) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let at = |seconds| Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times =
        Timestamps { last_access: at(times.accessed), last_modification: at(times.modified) };
    utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)
}
