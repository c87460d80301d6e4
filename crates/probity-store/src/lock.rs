//! The file beside a store that tells who is at work on a run, and how many calls have begun.
//!
//! Counts are written to it before calls are made, and are not forced to the disk: they outlive
//! the process however it ends, and not a power cut. It begins with a line of fixed length for
//! each lane, so that a count never lies across two pages of memory and is never written in part.
//! The names of the lanes follow in one line. With an orderly end the file goes away: the store
//! knows everything then.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use probity_core::record::{Lane, LaneKey};

use crate::{StoreError, private, result::json};

/// The length of a line with a count. It divides that of a page.
const LINE: usize = 32;

/// Keeps other processes from working on the same run. It goes with the process,
/// however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    /// What the last process left that did not come to an orderly end.
    left: Vec<Begun>,
}

/// Calls of a lane that have begun.
#[derive(Debug, PartialEq)]
struct Begun {
    lane: Vec<String>,
    calls: u64,
}

/// Where calls are written down before they are made.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    /// Calls of each lane in earlier sessions.
    before: Vec<u64>,
}

impl Lock {
    pub(crate) fn take(store: &Path, run_id: &str) -> Result<Self, StoreError> {
        let path = path(store, run_id);
        let failed = |source| StoreError::Lock { path: path.clone(), source };
        let mut file = private::open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(run_id.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Ok(Self { file, left: read(&text).unwrap_or_default(), path })
    }

    pub(crate) fn begun_before(&self, lane: &Lane) -> Option<u64> {
        let names = names(lane.key());
        self.left.iter().find(|it| it.lane == names).map(|it| it.calls)
    }

    /// Writes counts down for lanes, each with what it has had.
    pub(crate) fn ledger(&self, lanes: &[(&Lane, u64)]) -> Result<Ledger, StoreError> {
        let names: Vec<Vec<&str>> = lanes.iter().map(|(lane, _)| names(lane.key())).collect();
        let mut text: Vec<u8> = lanes.iter().flat_map(|(_, calls)| line(*calls)).collect();
        text.extend_from_slice(json(&names).as_bytes());
        let write = || {
            self.file.set_len(0)?;
            self.file.write_all_at(&text, 0)?;
            self.file.try_clone()
        };
        let file =
            write().map_err(|source| StoreError::Lock { path: self.path.clone(), source })?;
        Ok(Ledger { file, before: lanes.iter().map(|(_, calls)| *calls).collect() })
    }

    pub(crate) fn release(self) {
        // The name first: whoever finds the file locks it, and one without a name is found
        // by nobody.
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

impl Ledger {
    /// So many calls of a lane have begun in this session.
    pub fn begun(&mut self, lane: usize, calls: u64) -> io::Result<()> {
        let all = self.before[lane].saturating_add(calls);
        self.file.write_all_at(&line(all), (lane * LINE) as u64)
    }
}

/// The runner, the backend and, if it has one, the variant of a lane.
fn names(lane: LaneKey<'_>) -> Vec<&str> {
    let LaneKey { runner, variant, backend } = lane;
    [runner, backend].into_iter().chain(variant).collect()
}

/// A count, and blanks up to the end of the line.
fn line(calls: u64) -> [u8; LINE] {
    let mut line = [b' '; LINE];
    line[LINE - 1] = b'\n';
    // The largest count has 20 digits.
    let _ = write!(&mut line[..LINE - 1], "{calls}");
    line
}

/// What a file says, unless the process was killed while it made it, before any call.
fn read(text: &str) -> Option<Vec<Begun>> {
    let (counts, names) = text.rsplit_once('\n')?;
    let names: Vec<Vec<String>> = serde_json::from_str(names).ok()?;
    let counts: Vec<u64> =
        counts.lines().map(|it| it.trim_end().parse().ok()).collect::<Option<_>>()?;
    if names.len() != counts.len() {
        return None;
    }
    Some(names.into_iter().zip(counts).map(|(lane, calls)| Begun { lane, calls }).collect())
}

/// Whether a process is at work on a run.
pub(crate) fn is_busy(store: &Path, run_id: &str) -> bool {
    match File::open(path(store, run_id)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

fn path(store: &Path, run_id: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(format!(".{run_id}.lock"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_read_back_and_a_half_made_file_says_nothing() {
        let begun = |names: &[&str], calls| {
            let lane = names.iter().map(|it| (*it).to_owned()).collect();
            Begun { lane, calls }
        };
        let (plain, varied) = (["r \n\"", "a"], ["r \n\"", "a", "terse"]);
        let names = json(&[&plain[..], &varied]);
        let lines = [line(u64::MAX), line(7)].concat();
        let text = String::from_utf8(lines).unwrap() + &names;
        assert_eq!(text.find(&names), Some(2 * LINE));
        assert_eq!(read(&text), Some(vec![begun(&plain, u64::MAX), begun(&varied, 7)]));
        for end in 0..text.len() {
            assert_eq!(read(&text[..end]), None, "{end}");
        }
    }
}
