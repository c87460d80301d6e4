//! Results as tables of Arrow, which other libraries read where they lie.

use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender, sync_channel},
};

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchReader,
    builder::{Float64Builder, StringBuilder, UInt32Builder, UInt64Builder},
    ffi_stream::FFI_ArrowArrayStream,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use probity_core::{
    classification::{Classification, Verdict},
    reason::why,
    record::{CaseRecord, Lane},
};
use pyo3::{prelude::*, types::PyCapsule};
use serde::Deserialize;

/// Batches that may wait to be taken.
const WAITING: usize = 2;
/// Rows of a batch that is made of records.
const ROWS: usize = 1024;

/// A reader of batches, for whoever speaks Arrow.
pub(crate) type Table = Box<dyn RecordBatchReader + Send>;

/// The reader in a capsule, as the interface of Arrow for Python has it.
pub(crate) fn capsule(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(table), c"arrow_array_stream")
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), true);
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

/// Batches that are made while they are taken.
struct Made<I> {
    schema: SchemaRef,
    batches: I,
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> Iterator for Made<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> RecordBatchReader for Made<I> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// What is read of a line that was classified.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    case_id: Option<serde_json::Value>,
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(default)]
    suite_id: Option<serde_json::Value>,
    verdict: Verdict,
    classification: Classification,
}

/// Why a classified result has its verdict.
pub(crate) fn reason_in(line: serde_json::Value) -> serde_json::Result<String> {
    let Line { verdict, classification, .. } = serde_json::from_value(line)?;
    Ok(why(&classification, verdict, None))
}

/// Classified lines as a table: what each is and why. A part is a batch.
pub(crate) fn of_lines(parts: Vec<Arc<Vec<u8>>>) -> Table {
    let names = ["case_id", "suite_id", "class", "verdict", "rule", "reason"];
    let schema = schema(&names.map(|it| (it, DataType::Utf8)));
    let of = schema.clone();
    let batches = parts.into_iter().map(move |part| {
        let mut columns: [StringBuilder; 6] = std::array::from_fn(|_| StringBuilder::new());
        for line in part.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
            let line: Line = serde_json::from_slice(line)
                .map_err(|error| ArrowError::JsonError(error.to_string()))?;
            let Line { case_id, id, suite_id, verdict, classification } = line;
            let [case, suite, class, verdicts, rule, reason] = &mut columns;
            case.append_option(case_id.or(id).as_ref().map(text_of));
            suite.append_option(suite_id.as_ref().map(text_of));
            class.append_value(classification.class().as_str());
            verdicts.append_value(verdict.as_str());
            rule.append_value(classification.rule.as_str());
            reason.append_value(why(&classification, verdict, None));
        }
        let columns = columns.into_iter().map(|mut it| Arc::new(it.finish()) as ArrayRef);
        RecordBatch::try_new(of.clone(), columns.collect())
    });
    Box::new(Made { schema, batches })
}

/// An id as people wrote it.
fn text_of(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The columns of a run's results.
fn record_schema() -> SchemaRef {
    let text = |name| (name, DataType::Utf8);
    schema(&[
        text("runner"),
        text("variant"),
        text("backend"),
        text("case_id"),
        ("repeat", DataType::UInt32),
        text("class"),
        text("verdict"),
        text("rule"),
        text("reason"),
        ("score", DataType::Float64),
        text("prompt"),
        text("reply"),
        text("error"),
        text("model"),
        text("source"),
        ("latency_ms", DataType::UInt64),
        ("input_tokens", DataType::UInt64),
        ("output_tokens", DataType::UInt64),
        ("cost_usd", DataType::Float64),
        ("calls", DataType::UInt32),
        ("started_ms", DataType::UInt64),
    ])
}

/// The columns of a batch that is being made.
#[derive(Default)]
struct Columns {
    texts: [StringBuilder; 13],
    repeat: UInt32Builder,
    calls: UInt32Builder,
    counts: [UInt64Builder; 4],
    score: Float64Builder,
    cost: Float64Builder,
    rows: usize,
}

impl Columns {
    fn add(&mut self, lane: &Lane, case: &CaseRecord) {
        let [
            runner,
            variant,
            backend,
            id,
            class,
            verdict,
            rule,
            reason,
            prompt,
            reply,
            error,
            model,
            source,
        ] = &mut self.texts;
        runner.append_value(&lane.runner);
        variant.append_option(lane.variant.as_deref());
        backend.append_value(&lane.backend);
        id.append_value(&case.case_id);
        class.append_value(case.class.as_str());
        verdict.append_value(case.verdict.as_str());
        rule.append_value(case.classification.rule.as_str());
        reason.append_value(case.why());
        prompt.append_value(case.request.prompt());
        reply.append_option(case.reply.as_deref());
        error.append_option(case.error.as_ref().map(|it| &it.message));
        model.append_option(case.model.as_deref());
        source.append_value(case.source.as_str());
        self.repeat.append_value(case.repeat);
        self.calls.append_value(case.calls);
        let [latency, input, output, started] = &mut self.counts;
        latency.append_value(case.latency_ms);
        input.append_option(case.usage.input_tokens);
        output.append_option(case.usage.output_tokens);
        started.append_option(u64::try_from(case.started_ms).ok());
        self.score.append_option(weighted(case));
        self.cost.append_option(case.cost_usd);
        self.rows += 1;
    }

    fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let mut texts = self.texts.iter_mut().map(|it| Arc::new(it.finish()) as ArrayRef);
        let mut counts = self.counts.iter_mut().map(|it| Arc::new(it.finish()) as ArrayRef);
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let column: Option<ArrayRef> = match field.name().as_str() {
                "repeat" => Some(Arc::new(self.repeat.finish())),
                "calls" => Some(Arc::new(self.calls.finish())),
                "score" => Some(Arc::new(self.score.finish())),
                "cost_usd" => Some(Arc::new(self.cost.finish())),
                _ if *field.data_type() == DataType::UInt64 => counts.next(),
                _ => texts.next(),
            };
            columns.extend(column);
        }
        RecordBatch::try_new(schema.clone(), columns)
    }
}

/// The mean of the scores, by their weights; none where nothing was scored.
fn weighted(case: &CaseRecord) -> Option<f64> {
    let scores = case.classification.scores.iter().filter(|it| !it.named);
    let scores: Vec<(f64, f64)> = scores.filter_map(|it| Some((it.value?, it.weight))).collect();
    let weight: f64 = scores.iter().map(|it| it.1).sum();
    (weight > 0.0)
        .then(|| scores.iter().map(|(value, weight)| value * weight).sum::<f64>() / weight)
}

/// Takes records, and hands them on as batches.
pub(crate) struct Records {
    schema: SchemaRef,
    columns: Columns,
    sender: SyncSender<Result<RecordBatch, ArrowError>>,
}

impl Records {
    /// One that takes records, and the table that they are going to be.
    pub(crate) fn new() -> (Self, Table) {
        let (sender, receiver): (_, Receiver<_>) = sync_channel(WAITING);
        let schema = record_schema();
        let table = Made { schema: schema.clone(), batches: receiver.into_iter() };
        (Self { schema, columns: Columns::default(), sender }, Box::new(table))
    }

    /// Takes a record. False if nobody wants any more.
    pub(crate) fn add(&mut self, lane: &Lane, case: &CaseRecord) -> bool {
        self.columns.add(lane, case);
        self.columns.rows < ROWS || self.sender.send(self.columns.finish(&self.schema)).is_ok()
    }

    /// Hands on what is left, or why there is no more.
    pub(crate) fn end(mut self, failure: Option<String>) {
        let last = match failure {
            Some(why) => Err(ArrowError::ExternalError(why.into())),
            None if self.columns.rows == 0 => return,
            None => self.columns.finish(&self.schema),
        };
        // Nobody may want it any more.
        let _ = self.sender.send(last);
    }
}
