//! Pages of results.

use probity_core::{
    classification::{Class, Verdict},
    named_enum,
    record::CaseRecord,
};
use rusqlite::{OptionalExtension as _, Row, params, params_from_iter, types::Value};
use serde::{Deserialize, Serialize};

use super::{Conditions, containing, places};
use crate::{LaneView, Reader, RunRow, StoreError, result};

named_enum! {
    /// What results are put in order by.
    #[derive(Default)]
    pub enum Sort ("an order of results") {
        /// What did not pass first.
        #[default]
        Verdict = "verdict",
        /// The case's id.
        Case = "case",
        /// The class.
        Class = "class",
        /// The category.
        Category = "category",
        /// How long the call took.
        Latency = "latency",
        /// Tokens in and out.
        Tokens = "tokens",
        /// Dollars.
        Cost = "cost",
        /// The lowest score that the case needs.
        Score = "score",
    }
}

impl Sort {
    const fn sql(self) -> &'static str {
        match self {
            Self::Verdict => {
                "CASE r.verdict WHEN 'error' THEN 0 WHEN 'fail' THEN 1 WHEN 'undecided' THEN 2 ELSE 3 END"
            }
            Self::Case => "r.case_id",
            Self::Class => "r.class",
            Self::Category => "coalesce(r.category, '')",
            Self::Latency => "r.latency_ms",
            Self::Tokens => "coalesce(r.input_tokens, 0) + coalesce(r.output_tokens, 0)",
            Self::Cost => "coalesce(r.cost_usd, -1.0)",
            Self::Score => {
                "coalesce((SELECT min(s.value) FROM scores s WHERE s.result = r.id AND s.weight > 0), 2.0)"
            }
        }
    }
}

/// Which results of a run are wanted, and in which order.
#[derive(Clone, Debug, Default)]
pub struct CaseQuery {
    /// Those with a verdict.
    pub verdict: Option<Verdict>,
    /// Those of a class.
    pub class: Option<Class>,
    /// Those of a category.
    pub category: Option<String>,
    /// Those with a tag.
    pub tag: Option<String>,
    /// Those whose id, prompt or reply contains every one of these words.
    pub words: Vec<String>,
    /// Those of cases whose repeats did not all come out alike.
    pub flaky: bool,
    /// Those that came out otherwise than in this run.
    pub flipped: Option<RunRow>,
    /// Those with a score in a range.
    pub score: Option<ScoreRange>,
    /// Their order.
    pub sort: Sort,
    /// Whether the order is turned round.
    pub descending: bool,
    /// Those behind this one.
    pub after: Option<CaseCursor>,
    /// How many at most.
    pub limit: usize,
}

/// A score between two values, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRange {
    /// The name of the score; any without it.
    pub name: Option<String>,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

/// The place of a result in an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseCursor {
    key: Key,
    case: String,
    lane: i64,
    repeat: u32,
}

/// What a result is put in order by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Key {
    /// The bits of a number: text would not bring back every last one of them.
    Number(u64),
    Text(String),
}

impl Key {
    const fn number(number: f64) -> Self {
        Self::Number(number.to_bits())
    }

    fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Self> {
        match row.get::<_, Value>(column)? {
            Value::Text(text) => Ok(Self::Text(text)),
            #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
            Value::Integer(number) => Ok(Self::number(number as f64)),
            Value::Real(number) => Ok(Self::number(number)),
            Value::Null | Value::Blob(_) => Ok(Self::Text(String::new())),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Number(bits) => Value::Real(f64::from_bits(*bits)),
            Self::Text(text) => Value::Text(text.clone()),
        }
    }
}

/// One result of a page.
#[derive(Clone, Debug)]
pub struct CaseRow {
    /// The place of its lane among those that were asked for.
    pub lane: usize,
    /// The result.
    pub record: CaseRecord,
}

/// Some results.
#[derive(Clone, Debug, Default)]
pub struct CasesPage {
    /// The results.
    pub rows: Vec<CaseRow>,
    /// How many results there are on all pages; unknown where texts would have to be read for it.
    pub total: Option<u64>,
    /// The place that the next page begins behind, if there is one.
    pub next: Option<CaseCursor>,
}

impl CaseQuery {
    /// The conditions for results of lanes, which are named by their rows.
    pub(super) fn conditions(&self, lanes: &[i64]) -> Conditions {
        let mut all = Conditions::default();
        let rows = lanes.iter().copied().map(Value::from);
        all.add(&format!("r.lane IN {} AND r.stale = 0", places(lanes.len())), rows);
        if let Some(verdict) = self.verdict {
            all.add("r.verdict = ?", [verdict.as_str().to_owned().into()]);
        }
        if let Some(class) = self.class {
            all.add("r.class = ?", [class.as_str().to_owned().into()]);
        }
        if let Some(category) = &self.category {
            all.add("r.category = ?", [category.clone().into()]);
        }
        if let Some(tag) = &self.tag {
            let sql = "EXISTS (SELECT 1 FROM json_each(r.tags) t WHERE t.value = ?)";
            all.add(sql, [tag.clone().into()]);
        }
        if self.flaky {
            all.add(
                "EXISTS (SELECT 1 FROM results o WHERE o.lane = r.lane AND o.case_id = r.case_id
                    AND o.stale = 0 AND o.verdict <> r.verdict)",
                [],
            );
        }
        if let Some(run) = &self.flipped {
            all.add(
                "EXISTS (SELECT 1 FROM lanes l JOIN lanes ol ON ol.run = ? AND ol.runner = l.runner
                    AND ol.variant = l.variant AND ol.backend = l.backend
                    JOIN results o ON o.lane = ol.id AND o.case_id = r.case_id
                        AND o.repeat = r.repeat AND o.stale = 0
                    WHERE l.id = r.lane AND o.verdict <> r.verdict)",
                [run.place().into()],
            );
        }
        if let Some(ScoreRange { name, min, max }) = &self.score {
            let (named, name) = match name {
                Some(name) => ("s.name = ? AND ", vec![Value::from(name.clone())]),
                None => ("", Vec::new()),
            };
            all.add(
                &format!(
                    "EXISTS (SELECT 1 FROM scores s WHERE s.result = r.id AND {named}s.value BETWEEN ? AND ?)"
                ),
                name.into_iter().chain([Value::from(*min), Value::from(*max)]),
            );
        }
        for word in &self.words {
            let pattern = containing(word);
            all.add(
                "(r.case_id LIKE ? ESCAPE '\\' OR r.prompt LIKE ? ESCAPE '\\' OR r.reply LIKE ? ESCAPE '\\'
                    OR r.own_prompt = 0 AND (SELECT CASE WHEN json_valid(d.text) THEN d.text ->> 'prompt' END FROM texts d WHERE d.id = r.definition) LIKE ? ESCAPE '\\')",
                [pattern.clone(), pattern.clone(), pattern.clone(), pattern],
            );
        }
        all
    }

    pub(super) fn count_sql(conditions: &Conditions) -> String {
        format!("SELECT count(*) FROM results r WHERE {}", conditions.sql())
    }

    pub(super) fn page_sql(&self, conditions: &Conditions) -> String {
        let order = if self.descending { "DESC" } else { "ASC" };
        format!(
            "SELECT r.id, r.lane, r.case_id, r.repeat, {} AS key FROM results r WHERE {}
             ORDER BY key {order}, r.case_id, r.lane, r.repeat LIMIT {}",
            self.sort.sql(),
            conditions.sql(),
            self.limit + 1
        )
    }

    /// The condition for what comes behind a place.
    fn behind(&self, conditions: &mut Conditions) {
        let Some(CaseCursor { key, case, lane, repeat }) = &self.after else { return };
        let (by, than) = (self.sort.sql(), if self.descending { "<" } else { ">" });
        conditions.add(
            &format!("({by} {than} ? OR ({by} = ? AND (r.case_id, r.lane, r.repeat) > (?, ?, ?)))"),
            [key.value(), key.value(), case.clone().into(), (*lane).into(), (*repeat).into()],
        );
    }
}

/// A result that was found, before it is read.
struct Place {
    row: i64,
    lane: i64,
    cursor: CaseCursor,
}

impl Reader {
    /// A page of the results of some lanes of a run.
    pub fn cases_page(
        &self,
        lanes: &[&LaneView],
        query: &CaseQuery,
    ) -> Result<CasesPage, StoreError> {
        if lanes.is_empty() {
            return Ok(CasesPage::default());
        }
        let of: Vec<i64> = lanes.iter().map(|it| it.row).collect();
        let mut conditions = query.conditions(&of);
        let total = match query.words.is_empty() {
            true => Some(self.count(&conditions)?),
            false => None,
        };
        query.behind(&mut conditions);
        let mut places = self.places(query, conditions)?;
        let has_more = places.len() > query.limit;
        places.truncate(query.limit);
        let next = places.last().filter(|_| has_more).map(|it| it.cursor.clone());
        let rows = places.iter().map(|place| {
            let lane = lanes.iter().position(|it| it.row == place.lane).unwrap_or(0);
            Ok(CaseRow { lane, record: self.record_at(place.row)? })
        });
        Ok(CasesPage { rows: rows.collect::<Result<_, StoreError>>()?, total, next })
    }

    /// The ids before and after a case, in the order of a lane's ids.
    pub fn neighbours(
        &self,
        lane: &LaneView,
        case_id: &str,
    ) -> Result<[Option<String>; 2], StoreError> {
        let find = |sql: &str| {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row(params![lane.row, case_id], |row| row.get(0)).optional()
        };
        let both = || -> rusqlite::Result<_> {
            let before = find(
                "SELECT case_id FROM results WHERE lane = ? AND case_id < ? AND stale = 0
                 ORDER BY case_id DESC LIMIT 1",
            )?;
            let after = find(
                "SELECT case_id FROM results WHERE lane = ? AND case_id > ? AND stale = 0
                 ORDER BY case_id LIMIT 1",
            )?;
            Ok([before, after])
        };
        both().map_err(StoreError::of_reading)
    }

    fn count(&self, conditions: &Conditions) -> Result<u64, StoreError> {
        let sql = CaseQuery::count_sql(conditions);
        let values = params_from_iter(&conditions.values);
        self.connection.query_row(&sql, values, |row| row.get(0)).map_err(StoreError::of_reading)
    }

    fn places(&self, query: &CaseQuery, conditions: Conditions) -> Result<Vec<Place>, StoreError> {
        let sql = query.page_sql(&conditions);
        let read = || {
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map(params_from_iter(conditions.values), |row| {
                let lane = row.get(1)?;
                let (case, repeat, key) = (row.get(2)?, row.get(3)?, Key::read(row, 4)?);
                Ok(Place { row: row.get(0)?, lane, cursor: CaseCursor { key, case, lane, repeat } })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(StoreError::of_reading)
    }

    pub(crate) fn record_at(&self, row: i64) -> Result<CaseRecord, StoreError> {
        let sql = format!("{} WHERE r.id = ?", result::select());
        let mut statement = self.connection.prepare_cached(&sql).map_err(StoreError::of_reading)?;
        let mut rows = statement.query([row]).map_err(StoreError::of_reading)?;
        match rows.next().map_err(StoreError::of_reading)? {
            Some(row) => self.record(row),
            None => Err(StoreError::Content("a result has gone meanwhile".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_an_address_to_the_last_bit() {
        for cost in (1..1000).map(|tokens| f64::from(tokens) * 1.05e-6) {
            let key = Key::number(cost);
            let cursor = CaseCursor { key, case: "a".to_owned(), lane: 1, repeat: 0 };
            let text = serde_json::to_vec(&cursor).unwrap();
            let back: CaseCursor = serde_json::from_slice(&text).unwrap();
            assert_eq!(back.key.value(), Value::Real(cost));
        }
    }
}
