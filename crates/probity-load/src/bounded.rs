//! Files that are read whole, up to a size.

use std::{
    cell::RefCell,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::inputs;

thread_local! {
    /// What was read of files that a dataset names, where somebody wants to know. Most cases name none, and a hasher is large.
    static NAMED: RefCell<Option<Named>> = const { RefCell::new(None) };
}

/// What was read of such files; none if there was no such file.
type Named = Option<Box<blake3::Hasher>>;

/// Does something, and gives the digest of all files that were read meanwhile because a dataset names them; none if there was
/// no such file.
pub(crate) fn hashing_named<T>(work: impl FnOnce() -> T) -> (T, Option<blake3::Hash>) {
    let around = NAMED.replace(Some(None));
    let done = work();
    let read = NAMED.replace(around).flatten();
    (done, read.map(|it| it.finalize()))
}

/// Largest suite file, and largest file that one names, in bytes.
pub const LARGEST_SUITE: u64 = 16 << 20;

/// The text of a file. One that is larger than `most` bytes is an error, as is one that is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text_of(read_bytes(path, most)?)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// The text of a file that a dataset names.
pub fn read_named_text(folder: &Path, name: &str, most: u64) -> io::Result<String> {
    text_of(read_named(folder, name, most)?)
}

/// The bytes of a file that a dataset in `folder` names.
pub(crate) fn read_named(folder: &Path, name: &str, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_bytes(&find_named(folder, name)?, most)?;
    NAMED.with_borrow_mut(|hasher| {
        if let Some(hasher) = hasher {
            let hasher = hasher.get_or_insert_default();
            hasher.update(&bytes.len().to_le_bytes()).update(&bytes);
        }
    });
    Ok(bytes)
}

/// The file that a dataset means. Datasets come from elsewhere: they may name regular files in
/// `folder` and in the working directory, and nothing else of this machine.
pub fn find_named(folder: &Path, name: &str) -> io::Result<PathBuf> {
    // Also one that is not there: it may come.
    inputs::note(&folder.join(name));
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(name).canonicalize()?;
    let within = |root: &Path| root.canonicalize().is_ok_and(|root| path.starts_with(root));
    if !within(folder) && !within(Path::new(".")) {
        let message = "it is outside the folder of the dataset or the suite, and outside the working directory";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(path)
}

/// The bytes of a file. One that is larger than `most` bytes is an error.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    inputs::note(path);
    let mut bytes = Vec::new();
    // The size that a file states is no bound: a device or a pipe states none.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("the file is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_is_watched_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        inputs::listen();
        assert!(find_named(folder.path(), "none.py").is_err());
        let inputs = inputs::take().unwrap();
        assert_eq!(inputs.shared.into_keys().collect::<Vec<_>>(), [folder.path().join("none.py")]);
    }
}
