//! Results without their texts: what figures are made of.

use probity_core::{
    case::Category, failure::ErrorKind, metrics::ResultFacts, record::Usage, score::Score,
};
use rusqlite::{
    CachedStatement, Connection, Row, Rows, Statement,
    types::{FromSql, FromSqlResult, ValueRef},
};

use super::{
    Column, Json, Name, evidence,
    parts::{ScoreColumn, read_score},
    sums::{Part, Summed, Values as _},
};

/// Whether the opinions of judges are read along with results. They stand in large texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opinions {
    Read,
    LeftOut,
}

/// How many columns are facts.
const COUNT: usize = PLACES.0;
/// Where each column stands among them.
const PLACES: (usize, [usize; Column::ALL.len()]) = {
    let (mut places, mut count, mut at) = ([usize::MAX; Column::ALL.len()], 0, 0);
    while at < Column::ALL.len() {
        if matches!(Column::ALL[at].part(), Part::Facts) {
            places[at] = count;
            count += 1;
        }
        at += 1;
    }
    (count, places)
};

/// The query of the facts of a lane, in the order of the cases: whether opinions are read, and the lane.
pub(crate) fn of_lane(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    let facts: Vec<&str> = Column::of(Part::Facts).map(Column::as_str).collect();
    connection.prepare_cached(&format!(
        "SELECT {}, {}, id, CASE WHEN ? THEN json_extract(classification, '$.details.judged') END
         FROM results WHERE lane = ? AND stale = 0 ORDER BY case_id, repeat",
        facts.join(", "),
        Column::FactsSum
    ))
}

/// The facts of a lane, one result after the other.
pub(crate) struct FactsRows<'c, 's> {
    rows: Rows<'s>,
    scores: CachedStatement<'c>,
    summed: Summed,
}

impl<'c, 's> FactsRows<'c, 's> {
    /// Begins to read what a statement of [`of_lane`] finds.
    pub(crate) fn new(
        connection: &'c Connection,
        statement: &'s mut Statement<'_>,
        (opinions, lane): (Opinions, i64),
    ) -> rusqlite::Result<Self> {
        let columns = ScoreColumn::ALL.map(ScoreColumn::as_str).join(", ");
        let sql = format!("SELECT {columns} FROM scores WHERE result = ? ORDER BY place");
        let scores = connection.prepare_cached(&sql)?;
        let rows = statement.query((opinions == Opinions::Read, lane))?;
        Ok(Self { rows, scores, summed: Summed::new() })
    }

    /// The facts of the next result, if they are what was written.
    pub(crate) fn next(&mut self) -> rusqlite::Result<Option<ResultFacts>> {
        let Self { rows, scores, summed } = self;
        let Some(row) = rows.next()? else { return Ok(None) };
        let facts = Facts::read(row)?;
        summed.clear();
        facts.values.into_iter().for_each(|it| summed.push(it));
        let (mut facts, stored, result) = (facts.result()?, row.get(COUNT)?, row.get(COUNT + 1)?);
        add_scores(&mut facts, scores, result, summed)?;
        summed.check(stored, &facts.case_id, "figures or scores")?;
        Ok(Some(facts))
    }
}

/// Adds the scores of a result, and sums up all that is stored of them.
fn add_scores(
    facts: &mut ResultFacts,
    scores: &mut Statement<'_>,
    result: i64,
    summed: &mut Summed,
) -> rusqlite::Result<()> {
    let mut rows = scores.query([result])?;
    while let Some(row) = rows.next()? {
        let mut values = [ValueRef::Null; ScoreColumn::ALL.len()];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
            summed.push(*value);
        }
        // The row says where it is that something is wrong.
        facts.scores.push(score_of(&values).or_else(|_| read_score(row, 0))?);
    }
    Ok(())
}

/// A score from its values, each of which was fetched once. Figures do not need its reason.
fn score_of(values: &[ValueRef<'_>; ScoreColumn::ALL.len()]) -> FromSqlResult<Score> {
    fn at<T: FromSql>(
        values: &[ValueRef<'_>; ScoreColumn::ALL.len()],
        column: ScoreColumn,
    ) -> FromSqlResult<T> {
        T::column_result(values[column as usize])
    }
    let span: (Option<usize>, Option<usize>) =
        (at(values, ScoreColumn::SpanStart)?, at(values, ScoreColumn::SpanEnd)?);
    Ok(Score {
        name: at::<String>(values, ScoreColumn::Name)?.into(),
        kind: at::<String>(values, ScoreColumn::Kind)?.into(),
        named: at(values, ScoreColumn::Named)?,
        value: at(values, ScoreColumn::Value)?,
        said: at(values, ScoreColumn::Said)?,
        passed: at(values, ScoreColumn::Passed)?,
        weight: at(values, ScoreColumn::Weight)?,
        reason: None,
        span: span.0.zip(span.1).map(|(start, end)| start..end),
    })
}

/// The values of a row, each fetched once.
struct Facts<'r, 's> {
    row: &'r Row<'s>,
    values: [ValueRef<'r>; COUNT],
}

impl<'r, 's> Facts<'r, 's> {
    fn read(row: &'r Row<'s>) -> rusqlite::Result<Self> {
        let mut values = [ValueRef::Null; COUNT];
        for (at, value) in values.iter_mut().enumerate() {
            *value = row.get_ref(at)?;
        }
        Ok(Self { row, values })
    }

    fn get<T: FromSql>(&self, column: Column) -> rusqlite::Result<T> {
        let place = PLACES.1[column as usize];
        // The row says where it is that something is wrong.
        T::column_result(self.values[place]).or_else(|_| self.row.get(place))
    }

    /// The result, before its scores are known.
    fn result(&self) -> rusqlite::Result<ResultFacts> {
        let Name(class) = self.get(Column::Class)?;
        let Name(verdict) = self.get(Column::Verdict)?;
        let Name(source) = self.get(Column::Source)?;
        let category: Option<String> = self.get(Column::Category)?;
        let error: Option<Name<ErrorKind>> = self.get(Column::ErrorKind)?;
        let tags: Option<Json<Vec<String>>> = self.get(Column::Tags)?;
        Ok(ResultFacts {
            case_id: self.get(Column::CaseId)?,
            repeat: self.get(Column::Repeat)?,
            category: category.map(|it| Category::named(&it)),
            tags: tags.map(|it| it.0).unwrap_or_default(),
            group: self.get(Column::CaseGroup)?,
            class,
            verdict,
            breaks_policy: self.get::<u64>(Column::PolicyHits)? > 0,
            scores: Vec::new(),
            error: error.map(|it| it.0),
            source,
            latency_ms: self.get(Column::LatencyMs)?,
            ttft_ms: self.get(Column::TtftMs)?,
            tokens_per_second: self.get(Column::TokensPerSecond)?,
            usage: Usage {
                input_tokens: self.get(Column::InputTokens)?,
                output_tokens: self.get(Column::OutputTokens)?,
                cached_tokens: self.get(Column::CachedTokens)?,
                estimated: self.get(Column::UsageEstimated)?,
            },
            cost_usd: self.get(Column::CostUsd)?,
            calls: self.get(Column::Calls)?,
            worker: self.get(Column::Worker)?,
            started_ms: self.get(Column::StartedMs)?,
            elapsed_ms: self.get(Column::ElapsedMs)?,
            evidence: evidence(self.row, PLACES.1[Column::Evidence as usize])?,
            judged: evidence(self.row, COUNT + 2)?.unwrap_or_default(),
        })
    }
}
