//! What people look at: pages of runs, of results and of cases beside each other.
//!
//! A page is found by what stands on the one before it, never by a number, so that the last page costs as much as the first
//! and rows that are added meanwhile move nothing.

mod cases;
mod grid;
mod live;
mod tags;

use probity_core::{
    classification::{Class, Counts, Verdict},
    metrics::Verdicts,
};
use rusqlite::{params, params_from_iter, types::Value};

pub use cases::{CaseCursor, CaseQuery, CaseRow, CasesPage, ScoreRange, Sort};
pub use grid::{GridPage, GridQuery, GridRow};
pub use live::{Failing, Trouble, Waited};
pub(crate) use tags::{collect, collect_again};

use crate::{LaneView, Reader, RunRow, StoreError, result::Name};

/// Which runs are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsQuery {
    /// Those of a suite.
    pub suite: Option<String>,
    /// Those that asked a backend.
    pub backend: Option<String>,
    /// Those with a result of a case that has a tag.
    pub tag: Option<String>,
    /// Those whose name or suite contains this.
    pub text: Option<String>,
    /// Those that did not begin before, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Those that began before, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Those behind this place, the latest first.
    pub after: Option<i64>,
    /// How many at most.
    pub limit: usize,
}

/// Some runs, the latest first.
#[derive(Clone, Debug)]
pub struct RunsPage {
    /// The runs.
    pub runs: Vec<RunRow>,
    /// The place that the next page begins behind, if there is one.
    pub next: Option<i64>,
}

/// A suite that has runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteRow {
    /// What it is called.
    pub name: String,
    /// Its file when it was last run, if that is known.
    pub path: Option<String>,
    /// How many runs there are.
    pub runs: u64,
    /// The latest of them.
    pub latest: String,
    /// When that began, in milliseconds since 1970.
    pub started_ms: i64,
}

/// How many results of a lane came out how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// By verdict.
    pub verdicts: Verdicts,
    /// By class.
    pub classes: Counts,
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Results that have a price.
    pub priced: u64,
}

impl Standing {
    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        let Self { verdicts, classes, cost_usd, priced } = other;
        self.verdicts.merge(*verdicts);
        self.classes.merge(classes);
        self.cost_usd += cost_usd;
        self.priced += priced;
    }
}

const STANDING: &str =
    "SELECT verdict, class, count(*), coalesce(sum(cost_usd), 0.0), count(cost_usd)
     FROM results WHERE lane = ? AND stale = 0 GROUP BY verdict, class";

/// A bar of a histogram of scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreBars {
    /// The name of the score.
    pub name: String,
    /// How many values lie in each tenth from 0 to 1.
    pub bars: [u64; 10],
}

/// Conditions of a query with their values, in order.
#[derive(Debug, Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push(sql.to_owned());
        self.values.extend(values);
    }

    fn sql(&self) -> String {
        match self.sql.is_empty() {
            true => "1".to_owned(),
            false => self.sql.join(" AND "),
        }
    }
}

/// A pattern for texts that contain another, whatever stands in that.
fn containing(text: &str) -> Value {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Value::Text(format!("%{escaped}%"))
}

/// `(?, ?, ?)` for so many values.
fn places(count: usize) -> String {
    format!("({})", vec!["?"; count].join(", "))
}

impl Reader {
    /// What changes whenever another connection has written to the store.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        self.connection
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .map_err(StoreError::of_reading)
    }

    /// A page of runs, the latest first.
    pub fn runs_page(&self, query: &RunsQuery) -> Result<RunsPage, StoreError> {
        let RunsQuery { suite, backend, tag, text, since_ms, until_ms, after, limit } = query;
        let mut conditions = Conditions::default();
        if let Some(suite) = suite {
            conditions.add("suite = ?", [suite.clone().into()]);
        }
        if let Some(backend) = backend {
            let sql = "EXISTS (SELECT 1 FROM lanes l WHERE l.run = runs.id AND l.backend = ? AND l.retired = 0)";
            conditions.add(sql, [backend.clone().into()]);
        }
        if let Some(tag) = tag {
            conditions.add(tags::HAS_TAG, [tag.clone().into()]);
        }
        if let Some(text) = text {
            let pattern = containing(text);
            conditions.add(
                "(run_id LIKE ? ESCAPE '\\' OR suite LIKE ? ESCAPE '\\')",
                [pattern.clone(), pattern],
            );
        }
        if let Some(since) = since_ms {
            conditions.add("started_ms >= ?", [(*since).into()]);
        }
        if let Some(until) = until_ms {
            conditions.add("started_ms < ?", [(*until).into()]);
        }
        if let Some(after) = after {
            conditions.add("id < ?", [(*after).into()]);
        }
        let rest = format!("WHERE {} ORDER BY id DESC LIMIT {}", conditions.sql(), limit + 1);
        let mut runs = self.select_runs(&rest, params_from_iter(conditions.values))?;
        let has_more = runs.len() > *limit;
        runs.truncate(*limit);
        let next = runs.last().filter(|_| has_more).map(RunRow::place);
        Ok(RunsPage { runs, next })
    }

    /// The last runs of a suite before one, the latest first.
    pub fn runs_before(
        &self,
        run: &RunRow,
        suite: &str,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreError> {
        let rest = "WHERE suite = ? AND id < ? ORDER BY id DESC LIMIT ?";
        self.select_runs(rest, params![suite, run.place(), most])
    }

    /// The names of all suites that have runs.
    pub fn suites(&self) -> Result<Vec<String>, StoreError> {
        self.names("SELECT DISTINCT suite FROM runs ORDER BY suite")
    }

    /// Suites that have runs, by name and file, those that ran last first.
    pub fn suite_rows(&self, most: usize) -> Result<Vec<SuiteRow>, StoreError> {
        let read = || {
            // Other columns are those of the row with the highest id.
            let mut statement = self.connection.prepare_cached(
                "SELECT suite, json_extract(info, '$.suite_path'), count(*), run_id, started_ms, max(id)
                 FROM runs GROUP BY 1, 2 ORDER BY 6 DESC LIMIT ?",
            )?;
            let rows = statement.query_map([most], |row| {
                Ok(SuiteRow {
                    name: row.get(0)?,
                    path: row.get(1)?,
                    runs: row.get(2)?,
                    latest: row.get(3)?,
                    started_ms: row.get(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::of_reading)
    }

    /// The names of all backends that were asked.
    pub fn backends(&self) -> Result<Vec<String>, StoreError> {
        self.names("SELECT DISTINCT backend FROM lanes WHERE retired = 0 ORDER BY backend")
    }

    pub(crate) fn names(&self, sql: &str) -> Result<Vec<String>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(StoreError::of_reading)
    }

    /// How the results of a lane came out. It reads an index alone.
    pub fn standing(&self, lane: &LaneView) -> Result<Standing, StoreError> {
        let mut standing = Standing::default();
        let mut read = || {
            let mut statement = self.connection.prepare_cached(STANDING)?;
            let mut rows = statement.query([lane.row])?;
            while let Some(row) = rows.next()? {
                let (Name(verdict), Name(class)): (Name<Verdict>, Name<Class>) =
                    (row.get(0)?, row.get(1)?);
                let count: u64 = row.get(2)?;
                standing.classes.add_many(class, count);
                standing.verdicts.add_many(verdict, count);
                standing.cost_usd += row.get::<_, f64>(3)?;
                standing.priced += row.get::<_, u64>(4)?;
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)?;
        Ok(standing)
    }

    /// How the named scores of lanes are spread.
    pub fn score_bars(&self, lanes: &[&LaneView]) -> Result<Vec<ScoreBars>, StoreError> {
        let mut all: Vec<ScoreBars> = Vec::new();
        let mut read = || {
            let mut statement = self.connection.prepare(&format!(
                "SELECT s.name, min(9, CAST(s.value * 10 AS INTEGER)) AS bar, count(*)
                 FROM results r JOIN scores s ON s.result = r.id
                 WHERE r.lane IN {} AND r.stale = 0 AND s.value IS NOT NULL
                 GROUP BY s.name, bar ORDER BY s.name",
                places(lanes.len())
            ))?;
            let mut rows = statement.query(params_from_iter(lanes.iter().map(|it| it.row)))?;
            while let Some(row) = rows.next()? {
                let (name, bar): (String, usize) = (row.get(0)?, row.get(1)?);
                if all.last().is_none_or(|it| it.name != name) {
                    all.push(ScoreBars { name, bars: [0; 10] });
                }
                if let Some(bars) = all.last_mut() {
                    bars.bars[bar.min(9)] += row.get::<_, u64>(2)?;
                }
            }
            Ok(())
        };
        read().map_err(StoreError::of_reading)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use probity_core::classification::{Class, Verdict};
    use rusqlite::Connection;

    use super::{CaseQuery, STANDING, Sort, tags};
    use crate::schema;

    fn plan(sql: &str) -> String {
        let connection = Connection::open_in_memory().unwrap();
        schema::migrate(&connection, std::path::Path::new("memory")).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>(3));
        lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn counts_and_pages_read_no_texts() {
        let failed = CaseQuery { verdict: Some(Verdict::Fail), limit: 100, ..CaseQuery::default() };
        let by_case = CaseQuery { sort: Sort::Case, ..failed.clone() };
        let passed = CaseQuery { class: Some(Class::Pass), ..CaseQuery::default() };
        for sql in [
            STANDING.to_owned(),
            failed.page_sql(&failed.conditions(&[1, 2])),
            by_case.page_sql(&by_case.conditions(&[1, 2])),
            CaseQuery::count_sql(&passed.conditions(&[1, 2])),
        ] {
            let plan = plan(&sql);
            assert!(plan.contains("USING COVERING INDEX results_by_outcome"), "{sql}: {plan}");
        }
    }

    #[test]
    fn tags_are_looked_up_lane_by_lane() {
        let plan = plan(&format!("SELECT id FROM runs WHERE {}", tags::HAS_TAG));
        assert!(plan.contains("SEARCH t USING PRIMARY KEY (lane=? AND tag=?)"), "{plan}");
    }

    #[test]
    fn results_in_the_order_of_their_ids_are_not_sorted() {
        let plan =
            plan("SELECT * FROM results WHERE lane = 1 AND stale = 0 ORDER BY case_id, repeat");
        assert!(plan.contains("sqlite_autoindex_results_1") && !plan.contains("TEMP"), "{plan}");
    }
}
