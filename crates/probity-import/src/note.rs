//! What an import tells its user: what was not carried over, and what was assumed.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::Serialize;

/// A place in a file of the other tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct At {
    /// The file, relative to the folder of the first one.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Something that an import left out or assumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where it stands.
    #[serde(flatten)]
    pub at: At,
    /// One sentence, lower case, no final period.
    pub what: String,
    /// What to do about it; empty if there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// Whether it was not carried over. Anything else was assumed.
    pub lost: bool,
}

/// All notes, each thing once at each place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    all: Vec<Note>,
    told: BTreeSet<(At, String)>,
}

impl Notes {
    /// Something that was not carried over.
    pub fn lost(&mut self, at: At, what: impl Into<String>, advice: impl Into<String>) {
        self.push(Note { at, what: what.into(), advice: advice.into(), lost: true });
    }

    /// Something that was carried over as it was most probably meant.
    pub fn assumed(&mut self, at: At, what: impl Into<String>, advice: impl Into<String>) {
        self.push(Note { at, what: what.into(), advice: advice.into(), lost: false });
    }

    fn push(&mut self, note: Note) {
        if self.told.insert((note.at.clone(), note.what.clone())) {
            self.all.push(note);
        }
    }

    /// All of them, in the order in which they came up.
    pub fn iter(&self) -> impl Iterator<Item = &Note> {
        self.all.iter()
    }

    /// How many things were not carried over.
    pub fn losses(&self) -> usize {
        self.all.iter().filter(|it| it.lost).count()
    }
}
