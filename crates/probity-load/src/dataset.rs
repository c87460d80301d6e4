//! Datasets: files of cases, read one case at a time.
//!
//! A reader never stops at the first problem. It hands every case and every
//! problem to its sink in file order, and keeps only a digest per case, so a
//! dataset of any size can be checked in bounded memory.

mod csv;
mod digest;
mod ids;
mod intake;
mod json;
mod jsonl;
mod stats;
mod toml;
mod write;
mod yaml;

use std::{
    cell,
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

pub use csv::{Cell, Record, Records};
use digest::Hashed;
pub use digest::{Digest, DigestBuilder};
pub use intake::{Intake, MOST_PROBLEMS};
use probity_core::{
    case::{Category, TestCase},
    criteria::CriteriaProblem,
    problem::{Problem, Severity},
};

use crate::inputs;

pub use stats::Stats;
pub use toml::parse as parse_toml;
pub use write::{WriteError, Writer, toml_value};
pub use yaml::{YamlError, parse as parse_yaml};

/// The newest major version of the dataset format that this program reads.
pub const FORMAT_MAJOR: u64 = 1;
/// The version of a dataset that does not state one.
pub const DEFAULT_VERSION: &str = "1.0.0";
/// Largest file of a format that has to be read whole, in bytes.
const LARGEST_WHOLE_FILE: u64 = 1 << 30;

/// A file format that cases are read from and written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `version` and `[[test_cases]]`.
    Toml,
    /// One case a line; `#` starts a comment line.
    Jsonl,
    /// A list of cases, or a table with `test_cases`.
    Json,
    /// The same as JSON.
    Yaml,
    /// A header line with field names, then a case a record.
    Csv,
}

impl Format {
    /// The format a file name stands for.
    pub fn of_path(path: &Path) -> Option<Self> {
        let suffix = path.extension()?.to_str()?.to_ascii_lowercase();
        match suffix.as_str() {
            "toml" => Some(Self::Toml),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// What a reader hands to its sink.
#[derive(Debug)]
pub enum Item {
    /// A case without an error.
    Case(Box<CaseAt>),
    /// Something wrong.
    Problem(Problem),
}

/// A case and where it stands.
#[derive(Debug)]
pub struct CaseAt {
    /// The case.
    pub case: TestCase,
    /// The line it begins at.
    pub line: usize,
}

/// Says what is wrong with a case's criteria; `probity-grade` compiles them to find out.
pub type CriteriaCheck<'a> = &'a dyn Fn(&TestCase) -> Vec<CriteriaProblem>;

/// Adds to a case what it has in common with others.
pub type Completion<'a> = &'a dyn Fn(&mut TestCase);

/// What a reader saw in all.
#[derive(Debug, Default)]
pub struct Summary {
    /// The version the files state, the last one.
    pub version: Option<String>,
    /// Cases without an error.
    pub cases: usize,
    /// Problems that are errors.
    pub errors: usize,
    /// Problems that are warnings.
    pub warnings: usize,
    /// The digest of the cases without an error.
    pub digest: Digest,
    /// The digest of all files that were read, those included that cases name, byte by byte.
    pub contents: Digest,
}

/// Reads the files of one dataset. Everything, unreadable files included, goes to `sink`.
pub fn read(paths: &[&Path], check: CriteriaCheck<'_>, sink: &mut dyn FnMut(Item)) -> Summary {
    read_all(paths, Intake::new(check, sink))
}

/// Reads the files of one dataset, whose cases are completed and filled in before they are checked.
pub fn read_completed(
    paths: &[&Path],
    complete: Completion<'_>,
    check: CriteriaCheck<'_>,
    sink: &mut dyn FnMut(Item),
) -> Summary {
    read_all(paths, Intake::new(check, sink).completing(complete))
}

fn read_all(paths: &[&Path], mut intake: Intake<'_>) -> Summary {
    for path in paths {
        read_path(path, &cell::Cell::new(false), &mut intake);
    }
    intake.finish()
}

/// Reads a dataset that has been checked, without looking into criteria or for ids that are
/// used twice, until `stop` is set: by the sink, when it has seen enough. Gives the digest of all files that
/// were read, byte by byte: what differs from that of the first reading is another dataset.
pub fn reread(
    paths: &[&Path],
    complete: Completion<'_>,
    stop: &cell::Cell<bool>,
    sink: &mut dyn FnMut(Item),
) -> Digest {
    let mut intake = Intake::new(&|_| Vec::new(), sink).completing(complete).trusting();
    for path in paths.iter().take_while(|_| !stop.get()) {
        read_path(path, stop, &mut intake);
    }
    intake.finish().contents
}

/// The files that a path of a dataset stands for: itself, or those of the folder that it is.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    inputs::note(path);
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let file = entry?.path();
        if file.is_file() && Format::of_path(&file).is_some() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read_path(path: &Path, stop: &cell::Cell<bool>, intake: &mut Intake<'_>) {
    match files(path) {
        Ok(files) if files.is_empty() => {
            intake.open(path);
            let message = "there is no dataset in the folder".to_owned();
            intake.file_problem("empty-dataset", message, "");
        }
        Ok(files) => {
            for file in files.iter().take_while(|_| !stop.get()) {
                read_file(file, stop, intake);
            }
        }
        Err(error) => {
            intake.open(path);
            intake.file_problem("unreadable", format!("failed to read the folder: {error}"), "");
        }
    }
}

fn read_file(path: &Path, stop: &cell::Cell<bool>, intake: &mut Intake<'_>) {
    intake.open(path);
    let before = (intake.seen(), intake.errors());
    let Some(format) = Format::of_path(path) else {
        let help = "datasets end in .toml, .jsonl, .json, .yaml or .csv";
        intake.file_problem("unknown-format", "the file name has no known suffix".to_owned(), help);
        return;
    };
    inputs::note(path);
    let outcome = File::open(path).and_then(|file| {
        let mut file = Hashed::new(file);
        read_stream(&mut file, format, stop, intake)?;
        intake.has_read(&file);
        Ok(())
    });
    if let Err(error) = outcome {
        intake.file_problem("unreadable", format!("failed to read the file: {error}"), "");
    } else if (intake.seen(), intake.errors()) == before {
        intake.file_problem("empty-dataset", "there is no case in the file".to_owned(), "");
    }
}

/// Reads a dataset that is in memory. `name` is what problems call it.
pub fn read_bytes(
    name: &Path,
    format: Format,
    bytes: &[u8],
    check: CriteriaCheck<'_>,
    sink: &mut dyn FnMut(Item),
) -> Summary {
    let mut intake = Intake::new(check, sink);
    intake.open(name);
    if let Err(error) = read_stream(bytes, format, &cell::Cell::new(false), &mut intake) {
        intake.file_problem("unreadable", format!("failed to read the file: {error}"), "");
    }
    intake.finish()
}

/// Bytes of a file that are read at once. All of the buffer is cleared before the first, which a short file should not cost much.
const AT_ONCE: usize = 64 << 10;

fn read_stream(
    stream: impl Read,
    format: Format,
    stop: &cell::Cell<bool>,
    intake: &mut Intake<'_>,
) -> io::Result<()> {
    match format {
        Format::Toml => whole(stream, intake, toml::read),
        Format::Json => whole(stream, intake, json::read),
        Format::Yaml => whole(stream, intake, yaml::read),
        Format::Jsonl => jsonl::read(BufReader::with_capacity(AT_ONCE, stream), stop, intake),
        Format::Csv => csv::read(BufReader::with_capacity(AT_ONCE, stream), intake),
    }
}

/// Reads a format that cannot be streamed.
fn whole(
    stream: impl Read,
    intake: &mut Intake<'_>,
    read: fn(&str, &mut Intake<'_>),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    stream.take(LARGEST_WHOLE_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_WHOLE_FILE {
        let message = format!("the file is larger than {} MiB", LARGEST_WHOLE_FILE >> 20);
        intake.file_problem("too-large", message, "use JSONL, which is read line by line");
        return Ok(());
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => read(text, intake),
        Err(error) => intake.not_utf8(bytes, error.valid_up_to(), 1),
    }
    Ok(())
}

/// All cases of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct TestDataset {
    /// Version of the dataset, semantic.
    pub version: String,
    /// The cases in file order.
    pub test_cases: Vec<TestCase>,
    /// Stays the same as long as the cases do, whatever their order and format.
    pub digest: Digest,
}

impl TestDataset {
    /// Loads and checks one dataset from its files. Every problem is in the error.
    pub fn load(paths: &[&Path], check: CriteriaCheck<'_>) -> Result<Self, InvalidDataset> {
        let mut test_cases = Vec::new();
        let mut problems = Vec::new();
        let summary = read(paths, check, &mut |item| match item {
            Item::Case(at) => test_cases.push(at.case),
            Item::Problem(problem) => problems.push(problem),
        });
        if summary.errors > 0 {
            return Err(InvalidDataset { problems });
        }
        let version = summary.version.unwrap_or_else(|| DEFAULT_VERSION.to_owned());
        Ok(Self { version, test_cases, digest: summary.digest })
    }

    /// Loads a dataset from a TOML file without looking into its criteria.
    pub fn from_toml(path: &Path) -> Result<Self, InvalidDataset> {
        Self::load(&[path], &|_| Vec::new())
    }

    /// The cases of one category.
    pub fn by_category(&self, category: &Category) -> Vec<&TestCase> {
        self.test_cases.iter().filter(|case| case.category.as_ref() == Some(category)).collect()
    }
}

/// A dataset that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the dataset has {} error(s)", .problems.iter().filter(|it| it.severity == Severity::Error).count())]
pub struct InvalidDataset {
    /// Everything wrong with it, warnings included, in file order.
    pub problems: Vec<Problem>,
}

/// The name of a file as the user gave it.
fn display_name(path: &Path) -> Arc<str> {
    path.display().to_string().into()
}

#[cfg(test)]
mod tests;
