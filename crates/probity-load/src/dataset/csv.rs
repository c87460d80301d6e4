//! Datasets in CSV.
//!
//! A record is a case and a column is a field. Cells of fields that are not text
//! hold JSON, except that true and false may be written in any case and a list of
//! texts may be separated by semicolons.

use std::{
    io::{self, BufRead, Read as _},
    ops::Range,
};

use csv_core::ReadFieldResult;

use super::Intake;
use crate::case::{CASE_FIELDS, Finding, Findings, did_you_mean, is_case_field};
use probity_core::{
    json::{Limits, parse_located},
    located::{Entry, Node, NodeValue},
    problem::{Severity, Source, UNKNOWN_FIELD},
};

/// Longest record that is accepted, in bytes.
const LONGEST_RECORD: usize = 64 << 20;

/// Reads a header and then a case a record.
pub(super) fn read(stream: impl BufRead, intake: &mut Intake<'_>) -> io::Result<()> {
    let mut records = Records::new(stream);
    let Some(header) = records.next_record()? else { return Ok(()) };
    let names = names_of(header, intake);
    while let Some(record) = records.next_record()? {
        let source = Source::part(&record.text, record.first_line);
        if let Some(problem) = &record.problem {
            intake.error_at(&source, &(0..record.text.len()), "csv", problem.clone());
            continue;
        }
        if record.cells.len() != names.len() {
            let message =
                format!("the record has {} cells, the header {}", record.cells.len(), names.len());
            intake.error_at(&source, &(0..record.text.len()), "csv", message);
            continue;
        }
        let node = case_node(&names, &record);
        intake.case(&source, &node);
    }
    Ok(())
}

/// The names of the columns. One that nothing reads has none, and is warned of here and not again
/// for each record.
fn names_of(header: Record, intake: &mut Intake<'_>) -> Vec<Option<String>> {
    let source = Source::part(&header.text, header.first_line);
    let mut findings = Findings::default();
    let names = header.cells.into_iter().map(|cell| {
        let name = cell.text.trim().to_owned();
        let is_known = is_case_field(&name);
        if !is_known && !name.starts_with("x-") {
            findings.0.push(Finding {
                severity: Severity::Warning,
                code: UNKNOWN_FIELD,
                message: format!("unknown column `{name}`"),
                span: cell.span,
                help: did_you_mean(&name, CASE_FIELDS),
            });
        }
        is_known.then_some(name)
    });
    let names = names.collect();
    intake.findings(&source, findings, None);
    names
}

fn case_node(names: &[Option<String>], record: &Record) -> Node {
    let entries = names
        .iter()
        .zip(&record.cells)
        .filter(|(_, cell)| !cell.text.trim().is_empty())
        .filter_map(|(name, cell)| {
            let name = name.as_ref()?;
            Some(Entry {
                key: name.clone(),
                key_span: cell.span.clone(),
                node: cell_node(name, cell),
            })
        })
        .collect();
    Node { span: 0..record.text.trim_end().len(), value: NodeValue::Object(entries) }
}

fn cell_node(name: &str, cell: &Cell) -> Node {
    let json = || {
        let mut node = parse_located(cell.text.trim(), &Limits::default()).ok()?;
        flatten_spans(&mut node, &cell.span);
        Some(node.value)
    };
    let text = || NodeValue::String(cell.text.clone());
    let value = match name {
        "safe" | "posix_compliant" | "should_activate" | "strict" => boolean(cell.text.trim()),
        "threshold" | "prompt_vars" | "messages" | "turns" | "tool_results" | "max_steps"
        | "user" | "settings" | "schema" | "assert" | "execution" | "rubric" | "extract"
        | "tolerance" => json(),
        "tools" | "tool_choice" | "response_format" if cell.text.starts_with(['{', '[']) => json(),
        "expected_response" if cell.text.starts_with(['{', '[', '"']) => json(),
        "expected_commands" | "tags" | "platform" | "expected_skills" | "acceptable_skills"
        | "normalize" | "ignore" | "choices" => json().or_else(|| Some(separated(cell))),
        _ => None,
    };
    Node { span: cell.span.clone(), value: value.unwrap_or_else(text) }
}

fn boolean(text: &str) -> Option<NodeValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(NodeValue::Bool(true)),
        "false" => Some(NodeValue::Bool(false)),
        _ => None,
    }
}

fn separated(cell: &Cell) -> NodeValue {
    let item = |text: &str| Node {
        span: cell.span.clone(),
        value: NodeValue::String(text.trim().to_owned()),
    };
    NodeValue::Array(cell.text.split(';').map(item).collect())
}

/// Quoting moves characters about, so what is inside a cell points at the whole cell.
fn flatten_spans(node: &mut Node, span: &Range<usize>) {
    node.span = span.clone();
    match &mut node.value {
        NodeValue::Array(items) => items.iter_mut().for_each(|item| flatten_spans(item, span)),
        NodeValue::Object(entries) => {
            for entry in entries {
                entry.key_span = span.clone();
                flatten_spans(&mut entry.node, span);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
    }
}

/// One record with the text it was read from.
#[derive(Debug)]
pub struct Record {
    /// The text.
    pub text: String,
    /// The line that it begins at.
    pub first_line: usize,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// One cell of a record.
#[derive(Debug)]
pub struct Cell {
    /// What it says, without quotes.
    pub text: String,
    /// Where it stands in the text of the record.
    pub span: Range<usize>,
}

/// Reads records one at a time, and remembers where each cell stood.
#[derive(Debug)]
pub struct Records<R> {
    reader: R,
    next_line: usize,
}

impl<R: BufRead> Records<R> {
    /// Reads records from a stream.
    pub fn new(reader: R) -> Self {
        Self { reader, next_line: 1 }
    }

    /// The next record that is not blank.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            let first_line = self.next_line;
            let mut raw = Vec::new();
            let mut parser = csv_core::Reader::new();
            let mut cells = CellBuilder::default();
            loop {
                let from = raw.len();
                let limit = (LONGEST_RECORD - from) as u64;
                let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut raw)?;
                if read > 0 {
                    self.next_line += 1;
                }
                if from == 0 && first_line == 1 && raw.starts_with(b"\xef\xbb\xbf") {
                    raw.drain(..3);
                }
                if cells.feed(&mut parser, &raw, from) || read == 0 {
                    break;
                }
            }
            if raw.is_empty() {
                return Ok(None);
            }
            if raw.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return Ok(Some(cells.into_record(raw, first_line)));
        }
    }
}

#[derive(Default)]
struct CellBuilder {
    bytes: Vec<u8>,
    start: usize,
    cells: Vec<(Vec<u8>, Range<usize>)>,
}

impl CellBuilder {
    /// Parses what is new in `raw`, and says whether the record is complete.
    fn feed(&mut self, parser: &mut csv_core::Reader, raw: &[u8], from: usize) -> bool {
        let mut at = from;
        let mut output = [0; 1024];
        loop {
            let input = &raw[at..];
            let (result, read, written) = parser.read_field(input, &mut output);
            at += read;
            self.bytes.extend_from_slice(&output[..written]);
            match result {
                ReadFieldResult::InputEmpty if input.is_empty() => return true,
                ReadFieldResult::InputEmpty => return false,
                ReadFieldResult::OutputFull => {}
                ReadFieldResult::Field { record_end } => {
                    let bytes = std::mem::take(&mut self.bytes);
                    self.cells.push((bytes, self.start..at));
                    self.start = at;
                    if record_end {
                        return true;
                    }
                }
                ReadFieldResult::End => return true,
            }
        }
    }

    fn into_record(self, raw: Vec<u8>, first_line: usize) -> Record {
        let mut problem = None;
        if raw.len() >= LONGEST_RECORD {
            problem = Some("the record has no end; is there a quote too many?".to_owned());
        }
        let text = match String::from_utf8(raw) {
            Ok(text) => text,
            Err(error) => {
                problem = Some("the record is not UTF-8".to_owned());
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        };
        let separators: &[char] = &[',', '\r', '\n'];
        let cells = self.cells.into_iter().map(|(bytes, span)| {
            let shown = text.get(span.clone()).unwrap_or("").trim_end_matches(separators).len();
            Cell {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                span: span.start..span.start + shown,
            }
        });
        Record { cells: cells.collect(), first_line, problem, text }
    }
}
