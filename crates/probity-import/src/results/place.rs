//! Reads JSON of other tools into types, and says which field does not fit.

use std::{fmt::Write as _, path::Path};

use probity_core::{
    json::{Limits, parse_located},
    located::Node,
};
use serde::de::DeserializeOwned;

use super::ResultsError;

/// Bytes of a text whose fields are looked up when something in it is wrong.
const MOST_BYTES: usize = 1 << 30;

/// A text, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    /// The file.
    pub(super) path: &'a Path,
    /// The part of an archive that it is.
    pub(super) member: Option<&'a str>,
    /// The line of the file that it begins in, from 1.
    pub(super) line: usize,
    /// What is written there.
    pub(super) content: &'a str,
}

impl<'a> Text<'a> {
    /// A whole file.
    pub(super) fn of(path: &'a Path, text: &'a str) -> Self {
        Self { path, member: None, line: 1, content: text }
    }

    /// The name of its file without the ending.
    pub(super) fn stem(self) -> String {
        self.path.file_stem().map_or_else(|| "results".to_owned(), |it| it.to_string_lossy().into())
    }

    /// Its lines that are not blank.
    pub(super) fn lines(self) -> impl Iterator<Item = Self> {
        let lines = self.content.lines().enumerate().filter(|(_, it)| !it.trim().is_empty());
        lines.map(move |(at, text)| Self { line: self.line + at, content: text, ..self })
    }

    /// The value that it is.
    pub(super) fn decode<T: DeserializeOwned>(self) -> Result<T, ResultsError> {
        serde_json::from_str(self.content).map_err(|error| {
            let said = error.to_string();
            let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
            let field = self.field_at(error.line(), error.column());
            let place = self.line + error.line().max(1) - 1;
            self.misfit(place, field.as_deref(), said)
        })
    }

    /// Something about it that does not fit.
    pub(super) fn wrong(self, field: &str, said: impl Into<String>) -> ResultsError {
        self.misfit(self.line, Some(field), said)
    }

    fn misfit(self, line: usize, field: Option<&str>, said: impl Into<String>) -> ResultsError {
        let path = self.path.display();
        let file = match self.member {
            Some(member) => format!("{path}, {member}"),
            None => path.to_string(),
        };
        ResultsError::Misfit {
            file,
            line,
            field: field.map(|it| format!("`{it}`: ")).unwrap_or_default(),
            said: said.into(),
        }
    }

    /// The way to the value that ends before a place.
    fn field_at(self, line: usize, column: usize) -> Option<String> {
        let before: usize =
            self.content.split_inclusive('\n').take(line.max(1) - 1).map(str::len).sum();
        let offset = (before + column).checked_sub(1)?;
        let limits = Limits { max_bytes: MOST_BYTES, ..Limits::default() };
        let root = parse_located(self.content, &limits).ok()?;
        let way = way_to(&root, offset);
        (!way.is_empty()).then_some(way)
    }
}

/// The names on the way to the innermost value around a byte, such as `results[3].score`.
fn way_to(root: &Node, offset: usize) -> String {
    let (mut node, mut way) = (root, String::new());
    let is_around = |it: &Node| it.span.contains(&offset);
    loop {
        if let Some(entry) = node.entries().iter().find(|it| is_around(&it.node)) {
            if !way.is_empty() {
                way.push('.');
            }
            way.push_str(&entry.key);
            node = &entry.node;
        } else if let Some((at, item)) = node.items().iter().enumerate().find(|it| is_around(it.1))
        {
            let _ = write!(way, "[{at}]");
            node = item;
        } else {
            return way;
        }
    }
}
