//! Cases with the results of several lanes beside each other.

use std::collections::BTreeSet;

use probity_core::record::CaseRecord;
use rusqlite::{params, params_from_iter, types::Value};

use super::places;
use crate::{LaneView, Reader, StoreError};

/// Which cases are wanted.
#[derive(Clone, Debug, Default)]
pub struct GridQuery {
    /// Those that did not come out alike in all lanes.
    pub differing: bool,
    /// Those that did not pass in one of them.
    pub failing: bool,
    /// Those behind this id.
    pub after: Option<String>,
    /// How many at most.
    pub limit: usize,
}

/// One case.
#[derive(Clone, Debug)]
pub struct GridRow {
    /// Its id.
    pub case_id: String,
    /// What came of it in each lane, a repeat each; nothing where it was not asked.
    pub results: Vec<Vec<CaseRecord>>,
}

/// Some cases, in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct GridPage {
    /// The cases.
    pub rows: Vec<GridRow>,
    /// The id that the next page begins behind, if there is one.
    pub next: Option<String>,
}

impl Reader {
    /// A page of cases with what each of several lanes made of them.
    pub fn grid_page(
        &self,
        lanes: &[&LaneView],
        query: &GridQuery,
    ) -> Result<GridPage, StoreError> {
        let mut ids = match query.differing || query.failing {
            true => self.ids_that_stand_out(lanes, query)?,
            false => self.ids_of_all(lanes, query)?,
        };
        let has_more = ids.len() > query.limit;
        ids.truncate(query.limit);
        let next = ids.last().filter(|_| has_more).cloned();
        let rows = ids.into_iter().map(|case_id| {
            let results = lanes.iter().map(|lane| self.case(lane, &case_id));
            Ok(GridRow { results: results.collect::<Result<_, StoreError>>()?, case_id })
        });
        Ok(GridPage { rows: rows.collect::<Result<_, StoreError>>()?, next })
    }

    /// The next ids of each lane, which an index has in order, merged.
    fn ids_of_all(
        &self,
        lanes: &[&LaneView],
        query: &GridQuery,
    ) -> Result<Vec<String>, StoreError> {
        let after = query.after.as_deref().unwrap_or_default();
        let read = |lane: &LaneView| {
            let mut statement = self.connection.prepare_cached(
                "SELECT DISTINCT case_id FROM results WHERE lane = ? AND case_id > ? AND stale = 0
                 ORDER BY case_id LIMIT ?",
            )?;
            let values = params![lane.row, after, query.limit + 1];
            statement.query_map(values, |row| row.get(0))?.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for lane in lanes {
            ids.extend(read(lane).map_err(StoreError::of_reading)?);
        }
        Ok(ids.into_iter().take(query.limit + 1).collect())
    }

    fn ids_that_stand_out(
        &self,
        lanes: &[&LaneView],
        query: &GridQuery,
    ) -> Result<Vec<String>, StoreError> {
        let mut having = Vec::new();
        if query.differing {
            having.push("(min(verdict) <> max(verdict) OR count(DISTINCT lane) < ?)");
        }
        if query.failing {
            having.push("max(verdict IN ('fail', 'error'))");
        }
        let sql = format!(
            "SELECT case_id FROM results WHERE lane IN {} AND case_id > ? AND stale = 0
             GROUP BY case_id HAVING {} ORDER BY case_id LIMIT {}",
            places(lanes.len()),
            having.join(" AND "),
            query.limit + 1
        );
        let mut values: Vec<Value> = lanes.iter().map(|it| it.row.into()).collect();
        values.push(query.after.clone().unwrap_or_default().into());
        if query.differing {
            values.push(i64::try_from(lanes.len()).unwrap_or(i64::MAX).into());
        }
        let read = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::of_reading)
    }
}
