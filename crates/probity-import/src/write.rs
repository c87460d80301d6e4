//! From a draft to files: a suite in TOML, its datasets, and prompts that are too long to stand in it.

use std::{fmt::Write as _, path::Path};

use probity_load::dataset::{self, Format, Writer, toml_value};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::draft::{
    Asks, BackendDraft, DatasetDraft, DatasetRef, Draft, Examples, RunnerDraft, ScorerDraft,
    VariantDraft,
};

/// The name of the suite.
pub const SUITE: &str = "probity.toml";
/// The folder of the functions that an import writes.
pub(crate) const ADAPTERS: &str = "adapters";
/// Cases beyond which a dataset is written a line each.
const MOST_YAML_CASES: usize = 500;
/// Lines and bytes beyond which a prompt has a file of its own.
const LONGEST_PROMPT: (usize, usize) = (12, 800);
/// Characters beyond which a list is broken into lines.
const LONGEST_LINE: usize = 110;

/// The files of an import.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The text of the suite.
    pub suite: String,
    /// Names and contents of all other files.
    pub files: Vec<(String, String)>,
    /// What stands where in the suite: the line at which each part begins.
    parts: Vec<(usize, Part)>,
    /// Files of prompts as the suite names them, and the variants that name them.
    prompts: Vec<(String, Part)>,
}

/// A part of a draft that a problem of the suite can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is said for all runners.
    Settings,
    /// A backend, by its place.
    Backend(usize),
    /// A runner, by its place.
    Runner(usize),
    /// A variant of a runner, by their places.
    Variant(usize, usize),
}

impl Written {
    /// What stands at a line of the suite.
    pub fn part(&self, line: usize) -> Part {
        let after = self.parts.partition_point(|(first, _)| *first <= line);
        after.checked_sub(1).map_or(Part::Settings, |at| self.parts[at].1)
    }

    /// The first variant that is in a file.
    pub fn part_in(&self, file: &Path) -> Option<Part> {
        self.prompts.iter().find(|(name, _)| file.ends_with(name)).map(|it| it.1)
    }
}

/// The files of a draft. `prefix` is what the suite puts before the names of the others.
pub fn render(draft: &Draft, prefix: &str) -> Written {
    let mut writing = Writing { written: Written::default(), prefix, lines: 0 };
    writing.comments(&draft.comments);
    writing.line("version = \"1\"");
    writing.settings(draft);
    for (at, backend) in draft.backends.iter().enumerate() {
        writing.backend(at, backend);
    }
    for scorer in &draft.scorers {
        writing.scorer(scorer);
    }
    for dataset in &draft.datasets {
        let file = (dataset_file(dataset), dataset_text(dataset));
        writing.written.files.push(file);
    }
    for (name, text) in &draft.adapters {
        writing.written.files.push((format!("{ADAPTERS}/{name}"), text.clone()));
    }
    for (at, runner) in draft.runners.iter().enumerate() {
        writing.runner(at, runner, &draft.datasets);
    }
    writing.written
}

/// The draft with the files that its cases name as paths that start nowhere, for datasets that are not in
/// the folder of the suite.
#[must_use]
pub fn anchored(draft: &Draft, folder: &Path) -> Draft {
    let mut draft = draft.clone();
    for case in draft.datasets.iter_mut().flat_map(|it| &mut it.cases) {
        for value in case.case.prompt_vars.values_mut() {
            if let Some(name) = value.as_str().and_then(|it| it.strip_prefix("file://")) {
                *value = format!("file://{}", folder.join(name).display()).into();
            }
        }
    }
    draft
}

/// The name of a dataset's file.
pub(crate) fn dataset_file(dataset: &DatasetDraft) -> String {
    let suffix = if is_lines(dataset) { "jsonl" } else { "yaml" };
    format!("{}.{suffix}", dataset.name)
}

/// Whether each case of a dataset is written in a line.
const fn is_lines(dataset: &DatasetDraft) -> bool {
    dataset.is_for_code || dataset.cases.len() > MOST_YAML_CASES
}

fn dataset_text(dataset: &DatasetDraft) -> String {
    let mut text = String::new();
    for line in dataset.comments.iter().flat_map(|it| it.lines()) {
        text.extend(["# ", line, "\n"]);
    }
    let format = if is_lines(dataset) { Format::Jsonl } else { Format::Yaml };
    // JSON can say whatever a case has, and a text takes all of it.
    let cases = || -> Result<Vec<u8>, dataset::WriteError> {
        let mut writer = Writer::new(format, None, Vec::new())?;
        dataset.cases.iter().try_for_each(|it| writer.case(&it.case))?;
        writer.finish()
    };
    text.push_str(&String::from_utf8_lossy(&cases().unwrap_or_default()));
    text
}

struct Writing<'a> {
    written: Written,
    prefix: &'a str,
    /// How many the suite has so far.
    lines: usize,
}

impl Writing<'_> {
    /// Writes a line. A text in it may go over several.
    fn line(&mut self, text: &str) {
        self.lines += text.matches('\n').count() + 1;
        self.written.suite.extend([text, "\n"]);
    }

    fn comments(&mut self, comments: &[String]) {
        for line in comments.iter().flat_map(|it| it.lines()) {
            // A control character has no place in a comment of TOML.
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            self.line(format!("# {line}").trim_end());
        }
    }

    /// Begins a part of the suite.
    fn begin(&mut self, part: Part, comments: &[String], head: &str) {
        self.line("");
        self.written.parts.push((self.lines + 1, part));
        self.comments(comments);
        self.line(head);
    }

    fn settings(&mut self, draft: &Draft) {
        let (tables, plain): (Vec<_>, Vec<_>) =
            fields(&draft.settings).into_iter().partition(|(_, value)| value.is_object());
        for (key, value) in plain {
            self.pair(&key, &value);
        }
        for (key, value) in tables {
            let comments = match key.as_str() {
                "refusal" => vec!["A reply that declines is a reply like any other.".to_owned()],
                _ => Vec::new(),
            };
            self.begin(Part::Settings, &comments, &format!("[{key}]"));
            for (key, value) in value.as_object().into_iter().flatten() {
                self.pair(key, value);
            }
        }
    }

    fn backend(&mut self, at: usize, backend: &BackendDraft) {
        let head = format!("[backends.{}]", toml_key(&backend.name));
        self.begin(Part::Backend(at), &backend.comments, &head);
        for (key, value) in fields(backend) {
            self.pair(&key, &value);
            if let (Some(name), "kind") = (&backend.adapter, key.as_str()) {
                self.pair("file", &Value::from(self.adapter(name)));
            }
        }
    }

    /// An adapter as the suite names it.
    fn adapter(&self, name: &str) -> String {
        format!("{}{ADAPTERS}/{name}", self.prefix)
    }

    fn scorer(&mut self, scorer: &ScorerDraft) {
        self.begin(Part::Settings, &[], &format!("[scorers.{}]", toml_key(&scorer.name)));
        for (key, value) in fields(scorer) {
            match key.as_str() {
                "node" if scorer.is_adapter => {
                    self.pair(&key, &Value::from(self.adapter(&scorer.node)));
                }
                _ => self.pair(&key, &value),
            }
        }
    }

    fn runner(&mut self, at: usize, runner: &RunnerDraft, datasets: &[DatasetDraft]) {
        self.begin(Part::Runner(at), &runner.comments, "[[runners]]");
        let file = |name: &str| {
            let known = datasets.iter().find(|it| it.name == *name);
            format!("{}{}", self.prefix, known.map(dataset_file).unwrap_or_default())
        };
        let named = runner.dataset.iter().map(|it| match it {
            DatasetRef::Function(named) => Value::from(format!("file://{named}")),
            DatasetRef::Adapter { name, .. } => {
                Value::from(format!("file://{}", self.adapter(name)))
            }
            DatasetRef::Draft(name) => Value::from(file(name)),
        });
        let read = runner.dataset.iter().find_map(|it| match it {
            DatasetRef::Adapter { of: Some(of), .. } => Some(file(of)),
            DatasetRef::Adapter { .. } | DatasetRef::Function(_) | DatasetRef::Draft(_) => None,
        });
        let mut named: Vec<Value> = named.collect();
        let named = if named.len() == 1 { named.remove(0) } else { Value::Array(named) };
        for (key, mut value) in fields(runner) {
            if let (Some(file), "dataset_config") = (&read, key.as_str()) {
                value["cases"] = Value::from(file.as_str());
            }
            self.pair(&key, &value);
            if key == "name" {
                self.pair("dataset", &named);
                self.examples(runner, datasets);
            }
        }
        for (place, variant) in runner.prompts.iter().enumerate() {
            self.variant(Part::Variant(at, place), variant);
        }
    }

    fn examples(&mut self, runner: &RunnerDraft, datasets: &[DatasetDraft]) {
        let Some(Examples { dataset, count, seed }) = &runner.setup.examples else { return };
        let known = datasets.iter().find(|it| it.name == *dataset);
        let file = known.map(dataset_file).unwrap_or_default();
        self.pair("examples", &Value::from(format!("{}{file}", self.prefix)));
        if let Some(count) = count {
            self.pair("examples_k", &Value::from(*count));
        }
        if let Some(seed) = seed {
            self.pair("examples_seed", &Value::from(*seed));
        }
    }

    fn variant(&mut self, part: Part, variant: &VariantDraft) {
        self.begin(part, &variant.comments, "[[runners.prompts]]");
        self.pair("name", &Value::from(variant.name.as_str()));
        match &variant.asks {
            Asks::Function(named) => self.pair("file", &Value::from(named.as_str())),
            Asks::Adapter { name, .. } => self.pair("file", &Value::from(self.adapter(name))),
            Asks::Messages(messages) => self.pair("messages", messages),
            Asks::MessagesTemplate(text) => self.pair("messages", &Value::from(text.as_str())),
            Asks::Template(text) if is_long(text) => {
                let own = variant.file.clone();
                let name = own.unwrap_or_else(|| self.prompt_file(&variant.name, text));
                self.written.prompts.push((name.clone(), part));
                self.pair("file", &Value::from(name));
            }
            Asks::Template(text) => self.pair("template", &Value::from(text.as_str())),
        }
        if !variant.sampling.is_empty() {
            let settings = Value::Object(fields(&variant.sampling).into_iter().collect());
            self.pair("settings", &settings);
        }
    }

    /// A file for a prompt. Variants of several runners share one if they say the same.
    fn prompt_file(&mut self, variant: &str, text: &str) -> String {
        // One line end at the end of the file does not count.
        let content = format!("{text}\n");
        let files = &mut self.written.files;
        for number in 1.. {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let name = format!("prompts/{variant}{suffix}.txt");
            match files.iter().find(|(other, _)| *other == name) {
                Some((_, other)) if *other != content => {}
                Some(_) => return format!("{}{name}", self.prefix),
                None => {
                    files.push((name.clone(), content));
                    return format!("{}{name}", self.prefix);
                }
            }
        }
        String::new()
    }

    fn pair(&mut self, key: &str, value: &Value) {
        let value = without_null(value);
        let (key, inline) = (toml_key(key), inline(&value));
        match &value {
            Value::Array(items) if inline.len() > LONGEST_LINE && items.len() > 1 => {
                self.line(&format!("{key} = ["));
                for item in items {
                    self.line(&format!("  {},", self::inline(item)));
                }
                self.line("]");
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.line(&format!("{key} = {inline}")),
        }
    }
}

/// A value as TOML writes it, in one line unless a text has several.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, it)| format!("{} = {}", toml_key(key), inline(it)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        // Without null, only numbers beyond TOML's are left that it cannot say.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => toml_value(value)
            .unwrap_or_else(|_| format!("{:e}", value.as_f64().unwrap_or_default())),
    }
}

/// The fields of something that has names in a suite.
fn fields(value: &impl Serialize) -> Vec<(String, Value)> {
    // Their names are texts, so this cannot fail.
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn is_long(text: &str) -> bool {
    let (lines, bytes) = LONGEST_PROMPT;
    // A file loses a line end that stands at its end, and a byte order mark.
    let is_kept = !text.ends_with(['\n', '\r']) && !text.starts_with('\u{feff}');
    is_kept
        && !text.trim().is_empty()
        && (text.len() > bytes || text.matches('\n').count() >= lines)
}

/// A value without anything that is null.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            Value::Array(items.iter().filter(|it| !it.is_null()).map(without_null).collect())
        }
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, it)| !it.is_null());
            Value::Object(
                kept.map(|(key, it)| (key.clone(), without_null(it))).collect::<Map<_, _>>(),
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A key as TOML writes it.
fn toml_key(key: &str) -> String {
    let is_bare =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_bare {
        return key.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in key.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
