//! How the files of other tools are read.
//!
//! Every file is text of a bounded size in the folder of the first one. Nothing is ever run. All trees
//! share one numbering of bytes, so that a span alone says in which file and line it stands.

pub(crate) mod glob;
mod workbook;

use std::{
    collections::BTreeSet,
    io,
    ops::Range,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use probity_core::{
    json::{Limits, parse_located},
    located::{Entry, Node, NodeValue},
};
use probity_load::{
    bounded,
    dataset::{Format, Records, parse_toml, parse_yaml},
};

use crate::{note::At, results::archive::Archive};

/// Bytes of the largest file.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;
/// Bytes of all that is read; what is read again counts again.
const LARGEST_IMPORT: usize = 512 << 20;
/// Bytes that the cells of a sheet may take, as much as a file.
const LARGEST_SHEET: usize = 64 << 20;
/// Bytes that a file counts for at least, however short it is.
const SMALLEST_READ: usize = 4096;
/// Files of one import.
const MOST_FILES: usize = 10_000;

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not there, or may not be read.
    #[error("`{name}` cannot be read: {why}")]
    Io {
        /// The file.
        name: String,
        /// Why.
        why: String,
    },
    /// It is outside the folder that may be read.
    #[error("`{name}` is outside the folder of the configuration")]
    Outside {
        /// The file.
        name: String,
    },
    /// It is not what its name says.
    #[error("`{file}`, line {line}: {what}", file = at.file, line = at.line)]
    Parse {
        /// The line where it stops making sense.
        at: At,
        /// What is wrong there.
        what: String,
    },
}

impl Unreadable {
    /// What to do about it.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path; it starts from the folder of the configuration",
            Self::Outside { .. } => "import again with --allow-outside if it may be read",
            Self::Parse { .. } => "correct the file",
        }
    }
}

/// A text, and where it begins in the numbering of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text, without a byte order mark.
    pub text: String,
    /// The number of its first byte.
    pub base: usize,
}

impl Text {
    /// The span of all of it.
    pub fn span(&self) -> Range<usize> {
        self.base..self.base + self.text.len()
    }
}

/// Where lines begin in one of the files.
#[derive(Clone, Debug)]
struct Lines {
    name: Arc<str>,
    base: usize,
    starts: Vec<usize>,
}

/// The files of an import.
#[derive(Debug)]
pub struct Source {
    /// The folder that names start from, with all links followed.
    root: PathBuf,
    /// The folder that the suite is going to be in.
    suite_folder: PathBuf,
    allow_outside: bool,
    /// What else the user allows to be read.
    granted: Option<PathBuf>,
    files: Vec<Lines>,
    read: BTreeSet<PathBuf>,
    /// Whether files may be read that are not UTF-8.
    replaces_invalid: bool,
    /// Those that were.
    invalid: BTreeSet<String>,
    /// How variables of the environment are looked up.
    environment: Option<fn(&str) -> Option<String>>,
    /// Bytes that were read.
    spent: usize,
    /// The number of the next byte.
    next: usize,
}

impl Source {
    /// Files that are read from a folder, and from below it.
    pub fn new(folder: &Path, allow_outside: bool) -> io::Result<Self> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = folder.canonicalize()?;
        Ok(Self {
            suite_folder: root.clone(),
            root,
            allow_outside,
            granted: None,
            files: Vec::new(),
            read: BTreeSet::new(),
            replaces_invalid: false,
            invalid: BTreeSet::new(),
            environment: None,
            spent: 0,
            next: 1,
        })
    }

    /// Says where the suite is going to be, which is what references start from.
    pub fn set_suite_folder(&mut self, folder: &Path) {
        // Of a folder that is going to be made, those above it are there.
        let real = folder.ancestors().find_map(|above| {
            let rest = folder.strip_prefix(above).ok()?;
            Some(above.canonicalize().ok()?.join(rest))
        });
        self.suite_folder = real.unwrap_or_else(|| folder.to_owned());
    }

    /// Allows a file, or what is in a folder, to be read although it is elsewhere.
    pub fn grant(&mut self, path: &Path) -> io::Result<PathBuf> {
        let path = path.canonicalize()?;
        self.granted = Some(path.clone());
        Ok(path)
    }

    /// The folder that names start from.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every file that was read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.read.iter().map(PathBuf::as_path)
    }

    /// The real path of what a name means. It is somewhere in the folder, unless others are allowed.
    pub fn find(&self, name: &str) -> Result<PathBuf, Unreadable> {
        let path = self.root.join(name).canonicalize();
        let path = path.map_err(|error| unreadable(name, &error.to_string()))?;
        let is_granted = self.granted.as_ref().is_some_and(|it| path.starts_with(it));
        if !self.allow_outside && !is_granted && !path.starts_with(&self.root) {
            return Err(Unreadable::Outside { name: name.to_owned() });
        }
        Ok(path)
    }

    /// Whether a name means a regular file that may be read.
    pub fn has_file(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|path| path.is_file())
    }

    /// Whether a name means a folder that may be read.
    pub fn has_folder(&self, name: &str) -> bool {
        self.find(name).is_ok_and(|path| path.is_dir())
    }

    /// Checks that a file of the user's is there and may be named in the suite, and gives its path from
    /// the folder of the suite.
    pub fn reference(&self, name: &str) -> Result<String, Unreadable> {
        let path = self.find(name)?;
        if !path.is_file() {
            return Err(unreadable(name, "it is not a regular file"));
        }
        Ok(relative(&self.suite_folder, &path))
    }

    /// The path from the folder of the suite to a file of the user's that need not be there yet.
    pub fn reference_later(&self, name: &str) -> Result<String, Unreadable> {
        if self.root.join(name).exists() {
            return self.reference(name);
        }
        let mut path = self.root.clone();
        for part in Path::new(name).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
            }
        }
        if !self.allow_outside && !path.starts_with(&self.root) {
            return Err(Unreadable::Outside { name: name.to_owned() });
        }
        Ok(relative(&self.suite_folder, &path))
    }

    /// Checks that a folder is there and may be named in the suite, and gives its path from the folder of
    /// the suite.
    pub fn reference_folder(&self, name: &str) -> Result<String, Unreadable> {
        let path = self.find(name)?;
        if !path.is_dir() {
            return Err(unreadable(name, "it is not a folder"));
        }
        Ok(relative(&self.suite_folder, &path))
    }

    /// The files that a pattern means, sorted, as names from the folder.
    pub fn glob(&self, pattern: &str) -> Result<Vec<String>, Unreadable> {
        let escapes = Path::new(pattern).components().any(|it| {
            matches!(it, Component::ParentDir | Component::RootDir | Component::Prefix(_))
        });
        if escapes && !self.allow_outside {
            return Err(Unreadable::Outside { name: pattern.to_owned() });
        }
        let found = glob::find(&self.root, pattern).map_err(|why| unreadable(pattern, &why))?;
        Ok(found.into_iter().filter(|name| self.has_file(name)).collect())
    }

    /// The text of a file.
    pub fn text(&mut self, name: &str) -> Result<Text, Unreadable> {
        let path = self.find(name)?;
        if !path.is_file() {
            return Err(unreadable(name, "it is not a regular file"));
        }
        self.spend(name, SMALLEST_READ)?;
        let text = match self.replaces_invalid {
            false => bounded::read_text(&path, LARGEST_FILE),
            true => bounded::read_bytes(&path, LARGEST_FILE).map(|it| self.replaced(name, it)),
        };
        let text = text.map_err(|error| unreadable(name, &error.to_string()))?;
        let text = text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text);
        let shown = self.shown(&path);
        self.read.insert(path);
        self.spent += text.len().saturating_sub(SMALLEST_READ);
        Ok(self.number(&shown, text))
    }

    /// The text of a file that may be anything. That it is not UTF-8 is nothing to tell.
    pub(crate) fn text_or_bytes(&mut self, name: &str) -> Result<Text, Unreadable> {
        let was_invalid = self.invalid.contains(name);
        let text = self.text(name);
        if !was_invalid {
            self.invalid.remove(name);
        }
        text
    }

    /// Says how variables of the environment are looked up.
    pub(crate) const fn set_environment(&mut self, variable: Option<fn(&str) -> Option<String>>) {
        self.environment = variable;
    }

    /// The value of a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.environment.and_then(|it| it(name))
    }

    /// Reads files that are not UTF-8 from now on, with a replacement for what cannot be read.
    pub(crate) const fn replace_invalid(&mut self) {
        self.replaces_invalid = true;
    }

    /// The files that are not UTF-8.
    pub(crate) fn invalid(&self) -> impl Iterator<Item = &str> {
        self.invalid.iter().map(String::as_str)
    }

    fn replaced(&mut self, name: &str, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|error| {
            self.invalid.insert(name.to_owned());
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    /// Counts bytes of a file that are used, be it again.
    pub(crate) fn spend(&mut self, name: &str, bytes: usize) -> Result<(), Unreadable> {
        if self.spent >= LARGEST_IMPORT || self.read.len() >= MOST_FILES {
            return Err(unreadable(name, "the files of this import are too many or too large"));
        }
        self.spent += bytes;
        Ok(())
    }

    /// Gives the bytes of a text their numbers.
    fn number(&mut self, name: &str, text: String) -> Text {
        let base = self.next;
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(starts.map(|(at, _)| at + 1)).collect();
        self.files.push(Lines { name: name.into(), base, starts });
        // One more, so that the end of a file is not the beginning of the next.
        self.next = base + text.len() + 1;
        Text { text, base }
    }

    /// The tree of a file, by its suffix: TOML, YAML, JSON, or a list of the lines of JSONL or the
    /// records of CSV. Lines that make no sense are handed out beside it.
    pub fn tree(&mut self, name: &str) -> Result<(Node, Vec<Unreadable>), Unreadable> {
        let Some(format) = Format::of_path(Path::new(name)) else {
            return Err(unreadable(name, "the file name has no known suffix"));
        };
        self.tree_as(name, format)
    }

    /// The tree of a file in a format.
    pub fn tree_as(
        &mut self,
        name: &str,
        format: Format,
    ) -> Result<(Node, Vec<Unreadable>), Unreadable> {
        let text = self.text(name)?;
        self.parse(&text, format)
    }

    /// The tree of a text that was read.
    pub fn parse(
        &self,
        text: &Text,
        format: Format,
    ) -> Result<(Node, Vec<Unreadable>), Unreadable> {
        let Text { text: written, base } = text;
        let failed = |offset: usize, what: String| {
            let at = self.at(&(base + offset..base + offset));
            Unreadable::Parse { at, what }
        };
        let whole = match format {
            Format::Jsonl => return Ok(self.lines(text)),
            Format::Csv => return Ok(self.records(text)),
            Format::Toml => parse_toml(written).map_err(|error| {
                failed(error.span().unwrap_or_default().start, error.message().to_owned())
            }),
            Format::Json => parse_located(written, &Limits::default())
                .map_err(|error| failed(error.offset, error.kind.to_string())),
            Format::Yaml => {
                parse_yaml(written).map_err(|error| failed(error.span.start, error.message))
            }
        };
        let mut root = whole?;
        shift(&mut root, *base);
        Ok((root, Vec::new()))
    }

    /// The records of a sheet of a workbook, as those of a CSV file. `FILE#SHEET` names the sheet.
    pub fn sheet(&mut self, named: &str) -> Result<Node, Unreadable> {
        let (name, wanted) = match named.split_once('#') {
            Some((name, sheet)) => (name, Some(sheet)),
            None => (named, None),
        };
        let path = self.find(name)?;
        if !path.is_file() {
            return Err(unreadable(name, "it is not a regular file"));
        }
        let read = bounded::read_bytes(&path, LARGEST_FILE);
        let bytes = read.map_err(|error| unreadable(name, &error.to_string()))?;
        self.spend(name, bytes.len().max(SMALLEST_READ))?;
        let archive = Archive::open(&path, &bytes);
        let archive = archive.map_err(|error| unreadable(name, &error.to_string()))?;
        let read = workbook::rows(&archive, wanted, LARGEST_SHEET);
        let workbook::Rows { rows, bytes } = read.map_err(|why| unreadable(name, &why))?;
        self.spend(name, bytes)?;
        let shown = self.shown(&path);
        self.read.insert(path);
        // Rows stand for lines.
        let text = self.number(&shown, "\n".repeat(rows.len()));
        let mut rows = rows.into_iter().enumerate();
        let columns = rows.next().map(|it| it.1).unwrap_or_default();
        let record = |(at, mut cells): (usize, Vec<String>)| {
            let span = text.base + at..text.base + at;
            cells.resize(columns.len(), String::new());
            let entries = columns.iter().zip(cells).filter(|(name, _)| !name.trim().is_empty());
            let entries = entries.map(|(name, cell)| Entry {
                key: name.trim().to_owned(),
                key_span: span.clone(),
                node: Node { span: span.clone(), value: NodeValue::String(cell) },
            });
            Node { span: span.clone(), value: NodeValue::Object(entries.collect()) }
        };
        let records = rows.filter(|(_, cells)| cells.iter().any(|it| !it.is_empty())).map(record);
        Ok(Node { span: text.span(), value: NodeValue::Array(records.collect()) })
    }

    fn lines(&self, text: &Text) -> (Node, Vec<Unreadable>) {
        let (mut items, mut wrong) = (Vec::new(), Vec::new());
        let mut base = text.base;
        for line in text.text.split_inclusive('\n') {
            let trimmed = line.trim();
            let start = base + (line.len() - line.trim_start().len());
            base += line.len();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            match parse_located(trimmed, &Limits::default()) {
                Ok(mut node) => {
                    shift(&mut node, start);
                    items.push(node);
                }
                Err(error) => {
                    let at = self.at(&(start..start));
                    wrong.push(Unreadable::Parse { at, what: error.kind.to_string() });
                }
            }
        }
        (Node { span: text.span(), value: NodeValue::Array(items) }, wrong)
    }

    fn records(&self, text: &Text) -> (Node, Vec<Unreadable>) {
        let (mut items, mut wrong) = (Vec::new(), Vec::new());
        let starts = self.files.iter().find(|it| it.base == text.base);
        let start_of = |line: usize| {
            let start = starts.and_then(|it| it.starts.get(line - 1)).copied();
            text.base + start.unwrap_or_default()
        };
        let mut records = Records::new(text.text.as_bytes());
        let mut names: Option<Vec<String>> = None;
        // Reading from memory does not fail.
        while let Ok(Some(record)) = records.next_record() {
            let base = start_of(record.first_line);
            let Some(names) = &names else {
                let found: Vec<String> =
                    record.cells.into_iter().map(|cell| cell.text.trim().to_owned()).collect();
                let again = |at: usize| !found[at].is_empty() && found[..at].contains(&found[at]);
                for at in (0..found.len()).filter(|at| again(*at)) {
                    let what =
                        format!("two columns are called `{}`: the last one counts", found[at]);
                    wrong.push(Unreadable::Parse { at: self.at(&(base..base)), what });
                }
                names = Some(found);
                continue;
            };
            let what = match record.problem {
                Some(problem) => Some(problem),
                None if record.cells.len() > names.len() => {
                    Some(format!("{} cells under {} names", record.cells.len(), names.len()))
                }
                None => None,
            };
            if let Some(what) = what {
                wrong.push(Unreadable::Parse { at: self.at(&(base..base)), what });
                continue;
            }
            let entries = names.iter().zip(record.cells).map(|(name, cell)| {
                let span = base + cell.span.start..base + cell.span.end;
                let node = Node { span: span.clone(), value: NodeValue::String(cell.text) };
                Entry { key: name.clone(), key_span: span, node }
            });
            let value = NodeValue::Object(entries.collect());
            items.push(Node { span: base..base + record.text.len(), value });
        }
        (Node { span: text.span(), value: NodeValue::Array(items) }, wrong)
    }

    /// The file and the line of a span.
    pub fn at(&self, span: &Range<usize>) -> At {
        let after = self.files.partition_point(|it| it.base <= span.start);
        match after.checked_sub(1).and_then(|at| self.files.get(at)) {
            Some(file) => {
                let line = file.starts.partition_point(|start| file.base + start <= span.start);
                At { file: file.name.clone(), line }
            }
            None => At { file: self.shown(&self.root).into(), line: 1 },
        }
    }

    /// A path from the folder, if it is in there.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

fn unreadable(name: &str, why: &str) -> Unreadable {
    Unreadable::Io { name: name.to_owned(), why: why.to_owned() }
}

/// The way from a folder to a file.
fn relative(from: &Path, to: &Path) -> String {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    path.display().to_string()
}

/// Moves all spans of a tree.
fn shift(node: &mut Node, by: usize) {
    let moved = |span: &Range<usize>| span.start + by..span.end + by;
    node.span = moved(&node.span);
    match &mut node.value {
        NodeValue::Array(items) => items.iter_mut().for_each(|item| shift(item, by)),
        NodeValue::Object(entries) => {
            for entry in entries {
                entry.key_span = moved(&entry.key_span);
                shift(&mut entry.node, by);
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
