//! How bytes become what a target wants.

use std::{borrow::Cow, fs, path::Path};

use probity_core::problem::Problem;
use tempfile::TempDir;

/// Stands between the parts of an input. No text in UTF-8 has it.
pub(crate) const BETWEEN: u8 = 0xff;

/// The parts of an input, as texts. There is always a first one.
pub(crate) fn texts(bytes: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    bytes.split(|byte| *byte == BETWEEN).map(String::from_utf8_lossy)
}

/// A choice from a list, and what comes after it; none if there is no byte left to choose by.
pub(crate) fn choice<'b, T: Copy>(bytes: &'b [u8], list: &[T]) -> Option<(T, &'b [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((list[usize::from(*first) % list.len()], rest))
}

/// A problem has a file, words, and a place that is in the file.
#[track_caller]
pub(crate) fn check(problem: &Problem) {
    assert!(!problem.file.is_empty() && !problem.message.is_empty(), "{problem:?}");
    if let Some(place) = &problem.place {
        assert!(place.source.get(place.highlight.clone()).is_some(), "{problem:?}");
    }
}

/// A folder for those who read files. Each thread has one for each use, which is removed with the thread.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.path().join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).expect("the folder is ours");
        }
        fs::write(&path, bytes).expect("the folder is ours");
        path
    }
}
