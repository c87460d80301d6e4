//! One result as rows: every column of it is named here, and nowhere else.

pub(crate) mod facts;
pub(crate) mod parts;
pub(crate) mod sums;

use std::{borrow::Cow, sync::Arc};

use probity_core::{
    case::{Category, TestCase},
    classification::{self, Classification},
    details::Details,
    named_enum,
    record::{CallError, CaseRecord, FailedAttempt, InputDigest, Usage},
    request::Request,
};
use rusqlite::{
    Row, Statement,
    types::{FromSql, FromSqlError, ToSql, ToSqlOutput, Type, ValueRef},
};

use sums::{Part, Passing, Summed, Values};

named_enum! {
    /// The columns of a result beside its lane. Texts that many results share stand in another table.
    pub(crate) enum Column ("a column of a result") {
        CaseId = "case_id",
        Repeat = "repeat",
        Input = "input",
        Definition = "definition",
        System = "system",
        Prompt = "prompt",
        OwnPrompt = "own_prompt",
        Request = "request",
        Reply = "reply",
        Reasoning = "reasoning",
        Error = "error",
        ErrorKind = "error_kind",
        StopReason = "stop_reason",
        Model = "model",
        Source = "source",
        LatencyMs = "latency_ms",
        TtftMs = "ttft_ms",
        TokensPerSecond = "tokens_per_second",
        InputTokens = "input_tokens",
        OutputTokens = "output_tokens",
        CachedTokens = "cached_tokens",
        UsageEstimated = "usage_estimated",
        CostUsd = "cost_usd",
        Calls = "calls",
        Worker = "worker",
        Failures = "failures",
        StartedMs = "started_ms",
        ElapsedMs = "elapsed_ms",
        Class = "class",
        Verdict = "verdict",
        PolicyHits = "policy_hits",
        Category = "category",
        Tags = "tags",
        CaseGroup = "case_group",
        Classification = "classification",
        Evidence = "evidence",
        FactsSum = "facts_sum",
        TextsSum = "texts_sum",
        AskedSum = "asked_sum",
    }
}

impl Column {
    /// Whether it is the row of a shared text.
    pub(crate) const fn is_shared_text(self) -> bool {
        matches!(self, Self::Definition | Self::System)
    }

    /// The names of all columns.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

/// A record on its way into the store.
pub(crate) struct NewResult<'a> {
    pub(crate) record: &'a CaseRecord,
    /// The row of the case's text.
    pub(crate) definition: i64,
    /// The row of the instructions.
    pub(crate) system: Option<i64>,
    pub(crate) failures: Option<String>,
    request: StoredRequest<'a>,
    error: Option<String>,
    classification: String,
    evidence: Option<String>,
    tags: Option<String>,
    sums: Sums,
}

/// The sums of a result.
#[derive(Default)]
struct Sums {
    facts: i64,
    texts: i64,
    asked: i64,
}

/// A request as it is stored: instructions are shared texts, a plain prompt stands by itself unless it is that of the
/// case, and everything else is JSON.
struct StoredRequest<'a> {
    prompt: &'a str,
    has_own_prompt: bool,
    request: Option<String>,
}

impl<'a> StoredRequest<'a> {
    fn new(record: &'a CaseRecord) -> Self {
        let (prompt, is_plain) = (record.request.prompt(), record.request.is_plain());
        let has_own_prompt = !is_plain || prompt != &*record.case.prompt;
        Self {
            prompt: if has_own_prompt { prompt } else { "" },
            has_own_prompt,
            request: (!is_plain).then(|| json(&record.request)),
        }
    }
}

impl<'a> NewResult<'a> {
    pub(crate) fn new(
        record: &'a CaseRecord,
        definition: (i64, &str),
        system: Option<i64>,
        failures: Option<String>,
    ) -> rusqlite::Result<Self> {
        let classification = stored(&record.classification);
        let details = &record.classification.details;
        let mut new = Self {
            record,
            definition: definition.0,
            system,
            failures,
            request: StoredRequest::new(record),
            error: record.error.as_ref().map(json),
            classification,
            evidence: details.evidence.as_ref().map(json),
            tags: (!record.case.tags.is_empty()).then(|| json(&record.case.tags)),
            sums: Sums::default(),
        };
        new.sums = new.summed(definition.1)?;
        Ok(new)
    }

    fn summed(&self, definition: &str) -> rusqlite::Result<Sums> {
        let Self { record, .. } = self;
        let (mut facts, mut texts, mut asked) = (Summed::new(), Passing::new(), Summed::default());
        for column in Column::of(Part::Facts) {
            facts.push_new(&self.value(column)?);
        }
        for score in &record.classification.scores {
            facts.push_score(score)?;
        }
        for column in Column::of(Part::Texts) {
            if column == Column::Definition {
                texts.push_text(Some(definition));
            } else if column == Column::System {
                texts.push_text(record.request.system());
            } else if !column.is_implied(|| Ok(self.request.has_own_prompt))? {
                texts.push_new(&self.value(column)?);
            }
        }
        for it in &record.asked {
            parts::sum_asked(it, &mut asked)?;
        }
        Ok(Sums { facts: facts.sum(), texts: texts.sum(), asked: asked.sum() })
    }

    fn value(&self, column: Column) -> rusqlite::Result<ToSqlOutput<'_>> {
        let Self { record, .. } = self;
        match column {
            Column::CaseId => record.case_id.to_sql(),
            Column::Repeat => record.repeat.to_sql(),
            Column::Input => record.input.0.to_sql(),
            Column::Definition => self.definition.to_sql(),
            Column::System => self.system.to_sql(),
            Column::Prompt => self.request.prompt.to_sql(),
            Column::OwnPrompt => self.request.has_own_prompt.to_sql(),
            Column::Request => self.request.request.to_sql(),
            Column::Reply => record.reply.to_sql(),
            Column::Reasoning => record.reasoning.to_sql(),
            Column::Error => self.error.to_sql(),
            Column::ErrorKind => Ok(text_or_null(record.error.as_ref().map(|it| it.kind.as_str()))),
            Column::StopReason => record.stop_reason.to_sql(),
            Column::Model => record.model.to_sql(),
            Column::Source => Ok(text(record.source.as_str())),
            Column::LatencyMs => record.latency_ms.to_sql(),
            Column::TtftMs => record.ttft_ms.to_sql(),
            Column::TokensPerSecond => record.tokens_per_second.to_sql(),
            Column::InputTokens => record.usage.input_tokens.to_sql(),
            Column::OutputTokens => record.usage.output_tokens.to_sql(),
            Column::CachedTokens => record.usage.cached_tokens.to_sql(),
            Column::UsageEstimated => record.usage.estimated.to_sql(),
            Column::CostUsd => record.cost_usd.to_sql(),
            Column::Calls => record.calls.to_sql(),
            Column::Worker => record.worker.to_sql(),
            Column::Failures => self.failures.to_sql(),
            Column::StartedMs => record.started_ms.to_sql(),
            Column::ElapsedMs => record.elapsed_ms.to_sql(),
            Column::Class => Ok(text(record.class.as_str())),
            Column::Verdict => Ok(text(record.verdict.as_str())),
            Column::PolicyHits => Ok(count(record.classification.details.hits.len())),
            Column::Category => {
                Ok(text_or_null(record.case.category.as_ref().map(Category::as_str)))
            }
            Column::Tags => self.tags.to_sql(),
            Column::CaseGroup => record.case.routing.group.to_sql(),
            Column::Classification => self.classification.to_sql(),
            Column::Evidence => self.evidence.to_sql(),
            Column::FactsSum => self.sums.facts.to_sql(),
            Column::TextsSum => self.sums.texts.to_sql(),
            Column::AskedSum => self.sums.asked.to_sql(),
        }
    }

    /// Binds the lane and every column, in that order.
    pub(crate) fn bind(&self, lane: i64, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
        statement.raw_bind_parameter(1, lane)?;
        for (at, column) in Column::ALL.into_iter().enumerate() {
            statement.raw_bind_parameter(at + 2, self.value(column)?)?;
        }
        Ok(())
    }
}

/// A text as a value.
fn text(text: &str) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
}

/// A text that may be missing.
fn text_or_null(value: Option<&str>) -> ToSqlOutput<'_> {
    value.map_or(ToSqlOutput::Borrowed(ValueRef::Null), text)
}

/// A number of things.
fn count(count: usize) -> ToSqlOutput<'static> {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

/// Our own types as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("keys are texts, and numbers are finite")
}

/// The classification without what stands in columns and tables of its own.
fn stored(classification: &Classification) -> String {
    let Classification { rule, scores: _, details } = classification;
    let details = match details.evidence {
        None => Cow::Borrowed(details),
        Some(_) => Cow::Owned(Details { evidence: None, ..details.clone() }),
    };
    json(&classification::Parts { rule: *rule, scores: &[], details: &details })
}

/// Why a row is not what was written.
#[derive(Debug, thiserror::Error)]
#[error("{thing} `{name}` is damaged: {what}")]
pub struct Damaged {
    thing: &'static str,
    name: String,
    what: String,
}

fn damaged(case_id: &str, what: &dyn ToString) -> rusqlite::Error {
    not_as_written("result", case_id, what)
}

/// The error of a thing whose row is not what was written.
pub(crate) fn not_as_written(
    thing: &'static str,
    name: &str,
    what: &dyn ToString,
) -> rusqlite::Error {
    let error = Damaged { thing, name: name.to_owned(), what: what.to_string() };
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}

/// The query that [`read`] reads the rows of, without its conditions.
pub(crate) fn select() -> String {
    let columns = Column::ALL.map(|it| match (it, it.is_shared_text()) {
        (Column::Definition, _) => "d.text".to_owned(),
        (_, true) => "s.text".to_owned(),
        (_, false) => format!("r.{it}"),
    });
    format!(
        "SELECT {}, r.id FROM results r JOIN texts d ON d.id = r.definition \
         LEFT JOIN texts s ON s.id = r.system",
        columns.join(", ")
    )
}

/// The row of the result in a row of [`select`].
pub(crate) fn row_id(row: &Row<'_>) -> rusqlite::Result<i64> {
    row.get(Column::ALL.len())
}

fn get<T: FromSql>(row: &Row<'_>, column: Column) -> rusqlite::Result<T> {
    row.get(column as usize)
}

/// A name of a closed set.
pub(crate) struct Name<T>(pub(crate) T);

impl<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>> FromSql for Name<T> {
    fn column_result(value: ValueRef<'_>) -> Result<Self, FromSqlError> {
        value.as_str()?.parse().map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

/// A value that is stored as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: serde::de::DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> Result<Self, FromSqlError> {
        let text = value.as_str()?;
        serde_json::from_str(text).map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

fn optional_json<T>(row: &Row<'_>, column: Column) -> rusqlite::Result<Option<T>>
where
    T: serde::de::DeserializeOwned,
{
    Ok(get::<Option<Json<T>>>(row, column)?.map(|it| it.0))
}

/// Reads a result. Its scores and questions stand in tables of their own.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<CaseRecord> {
    let case_id: String = get(row, Column::CaseId)?;
    let wrong = |what: &dyn ToString| damaged(&case_id, what);
    let definition: String = get(row, Column::Definition)?;
    let system: Option<String> = get(row, Column::System)?;
    let prompt: String = get(row, Column::Prompt)?;
    let error: Option<String> = get(row, Column::Error)?;
    let written: String = get(row, Column::Classification)?;
    check_texts(row, &case_id)?;
    let mut classification: Classification =
        serde_json::from_str(&written).map_err(|it| wrong(&it))?;
    classification.details.evidence = evidence(row, Column::Evidence as usize)?;
    let error: Option<CallError> =
        error.map(|it| serde_json::from_str(&it)).transpose().map_err(|it| wrong(&it))?;
    let case = TestCase::from_json(&definition).map_err(|it| wrong(&it))?;
    let request = match optional_json::<Request>(row, Column::Request)? {
        Some(request) => request,
        None if get(row, Column::OwnPrompt)? => Request::new(system.map(Into::into), prompt),
        None => Request::new(system.map(Into::into), case.prompt.clone()),
    };
    let failures: Option<Vec<FailedAttempt>> = optional_json(row, Column::Failures)?;
    let Name(class) = get(row, Column::Class)?;
    let Name(verdict) = get(row, Column::Verdict)?;
    let Name(source) = get(row, Column::Source)?;
    Ok(CaseRecord {
        repeat: get(row, Column::Repeat)?,
        input: InputDigest(get(row, Column::Input)?),
        case: Arc::new(case),
        request,
        reply: get(row, Column::Reply)?,
        reasoning: get(row, Column::Reasoning)?,
        error,
        stop_reason: get(row, Column::StopReason)?,
        model: get(row, Column::Model)?,
        source,
        latency_ms: get(row, Column::LatencyMs)?,
        ttft_ms: get(row, Column::TtftMs)?,
        tokens_per_second: get(row, Column::TokensPerSecond)?,
        usage: Usage {
            input_tokens: get(row, Column::InputTokens)?,
            output_tokens: get(row, Column::OutputTokens)?,
            cached_tokens: get(row, Column::CachedTokens)?,
            estimated: get(row, Column::UsageEstimated)?,
        },
        cost_usd: get(row, Column::CostUsd)?,
        calls: get(row, Column::Calls)?,
        worker: get(row, Column::Worker)?,
        failures: failures.unwrap_or_default(),
        started_ms: get(row, Column::StartedMs)?,
        elapsed_ms: get(row, Column::ElapsedMs)?,
        class,
        verdict,
        classification,
        asked: Vec::new(),
        case_id,
    })
}

/// The values of a row of [`select`] that belong to a sum.
fn summed<V: Values>(mut values: V, row: &Row<'_>, part: Part) -> rusqlite::Result<V> {
    for column in Column::of(part) {
        let place = column as usize;
        if !column.is_implied(|| row.get(place))? {
            values.push(row.get_ref(place)?);
        }
    }
    Ok(values)
}

/// Says so if the texts in a row of [`select`] are not what was written.
fn check_texts(row: &Row<'_>, case_id: &str) -> rusqlite::Result<()> {
    let Some(stored) = get::<Option<i64>>(row, Column::TextsSum)? else { return Ok(()) };
    if summed(Passing::new(), row, Part::Texts)?.sum() == stored {
        return Ok(());
    }
    // Older sums are made of all at once.
    summed(Summed::new(), row, Part::Texts)?.check(Some(stored), case_id, "texts")
}

/// Says so if the figures or the scores in a row of [`select`] are not what was written.
pub(crate) fn check_facts(row: &Row<'_>, record: &CaseRecord) -> rusqlite::Result<()> {
    let mut facts = summed(Summed::new(), row, Part::Facts)?;
    for score in &record.classification.scores {
        facts.push_score(score)?;
    }
    facts.check(get(row, Column::FactsSum)?, &record.case_id, "figures or scores")
}

/// Whether a row of [`select`] has questions, or was written by a version that did not say so.
pub(crate) fn may_have_asked(row: &Row<'_>) -> rusqlite::Result<bool> {
    let sum: Option<i64> = get(row, Column::AskedSum)?;
    Ok(sum.is_none_or(|it| !Summed::default().is(it)))
}

/// Says so if the questions of a row of [`select`] are not what was written.
pub(crate) fn check_asked(
    row: &Row<'_>,
    asked: &Summed,
    record: &CaseRecord,
) -> rusqlite::Result<()> {
    asked.check(get(row, Column::AskedSum)?, &record.case_id, "questions")
}

fn evidence<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    // By way of a tree: serde cannot hand numbers of any precision to tagged variants directly.
    let tree: serde_json::Value = serde_json::from_str(&text).map_err(|it| damaged("?", &it))?;
    serde_json::from_value(tree).map(Some).map_err(|it| damaged("?", &it))
}
