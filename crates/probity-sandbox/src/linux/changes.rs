//! What an execution has changed: a walk of the layer that it wrote to, compared with the layers below.
//!
//! Nothing runs in the world any more. Still all is opened below the root of a layer, and no link is followed.

use std::{
    collections::BTreeSet,
    io::{self, Read as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Stat, openat2, readlinkat, seek,
    statat,
};

use super::git_index;
use crate::execution::{Change, Entry, EntryKind};

/// The layers of a world: what was written, and what was there, the upper one first.
pub(super) struct Layers {
    pub(super) upper: OwnedFd,
    pub(super) lower: [OwnedFd; 2],
    /// When the upper layer was made, in seconds since 1970.
    pub(super) since: i64,
}

/// Bytes of a file that is looked at, beyond which holes are passed over.
const MOST_DIGESTED: u64 = 64 << 20;
/// What is deeper than a path can name is not listed.
const LONGEST_PATH: usize = 4095;

/// All changes, ordered by path. Holes in files count for at most four times `disk` in all.
pub(super) fn list(layers: &Layers, disk: u64) -> io::Result<Vec<Change>> {
    let mut walk = Walk { layers, changes: Vec::new(), left: disk.saturating_mul(4) };
    walk.directory(&Place { path: Vec::new(), lower: [true, true], hidden: false })?;
    let mut changes = walk.changes;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// What a path of the world that this process is in is now.
pub(super) fn entry(path: &str, layers: &Layers) -> io::Result<Option<Entry>> {
    let root = open_root()?;
    let path = path.trim_matches('/').as_bytes();
    let path = if path.is_empty() { b"." } else { path };
    match statat(&root, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            let mut walk = Walk { layers, changes: Vec::new(), left: MOST_DIGESTED };
            // What cannot be read is there all the same.
            let unread = || Entry {
                kind: EntryKind::Special { what: "file that cannot be read".to_owned() },
                mode: stat.st_mode & 0o7777,
                owner: (stat.st_uid, stat.st_gid),
                links: 0,
                modified: stat.st_mtime,
            };
            Ok(Some(walk.describe(root.as_fd(), path, &stat).unwrap_or_else(|_| unread())))
        }
        Err(_) => Ok(None),
    }
}

fn open_root() -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    rustix::fs::open("/", flags, Mode::empty()).map_err(io::Error::from)
}

/// A directory in all layers.
struct Place {
    /// From the root, without a leading slash.
    path: Vec<u8>,
    /// In which lower layers it is a directory that belongs to it.
    lower: [bool; 2],
    /// It has replaced the one of the lower layers: what is there and not here was deleted.
    hidden: bool,
}

impl Place {
    fn join(&self, name: &[u8]) -> Vec<u8> {
        match self.path.is_empty() {
            true => name.to_vec(),
            false => [&self.path, &b"/"[..], name].concat(),
        }
    }
}

struct Walk<'a> {
    layers: &'a Layers,
    changes: Vec<Change>,
    /// Bytes that may still be read, holes included.
    left: u64,
}

impl Walk<'_> {
    fn directory(&mut self, place: &Place) -> io::Result<()> {
        let upper = names(self.layers.upper.as_fd(), &place.path)?;
        for name in &upper {
            let path = place.join(name);
            if path.len() <= LONGEST_PATH {
                self.entry(path, place)?;
            }
        }
        if place.hidden {
            for name in self.lower_names(&place.path, place.lower)? {
                if !upper.contains(&name) {
                    self.deleted(&place.join(&name), place.lower)?;
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: Vec<u8>, place: &Place) -> io::Result<()> {
        let upper = self.layers.upper.as_fd();
        let after = statat(upper, &*path, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(after.st_mode);
        if kind == FileType::CharacterDevice && after.st_rdev == 0 {
            return self.deleted(&path, place.lower);
        }
        let before = self.lower_entry(&path, place.lower);
        let was_directory = before.as_ref().is_some_and(|(_, stat)| is_directory(stat));
        if kind != FileType::Directory {
            if was_directory {
                self.deleted_below(&path, place.lower)?;
            }
            return self.compare(&path, before, &after);
        }
        let lower = match was_directory {
            true => self.directories(&path, place.lower),
            false => [false, false],
        };
        let hidden = place.hidden || is_opaque(upper, &path)?;
        self.compare(&path, before, &after)?;
        self.directory(&Place { path, lower, hidden })
    }

    /// In which lower layers the path is a directory that is visible.
    fn directories(&self, path: &[u8], within: [bool; 2]) -> [bool; 2] {
        let mut lower = [false, false];
        for layer in 0..2 {
            match within[layer].then(|| self.stat_lower(layer, path)).flatten() {
                Some(stat) if is_directory(&stat) => lower[layer] = true,
                Some(_) => break,
                None => {}
            }
        }
        lower
    }

    fn stat_lower(&self, layer: usize, path: &[u8]) -> Option<Stat> {
        statat(&self.layers.lower[layer], path, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// What was at a path, and in which layer.
    fn lower_entry(&self, path: &[u8], within: [bool; 2]) -> Option<(usize, Stat)> {
        (0..2)
            .filter(|layer| within[*layer])
            .find_map(|layer| self.stat_lower(layer, path).map(|stat| (layer, stat)))
    }

    fn lower_names(&self, path: &[u8], within: [bool; 2]) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut all = BTreeSet::new();
        for layer in (0..2).filter(|layer| within[*layer]) {
            all.extend(names(self.layers.lower[layer].as_fd(), path)?);
        }
        Ok(all)
    }

    fn compare(
        &mut self,
        path: &[u8],
        before: Option<(usize, Stat)>,
        after: &Stat,
    ) -> io::Result<()> {
        let before_entry = match &before {
            Some((layer, stat)) => {
                let layers = self.layers;
                Some(self.describe(layers.lower[*layer].as_fd(), path, stat)?)
            }
            None => None,
        };
        let layers = self.layers;
        let after_entry = self.describe(layers.upper.as_fd(), path, after)?;
        let unchanged = before_entry.as_ref().is_some_and(|before| {
            let only_listing = is_directory(after) && self.has_time_of_listing(after);
            before.kind == after_entry.kind
                && before.mode == after_entry.mode
                && before.owner == after_entry.owner
                && (before.modified == after_entry.modified || only_listing)
        });
        if !unchanged {
            let path = shown(path);
            self.changes.push(Change { path, before: before_entry, after: Some(after_entry) });
        }
        Ok(())
    }

    /// Whether the time of a directory may be that of something made or removed in it, which is listed there. Copying up sets
    /// times as well, so all that can be told is that it lies within the execution. Another time was set on purpose.
    fn has_time_of_listing(&self, stat: &Stat) -> bool {
        (self.layers.since..=stat.st_ctime).contains(&stat.st_mtime)
    }

    fn deleted(&mut self, path: &[u8], within: [bool; 2]) -> io::Result<()> {
        let Some((layer, stat)) = self.lower_entry(path, within) else { return Ok(()) };
        if is_directory(&stat) {
            self.deleted_below(path, within)?;
        }
        let layers = self.layers;
        let before = self.describe(layers.lower[layer].as_fd(), path, &stat)?;
        self.changes.push(Change { path: shown(path), before: Some(before), after: None });
        Ok(())
    }

    fn deleted_below(&mut self, path: &[u8], within: [bool; 2]) -> io::Result<()> {
        let within = self.directories(path, within);
        for name in self.lower_names(path, within)? {
            let path = [path, b"/", &name].concat();
            self.deleted(&path, within)?;
        }
        Ok(())
    }

    fn describe(&mut self, layer: BorrowedFd<'_>, path: &[u8], stat: &Stat) -> io::Result<Entry> {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if git_index::is_index(path) => index(layer, path)?,
            FileType::RegularFile => {
                let size = stat.st_size.cast_unsigned();
                EntryKind::File { size, digest: self.digest(layer, path, size)? }
            }
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => {
                let target = readlinkat(layer, path, Vec::new())?;
                EntryKind::Link { target: shown_text(target.to_bytes()) }
            }
            FileType::Fifo => special("pipe"),
            FileType::Socket => special("socket"),
            FileType::CharacterDevice | FileType::BlockDevice => special("device"),
            FileType::Unknown => special("special file"),
        };
        let is_file = matches!(kind, EntryKind::File { .. });
        Ok(Entry {
            kind,
            links: if is_file { stat.st_nlink } else { 0 },
            mode: stat.st_mode & 0o7777,
            owner: (stat.st_uid, stat.st_gid),
            modified: stat.st_mtime,
        })
    }

    fn digest(&mut self, layer: BorrowedFd<'_>, path: &[u8], size: u64) -> io::Result<String> {
        let file = open(layer, path, OFlags::RDONLY)?;
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(std::fs::File::from(file))?;
                Ok(hasher.finalize().to_hex().to_string())
            }
            None => digest_of_data(file, size),
        }
    }
}

/// The digest of a file that is mostly holes: of what is not a hole, and where it is.
fn digest_of_data(file: OwnedFd, size: u64) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    let file = std::fs::File::from(file);
    let mut at = 0;
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        let end = seek(&file, SeekFrom::Hole(start))?;
        seek(&file, SeekFrom::Start(start))?;
        hasher.update(&start.to_le_bytes()).update(&end.to_le_bytes());
        hasher.update_reader(io::Read::take(&file, end - start))?;
        at = end;
    }
    Ok(format!("holes-{}", hasher.finalize().to_hex()))
}

fn names(layer: BorrowedFd<'_>, path: &[u8]) -> io::Result<BTreeSet<Vec<u8>>> {
    let directory = open(layer, if path.is_empty() { b"." } else { path }, OFlags::DIRECTORY)?;
    let mut names = BTreeSet::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.insert(name);
        }
    }
    Ok(names)
}

fn open(layer: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(layer, path, flags, Mode::empty(), resolve).map_err(io::Error::from)
}

/// An index of git, by what it says.
fn index(layer: BorrowedFd<'_>, path: &[u8]) -> io::Result<EntryKind> {
    let mut bytes = Vec::new();
    let file = std::fs::File::from(open(layer, path, OFlags::RDONLY)?);
    file.take(git_index::LARGEST).read_to_end(&mut bytes)?;
    let said = git_index::gist(&bytes).unwrap_or(bytes);
    let digest = blake3::hash(&said).to_hex().to_string();
    Ok(EntryKind::File { size: said.len() as u64, digest })
}

fn special(what: &str) -> EntryKind {
    EntryKind::Special { what: what.to_owned() }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Whether a directory hides those of the layers below.
fn is_opaque(layer: BorrowedFd<'_>, path: &[u8]) -> io::Result<bool> {
    let directory = open(layer, path, OFlags::DIRECTORY)?;
    let mut value = [0; 1];
    let length = rustix::fs::fgetxattr(&directory, "user.overlay.opaque", &mut value);
    Ok(matches!(length, Ok(1)) && value == *b"y")
}

fn shown(path: &[u8]) -> String {
    format!("/{}", shown_text(path))
}

/// A text as it is; what is not UTF-8 as `\xNN`.
fn shown_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str("\\x");
            text.extend(
                [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16).unwrap_or('?')),
            );
        }
    }
    text
}
