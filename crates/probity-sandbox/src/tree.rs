//! Sends the tree of a world to a keeper.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::Path,
};

use crate::protocol::{Item, ItemKind, send, send_json};

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
        let kind = self.kind(path, &found)?;
        let nanoseconds = u32::try_from(found.mtime_nsec()).unwrap_or(0);
        let item = Item {
            path: self.name(path),
            mode: found.mode() & 0o7777,
            modified: (found.mtime(), nanoseconds),
            accessed: found.atime(),
            kind,
        };
        send_json(self.to, &item)?;
        match item.kind {
            ItemKind::File => {
                send(self.to, &with_access(path, &found, 0o400, |path| fs::read(path))?)
            }
            ItemKind::Directory => {
                let list = |path: &Path| fs::read_dir(path)?.collect::<io::Result<Vec<_>>>();
                let mut entries = with_access(path, &found, 0o500, list)?;
                entries.sort_by_key(fs::DirEntry::file_name);
                with_access(path, &found, 0o500, |_| {
                    entries.iter().try_for_each(|entry| self.entry(&entry.path()))
                })
            }
            ItemKind::Hole(_) | ItemKind::Same(_) | ItemKind::Link(_) | ItemKind::Pipe => Ok(()),
        }
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
        } else if kind.is_file() && found.len() > 0 && found.blocks() == 0 && is_hole(path)? {
            Ok(ItemKind::Hole(found.len()))
        } else if kind.is_file() {
            Ok(ItemKind::File)
        } else {
            Err(io::Error::other(format!(
                "{}: sockets and devices cannot be part of a world",
                path.display()
            )))
        }
    }

    fn name(&self, path: &Path) -> Vec<u8> {
        let name = path.strip_prefix(self.root).unwrap_or(path);
        name.as_os_str().as_bytes().to_vec()
    }
}

/// Whether there is nothing but zeros that were never written. Some file systems have small files in no block of their own.
fn is_hole(path: &Path) -> io::Result<bool> {
    let file = fs::File::open(path)?;
    match rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0)) {
        Ok(_) => Ok(false),
        Err(rustix::io::Errno::NXIO) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Reads what its mode may forbid even to its owner. The mode is what it was afterwards.
fn with_access<T>(
    path: &Path,
    found: &fs::Metadata,
    needed: u32,
    read: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mode = found.mode() & 0o7777;
    if mode & needed == needed || rustix::process::geteuid().is_root() {
        return read(path);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode | needed))?;
    let outcome = read(path);
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    outcome
}
