//! Whether a backend can be sent every case: its templates are filled in as a run would do it.

use std::collections::BTreeMap;

use probity_load::template;
use serde_json::Value;

use super::{CaseKey, read_by};
use crate::draft::{BackendDraft, DatasetDraft, Draft, REQUEST_NAMES, RunnerDraft};

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

fn of_dataset(
    backend: &BackendDraft,
    runner: &RunnerDraft,
    dataset: &DatasetDraft,
) -> Vec<(CaseKey, String)> {
    let templates = backend.templates();
    let own = own_values(&templates);
    let refused = dataset.cases.iter().filter_map(|it| {
        let mut vars = runner.setup.prompt_vars.clone();
        vars.extend(it.case.vars().into_owned());
        // Values that cannot be filled in are refused with the case.
        let mut vars = template::fill_values(&vars).ok()?.into_owned();
        it.case.add_labels(&mut vars);
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
