//! promptfoo: a configuration with providers, prompts and tests, or a file of tests alone.
//!
//! `config` walks the configuration and puts the parts together. `providers` and `prompts` say who is asked
//! and how; `tests`, with `vars`, `assertions`, `expected` and `transform`, what is asked and expected.

mod adapters;
mod assemble;
mod assertions;
mod config;
mod conversation;
mod derived;
mod env;
mod expected;
mod files;
mod known;
mod lists;
mod missing;
mod nunjucks;
mod options;
mod paths;
mod prompts;
mod providers;
mod refs;
mod templates;
mod tests;
mod transform;
mod values;
mod vars;

use std::{collections::BTreeMap, str::FromStr};

use probity_core::located::{Node, NodeValue};

pub(crate) use config::import;
use env::{Env, Told};
use files::Files;
use known::Table;
use providers::OwnProvider;
pub(crate) use providers::python_files;

use crate::{
    cases::{Ids, text},
    draft::{BackendDraft, Draft},
    note::{At, Notes},
    source::{Source, Unreadable},
};

/// What all parts of an import share.
pub(crate) struct Context<'a> {
    /// The files.
    source: &'a mut Source,
    /// What is told to the user.
    notes: &'a mut Notes,
    /// What is made.
    draft: Draft,
    /// The ids of cases that are taken.
    ids: Ids,
    /// The names of backends and of prompts that are taken.
    names: Ids,
    /// The names of runners that are taken.
    runners: Ids,
    /// Variables that the configuration sets.
    env: Env,
    /// Providers that are asked, by what they were made of.
    providers: BTreeMap<String, OwnProvider>,
    /// Backends that help, by what they were made of.
    helpers: BTreeMap<String, Option<String>>,
    /// Descriptions of such that do not say who is meant.
    unnamed: Vec<(At, String)>,
    /// How often each case is asked.
    repeat: Option<u32>,
    /// Filters of templates that are code, by their names.
    filters: BTreeMap<String, String>,
    /// Whether backends are named by the ids of their providers: functions that make prompts look at them.
    are_named_by_id: bool,
    /// Variables that functions see which make prompts and values, by their names in the suite.
    seen: BTreeMap<String, Vec<String>>,
    /// Files that values name.
    files: Files,
    /// The backends of all providers that are asked.
    asked: Vec<BackendDraft>,
    /// The variables that hold keys which are written out, by the addresses that they are for and the keys.
    keys: BTreeMap<(String, String), String>,
    /// The weights of named scores.
    weights: derived::Weights,
}

impl<'a> Context<'a> {
    fn new(source: &'a mut Source, notes: &'a mut Notes) -> Self {
        Self {
            source,
            notes,
            draft: Draft::default(),
            ids: Ids::default(),
            names: Ids::default(),
            runners: Ids::default(),
            env: Env::default(),
            providers: BTreeMap::new(),
            helpers: BTreeMap::new(),
            unnamed: Vec::new(),
            repeat: None,
            filters: BTreeMap::new(),
            are_named_by_id: false,
            seen: BTreeMap::new(),
            files: Files::default(),
            asked: Vec::new(),
            keys: BTreeMap::new(),
            weights: derived::Weights::default(),
        }
    }

    /// Notes that something is not carried over.
    fn lost(&mut self, node: &Node, what: impl Into<String>, advice: impl Into<String>) {
        self.notes.lost(self.source.at(&node.span), what, advice);
    }

    /// Notes what is taken to be meant.
    fn assumed(&mut self, node: &Node, what: impl Into<String>, advice: impl Into<String>) {
        self.notes.assumed(self.source.at(&node.span), what, advice);
    }

    /// Adds a backend to the draft.
    fn add_backend(&mut self, backend: BackendDraft) {
        self.names.take(&backend.name);
        self.draft.backends.push(backend);
    }

    /// The templates of a backend that are filled in for each request.
    fn templates_of(&self, backend: &str) -> Vec<String> {
        let backends = self.draft.backends.iter().filter(|it| it.name == backend);
        backends.flat_map(BackendDraft::templates).map(ToOwned::to_owned).collect()
    }

    /// Notes which variables a function sees that makes prompts or values, once. `reference` is its name in the
    /// suite.
    fn see(&mut self, reference: &str, named: &str, node: &Node) {
        if !self.seen.contains_key(reference) {
            let env = providers::seen_by_function(named, "its runner or backend", node, self);
            self.seen.insert(reference.to_owned(), env);
        }
    }

    /// Where a node stands.
    fn at(&self, node: &Node) -> At {
        self.source.at(&node.span)
    }

    /// The number under a name of a table. What is there and is none is noted.
    fn number<T: FromStr>(&mut self, table: &Node, key: &str) -> Option<T> {
        let env = self.env.clone();
        self.number_within(&env, table, key)
    }

    /// The same, with other variables of the environment.
    fn number_within<T: FromStr>(&mut self, env: &Env, table: &Node, key: &str) -> Option<T> {
        let node = table.get(key).filter(|it| !matches!(it.value, NodeValue::Null))?;
        let written = text(table, key).unwrap_or_default();
        let number = match env.told(&written) {
            Told::Text(told) => told.trim().parse().ok(),
            Told::Variable(_) | Told::Unknown(_) => None,
        };
        if number.is_none() {
            let what = format!("`{key}: {written}` is not a number that can be used");
            self.lost(node, what, "write the number");
        }
        number
    }

    /// Notes that a file that a node names cannot be used.
    fn unreadable(&mut self, node: &Node, error: &Unreadable) {
        self.lost(node, error.to_string(), error.advice());
    }

    /// Notes the keys of a table that nothing reads. `what` is whose they are.
    fn lost_keys(&mut self, node: &Node, what: &str, known: &[&str]) {
        for entry in node.entries().iter().filter(|it| !known.contains(&it.key.as_str())) {
            let at = self.source.at(&entry.key_span);
            let message = format!("`{}` of {what} has no counterpart", entry.key);
            self.notes.lost(at, message, "leave it out if it does not matter");
        }
    }

    /// The tree of a file that a node names, with a note about what of it cannot be read.
    fn tree(&mut self, named_by: &Node, name: &str) -> Option<Node> {
        match self.source.tree(name) {
            Ok((root, wrong)) => {
                for unreadable in &wrong {
                    crate::note_unreadable(self.source, &root, unreadable, self.notes);
                }
                Some(self.with_paths(root))
            }
            Err(error) => {
                self.unreadable(named_by, &error);
                None
            }
        }
    }
}

/// A list, or one thing alone as a list.
fn list(node: &Node) -> &[Node] {
    match crate::is_list(node) {
        true => node.items(),
        false => std::slice::from_ref(node),
    }
}

/// Whether a filter means something with these names. An empty one means all; a name that ends in `*` means
/// all that begin so; `is` says which other names mean the same.
fn is_meant(names: &[String], filter: &[String], is: fn(&str, &str) -> bool) -> bool {
    let means = |wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => names.iter().any(|it| it.starts_with(start)),
        None => names.iter().any(|it| is(it, wanted)),
    };
    filter.is_empty() || filter.iter().any(means)
}
