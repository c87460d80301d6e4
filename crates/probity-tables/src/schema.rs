//! The columns of the tables: an interface, described in `docs/reference/tables.md`, to which a test holds the page.
//!
//! Integers are signed, because Spark and Trino have no others.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub kind: Kind,
    /// Whether there is always a value.
    pub is_required: bool,
}

/// What stands in a column.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// One of a few texts that are known when a run is written, and each written once.
    Word,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Flag,
    /// A moment in UTC, in milliseconds.
    Time,
    /// A list of texts.
    Texts,
    /// A list of these.
    Structs(&'static [Column]),
}

impl Kind {
    /// Its type in Arrow; [`Column`] has what a query engine calls it.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Flag => DataType::Boolean,
            Self::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Self::Texts => DataType::List(text_item()),
            Self::Structs(columns) => DataType::List(struct_item(columns)),
        }
    }

    /// What query engines call it.
    pub fn sql(self) -> String {
        match self {
            Self::Text | Self::Word => "VARCHAR".to_owned(),
            Self::Integer => "BIGINT".to_owned(),
            Self::Number => "DOUBLE".to_owned(),
            Self::Flag => "BOOLEAN".to_owned(),
            Self::Time => "TIMESTAMP WITH TIME ZONE".to_owned(),
            Self::Texts => "VARCHAR[]".to_owned(),
            Self::Structs(columns) => {
                let fields = columns.iter().map(|it| format!("{} {}", it.name, it.kind.sql()));
                format!("STRUCT({})[]", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

pub(crate) fn text_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8, false))
}

pub(crate) fn struct_item(columns: &[Column]) -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(fields(columns)), false))
}

pub(crate) fn fields(columns: &[Column]) -> Fields {
    let field = |it: &Column| Field::new(it.name, it.kind.data_type(), !it.is_required);
    columns.iter().map(field).collect()
}

pub(crate) fn schema(columns: &[Column]) -> Arc<Schema> {
    Arc::new(Schema::new(fields(columns)))
}

const fn always(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: true }
}

const fn maybe(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: false }
}

/// A lane within a run.
const LANE: [Column; 18] = [
    always("runner", Kind::Text),
    maybe("variant", Kind::Text),
    always("kind", Kind::Text),
    always("backend", Kind::Text),
    always("backend_kind", Kind::Text),
    maybe("model", Kind::Text),
    always("dataset_digest", Kind::Text),
    always("repeat", Kind::Integer),
    maybe("status", Kind::Text),
    always("planned", Kind::Integer),
    always("pass", Kind::Integer),
    always("fail", Kind::Integer),
    always("error", Kind::Integer),
    always("undecided", Kind::Integer),
    always("calls", Kind::Integer),
    always("input_tokens", Kind::Integer),
    always("output_tokens", Kind::Integer),
    always("cost_usd", Kind::Number),
];

pub(crate) const RUNS: [Column; 22] = [
    always("run_id", Kind::Text),
    always("suite", Kind::Text),
    maybe("suite_path", Kind::Text),
    always("started_at", Kind::Time),
    maybe("finished_at", Kind::Time),
    always("status", Kind::Word),
    always("probity_version", Kind::Text),
    maybe("imported_tool", Kind::Text),
    maybe("imported_file", Kind::Text),
    maybe("rescored_from", Kind::Text),
    always("merged", Kind::Texts),
    always("results", Kind::Integer),
    always("pass", Kind::Integer),
    always("fail", Kind::Integer),
    always("error", Kind::Integer),
    always("undecided", Kind::Integer),
    always("calls", Kind::Integer),
    always("input_tokens", Kind::Integer),
    always("output_tokens", Kind::Integer),
    always("cost_usd", Kind::Number),
    always("priced", Kind::Integer),
    always("lanes", Kind::Structs(&LANE)),
];

/// A failed try within a result.
const FAILURE: [Column; 9] = [
    always("attempt", Kind::Integer),
    always("error_kind", Kind::Text),
    always("permanent", Kind::Flag),
    always("message", Kind::Text),
    maybe("status", Kind::Integer),
    maybe("exit_code", Kind::Integer),
    always("latency_ms", Kind::Integer),
    maybe("retry_in_ms", Kind::Integer),
    maybe("worker", Kind::Text),
];

pub(crate) const CASES: [Column; 42] = [
    always("run_id", Kind::Word),
    always("runner", Kind::Word),
    maybe("variant", Kind::Word),
    always("kind", Kind::Word),
    always("backend", Kind::Word),
    maybe("model", Kind::Text),
    always("case_id", Kind::Text),
    always("repeat", Kind::Integer),
    maybe("category", Kind::Text),
    always("tags", Kind::Texts),
    maybe("difficulty", Kind::Text),
    always("class", Kind::Word),
    always("verdict", Kind::Word),
    always("rule", Kind::Word),
    always("reason", Kind::Text),
    maybe("system", Kind::Text),
    always("prompt", Kind::Text),
    maybe("messages", Kind::Text),
    maybe("expected", Kind::Text),
    maybe("reply", Kind::Text),
    maybe("reasoning", Kind::Text),
    maybe("stop_reason", Kind::Text),
    maybe("error_kind", Kind::Word),
    maybe("error", Kind::Text),
    always("source", Kind::Word),
    maybe("worker", Kind::Text),
    always("started_at", Kind::Time),
    always("elapsed_ms", Kind::Integer),
    always("latency_ms", Kind::Integer),
    maybe("ttft_ms", Kind::Integer),
    maybe("tokens_per_second", Kind::Number),
    maybe("input_tokens", Kind::Integer),
    maybe("output_tokens", Kind::Integer),
    maybe("cached_tokens", Kind::Integer),
    always("usage_estimated", Kind::Flag),
    maybe("cost_usd", Kind::Number),
    always("calls", Kind::Integer),
    always("questions", Kind::Integer),
    always("failures", Kind::Structs(&FAILURE)),
    always("details", Kind::Text),
    always("definition", Kind::Text),
    always("input_digest", Kind::Text),
];

pub(crate) const SCORES: [Column; 17] = [
    always("run_id", Kind::Word),
    always("runner", Kind::Word),
    maybe("variant", Kind::Word),
    always("backend", Kind::Word),
    always("case_id", Kind::Text),
    always("repeat", Kind::Integer),
    always("place", Kind::Integer),
    always("name", Kind::Text),
    always("kind", Kind::Text),
    always("named", Kind::Flag),
    maybe("value", Kind::Number),
    maybe("said", Kind::Number),
    always("passed", Kind::Flag),
    always("weight", Kind::Number),
    maybe("reason", Kind::Text),
    maybe("span_start", Kind::Integer),
    maybe("span_end", Kind::Integer),
];

pub(crate) const CALLS: [Column; 26] = [
    always("run_id", Kind::Word),
    always("runner", Kind::Word),
    maybe("variant", Kind::Word),
    always("backend", Kind::Word),
    always("case_id", Kind::Text),
    always("repeat", Kind::Integer),
    always("place", Kind::Integer),
    maybe("role", Kind::Text),
    maybe("turn", Kind::Integer),
    always("asked", Kind::Text),
    maybe("model", Kind::Text),
    maybe("system", Kind::Text),
    always("prompt", Kind::Text),
    maybe("messages", Kind::Text),
    maybe("reply", Kind::Text),
    maybe("tool_calls", Kind::Text),
    maybe("reasoning", Kind::Text),
    maybe("stop_reason", Kind::Text),
    maybe("error", Kind::Text),
    always("source", Kind::Word),
    always("latency_ms", Kind::Integer),
    maybe("input_tokens", Kind::Integer),
    maybe("output_tokens", Kind::Integer),
    maybe("cached_tokens", Kind::Integer),
    maybe("cost_usd", Kind::Number),
    always("calls", Kind::Integer),
];
