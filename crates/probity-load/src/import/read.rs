//! Reads foreign files into located trees.

use std::{fs, io, path::Path};

use super::Imported;
use crate::dataset::{Format, parse_toml, parse_yaml};
use probity_core::{
    json::{Limits, parse_located},
    located::{Entry, Node, NodeValue},
};

/// Why a foreign file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not there, or may not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not what its name says.
    #[error("`{path}`, line {line}: {what}")]
    Parse {
        /// The file.
        path: String,
        /// The line where it stops making sense.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// It is something that this tool does not write.
    #[error("`{path}`: {what}")]
    Shape {
        /// The file.
        path: String,
        /// What was looked for.
        what: String,
    },
}

impl ImportError {
    pub(super) fn shape(path: &Path, what: impl Into<String>) -> Self {
        Self::Shape { path: path.display().to_string(), what: what.into() }
    }
}

/// A file by its suffix. JSONL and CSV become lists; a CSV record is a table of texts. Lines
/// and records that make no sense are noted and left out.
pub(super) fn file(path: &Path, imported: &mut Imported) -> Result<Node, ImportError> {
    let Some(format) = Format::of_path(path) else {
        return Err(ImportError::shape(path, "the file name has no known suffix"));
    };
    let text = text(path)?;
    let parse_error = |at: usize, what: String| {
        let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        ImportError::Parse { path: path.display().to_string(), line, what }
    };
    match format {
        Format::Toml => parse_toml(&text).map_err(|error| {
            parse_error(error.span().unwrap_or_default().start, error.message().to_owned())
        }),
        Format::Json => parse_located(&text, &Limits::default())
            .map_err(|error| parse_error(error.offset, error.kind.to_string())),
        Format::Yaml => {
            parse_yaml(&text).map_err(|error| parse_error(error.span.start, error.message))
        }
        Format::Jsonl => Ok(lines(&text, imported)),
        Format::Csv => records(path, imported),
    }
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ImportError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ImportError::Read { path: path.display().to_string(), source })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn lines(text: &str, imported: &mut Imported) -> Node {
    let mut items = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        match parse_located(trimmed, &Limits::default()) {
            Ok(node) => items.push(node),
            Err(error) => {
                imported.note_file(format!("line {} is left out: {}", at + 1, error.kind));
            }
        }
    }
    Node { span: 0..text.len(), value: NodeValue::Array(items) }
}

fn records(path: &Path, imported: &mut Imported) -> Result<Node, ImportError> {
    let failed = |source| ImportError::Read { path: path.display().to_string(), source };
    let file = fs::File::open(path).map_err(failed)?;
    let mut records = crate::dataset::Records::new(io::BufReader::new(file));
    let header = records.next_record().map_err(failed)?;
    let names: Vec<String> = header
        .map(|record| record.cells.into_iter().map(|cell| cell.text.trim().to_owned()).collect())
        .unwrap_or_default();
    let mut items = Vec::new();
    while let Some(record) = records.next_record().map_err(failed)? {
        let what = match record.problem {
            Some(problem) => Some(problem),
            None if record.cells.len() > names.len() => {
                Some(format!("{} cells under {} names", record.cells.len(), names.len()))
            }
            None => None,
        };
        if let Some(what) = what {
            imported.note_file(format!("line {} is left out: {what}", record.first_line));
            continue;
        }
        let entries = names.iter().zip(record.cells).map(|(name, cell)| Entry {
            key: name.clone(),
            key_span: cell.span.clone(),
            node: Node { span: cell.span, value: NodeValue::String(cell.text) },
        });
        items.push(Node { span: 0..0, value: NodeValue::Object(entries.collect()) });
    }
    Ok(Node { span: 0..0, value: NodeValue::Array(items) })
}
