//! Which tags the cases of runs have.
//!
//! To look for a tag in every result of every run would take long. The tags of each lane stand in a table of their own, which
//! is filled as results are recorded.

use rusqlite::{Connection, params};

use crate::{Reader, StoreError};

/// Holds of runs with a tag. The few lanes of the run are looked up, not the many that have the tag.
pub(super) const HAS_TAG: &str =
    "EXISTS (SELECT 1 FROM lanes l CROSS JOIN lane_tags t ON t.lane = l.id
    WHERE l.run = runs.id AND l.retired = 0 AND t.tag = ?)";

/// Goes from each tag to the next, whatever the number of lanes that have it.
const NAMES: &str = "
    WITH RECURSIVE names(tag) AS (
        SELECT min(tag) FROM lane_tags
        UNION ALL
        SELECT (SELECT min(tag) FROM lane_tags t WHERE t.tag > names.tag) FROM names WHERE tag IS NOT NULL
    )
    SELECT tag FROM names WHERE tag IS NOT NULL AND EXISTS (
        SELECT 1 FROM lane_tags t JOIN lanes l ON l.id = t.lane WHERE t.tag = names.tag AND l.retired = 0)
    LIMIT ?";

/// Fills the table from results: those of a lane, or all.
pub(crate) fn collect(connection: &Connection, lane: Option<i64>) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR IGNORE INTO lane_tags (lane, tag) SELECT r.lane, t.value
         FROM (SELECT DISTINCT lane, tags FROM results
             WHERE stale = 0 AND tags IS NOT NULL AND (?1 IS NULL OR lane = ?1)) r, json_each(r.tags) t",
        params![lane],
    )?;
    Ok(())
}

/// Fills it anew for a lane of whose results others count than before.
pub(crate) fn collect_again(connection: &Connection, lane: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM lane_tags WHERE lane = ?", [lane])?;
    collect(connection, Some(lane))
}

impl Reader {
    /// Tags that results of runs have, sorted.
    pub fn tags(&self, most: usize) -> Result<Vec<String>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(NAMES)?;
            statement
                .query_map([most], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(StoreError::of_reading)
    }
}
