//! Turns runs into reports.
//!
//! Every format is one function from a run's view and its cases to bytes. What a model
//! wrote is shown and never obeyed: each format escapes it in its own way.

mod answers;
pub mod compare;
pub mod conclusion;
pub mod csv;
pub mod explain;
pub mod github;
pub mod html;
pub mod issue;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod otlp;
pub mod palette;
pub mod plain;
pub mod summary;
pub mod text;
pub mod training;
pub mod trend;

#[cfg(test)]
mod sample;

use std::{fmt, io, path::Path};

use probity_core::view::{Cases, RunView};

/// Categories that are listed for people, in the order of their names.
const MOST_CATEGORIES: usize = 60;

/// The kinds of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What the terminal shows.
    Text,
    /// Evaluation results.
    Json,
    /// What became of each runner.
    Summary,
    /// Every case, a line each.
    Jsonl,
    /// Every case, a row each.
    Csv,
    /// A comment on a pull request.
    Markdown,
    /// What CI servers read.
    Junit,
    /// A page to look around in.
    Html,
}

impl Format {
    /// All of them with the endings of their files, the longest of several first.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Text, "txt"),
        (Self::Jsonl, "jsonl"),
        (Self::Summary, "summary.json"),
        (Self::Json, "json"),
        (Self::Csv, "csv"),
        (Self::Markdown, "md"),
        (Self::Junit, "junit.xml"),
        (Self::Junit, "xml"),
        (Self::Html, "html"),
    ];

    /// The format that a file's name asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        if name == "suite_summary.json" {
            return Some(Self::Summary);
        }
        let ends = |(_, suffix): &&(Self, &str)| {
            name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'))
        };
        Self::ALL.iter().find(ends).map(|(format, _)| *format)
    }

    /// The endings, for people.
    pub fn endings() -> String {
        Self::ALL.map(|(_, suffix)| format!(".{suffix}")).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(format, _)| format == self);
        f.write_str(named.map_or("", |(_, suffix)| suffix))
    }
}

/// Writes a report.
pub fn write(
    format: Format,
    run: &RunView,
    cases: &dyn Cases,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        Format::Text => {
            let text = text::render(&text::Page::full(run, cases))?;
            let plain = anstream::adapter::strip_str(&text).to_string();
            out.write_all(plain.as_bytes())
        }
        Format::Json => json::write(run, cases, out),
        Format::Summary => summary::write(run, out),
        Format::Jsonl => json::write_lines(run, cases, out),
        Format::Csv => csv::write(run, cases, out),
        Format::Markdown => markdown::write(run, cases, out),
        Format::Junit => junit::write(run, cases, out),
        Format::Html => html::write(run, cases, out),
    }
}
