//! What is different in a world, as a list for people.

use std::fmt::Write as _;

use probity_sandbox::execution::{Change, Entry, EntryKind};

/// Lines that are shown; the rest is counted.
const SHOWN: usize = 200;

pub(super) fn list(text: &mut String, changes: &[Change]) {
    text.push_str("changes:\n");
    for change in changes.iter().take(SHOWN) {
        let _ = match (&change.before, &change.after) {
            (None, Some(after)) => writeln!(text, "  + {}  {}", change.path, described(after)),
            (Some(before), None) => writeln!(text, "  - {}  {}", change.path, described(before)),
            (Some(before), Some(after)) => {
                writeln!(text, "  ~ {}  {}", change.path, differences(before, after))
            }
            (None, None) => Ok(()),
        };
    }
    if changes.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", changes.len() - SHOWN);
    }
}

fn described(entry: &Entry) -> String {
    match &entry.kind {
        EntryKind::File { size, .. } => format!("file, {size} bytes"),
        EntryKind::Directory => "directory".to_owned(),
        EntryKind::Link { target } => format!("link to {target}"),
        EntryKind::Special { what } => what.clone(),
    }
}

fn differences(before: &Entry, after: &Entry) -> String {
    let mut parts = Vec::new();
    match (&before.kind, &after.kind) {
        (EntryKind::File { size: old, .. }, EntryKind::File { size: new, .. })
            if before.kind != after.kind =>
        {
            parts.push(match old == new {
                true => format!("other content of {new} bytes"),
                false => format!("{old} -> {new} bytes"),
            });
        }
        (old, new) if old != new => {
            parts.push(format!("{} -> {}", described(before), described(after)));
        }
        _ => {}
    }
    if before.mode != after.mode {
        parts.push(format!("mode {:o} -> {:o}", before.mode, after.mode));
    }
    if before.owner != after.owner {
        parts.push(format!("owner {:?} -> {:?}", before.owner, after.owner));
    }
    if parts.is_empty() {
        parts.push("time".to_owned());
    }
    parts.join(", ")
}
