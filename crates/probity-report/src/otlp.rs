//! OpenTelemetry: a run as spans with the attributes that are agreed on for generative AI, in OTLP.
//!
//! A run is a span, each of its results one within it, and each question of a result one within that. What the checks of a
//! result came to are events `gen_ai.evaluation.result`. Ids are made of names, so that the same run has the same ids: whoever
//! takes them in twice can tell.

mod json;
mod messages;
mod protobuf;
mod question;
mod result;
mod span;

use std::io;

use probity_core::{
    gate::GateStatus,
    view::{Cases, LaneReport, RunView},
};
use result::Told;
use span::{Attributes, Ids, Span, SpanKind, Status};

/// Spans of a message, at most.
const MOST_SPANS: usize = 512;
/// Bytes of a message after which it ends.
const MOST_BYTES: usize = 1 << 20;
/// The version of the conventions that names of attributes are taken from.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.44.0";

/// What is told, and how.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether prompts and replies are.
    pub texts: Texts,
    /// Whether a run is one trace.
    pub traces: Traces,
    /// How messages are written.
    pub encoding: Encoding,
}

/// Whether prompts and replies are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// They are.
    Told,
    /// They are not, and neither are reasons and errors, which quote them.
    LeftOut,
}

impl Texts {
    /// A text that may quote what was said, if it is told.
    fn told<T>(self, text: Option<T>) -> Option<T> {
        text.filter(|_| self == Self::Told)
    }
}

/// What is one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traces {
    /// The whole run.
    Run,
    /// Each result, with a link to the run.
    Case,
}

/// The two encodings of OTLP over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A line of text.
    Json,
    /// What collectors take by default.
    Protobuf,
}

/// A message that a collector takes in: the body of `POST /v1/traces`.
#[derive(Debug)]
pub struct Batch {
    /// The message. In JSON it has no line break.
    pub body: Vec<u8>,
    /// How many spans it has.
    pub spans: usize,
}

/// Makes the messages of a run, one after the other. No more than one is in memory.
pub fn write(
    run: &RunView,
    cases: &dyn Cases,
    options: Options,
    each: &mut dyn FnMut(Batch) -> io::Result<()>,
) -> io::Result<()> {
    let source = Source::of(run);
    let encoding = options.encoding;
    let mut out = Out { source, encoding, spans: Vec::new(), bytes: 0, each };
    let root = Ids::new(&[&run.run_id]);
    let mut last_ms = run.started_ms;
    for (at, report) in run.lanes.iter().enumerate() {
        cases.each(at, &mut |case| {
            let told = Told { run, lane: &report.lane, case, options };
            last_ms = last_ms.max(told.ended_ms());
            told.spans(root).iter().try_for_each(|span| out.push(span))
        })?;
    }
    out.push(&run_span(run, root, run.finished_ms.unwrap_or(last_ms)))?;
    out.flush()
}

/// Whoever tells of a run.
struct Source {
    name: &'static str,
    version: String,
    attributes: Attributes,
}

impl Source {
    fn of(run: &RunView) -> Self {
        let attributes = Attributes::default()
            .with("service.name", "probity")
            .with("service.version", run.probity_version.as_str())
            .with("probity.run.id", run.run_id.as_str());
        Self { name: "probity", version: run.probity_version.clone(), attributes }
    }
}

/// Spans that are gathered into messages.
struct Out<'a> {
    source: Source,
    encoding: Encoding,
    spans: Vec<Vec<u8>>,
    bytes: usize,
    each: &'a mut dyn FnMut(Batch) -> io::Result<()>,
}

impl Out<'_> {
    fn push(&mut self, span: &Span) -> io::Result<()> {
        let span = match self.encoding {
            Encoding::Json => json::span(span),
            Encoding::Protobuf => protobuf::span(span),
        };
        self.bytes += span.len();
        self.spans.push(span);
        if self.spans.len() >= MOST_SPANS || self.bytes >= MOST_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let body = match self.encoding {
            Encoding::Json => json::message(&self.source, &self.spans),
            Encoding::Protobuf => protobuf::message(&self.source, &self.spans),
        };
        let spans = self.spans.len();
        (self.spans, self.bytes) = (Vec::new(), 0);
        (self.each)(Batch { body, spans })
    }
}

fn run_span(run: &RunView, ids: Ids, ended_ms: i64) -> Span {
    let sum = |of: fn(&LaneReport) -> u64| run.lanes.iter().map(of).sum::<u64>();
    let attributes = Attributes::default()
        .with("openinference.span.kind", "CHAIN")
        .with("session.id", run.run_id.as_str())
        .with("probity.run.id", run.run_id.as_str())
        .with("probity.suite", run.suite.as_str())
        .with("probity.run.status", run.status.as_str())
        .with("probity.results.pass", sum(|it| it.metrics.all.verdicts.pass))
        .with("probity.results.fail", sum(|it| it.metrics.all.verdicts.fail))
        .with("probity.results.error", sum(|it| it.metrics.all.verdicts.error))
        .with("probity.results.undecided", sum(|it| it.metrics.all.verdicts.undecided))
        .maybe("probity.gates", run.gate_status().map(GateStatus::as_str));
    Span {
        ids,
        parent: None,
        name: format!("run {}", run.suite),
        kind: SpanKind::Internal,
        time: (run.started_ms, ended_ms.max(run.started_ms)),
        attributes,
        events: Vec::new(),
        link: None,
        status: Status::Unset,
    }
}

#[cfg(test)]
mod tests;
