//! Which tags the cases of runs have.
//!
//! To look for a tag in every result of every run would take long. Most runs are of the same few datasets, so that the tags of
//! each dataset are read once, from the run that asked most of it.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{params, types::Value};

use super::{Conditions, places};
use crate::{Reader, StoreError, result::Json};

/// Tags of a dataset that are kept.
const MOST_TAGS: usize = 1000;
/// Datasets that a query leaves out because they do not have its tag.
const MOST_LEFT_OUT: usize = 2000;
/// Lanes of runs that have not ended and are looked at again.
const MOST_PENDING: usize = 64;

/// What is known of the tags of datasets.
#[derive(Clone, Debug, Default)]
pub struct TagCatalogue {
    datasets: BTreeMap<String, Tags>,
    /// The last lane that was looked at.
    last: i64,
    /// Earlier ones whose runs had not ended then.
    pending: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
struct Tags {
    names: BTreeSet<String>,
    /// How many results the lane has that they were read from.
    planned: u64,
}

/// A tag that runs are wanted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagQuery {
    tag: String,
    /// Digests of datasets that do not have it.
    without: Vec<String>,
}

impl TagCatalogue {
    /// All tags.
    pub fn names(&self) -> BTreeSet<&str> {
        self.datasets.values().flat_map(|it| &it.names).map(String::as_str).collect()
    }

    /// What finds runs with a tag.
    pub fn query(&self, tag: String) -> TagQuery {
        let lacks = |it: &Tags| it.names.len() < MOST_TAGS && !it.names.contains(&tag);
        let without = self.datasets.iter().filter(|(_, it)| lacks(it));
        let without = without.map(|(digest, _)| digest.clone()).take(MOST_LEFT_OUT).collect();
        TagQuery { tag, without }
    }
}

impl TagQuery {
    pub(super) fn add_to(&self, conditions: &mut Conditions) {
        let sql = format!(
            "EXISTS (SELECT 1 FROM lanes l WHERE l.run = runs.id AND l.retired = 0
                AND json_extract(l.info, '$.dataset_digest') NOT IN {}
                AND EXISTS (SELECT 1 FROM results r, json_each(r.tags) t
                    WHERE r.lane = l.id AND r.stale = 0 AND t.value = ?))",
            places(self.without.len())
        );
        let values = self.without.iter().chain([&self.tag]).cloned().map(Value::from);
        conditions.add(&sql, values);
    }
}

/// A lane that tags may be read from.
struct Candidate {
    row: i64,
    digest: String,
    planned: u64,
    has_ended: bool,
}

impl Reader {
    /// Brings a catalogue up to date with the runs that have ended since.
    pub fn read_tags(&self, catalogue: &mut TagCatalogue) -> Result<(), StoreError> {
        let mut candidates = self.candidates(catalogue.last).map_err(StoreError::Read)?;
        catalogue.last = candidates.last().map_or(catalogue.last, |it| it.row);
        for row in std::mem::take(&mut catalogue.pending) {
            candidates.extend(self.candidate(row).map_err(StoreError::Read)?);
        }
        for Candidate { row, digest, planned, has_ended } in candidates {
            let known = catalogue.datasets.get(&digest);
            if known.is_some_and(|it| it.planned >= planned) {
                continue;
            }
            if !has_ended {
                catalogue.pending.push(row);
                continue;
            }
            let names = self.tags_of(row).map_err(StoreError::Read)?;
            let tags = catalogue.datasets.entry(digest).or_default();
            tags.planned = planned;
            tags.names.extend(names);
            while tags.names.len() > MOST_TAGS {
                tags.names.pop_last();
            }
        }
        let excess = catalogue.pending.len().saturating_sub(MOST_PENDING);
        catalogue.pending.drain(..excess);
        Ok(())
    }

    fn candidates(&self, after: i64) -> rusqlite::Result<Vec<Candidate>> {
        let mut statement =
            self.connection.prepare_cached(&format!("{CANDIDATES} > ? ORDER BY l.id"))?;
        statement.query_map(params![after], read_candidate)?.collect()
    }

    fn candidate(&self, row: i64) -> rusqlite::Result<Option<Candidate>> {
        let mut statement = self.connection.prepare_cached(&format!("{CANDIDATES} = ?"))?;
        statement.query_map(params![row], read_candidate)?.next().transpose()
    }

    fn tags_of(&self, lane: i64) -> rusqlite::Result<BTreeSet<String>> {
        let sql =
            "SELECT DISTINCT tags FROM results WHERE lane = ? AND stale = 0 AND tags IS NOT NULL";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut names = BTreeSet::new();
        let mut rows = statement.query([lane])?;
        while let Some(row) = rows.next()? {
            let Json(tags): Json<Vec<String>> = row.get(0)?;
            names.extend(tags);
        }
        Ok(names)
    }
}

const CANDIDATES: &str =
    "SELECT l.id, json_extract(l.info, '$.dataset_digest'), json_extract(l.info, '$.planned'),
        r.finished_ms IS NOT NULL
     FROM lanes l JOIN runs r ON r.id = l.run WHERE l.retired = 0 AND l.id";

fn read_candidate(row: &rusqlite::Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        row: row.get(0)?,
        digest: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        planned: row.get::<_, Option<u64>>(2)?.unwrap_or_default(),
        has_ended: row.get(3)?,
    })
}
