//! What has become of files.

use probity_core::execution::{
    Ended, Entry, ExecutedIn, FileMode, PathChange, PathFound, PathKind, PathState, Unchanged,
};

use super::ExpectedText;
use crate::reply::Reply;

/// Changes that are named; the record has them all.
const NAMED: usize = 3;

/// What has to be at a path.
#[derive(Clone, Debug)]
pub(super) struct ExpectedPath {
    /// As the case writes it.
    pub(super) path: String,
    pub(super) state: PathState,
    pub(super) content: Option<ExpectedText>,
    pub(super) mode: Option<FileMode>,
}

impl ExpectedPath {
    /// What its score is reported under.
    pub(super) fn score_name(&self) -> String {
        format!("path {}", self.path)
    }

    /// What is wrong with the path in a world.
    pub(super) fn judge(&self, world: &ExecutedIn, reply: &Reply<'_, '_>) -> Result<(), String> {
        let path = &self.path;
        let found = world.paths.get(path).ok_or_else(|| format!("`{path}` was not looked at"))?;
        let change = world.change(&found.path);
        let entry = match (&found.entry, self.state) {
            (None, PathState::Absent) => return Ok(()),
            (Some(_), PathState::Absent) => {
                return Err(format!("`{path}` is there, expected it to be absent"));
            }
            (None, PathState::Unchanged) if change.is_none() => return Ok(()),
            (None, _) => return Err(missing(path, change, world.end)),
            (Some(entry), _) => entry,
        };
        // A directory is what is in it.
        self.is_in_state(change.or_else(|| world.changes_below(&found.path).next()), &found.path)?;
        if let Some(mode) = self.mode.filter(|it| *it != entry.mode) {
            return Err(format!("`{path}` has mode {}, expected {mode}", entry.mode));
        }
        let Some(content) = &self.content else { return Ok(()) };
        let text = found.content.as_ref().ok_or_else(|| not_a_file(path, entry))?;
        content.differs(&format!("`{path}`"), text, reply)
    }

    fn is_in_state(&self, change: Option<&PathChange>, whole: &str) -> Result<(), String> {
        let path = &self.path;
        let is_new = change.is_some_and(|it| it.path == whole && it.before.is_none());
        match (self.state, change) {
            (PathState::Created, _) if is_new => Ok(()),
            (PathState::Created, _) => {
                Err(format!("`{path}` was there before, expected it to be created"))
            }
            (PathState::Changed, None) => {
                Err(format!("`{path}` is unchanged, expected it to change"))
            }
            (PathState::Changed, Some(_)) if is_new => {
                Err(format!("`{path}` was created, expected it to change"))
            }
            (PathState::Unchanged, Some(change)) => {
                Err(format!("{change}, expected `{path}` to be unchanged"))
            }
            (PathState::Present | PathState::Absent | PathState::Changed, _)
            | (PathState::Unchanged, None) => Ok(()),
        }
    }
}

fn missing(path: &str, change: Option<&PathChange>, end: Ended) -> String {
    match (change, end) {
        (Some(_), _) => format!("`{path}` is missing: it was deleted"),
        (None, Ended::TimedOut | Ended::OutOfMemory | Ended::Signal(_)) => {
            format!("`{path}` is missing: the command was {end}")
        }
        (None, Ended::Exit(_)) => format!("`{path}` is missing"),
    }
}

fn not_a_file(path: &str, entry: &Entry) -> String {
    let what = match entry.kind {
        PathKind::File { .. } => "a file that cannot be read",
        PathKind::Directory => "a directory",
        PathKind::Link { .. } => "a link that leads to no file",
        PathKind::Special => "no plain file",
    };
    format!("`{path}` is {what}")
}

/// What is different that may not be. The paths that a case says more about, and what is below them, are not looked at
/// here, and neither are new directories above them.
pub(super) fn unchanged(
    world: &ExecutedIn,
    unchanged: &Unchanged,
    named: &[&str],
) -> Result<(), String> {
    let whole = |path: &str| world.paths.get(path).map(|it: &PathFound| it.path.as_str());
    let others: Vec<&PathChange> = match unchanged {
        Unchanged::Others(false) => return Ok(()),
        Unchanged::Others(true) => {
            let own: Vec<&str> = named.iter().filter_map(|it| whole(it)).collect();
            let is_above = |it: &PathChange| {
                let below = format!("{}/", it.path);
                it.before.is_none() && own.iter().any(|path| path.starts_with(&below))
            };
            let is_own = |it: &PathChange| own.iter().any(|path| it.is_below(path)) || is_above(it);
            world.changes.iter().filter(|it| !is_own(it)).collect()
        }
        Unchanged::These(paths) => {
            let kept: Vec<&str> = paths.iter().filter_map(|it| whole(it)).collect();
            let is_kept = |it: &&PathChange| kept.iter().any(|path| it.is_below(path));
            world.changes.iter().filter(is_kept).collect()
        }
    };
    if others.is_empty() {
        return Ok(());
    }
    let mut parts: Vec<String> = others.iter().take(NAMED).map(ToString::to_string).collect();
    if others.len() > NAMED {
        parts.push(format!("and {} more", others.len() - NAMED));
    }
    Err(format!("{}, expected nothing to change there", parts.join(", ")))
}
