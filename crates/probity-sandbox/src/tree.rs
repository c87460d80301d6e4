//! Sends the tree of a world to a keeper.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::Path,
};

use rustix::fs::{AtFlags, CWD, SeekFrom, Timespec, Timestamps, seek, utimensat};

use crate::protocol::{Item, ItemKind, send, send_json};

/// How much of a file is sent at a time.
const PART: u64 = 1 << 20;

/// Sends everything below `root`, and that nothing more comes. An error names the path.
pub(crate) fn send_tree(to: &mut impl Write, root: &Path) -> io::Result<()> {
    let mut sender = Sender { to, root, seen: BTreeMap::new() };
    sender.entry(root)?;
    send_json(sender.to, &None::<Item>)
}

struct Sender<'a, W> {
    to: &'a mut W,
    root: &'a Path,
    /// Files with several names, by device and number, and the first of their names.
    seen: BTreeMap<(u64, u64), Vec<u8>>,
}

impl<W: Write> Sender<'_, W> {
    fn entry(&mut self, path: &Path) -> io::Result<()> {
        self.send(path).map_err(|error| match error.get_ref() {
            // What is further down has said so already.
            Some(_) => error,
            None => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        })
    }

    fn send(&mut self, path: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(path)?;
        let nanoseconds = |value: i64| u32::try_from(value).unwrap_or(0);
        let item = Item {
            path: self.name(path),
            kind: self.kind(path, &found)?,
            mode: found.mode() & 0o7777,
            accessed: (found.atime(), nanoseconds(found.atime_nsec())),
            modified: (found.mtime(), nanoseconds(found.mtime_nsec())),
        };
        send_json(self.to, &item)?;
        match item.kind {
            ItemKind::File { size } => with_access(path, &found, 0o400, || self.file(path, size)),
            ItemKind::Directory => with_access(path, &found, 0o500, || self.directory(path)),
            ItemKind::Same(_) | ItemKind::Link(_) | ItemKind::Pipe => Ok(()),
        }
    }

    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        entries.iter().try_for_each(|entry| self.entry(&entry.path()))
    }

    /// Sends what is not a hole.
    fn file(&mut self, path: &Path, size: u64) -> io::Result<()> {
        let file = fs::File::open(path)?;
        let mut at = 0;
        // There is no data after the last of it.
        while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
            let end = seek(&file, SeekFrom::Hole(start))?.min(size).min(start + PART);
            if end <= start {
                break;
            }
            let mut part = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
            file.read_exact_at(&mut part, start)?;
            send_json(self.to, &Some(start))?;
            send(self.to, &part)?;
            at = end;
        }
        send_json(self.to, &None::<u64>)
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
            let why = "sockets and devices cannot be part of a world";
            Err(io::Error::other(format!("{}: {why}", path.display())))
        }
    }

    fn name(&self, path: &Path) -> Vec<u8> {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        name.as_os_str().as_bytes().to_vec()
    }
}

/// Reads what its mode may forbid even to its owner. Mode and times are what they were afterwards.
fn with_access(
    path: &Path,
    found: &fs::Metadata,
    needed: u32,
    read: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mode = found.mode() & 0o7777;
    let closed = mode & needed != needed && !rustix::process::geteuid().is_root();
    if closed {
        fs::set_permissions(path, fs::Permissions::from_mode(mode | needed))?;
    }
    let outcome = read();
    if closed {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
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
