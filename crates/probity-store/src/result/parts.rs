//! The scores and the questions of a result.

use probity_core::{
    named_enum,
    record::{Asked, Source, Usage},
    reply::Logprobs,
    request::{Request, ToolCall},
    score::Score,
};
use rusqlite::{
    Row, Statement,
    types::{ToSql as _, ToSqlOutput, Value},
};

use super::{
    Json, Name, count, json,
    sums::{Summed, Values as _},
    text,
};

const NULL: ToSqlOutput<'static> = ToSqlOutput::Owned(Value::Null);

named_enum! {
    /// The columns of a score beside its result and its place.
    pub(crate) enum ScoreColumn ("a column of a score") {
        Name = "name",
        Kind = "kind",
        Named = "named",
        Value = "value",
        Passed = "passed",
        Weight = "weight",
        Reason = "reason",
        SpanStart = "span_start",
        SpanEnd = "span_end",
        Said = "said",
    }
}

/// The statement that writes a part of a result: its result, its place, and these columns.
pub(crate) fn insert_part<const N: usize>(table: &str, columns: [&str; N]) -> String {
    let places = ", ?".repeat(N);
    format!("INSERT INTO {table} (result, place, {}) VALUES (?, ?{places})", columns.join(", "))
}

/// Binds a score behind its result and its place.
pub(crate) fn bind_score(score: &Score, statement: &mut Statement<'_>) -> rusqlite::Result<()> {
    for (at, column) in ScoreColumn::ALL.into_iter().enumerate() {
        statement.raw_bind_parameter(at + 3, score_value(score, column)?)?;
    }
    Ok(())
}

pub(super) fn score_value(score: &Score, column: ScoreColumn) -> rusqlite::Result<ToSqlOutput<'_>> {
    match column {
        ScoreColumn::Name => (*score.name).to_sql(),
        ScoreColumn::Kind => (*score.kind).to_sql(),
        ScoreColumn::Named => score.named.to_sql(),
        ScoreColumn::Value => score.value.to_sql(),
        ScoreColumn::Passed => score.passed.to_sql(),
        ScoreColumn::Weight => score.weight.to_sql(),
        ScoreColumn::Reason => score.reason.to_sql(),
        ScoreColumn::SpanStart => Ok(place_or_null(score.span.as_ref().map(|it| it.start))),
        ScoreColumn::SpanEnd => Ok(place_or_null(score.span.as_ref().map(|it| it.end))),
        ScoreColumn::Said => score.said.to_sql(),
    }
}

fn place_or_null(place: Option<usize>) -> ToSqlOutput<'static> {
    match place {
        Some(place) => count(place),
        None => NULL,
    }
}

/// Reads a score whose columns begin at one.
pub(crate) fn read_score(row: &Row<'_>, first: usize) -> rusqlite::Result<Score> {
    let at = |column: ScoreColumn| first + column as usize;
    let span: (Option<usize>, Option<usize>) =
        (row.get(at(ScoreColumn::SpanStart))?, row.get(at(ScoreColumn::SpanEnd))?);
    Ok(Score {
        name: row.get::<_, String>(at(ScoreColumn::Name))?.into(),
        kind: row.get::<_, String>(at(ScoreColumn::Kind))?.into(),
        named: row.get(at(ScoreColumn::Named))?,
        value: row.get(at(ScoreColumn::Value))?,
        said: row.get(at(ScoreColumn::Said))?,
        passed: row.get(at(ScoreColumn::Passed))?,
        weight: row.get(at(ScoreColumn::Weight))?,
        reason: row.get(at(ScoreColumn::Reason))?,
        span: span.0.zip(span.1).map(|(start, end)| start..end),
    })
}

named_enum! {
    /// The columns of a question beside its result and its place.
    pub(crate) enum AskedColumn ("a column of a question") {
        Role = "role",
        Backend = "backend",
        System = "system",
        Prompt = "prompt",
        Reply = "reply",
        Error = "error",
        Model = "model",
        Source = "source",
        LatencyMs = "latency_ms",
        InputTokens = "input_tokens",
        OutputTokens = "output_tokens",
        CachedTokens = "cached_tokens",
        CostUsd = "cost_usd",
        Calls = "calls",
        Request = "request",
        UsageEstimated = "usage_estimated",
        Turn = "turn",
        ToolCalls = "tool_calls",
        Reasoning = "reasoning",
        StopReason = "stop_reason",
        Logprobs = "logprobs",
    }
}

/// Binds a question behind its result and its place.
pub(crate) fn bind_asked(
    asked: &Asked,
    system: Option<i64>,
    statement: &mut Statement<'_>,
) -> rusqlite::Result<()> {
    let request = stored_request(asked);
    for (at, column) in AskedColumn::ALL.into_iter().enumerate() {
        let value = match column == AskedColumn::System {
            true => system.to_sql()?,
            false => asked_value(asked, request.as_ref(), column)?,
        };
        statement.raw_bind_parameter(at + 3, value)?;
    }
    Ok(())
}

/// Adds a question to a sum, as [`read_asked`] finds it.
pub(super) fn sum_asked(asked: &Asked, summed: &mut Summed) -> rusqlite::Result<()> {
    let request = stored_request(asked);
    for column in AskedColumn::ALL {
        summed.push_new(&asked_value(asked, request.as_ref(), column)?);
    }
    Ok(())
}

/// A request that is more than a prompt with or without instructions.
fn stored_request(asked: &Asked) -> Option<String> {
    (!asked.request.is_plain()).then(|| json(&asked.request))
}

/// What stands in a column, with instructions as the text that they are.
fn asked_value<'a>(
    asked: &'a Asked,
    request: Option<&'a String>,
    column: AskedColumn,
) -> rusqlite::Result<ToSqlOutput<'a>> {
    match column {
        AskedColumn::Role => asked.role.to_sql(),
        AskedColumn::Backend => asked.backend.to_sql(),
        AskedColumn::System => Ok(asked.request.system().map_or(NULL, ToSqlOutput::from)),
        AskedColumn::Prompt => asked.request.prompt().to_sql(),
        AskedColumn::Reply => asked.reply.to_sql(),
        AskedColumn::Error => asked.error.to_sql(),
        AskedColumn::Model => asked.model.to_sql(),
        AskedColumn::Source => Ok(text(asked.source.as_str())),
        AskedColumn::LatencyMs => asked.latency_ms.to_sql(),
        AskedColumn::InputTokens => asked.usage.input_tokens.to_sql(),
        AskedColumn::OutputTokens => asked.usage.output_tokens.to_sql(),
        AskedColumn::CachedTokens => asked.usage.cached_tokens.to_sql(),
        AskedColumn::CostUsd => asked.cost_usd.to_sql(),
        AskedColumn::Calls => asked.calls.to_sql(),
        AskedColumn::Request => Ok(request.map_or(NULL, |it| ToSqlOutput::from(it.as_str()))),
        AskedColumn::UsageEstimated => asked.usage.estimated.to_sql(),
        AskedColumn::Turn => asked.turn.to_sql(),
        AskedColumn::ToolCalls => Ok(match asked.tool_calls.is_empty() {
            true => NULL,
            false => json(&asked.tool_calls).into(),
        }),
        AskedColumn::Reasoning => asked.reasoning.to_sql(),
        AskedColumn::StopReason => asked.stop_reason.to_sql(),
        AskedColumn::Logprobs => Ok(asked.logprobs.as_ref().map_or(NULL, |it| json(it).into())),
    }
}

/// The query that [`read_asked`] reads the rows of: the questions of one result.
pub(crate) fn select_asked() -> String {
    let columns = AskedColumn::ALL.map(|it| match it == AskedColumn::System {
        true => "s.text".to_owned(),
        false => format!("a.{it}"),
    });
    format!(
        "SELECT {} FROM asked a LEFT JOIN texts s ON s.id = a.system WHERE result = ? ORDER BY place",
        columns.join(", ")
    )
}

/// Reads a question, and adds it to a sum.
pub(crate) fn read_asked(row: &Row<'_>, summed: &mut Summed) -> rusqlite::Result<Asked> {
    let at = |column: AskedColumn| column as usize;
    for column in AskedColumn::ALL {
        summed.push(row.get_ref(at(column))?);
    }
    let system: Option<String> = row.get(at(AskedColumn::System))?;
    let prompt: String = row.get(at(AskedColumn::Prompt))?;
    let request: Option<Json<Request>> = row.get(at(AskedColumn::Request))?;
    let tool_calls: Option<Json<Vec<ToolCall>>> = row.get(at(AskedColumn::ToolCalls))?;
    let logprobs: Option<Json<Logprobs>> = row.get(at(AskedColumn::Logprobs))?;
    let Name::<Source>(source) = row.get(at(AskedColumn::Source))?;
    Ok(Asked {
        role: row.get(at(AskedColumn::Role))?,
        backend: row.get(at(AskedColumn::Backend))?,
        request: match request {
            Some(Json(request)) => request,
            None => Request::new(system.map(Into::into), prompt),
        },
        turn: row.get(at(AskedColumn::Turn))?,
        reply: row.get(at(AskedColumn::Reply))?,
        tool_calls: tool_calls.map(|it| it.0).unwrap_or_default(),
        reasoning: row.get(at(AskedColumn::Reasoning))?,
        stop_reason: row.get(at(AskedColumn::StopReason))?,
        logprobs: logprobs.map(|it| it.0),
        error: row.get(at(AskedColumn::Error))?,
        model: row.get(at(AskedColumn::Model))?,
        source,
        latency_ms: row.get(at(AskedColumn::LatencyMs))?,
        usage: Usage {
            input_tokens: row.get(at(AskedColumn::InputTokens))?,
            output_tokens: row.get(at(AskedColumn::OutputTokens))?,
            cached_tokens: row.get(at(AskedColumn::CachedTokens))?,
            estimated: row.get(at(AskedColumn::UsageEstimated))?,
        },
        cost_usd: row.get(at(AskedColumn::CostUsd))?,
        calls: row.get(at(AskedColumn::Calls))?,
    })
}
