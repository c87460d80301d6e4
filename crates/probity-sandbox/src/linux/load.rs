//! Trees of worlds: the program sends them, the keeper holds them in memory.
//!
//! The program can read what its user can read. The keeper may be somebody else, and only writes what it is sent.

use std::{
    ffi::OsStr,
    fs, io,
    io::BufReader,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, symlink},
        net::UnixStream,
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

use super::base::TREES;
use crate::protocol::{Item, ItemKind, Load, receive, receive_json, send_json};

/// Writes the tree that comes over the connection.
pub(super) fn serve(connection: UnixStream) -> io::Result<()> {
    let mut from = BufReader::new(connection);
    let Load { tree } = receive_json(&mut from)?;
    let root = place(tree);
    let written = write(&mut from, &root);
    if written.is_err() {
        // Half a tree is of no use to anybody. There may be nothing yet.
        let _ = fs::remove_dir_all(&root);
    }
    send_json(from.get_mut(), &written.map_err(|error| error.to_string()))
}

fn write(from: &mut BufReader<UnixStream>, root: &Path) -> io::Result<()> {
    rustix::process::umask(Mode::empty());
    let mut directories = Vec::new();
    while let Some(item) = receive_json::<Option<Item>>(from)? {
        let path = below(root, &item.path)?;
        match &item.kind {
            ItemKind::Directory => fs::create_dir(&path)?,
            ItemKind::File { size } => file(from, &path, *size)?,
            ItemKind::Same(first) => fs::hard_link(below(root, first)?, &path)?,
            ItemKind::Link(target) => symlink(OsStr::from_bytes(target), &path)?,
            ItemKind::Pipe => {
                mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(item.mode), 0)?;
            }
        }
        match item.kind {
            // What is written into a directory changes its time, and its mode may forbid it.
            ItemKind::Directory => directories.push((path, item)),
            ItemKind::File { .. } | ItemKind::Same(_) | ItemKind::Link(_) | ItemKind::Pipe => {
                finish(&path, &item)?;
            }
        }
    }
    directories.iter().rev().try_for_each(|(path, item)| finish(path, item))
}

fn file(from: &mut BufReader<UnixStream>, path: &Path, size: u64) -> io::Result<()> {
    let file = fs::File::create_new(path)?;
    file.set_len(size)?;
    while let Some(offset) = receive_json::<Option<u64>>(from)? {
        file.write_all_at(&receive(from)?, offset)?;
    }
    Ok(())
}

fn finish(path: &Path, item: &Item) -> io::Result<()> {
    if !matches!(item.kind, ItemKind::Link(_)) {
        rustix::fs::chmod(path, Mode::from_raw_mode(item.mode))?;
    }
    let time = |(seconds, nanoseconds): (i64, u32)| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds.into(),
    };
    let times =
        Timestamps { last_access: time(item.accessed), last_modification: time(item.modified) };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)
}

/// Where the tree with this number is.
pub(super) fn place(tree: u32) -> PathBuf {
    Path::new(TREES).join(tree.to_string())
}

fn below(root: &Path, path: &[u8]) -> io::Result<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    match path.components().all(|component| matches!(component, Component::Normal(_))) {
        true => Ok(root.join(path)),
        false => Err(io::Error::other("a path leaves the tree")),
    }
}

/// Removes the tree that comes over the connection.
pub(super) fn unload(mut connection: UnixStream) -> io::Result<()> {
    let Load { tree } = receive_json(&mut connection)?;
    let outcome = fs::remove_dir_all(place(tree)).map_err(|error| error.to_string());
    send_json(&mut connection, &outcome)
}
