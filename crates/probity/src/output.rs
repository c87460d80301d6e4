//! Files that are there whole or not at all.
//!
//! Whoever writes one holds a lock on it, which ends with the process, whatever ends that. So the next one who writes the same
//! file can take away what somebody left who was killed.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{failure::Failure, signals};

/// Files that are not complete. Whoever ends the program takes them away.
static PARTIALS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn partials() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTIALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes all incomplete files away, just before the program ends. No file is begun or completed
/// after this: whoever tries waits for the end.
pub(crate) fn abandon_all() {
    let partials = partials();
    for path in &*partials {
        // Nothing can be done about one that stays.
        let _ = fs::remove_file(path);
    }
    std::mem::forget(partials);
}

/// A file that gets its name when it is complete; until then it has another, and it goes
/// away when it is not finished.
///
/// What is not an ordinary file, such as a pipe or `/dev/null`, is written directly.
pub(crate) struct OutputFile {
    writer: BufWriter<File>,
    target: PathBuf,
    partial: Option<PathBuf>,
}

impl OutputFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::write(path, error);
        // A link stays a link, and what it points to is replaced.
        let linked = |_| Ok(path.parent().unwrap_or(Path::new("")).join(fs::read_link(path)?));
        let target =
            fs::canonicalize(path).or_else(linked).unwrap_or_else(|_: io::Error| path.to_owned());
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|it| !it.is_file()) {
            let file = File::options().write(true).open(&target).map_err(failed)?;
            return Ok(Self { writer: BufWriter::new(file), target, partial: None });
        }
        signals::listen();
        sweep(&target);
        let mut partials = partials();
        let (file, partial) = begin(&target).map_err(failed)?;
        partials.insert(partial.clone());
        drop(partials);
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions()).map_err(failed)?;
        }
        let writer = BufWriter::with_capacity(256 << 10, file);
        Ok(Self { writer, target, partial: Some(partial) })
    }

    /// Writes a whole file at once.
    pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
        let mut file = Self::create(path)?;
        file.write_all(text.as_bytes()).map_err(|error| Failure::write(path, error))?;
        file.finish()
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let finished = self.writer.flush().and_then(|()| match &self.partial {
            Some(partial) => {
                let mut partials = partials();
                fs::rename(partial, &self.target)?;
                partials.remove(partial);
                Ok(())
            }
            None => Ok(()),
        });
        finished.map_err(|error| Failure::write(&self.target, error))?;
        self.partial = None;
        Ok(())
    }
}

/// What the name of a file that is not complete ends with, after that of the file and a dot.
const PARTIAL: &str = ".partial";

/// A new file beside the one that is to be, locked.
fn begin(target: &Path) -> io::Result<(File, PathBuf)> {
    let id = process::id();
    let mut count = 0_u32;
    loop {
        let mut name = target.as_os_str().to_owned();
        name.push(match count {
            0 => format!(".{id}{PARTIAL}"),
            _ => format!(".{id}-{count}{PARTIAL}"),
        });
        let partial = PathBuf::from(name);
        match File::options().write(true).create_new(true).open(&partial) {
            Ok(file) => {
                // Where there are no locks, what is left behind stays.
                let _ = file.lock();
                // Somebody may have taken it away before it was locked.
                if is_there(&file, &partial) {
                    return Ok((file, partial));
                }
            }
            // Another process of this number: on another machine, or in another container.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && count < 100 => count += 1,
            Err(error) => return Err(error),
        }
    }
}

fn is_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let inode = |it: io::Result<fs::Metadata>| it.map(|it| (it.dev(), it.ino())).ok();
    inode(file.metadata()) == inode(fs::metadata(path))
}

/// Takes away what was begun of a file by somebody who is not there any more.
fn sweep(target: &Path) {
    let Some(name) = target.file_name().map(|it| it.to_string_lossy().into_owned()) else { return };
    let folder = target.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let found = entry.file_name().to_string_lossy().into_owned();
        let rest = found.strip_prefix(&name).and_then(|it| it.strip_prefix('.'));
        let number = rest.and_then(|it| it.strip_suffix(PARTIAL)).unwrap_or_default();
        let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        if !number.split('-').all(is_number) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::options().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() {
            // Nothing can be done about one that stays.
            let _ = fs::remove_file(path);
        }
        // The lock lasts until the file is gone: whoever has just made it sees that it is.
        drop(file);
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let mut partials = partials();
            // It was never complete, and nobody knows its name.
            let _ = fs::remove_file(partial);
            partials.remove(partial);
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Refuses to read and write the same file, or to write it twice.
pub(crate) fn refuse_same_file(files: &[&Path]) -> Result<(), Failure> {
    for (at, file) in files.iter().enumerate() {
        if let Some(other) = files[..at].iter().find(|other| same_file(other, file)) {
            let (a, b) = (other.display(), file.display());
            return Err(Failure::new(format!("`{a}` and `{b}` are the same file")));
        }
    }
    Ok(())
}

fn same_file(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| {
        let folder =
            path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = || Some(fs::canonicalize(folder).ok()?.join(path.file_name()?));
        // Devices may be written by many.
        let special = fs::metadata(path).is_ok_and(|it| !it.is_file());
        if special { None } else { fs::canonicalize(path).ok().or_else(named) }
    };
    a.as_os_str() != "-" && real(a).is_some_and(|a| real(b) == Some(a))
}
