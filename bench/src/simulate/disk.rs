//! The files of a store as they are after a kill.
//!
//! What a process has written when it is killed is there, and nothing else is. SQLite appends to its log, and copies pages
//! from there to the store when the store is closed, so that the files between two moments are known: a beginning of what
//! was appended, or some of the pages.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use fastrand::Rng;

/// What the files of a store are called, before anything else in their names.
pub(crate) const STORE: &str = "store.db";
const LOG: &str = "store.db-wal";
/// Shared memory, of which the kernel keeps nothing when nobody has it open.
const SHARED: &str = "store.db-shm";
/// Parts of a store that a copy writes at once.
const PAGE: usize = 4096;

/// The files of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// As they are now.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(STORE) && name != SHARED {
                files.insert(name.clone(), fs::read(folder.join(&name))?);
            }
        }
        Ok(Self(files))
    }

    /// Puts them in place of those that are there.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(STORE) {
                fs::remove_file(folder.join(name))?;
            }
        }
        self.0.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    }

    /// After a kill between two moments, in which transactions were written.
    pub(crate) fn while_writing(before: &Self, after: &Self, rng: &mut Rng) -> Self {
        // Pages were copied as well: that is a moment of its own.
        if before.0.get(STORE) != after.0.get(STORE) {
            return if rng.bool() { before.clone() } else { after.clone() };
        }
        let empty = Vec::new();
        let old = before.0.get(LOG).unwrap_or(&empty);
        let Some(new) = after.0.get(LOG) else { return before.clone() };
        let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let end = rng.usize(first..=new.len());
        let mut log = new[..end].to_vec();
        log.extend(old.iter().skip(end));
        let mut files = before.clone();
        files.0.insert(LOG.to_owned(), log);
        files
    }

    /// The same, when the file with the counts was written after the transactions.
    pub(crate) fn while_opening(before: &Self, after: &Self, rng: &mut Rng) -> Self {
        if rng.bool() {
            return Self::while_writing(before, after, rng);
        }
        let mut files = after.clone();
        let counts = after.0.iter().filter(|(name, _)| is_counts(name));
        for (name, bytes) in counts {
            // It is emptied, then written at once; a kill may leave any beginning of it.
            let end = match rng.u8(..4) {
                0 => None,
                1 => Some(0),
                2 => Some(rng.usize(..=bytes.len())),
                _ => Some(bytes.len()),
            };
            match (end, before.0.get(name)) {
                (Some(end), _) => files.0.insert(name.clone(), bytes[..end].to_vec()),
                (None, Some(before)) => files.0.insert(name.clone(), before.clone()),
                // It was made before anything was written.
                (None, None) => files.0.insert(name.clone(), Vec::new()),
            };
        }
        files
    }

    /// After a kill while the log was copied into the store.
    pub(crate) fn while_closing(before: &Self, after: &Self, rng: &mut Rng) -> Self {
        let mut files = before.clone();
        let (Some(old), Some(new)) = (before.0.get(STORE), after.0.get(STORE)) else {
            return files;
        };
        let mut mixed = Vec::with_capacity(new.len());
        for (at, page) in new.chunks(PAGE).enumerate() {
            let old = old.get(at * PAGE..).map(|it| &it[..it.len().min(PAGE)]);
            mixed.extend(if rng.bool() { page } else { old.unwrap_or(page) });
        }
        files.0.insert(STORE.to_owned(), mixed);
        files
    }

    /// After a kill on a disk that forgets what it said was written.
    pub(crate) fn without_log(mut self) -> Self {
        self.0.remove(LOG);
        self
    }

    /// After a power cut: counts of calls are not forced to the disk.
    pub(crate) fn without_power(mut self, earlier: &Self, rng: &mut Rng) -> Self {
        let names: Vec<String> = self.0.keys().filter(|it| is_counts(it)).cloned().collect();
        for name in names {
            match (rng.u8(..3), earlier.0.get(&name)) {
                (0, _) => drop(self.0.insert(name, Vec::new())),
                (1, Some(earlier)) => drop(self.0.insert(name, earlier.clone())),
                (_, _) => drop(self.0.remove(&name)),
            }
        }
        self
    }
}

/// Whether a file has the counts of calls that have begun.
fn is_counts(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == "lock")
}

/// A folder in memory, if the system has that.
pub(crate) fn folder() -> io::Result<tempfile::TempDir> {
    let memory = PathBuf::from("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    }
}
