//! Which files have been read, so that a change of one can be noticed.
//!
//! Loading is synchronous, so the list belongs to the thread that loads. Nothing is listed unless
//! [`listen`] was called.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    bytes: u64,
    modified_ns: u64,
}

impl Stamp {
    /// The state of a file or a folder now; none of one that is not there.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_err(io::Error::other);
        let modified = found.modified().and_then(since).unwrap_or_default();
        let modified_ns = u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX);
        Some(Self { bytes: found.len(), modified_ns })
    }
}

/// Files with their states when they were read.
pub type Files = BTreeMap<PathBuf, Option<Stamp>>;

/// The files that a suite was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// Those of all runners.
    pub shared: Files,
    /// Those of each runner.
    pub runners: BTreeMap<String, Files>,
}

impl Inputs {
    /// All files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let files: BTreeSet<&PathBuf> = std::iter::once(&self.shared)
            .chain(self.runners.values())
            .flat_map(Files::keys)
            .collect();
        files.into_iter().map(PathBuf::as_path)
    }

    /// The files that are no longer as they were read.
    pub fn changed(&self) -> impl Iterator<Item = &Path> {
        let all = std::iter::once(&self.shared).chain(self.runners.values()).flatten();
        all.filter(|(path, stamp)| Stamp::of(path) != **stamp).map(|(path, _)| path.as_path())
    }

    /// The runners that some files are part of. None of them means all.
    pub fn touched_by(&self, changed: &BTreeSet<PathBuf>) -> BTreeSet<String> {
        let has_any = |files: &Files| changed.iter().any(|it| files.contains_key(it));
        if has_any(&self.shared) {
            return BTreeSet::new();
        }
        let touched = self.runners.iter().filter(|(_, files)| has_any(files));
        touched.map(|(name, _)| name.clone()).collect()
    }

    /// Takes files to be known as they are now.
    pub fn look_again(&mut self, files: &BTreeSet<PathBuf>) {
        let all = std::iter::once(&mut self.shared).chain(self.runners.values_mut()).flatten();
        for (path, stamp) in all.filter(|(path, _)| files.contains(*path)) {
            *stamp = Stamp::of(path);
        }
    }

    /// Takes over what a later run has read; runners that it left out stay as they were.
    pub fn renew(&mut self, later: Self) {
        self.shared = later.shared;
        self.runners.extend(later.runners);
    }
}

thread_local! {
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Heard {
    inputs: Inputs,
    runner: Option<String>,
}

/// Begins to list the files that this thread reads.
pub fn listen() {
    HEARD.set(Some(Heard::default()));
}

/// What is read from now on belongs to a runner, or to all of them.
pub fn now_for(runner: Option<&str>) {
    with(|heard| {
        heard.runner = runner.map(ToOwned::to_owned);
        // One that reads no file is a runner as well.
        if let Some(name) = runner {
            heard.inputs.runners.entry(name.to_owned()).or_default();
        }
    });
}

/// Notes that a file or a folder is read. Its state is that of before.
pub fn note(path: &Path) {
    with(|Heard { inputs, runner }| {
        let files = match runner {
            None => &mut inputs.shared,
            Some(name) => inputs.runners.entry(name.clone()).or_default(),
        };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        files.entry(path.clone()).or_insert_with(|| Stamp::of(&path));
    });
}

/// Notes the files among the words of a command that is run in a folder: programs are written as well.
pub fn note_files<'a>(folder: &Path, words: impl IntoIterator<Item = &'a String>) {
    if HEARD.with_borrow(Option::is_none) {
        return;
    }
    let paths = words.into_iter().map(|word| folder.join(word));
    paths.filter(|path| path.is_file()).for_each(|path| note(&path));
}

/// Does something whose files are nobody's input, such as those that it makes itself.
pub fn unheard<T>(work: impl FnOnce() -> T) -> T {
    let heard = HEARD.take();
    let done = work();
    HEARD.set(heard);
    done
}

/// The files that were read since [`listen`].
pub fn take() -> Option<Inputs> {
    HEARD.take().map(|it| it.inputs)
}

fn with(change: impl FnOnce(&mut Heard)) {
    HEARD.with_borrow_mut(|it| it.as_mut().map(change));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_runner_that_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let [suite, dataset] = ["suite.toml", "cases.csv"].map(|it| folder.path().join(it));
        fs::write(&suite, "a").unwrap();
        note(&dataset);
        assert_eq!(take(), None);

        listen();
        note(&suite);
        now_for(Some("r"));
        note(&dataset);
        let inputs = take().unwrap();
        assert_eq!(inputs.shared[&suite], Stamp::of(&suite));
        assert!(inputs.shared[&suite].is_some());
        assert_eq!(inputs.runners["r"], Files::from([(dataset, None)]));
        assert_eq!(take(), None);
    }

    #[test]
    fn a_change_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.csv");
        let files = Files::from([(path.clone(), Stamp::of(&path))]);
        let mut inputs = Inputs { runners: [("r".to_owned(), files)].into(), ..Inputs::default() };
        assert_eq!(inputs.changed().count(), 0);
        fs::write(&path, "id").unwrap();
        assert_eq!(inputs.changed().collect::<Vec<_>>(), [path.as_path()]);
        inputs.look_again(&[path].into());
        assert_eq!(inputs.changed().count(), 0);
    }
}
