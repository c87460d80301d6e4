//! The directories that programs run in: nobody else can read them, and none stays.
//!
//! A room is removed when its program is gone. After a sudden death of our own it stays, and
//! the next start of any of us removes it: whoever has a room holds a lock in it, which ends
//! with the process, whatever ends that. So do folders of worlds that only one run needs.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

use probity_sandbox::world;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use super::{Count, NoProgram};

const PREFIX: &str = "probity-";
/// The file whose lock says that a room is in use.
const LOCK: &str = "lock";
/// A room that is younger may be about to be locked.
const YOUNG: Duration = Duration::from_mins(1);

/// A temporary directory that is ours until it is dropped or we die.
#[derive(Debug)]
pub struct OwnFolder {
    dir: TempDir,
    _lock: File,
}

impl OwnFolder {
    /// Makes one among the temporary files. The first of a process removes those that others have left behind.
    pub fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir(), YOUNG));
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700));
        let dir = builder.tempdir()?;
        let lock = private_file(&dir.path().join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { dir, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // A world may have folders that nobody may write to.
        world::remove(self.dir.path());
    }
}

/// An empty directory, and a place for files beside it.
#[derive(Debug)]
pub struct Room {
    dir: OwnFolder,
    /// Where the program runs instead of the empty directory.
    elsewhere: Option<PathBuf>,
    _count: Count,
}

impl Room {
    /// Makes one among the temporary files.
    pub fn new() -> Result<Self, NoProgram> {
        let failed = |source| NoProgram::Room { path: std::env::temp_dir(), source };
        let dir = OwnFolder::new().map_err(failed)?;
        let work = dir.path().join("work");
        DirBuilder::new().mode(0o700).create(work).map_err(failed)?;
        Ok(Self { dir, elsewhere: None, _count: Count::up() })
    }

    /// The same, for a program that runs in a folder of its own.
    #[must_use]
    pub fn but_working_in(self, folder: PathBuf) -> Self {
        Self { elsewhere: Some(folder), ..self }
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.elsewhere.clone().unwrap_or_else(|| self.dir.path().join("work"))
    }

    /// Writes a file beside the working directory.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, NoProgram> {
        let path = self.dir.path().join(name);
        match private_file(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => Ok(path),
            Err(source) => Err(NoProgram::Room { path, source }),
        }
    }
}

/// A new file that only we can read.
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Removes the rooms that nobody is in any more. What cannot be removed stays.
fn sweep(folder: &Path, young: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_room = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_room && is_left_behind(&entry.path(), young) {
            world::remove(&entry.path());
        }
    }
}

fn is_left_behind(room: &Path, young: Duration) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let Ok(found) = fs::symlink_metadata(room) else { return false };
    let age = found.modified().ok().and_then(|it| it.elapsed().ok()).unwrap_or_default();
    if !found.is_dir() || found.uid() != own || age < young {
        return false;
    }
    match OpenOptions::new().write(true).open(room.join(LOCK)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // We died before it was locked, and there is nothing in it yet.
        Err(error) => {
            error.kind() == io::ErrorKind::NotFound
                && has_our_name(room)
                && fs::read_dir(room).is_ok_and(|mut it| it.next().is_none())
        }
    }
}

/// Whether a folder is named as only we name one: others may begin theirs in the same way.
fn has_our_name(room: &Path) -> bool {
    let name = room.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    rest.len() == 6 && rest.bytes().all(|it| it.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_read_what_is_in_a_room() {
        let room = Room::new().unwrap();
        let file = room.write("prompt.txt", "secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(mode(&room.work()), 0o700);
    }

    #[test]
    fn rooms_that_were_left_behind_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, lock: bool| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("prompt.txt"), "secret").unwrap();
            // As a world has it that was made for a case.
            fs::create_dir(path.join("closed")).unwrap();
            fs::write(path.join("closed/file"), "").unwrap();
            fs::set_permissions(path.join("closed"), Permissions::from_mode(0o500)).unwrap();
            lock.then(|| private_file(&path.join(LOCK)).unwrap())
        };
        let held = make("probity-held", true).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        drop(make("probity-left", true));
        make("probity-of-somebody", false);
        drop(make("another", true));
        for empty in ["probity-aB3dE6", "probity-empty"] {
            fs::create_dir(folder.path().join(empty)).unwrap();
        }
        sweep(folder.path(), YOUNG);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6);
        sweep(folder.path(), Duration::ZERO);
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["another", "probity-empty", "probity-held", "probity-of-somebody"]);
    }
}
