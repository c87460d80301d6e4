//! Sends the tree of a world to a keeper.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, SeekFrom, Timespec, Timestamps, flock, seek, utimensat,
};

use crate::protocol::{Item, ItemKind, send, send_json};

/// Why a tree was not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// The tree cannot be read.
    Unread {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody takes it.
    Lost(io::Error),
}

/// How much of a file is sent at a time.
const PART: u64 = 1 << 20;

/// The least room that anything takes in memory.
const PAGE: u64 = 4096;

/// Sends everything below `root`, and that nothing more comes. Returns how much room it takes in memory.
///
/// Whoever sends the same tree at the same time waits: modes are changed for a while to read what they forbid.
pub(crate) fn send_tree(to: &mut impl Write, root: &Path) -> Result<u64, Unsent> {
    let lock = fs::File::open(root).map_err(at(root))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(io::Error::from).map_err(at(root))?;
    let mut sender = Sender { to, root, seen: BTreeMap::new(), room: 0 };
    sender.entry(root)?;
    send_json(sender.to, &None::<Item>).map_err(Unsent::Lost)?;
    Ok(sender.room)
}

/// Says where a tree cannot be read.
fn at(path: &Path) -> impl Fn(io::Error) -> Unsent + use<'_> {
    |source| Unsent::Unread { path: path.to_owned(), source }
}

struct Sender<'a, W> {
    to: &'a mut W,
    root: &'a Path,
    /// Files with several names, by device and number, and the first of their names.
    seen: BTreeMap<(u64, u64), Vec<u8>>,
    /// Bytes that it takes in memory, where everything takes whole pages.
    room: u64,
}

impl<W: Write> Sender<'_, W> {
    fn entry(&mut self, path: &Path) -> Result<(), Unsent> {
        let found = fs::symlink_metadata(path).map_err(at(path))?;
        let nanoseconds = |value: i64| u32::try_from(value).unwrap_or(0);
        let item = Item {
            path: self.name(path),
            kind: self.kind(path, &found).map_err(at(path))?,
            mode: found.mode() & 0o7777,
            accessed: (found.atime(), nanoseconds(found.atime_nsec())),
            modified: (found.mtime(), nanoseconds(found.mtime_nsec())),
        };
        send_json(self.to, &item).map_err(Unsent::Lost)?;
        self.room += PAGE;
        match item.kind {
            ItemKind::File { size } => with_access(path, &found, 0o400, || self.file(path, size)),
            ItemKind::Directory => with_access(path, &found, 0o500, || self.directory(path)),
            ItemKind::Same(_) | ItemKind::Link(_) | ItemKind::Pipe => Ok(()),
        }
    }

    fn directory(&mut self, path: &Path) -> Result<(), Unsent> {
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = entries.map_err(at(path))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        entries.iter().try_for_each(|entry| self.entry(&entry.path()))
    }

    /// Sends what is not a hole.
    fn file(&mut self, path: &Path, size: u64) -> Result<(), Unsent> {
        let file = fs::File::open(path).map_err(at(path))?;
        let mut from = 0;
        while let Some((start, part)) = next_part(&file, from, size).map_err(at(path))? {
            from = start + part.len() as u64;
            self.room += (part.len() as u64).next_multiple_of(PAGE);
            send_json(self.to, &Some(start)).map_err(Unsent::Lost)?;
            send(self.to, &part).map_err(Unsent::Lost)?;
        }
        send_json(self.to, &None::<u64>).map_err(Unsent::Lost)
    }

    fn kind(&mut self, path: &Path, found: &fs::Metadata) -> io::Result<ItemKind> {
        let kind = found.file_type();
        if kind.is_dir() {
            return Ok(ItemKind::Directory);
        }
        if found.nlink() > 1 {
            let name = self.name(path);
            if let Some(first) = self.seen.get(&(found.dev(), found.ino())) {
                return Ok(ItemKind::Same(first.clone()));
            }
            self.seen.insert((found.dev(), found.ino()), name);
        }
        if kind.is_symlink() {
            Ok(ItemKind::Link(fs::read_link(path)?.as_os_str().as_bytes().to_vec()))
        } else if kind.is_fifo() {
            Ok(ItemKind::Pipe)
        } else if kind.is_file() {
            Ok(ItemKind::File { size: found.len() })
        } else {
            Err(io::Error::other("sockets and devices cannot be part of a world"))
        }
    }

    fn name(&self, path: &Path) -> Vec<u8> {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        name.as_os_str().as_bytes().to_vec()
    }
}

/// Where the next part that is no hole begins, and its bytes; nothing if there is none.
fn next_part(file: &fs::File, from: u64, size: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    // There is no data after the last of it.
    let Ok(start) = seek(file, SeekFrom::Data(from)) else { return Ok(None) };
    let end = seek(file, SeekFrom::Hole(start))?.min(size).min(start + PART);
    if end <= start {
        return Ok(None);
    }
    let mut part = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
    file.read_exact_at(&mut part, start)?;
    Ok(Some((start, part)))
}

/// Reads what its mode may forbid even to its owner. Mode and times are what they were afterwards.
fn with_access(
    path: &Path,
    found: &fs::Metadata,
    needed: u32,
    read: impl FnOnce() -> Result<(), Unsent>,
) -> Result<(), Unsent> {
    let mode = found.mode() & 0o7777;
    let closed = mode & needed != needed && !rustix::process::geteuid().is_root();
    if closed {
        fs::set_permissions(path, fs::Permissions::from_mode(mode | needed)).map_err(at(path))?;
    }
    let outcome = read();
    if closed {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(at(path))?;
    }
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    // Somebody else's tree keeps the time at which it was read.
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    outcome
}
