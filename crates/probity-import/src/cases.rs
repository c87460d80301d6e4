//! Cases as they come in: each gets an id of its own.

use std::collections::{BTreeMap, BTreeSet};

use probity_core::{
    case::TestCase,
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Node,
};
use probity_load::template;

use crate::{
    draft::CaseDraft,
    note::{At, Notes},
};

/// Ids that are valid and unique.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    taken: BTreeSet<String>,
    /// How often an id was asked for, so that finding a free one takes no search.
    repeated: BTreeMap<String, usize>,
}

impl Ids {
    /// An id that is as near as possible to what is wanted.
    pub(crate) fn unique(&mut self, wanted: &str) -> String {
        let id = self.free(&usable_id(wanted));
        self.take(&id);
        id
    }

    /// What is wanted if it is not taken, with a number behind it otherwise.
    pub(crate) fn free(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        while self.taken.contains(&id) {
            let count = self.repeated.entry(wanted.to_owned()).or_insert(1);
            *count += 1;
            id = format!("{wanted}-{count}");
        }
        id
    }

    /// Nobody else gets this one.
    pub(crate) fn take(&mut self, id: &str) {
        self.taken.insert(id.to_owned());
    }
}

/// The cases of a file that has nothing else.
pub(crate) struct Imported<'a> {
    pub(crate) cases: Vec<CaseDraft>,
    notes: &'a mut Notes,
    /// What is looked at.
    here: At,
    ids: Ids,
}

impl<'a> Imported<'a> {
    pub(crate) fn new(notes: &'a mut Notes, here: At) -> Self {
        Self { cases: Vec::new(), notes, here, ids: Ids::default() }
    }

    /// Goes on with what stands at another place.
    pub(crate) fn now_at(&mut self, here: At) {
        self.here = here;
    }

    /// Takes in a case whose prompt is text as it is.
    pub(crate) fn add(&mut self, mut case: TestCase) {
        case.prompt = literal(&case.prompt).into();
        case.system = case.system.as_deref().map(literal);
        self.push(case);
    }

    /// Takes in a case that is asked as it is: its texts are templates already.
    pub(crate) fn add_asked(&mut self, case: TestCase) {
        self.push(case);
    }

    /// Takes in a case whose prompt is a template. Variables without a value become empty, as
    /// the tools that have them make them.
    pub(crate) fn add_template(&mut self, mut case: TestCase) {
        let known = |name: &str| case.prompt_vars.contains_key(name);
        match template::undefined_variables(&case.prompt, known) {
            Ok(missing) => {
                for name in missing {
                    self.assume(format!("variable `{name}` has no value: taken as empty"));
                    case.prompt_vars.insert(name, serde_json::Value::String(String::new()));
                }
            }
            Err(_) => {
                self.assume("the prompt is not a template that we read: taken literally");
                case.prompt = literal(&case.prompt).into();
            }
        }
        self.push(case);
    }

    fn push(&mut self, case: TestCase) {
        let id = self.ids.unique(&case.id);
        if id != case.id {
            self.assume(format!("the id was changed to `{id}`, to be usable and unique"));
        }
        self.cases.push(CaseDraft { case: TestCase { id, ..case }, at: self.here.clone() });
    }

    /// Notes that something is left out.
    pub(crate) fn lose(&mut self, what: impl Into<String>) {
        self.notes.lost(self.here.clone(), what, "add it to the dataset by hand if it matters");
    }

    /// Notes what is taken to be meant.
    pub(crate) fn assume(&mut self, what: impl Into<String>) {
        self.notes.assumed(self.here.clone(), what, "");
    }

    /// Notes the fields of a case that nothing was made of.
    pub(crate) fn note_unused(&mut self, node: &Node, used: &[&str]) {
        for entry in node.entries() {
            if !used.contains(&entry.key.as_str()) {
                self.lose(format!("field `{}` has no counterpart", entry.key));
            }
        }
    }
}

/// A text as a template that renders to it.
pub(crate) fn literal(text: &str) -> String {
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
pub(crate) fn usable_id(text: &str) -> String {
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
pub(crate) fn text(node: &Node, key: &str) -> Option<String> {
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
pub(crate) fn texts(node: &Node, key: &str) -> Vec<String> {
    let Some(value) = node.get(key) else { return Vec::new() };
    let items = value.items().iter().chain((value.as_str().is_some()).then_some(value));
    items
        .filter_map(|item| item.as_str().map(ToOwned::to_owned))
        .filter(|text| !text.trim().is_empty())
        .collect()
}

pub(crate) fn boolean(node: &Node, key: &str) -> Option<bool> {
    node.get(key).and_then(|value| value.to_json().as_bool())
}

pub(crate) fn labelled(label: &str, value: Option<String>) -> Option<String> {
    value.map(|value| format!("{label}:{value}"))
}

pub(crate) fn assertion(test: AssertionTest, negated: bool) -> Assertion {
    Assertion::new(AssertionKind { negated, test })
}
