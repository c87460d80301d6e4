//! Changes of files, compared.

use std::collections::BTreeMap;

use super::{mask, stdout::ratio};
use crate::execution::{Change, Entry, EntryKind};

/// What is at a path afterwards, as it is compared; nothing if it is gone.
pub(super) type After = Option<State>;

/// What is compared of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    kind: EntryKind,
    mode: u32,
    owner: (u32, u32),
    /// How many names a file has.
    links: u64,
    /// When it was changed, if that is all that changed and was not just now.
    modified: Option<i64>,
}

/// Paths that matter, with what is there. A directory in which something was made is no change of its own.
pub(super) fn normal(changes: &[Change], since: i64) -> BTreeMap<String, After> {
    let mut all = BTreeMap::new();
    for Change { path, before, after } in changes {
        let same = match (before, after) {
            (Some(before), Some(after)) => {
                before.kind == after.kind
                    && before.mode == after.mode
                    && before.owner == after.owner
            }
            _ => false,
        };
        let unchanged = same && matches!(after, Some(it) if it.kind == EntryKind::Directory);
        // A copy may be older than the moment when it was made; that is no effect that anybody asks for.
        let after = after.as_ref().map(|it| state(it, if same { since } else { i64::MIN }));
        if !unchanged {
            all.insert(mask::masked(path), after);
        }
    }
    all
}

fn state(entry: &Entry, since: i64) -> State {
    let Entry { kind, mode, owner, links, modified } = entry;
    let lasting = matches!(kind, EntryKind::File { .. }) && *modified < since;
    // The permission bits of a link are always the same and mean nothing.
    let mode = if matches!(kind, EntryKind::Link { .. }) { 0 } else { *mode };
    let modified = lasting.then_some(*modified);
    State { kind: kind.clone(), mode, owner: *owner, links: *links, modified }
}

/// The first path that differs, told.
pub(super) fn difference(
    left: &BTreeMap<String, After>,
    right: &BTreeMap<String, After>,
) -> Option<String> {
    let mut paths: Vec<&String> = left.keys().chain(right.keys()).collect();
    paths.sort();
    let path = paths.into_iter().find(|it| left.get(*it) != right.get(*it))?;
    Some(format!(
        "`{path}` is {} instead of {}",
        tell(left.get(path), right.get(path)),
        tell(right.get(path), left.get(path))
    ))
}

fn tell(this: Option<&After>, other: Option<&After>) -> String {
    match this {
        None => "as it was".to_owned(),
        Some(None) => "gone".to_owned(),
        Some(Some(state)) => {
            let same_kind = matches!(other, Some(Some(it)) if it.kind == state.kind);
            let what = match &state.kind {
                EntryKind::File { size, digest } => {
                    format!("a file of {size} bytes ({})", &digest[..digest.len().min(8)])
                }
                EntryKind::Directory => "a directory".to_owned(),
                EntryKind::Link { target } => format!("a link to `{target}`"),
                EntryKind::Special { what } => format!("a {what}"),
            };
            let links = match (other, state.links) {
                (Some(Some(it)), names) if it.links != names => format!(" with {names} names"),
                _ => String::new(),
            };
            let what = what + &links;
            match (same_kind, state.modified) {
                (false, _) => what,
                (true, None) => format!("{what} with mode {:04o}, changed just now", state.mode),
                (true, Some(time)) => {
                    format!("{what} with mode {:04o}, changed at {time}", state.mode)
                }
            }
        }
    }
}

/// Which part of all changes both made.
pub(super) fn likeness(left: &BTreeMap<String, After>, right: &BTreeMap<String, After>) -> f64 {
    let shared = left.iter().filter(|(path, after)| right.get(*path) == Some(*after)).count();
    ratio(shared, left.len() + right.len() - shared)
}
