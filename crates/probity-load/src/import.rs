//! Reads the cases of other tools, and says what could not be carried over.
//!
//! An importer never fails on a case. What our cases cannot say is left out and
//! noted, so that the person who imports knows what to look at.

mod artisan;
mod caro;
mod failproof;
mod plain;
mod promptfoo;
mod read;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::template;
use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Node,
};
pub use read::ImportError;

/// A tool that cases come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// caro, all four generations of its case files.
    Caro,
    /// FailProof LLM.
    FailProof,
    /// The evaluations of dotnet-artisan.
    Artisan,
    /// promptfoo.
    Promptfoo,
    /// A CSV file with a prompt and an expected answer a record.
    PlainCsv,
}

/// What an import brought.
#[derive(Debug, Default)]
pub struct Imported {
    /// The cases, each with an id of its own.
    pub cases: Vec<TestCase>,
    /// What could not be carried over, or had to be assumed.
    pub notes: Vec<Note>,
    ids: BTreeSet<String>,
    /// How often an id was asked for, so that finding a free one takes no search.
    repeated: BTreeMap<String, usize>,
}

/// Something that an import left out or assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The case it is about; none where it is about the whole file.
    pub case_id: Option<String>,
    /// One sentence, lower case, the same for the same kind of thing.
    pub what: String,
}

/// Reads a file of another tool. `prompt` is the template for cases that have only variables.
pub fn import(origin: Origin, path: &Path, prompt: Option<&str>) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    match origin {
        Origin::Caro => caro::import(path, &mut imported)?,
        Origin::FailProof => failproof::import(path, &mut imported)?,
        Origin::Artisan => artisan::import(path, &mut imported)?,
        Origin::Promptfoo => promptfoo::import(path, prompt, &mut imported)?,
        Origin::PlainCsv => plain::import(path, &mut imported)?,
    }
    Ok(imported)
}

impl Imported {
    /// Takes in a case whose prompt is text as it is.
    fn add(&mut self, mut case: TestCase) {
        case.prompt = literal(&case.prompt);
        case.system = case.system.as_deref().map(literal);
        self.push(case);
    }

    /// Takes in a case whose prompt is a template. Variables without a value become empty, as
    /// the tools that have them make them.
    fn add_template(&mut self, mut case: TestCase) {
        let known = |name: &str| case.prompt_vars.contains_key(name);
        match template::undefined_variables(&case.prompt, known) {
            Ok(missing) => {
                for name in missing {
                    self.note(&case.id, format!("variable `{name}` has no value: taken as empty"));
                    case.prompt_vars.insert(name, serde_json::Value::String(String::new()));
                }
            }
            Err(_) => {
                self.note(&case.id, "the prompt is not a template that we read: taken literally");
                case.prompt = literal(&case.prompt);
            }
        }
        self.push(case);
    }

    fn push(&mut self, case: TestCase) {
        let id = self.unique_id(&case.id);
        if id != case.id {
            self.note(&id, "the id was made up, or changed to be usable and unique");
        }
        self.cases.push(TestCase { id, ..case });
    }

    fn note(&mut self, case_id: &str, what: impl Into<String>) {
        self.notes.push(Note { case_id: Some(case_id.to_owned()), what: what.into() });
    }

    fn note_file(&mut self, what: impl Into<String>) {
        self.notes.push(Note { case_id: None, what: what.into() });
    }

    /// Notes the fields of a case that nothing was made of.
    fn note_unused(&mut self, case_id: &str, node: &Node, used: &[&str]) {
        for entry in node.entries() {
            if !used.contains(&entry.key.as_str()) {
                self.note(case_id, format!("field `{}` has no counterpart", entry.key));
            }
        }
    }

    fn unique_id(&mut self, wanted: &str) -> String {
        let base = usable_id(wanted);
        let mut id = base.clone();
        while !self.ids.insert(id.clone()) {
            let count = self.repeated.entry(base.clone()).or_insert(1);
            *count += 1;
            id = format!("{base}-{count}");
        }
        id
    }
}

/// A text as a template that renders to it.
fn literal(text: &str) -> String {
    if !template::is_template(text) {
        return text.to_owned();
    }
    if text.contains("endraw") {
        let mut escaped = text.to_owned();
        for mark in ["{{", "{%", "{#"] {
            // The braces of a replacement must not be replaced again.
            escaped = escaped.replace(mark, &format!("\u{0}{}\u{0}", &mark[1..]));
        }
        return escaped
            .replace("\u{0}{\u{0}", "{{ '{{' }}")
            .replace("\u{0}%\u{0}", "{{ '{%' }}")
            .replace("\u{0}#\u{0}", "{{ '{#' }}");
    }
    format!("{{% raw %}}{text}{{% endraw %}}")
}

/// An id made of a text: what an id may not hold becomes a hyphen.
fn usable_id(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut id = String::new();
    for c in text.trim().chars().take(LONGEST) {
        match c {
            c if c.is_alphanumeric() || "._/:-#@+".contains(c) => id.push(c),
            _ if id.ends_with('-') => {}
            _ => id.push('-'),
        }
    }
    let id = id.trim_matches('-');
    if id.is_empty() { "case".to_owned() } else { id.to_owned() }
}

/// The text under a name; numbers and booleans are text too.
fn text(node: &Node, key: &str) -> Option<String> {
    let value = node.get(key)?.to_json();
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::Bool(value) => Some(value.to_string()),
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            None
        }
    }
    .filter(|text| !text.trim().is_empty())
}

/// The texts under a name: a list, or one alone.
fn texts(node: &Node, key: &str) -> Vec<String> {
    let Some(value) = node.get(key) else { return Vec::new() };
    let items = value.items().iter().chain((value.as_str().is_some()).then_some(value));
    items
        .filter_map(|item| item.as_str().map(ToOwned::to_owned))
        .filter(|text| !text.trim().is_empty())
        .collect()
}

fn boolean(node: &Node, key: &str) -> Option<bool> {
    node.get(key).and_then(|value| value.to_json().as_bool())
}

fn labelled(label: &str, value: Option<String>) -> Option<String> {
    value.map(|value| format!("{label}:{value}"))
}

fn assertion(test: AssertionTest, negated: bool) -> Assertion {
    Assertion::new(AssertionKind { negated, test })
}

#[cfg(test)]
mod tests;
