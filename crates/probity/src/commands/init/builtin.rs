//! The suites that come with the program. `build.rs` makes the table from `suites/`.

use std::{borrow::Cow, collections::BTreeSet, path::Path};

use probity_load::{
    case::did_you_mean,
    dataset::{Format, Item, read_bytes},
    suite::Suite,
};
use serde::Serialize;

use super::long_context::{self, Size};
use crate::failure::Failure;

/// A suite in the binary.
#[derive(Debug)]
pub(super) struct Builtin {
    pub(super) name: &'static str,
    /// Names relative to the suite, with their texts.
    files: &'static [(&'static str, &'static str)],
}

const ALL: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

/// A file of a suite that is to be written: its name relative to the suite, and its text.
pub(super) type SuiteFile = (&'static str, Cow<'static, str>);

/// The suite whose dataset is made in the size that was asked for.
pub(super) const LONG_CONTEXT: &str = "long-context";
/// How its dataset is made, unless it is said otherwise.
pub(super) const USUAL_SEED: u64 = 42;

/// A suite as `--list` shows it.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The question it answers.
    pub(super) about: &'static str,
    /// The kinds of its runners.
    pub(super) kinds: Vec<&'static str>,
    pub(super) cases: usize,
    pub(super) skills: usize,
    /// How many files are written, and their size in bytes.
    pub(super) files: usize,
    pub(super) bytes: usize,
}

/// The suite of a name.
pub(super) fn find(name: &str) -> Result<&'static Builtin, Failure> {
    if let Some(builtin) = ALL.iter().find(|it| it.name == name) {
        return Ok(builtin);
    }
    let names: Vec<&str> = ALL.iter().map(|it| it.name).collect();
    let meant = did_you_mean(name, &names);
    let meant = meant.map(|meant| format!("{meant} ")).unwrap_or_default();
    let known = names.join(", ");
    Err(Failure::new(format!("there is no built-in suite `{name}`"))
        .hint(format!("{meant}there are {known}; `probity init --list` says what each is for")))
}

/// All suites.
pub(super) fn list() -> Vec<Entry> {
    ALL.iter().map(Builtin::entry).collect()
}

impl Builtin {
    /// Its files; those that are made are made in this size with this seed.
    pub(super) fn files(&self, size: Size, seed: u64) -> Vec<SuiteFile> {
        let embedded = self.files.iter().map(|(name, text)| (*name, Cow::Borrowed(*text)));
        let mut files: Vec<SuiteFile> = embedded.collect();
        if self.name == LONG_CONTEXT {
            let needles = toml::from_str(self.text("needles.toml"))
                .expect("a test makes this dataset in several sizes");
            let dataset = long_context::dataset(&needles, size, seed);
            files.push(("long-context.jsonl", Cow::Owned(dataset)));
        }
        files
    }

    fn text(&self, name: &str) -> &'static str {
        self.files.iter().find(|it| it.0 == name).map_or("", |it| it.1)
    }

    fn entry(&self) -> Entry {
        let files = self.files(Size::USUAL, USUAL_SEED);
        let text = self.text("probity.toml");
        let (suite, _) = Suite::parse(text, &self.name.into(), Path::new(""), &|_| Vec::new());
        let runners = suite.unwrap_or_default().runners;
        let datasets: Vec<&str> =
            runners.iter().flat_map(|runner| &runner.dataset).map(String::as_str).collect();
        let in_dataset =
            |it: &&SuiteFile| datasets.iter().any(|dataset| Path::new(it.0).starts_with(dataset));
        Entry {
            name: self.name,
            about: about(text),
            kinds: runners.iter().map(|runner| runner.kind.as_str()).collect(),
            cases: files.iter().filter(in_dataset).map(cases_in).sum(),
            skills: files.iter().filter(|it| it.0.ends_with("/SKILL.md")).count(),
            files: files.len(),
            bytes: files.iter().map(|it| it.1.len()).sum(),
        }
    }
}

/// The first line of a suite file that says something, without the name before it.
fn about(text: &'static str) -> &'static str {
    let lines = text.lines().filter_map(|line| line.strip_prefix('#').map(str::trim));
    let mut telling = lines.filter(|line| !line.is_empty() && !line.starts_with("SPDX-"));
    let line = telling.next().unwrap_or_default();
    line.split_once(": ").map_or(line, |(_, about)| about)
}

fn cases_in((name, text): &SuiteFile) -> usize {
    let path = Path::new(name);
    let Some(format) = Format::of_path(path) else { return 0 };
    // Files that a case names are written together with it, and are not there yet.
    let mut waiting = BTreeSet::new();
    let summary = read_bytes(path, format, text.as_bytes(), &|_| Vec::new(), &mut |item| {
        if let Item::Problem(problem) = item
            && problem.code == "unreadable-file"
        {
            waiting.extend(problem.case_id);
        }
    });
    summary.cases + waiting.len()
}
