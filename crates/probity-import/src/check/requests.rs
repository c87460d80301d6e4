//! Whether a backend can be sent every case: its templates are filled in as a run would do it.
//!
//! What is filled in then holds no mark of a template that nobody wrote as a text: such a request would be sent as
//! nobody means it.

use std::collections::BTreeMap;

use probity_load::template;
use serde_json::Value;

use super::{CaseKey, read_by};
use crate::draft::{
    Asks, BackendDraft, CaseDraft, DatasetDraft, Draft, REQUEST_NAMES, RunnerDraft,
};

/// The longest part of a request that is looked for in what was imported, in characters.
const LONGEST_MARK: usize = 60;

/// The cases that a backend of their runner cannot be sent, and why not.
pub(super) fn refused(draft: &Draft) -> Vec<(CaseKey, String)> {
    let mut refused = Vec::new();
    for runner in &draft.runners {
        let asked = draft.backends.iter().filter(|it| runner.backends.contains(&it.name));
        for backend in asked.filter(|it| !it.templates().is_empty()) {
            let read: Vec<&str> = read_by(runner).collect();
            for dataset in draft.datasets.iter().filter(|it| read.contains(&it.name.as_str())) {
                refused.extend(of_dataset(backend, runner, dataset));
            }
        }
    }
    refused
}

/// The cases whose requests would have a tag in them that is not so in what was imported. `is_held` says what is.
pub(super) fn marked(draft: &Draft, is_held: &dyn Fn(&str) -> bool) -> Vec<(CaseKey, String)> {
    let mut marked = Vec::new();
    for runner in &draft.runners {
        let asked: Vec<&str> = runner.prompts.iter().flat_map(|it| texts_of(&it.asks)).collect();
        let read: Vec<&str> = read_by(runner).collect();
        for dataset in draft.datasets.iter().filter(|it| read.contains(&it.name.as_str())) {
            marked.extend(dataset.cases.iter().filter_map(|it| {
                let tag = tag_in(&asked, runner, it).find(|it| !is_held(it))?;
                let key = CaseKey { dataset: dataset.name.clone(), id: it.case.id.clone() };
                Some((key, format!("`{tag}` would be sent as a text")))
            }));
        }
    }
    marked
}

/// The tags that are left in what a case is asked.
fn tag_in(asked: &[&str], runner: &RunnerDraft, draft: &CaseDraft) -> impl Iterator<Item = String> {
    let vars = filled_vars(runner, draft).unwrap_or_default();
    let has_tags = |text: &str| text.contains("{{") || text.contains("{%");
    let is_marked = vars.values().flat_map(template::texts_in).any(has_tags);
    let may_say =
        |text: &&str| is_marked || ["raw", "'{", "\"{"].iter().any(|it| text.contains(it));
    let own = asked.is_empty().then_some(&*draft.case.prompt);
    let texts: Vec<&str> = asked.iter().copied().chain(own).filter(may_say).collect();
    let filled: Vec<String> =
        texts.into_iter().filter_map(|it| template::render(it, &vars).ok()).collect();
    filled.into_iter().flat_map(|it| tags(&it))
}

fn tags(text: &str) -> Vec<String> {
    let marks = [("{{", "}}"), ("{%", "%}")];
    let found = marks.into_iter().flat_map(|(open, close)| {
        text.match_indices(open).map(move |(at, _)| {
            let rest = &text[at..];
            let end = rest.find(close).map_or(rest.len(), |it| it + close.len());
            rest[..end].chars().take(LONGEST_MARK).collect()
        })
    });
    found.collect()
}

fn texts_of(asks: &Asks) -> Vec<&str> {
    match asks {
        Asks::Template(text) | Asks::MessagesTemplate(text) => vec![text],
        Asks::Messages(messages) => template::texts_in(messages),
        Asks::Function(_) | Asks::Adapter { .. } => Vec::new(),
    }
}

/// The variables of a case as templates see them. None if they cannot be filled in: it is refused for that.
fn filled_vars(runner: &RunnerDraft, draft: &CaseDraft) -> Option<BTreeMap<String, Value>> {
    let mut vars = runner.setup.prompt_vars.clone();
    vars.extend(draft.case.vars().into_owned());
    let mut vars = template::fill_values(&vars).ok()?.into_owned();
    draft.case.add_labels(&mut vars);
    Some(vars)
}

fn of_dataset(
    backend: &BackendDraft,
    runner: &RunnerDraft,
    dataset: &DatasetDraft,
) -> Vec<(CaseKey, String)> {
    let templates = backend.templates();
    let own = own_values(&templates);
    let refused = dataset.cases.iter().filter_map(|it| {
        let mut vars = filled_vars(runner, it)?;
        vars.extend(own.clone());
        let error = templates.iter().find_map(|it| template::render(it, &vars).err())?;
        let key = CaseKey { dataset: dataset.name.clone(), id: it.case.id.clone() };
        Some((key, format!("it cannot be sent to `{}`: {error}", backend.name)))
    });
    refused.collect()
}

/// Some value for what templates see beside the variables of a case.
fn own_values(templates: &[&str]) -> BTreeMap<String, Value> {
    let env = templates.iter().flat_map(|it| template::env_variables(it));
    let env: Value = Value::Object(env.map(|name| (name, Value::from("x"))).collect());
    let value = |name: &str| if name == "env" { env.clone() } else { Value::from("x") };
    REQUEST_NAMES.iter().map(|name| ((*name).to_owned(), value(name))).collect()
}
