//! What an import tells its user: what was not carried over, and what was assumed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

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
    /// In how many places of the file the same is so.
    #[serde(skip_serializing_if = "is_once")]
    pub count: usize,
    /// The lines of the first of the other places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<usize>,
}

impl Note {
    /// Where else the same is so, for people; empty if nowhere.
    pub fn elsewhere(&self) -> String {
        let named: Vec<String> = self.also.iter().take(3).map(ToString::to_string).collect();
        let rest = self.count - 1 - named.len();
        match (named.is_empty(), rest) {
            (true, _) => String::new(),
            (false, 0) => format!(" (also in {})", listed(&named)),
            (false, rest) => format!(" (also in {} and {rest} more)", listed(&named)),
        }
    }
}

fn listed(lines: &[String]) -> String {
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", lines.join(", "))
}

/// Other lines that a note names.
const MOST_LINES: usize = 20;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_once(count: &usize) -> bool {
    *count == 1
}

/// All notes, each thing once for each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    all: Vec<Note>,
    /// Where a thing was told already.
    told: BTreeSet<(At, String)>,
    /// The place of a note among all, by its file and what it says.
    places: BTreeMap<(Arc<str>, bool, String, String), usize>,
}

impl Notes {
    /// Something that was not carried over.
    pub fn lost(&mut self, at: At, what: impl Into<String>, advice: impl Into<String>) {
        self.push(at, what.into(), advice.into(), true);
    }

    /// Something that was carried over as it was most probably meant.
    pub fn assumed(&mut self, at: At, what: impl Into<String>, advice: impl Into<String>) {
        self.push(at, what.into(), advice.into(), false);
    }

    fn push(&mut self, at: At, what: String, advice: String, lost: bool) {
        if !self.told.insert((at.clone(), what.clone())) {
            return;
        }
        let key = (at.file.clone(), lost, what.clone(), advice.clone());
        let place = *self.places.entry(key).or_insert(self.all.len());
        match self.all.get_mut(place) {
            None => self.all.push(Note { at, what, advice, lost, count: 1, also: Vec::new() }),
            Some(known) => {
                known.count += 1;
                if known.also.len() < MOST_LINES {
                    known.also.push(at.line);
                }
            }
        }
    }

    /// All of them, in the order in which they came up.
    pub fn iter(&self) -> impl Iterator<Item = &Note> {
        self.all.iter()
    }

    /// How many things were not carried over.
    pub fn losses(&self) -> usize {
        self.all.iter().filter(|it| it.lost).map(|it| it.count).sum()
    }
}
