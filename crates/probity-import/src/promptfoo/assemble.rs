//! Puts prompts, providers and tests together: which runner asks whom what.

use std::collections::BTreeMap;

use probity_core::located::Node;
use probity_load::template;
use serde_json::Value;

use super::{
    Context,
    options::Around,
    prompts::{self, Prompt},
    providers::Provider,
    templates,
    tests::{Test, Tests},
};
use crate::{
    ImportError, NOBODY,
    draft::{CaseDraft, DatasetDraft, DatasetRef, RunnerDraft, Setup},
    nobody,
};

/// Tests that are asked in the same way: they share a dataset.
struct Group {
    around: Around,
    prompts: Vec<String>,
    providers: Vec<String>,
    setup: Setup,
    cases: Vec<CaseDraft>,
}

pub(super) fn assemble(
    root: &Node,
    mut prompts: Vec<Prompt>,
    mut providers: Vec<Provider>,
    tests: Tests,
    context: &mut Context<'_>,
) -> Result<(), ImportError> {
    let at = context.at(root);
    if providers.is_empty() && root.get("providers").is_none() && root.get("targets").is_none() {
        let backend = nobody(at.clone(), context.notes);
        providers.push(Provider::of_backend(NOBODY));
        context.draft.backends.push(backend);
    }
    if providers.is_empty() {
        return Err(ImportError::shape("none of the providers can be carried over"));
    }
    if prompts.is_empty() {
        return Err(ImportError::shape("none of the prompts can be carried over"));
    }
    let mut groups = grouped(tests.cases);
    rename_vars(&mut prompts, &mut groups);
    if groups.is_empty() && tests.functions.is_empty() {
        return Err(ImportError::shape("there is no test that can be carried over"));
    }
    for (number, group) in groups.into_iter().enumerate() {
        let name = if number == 0 { "cases".to_owned() } else { format!("cases-{}", number + 1) };
        let Group { around, prompts: wanted, providers: asked, setup, cases } = group;
        let dataset = vec![DatasetRef::Draft(name.clone())];
        let cases_at = cases.first().map_or_else(|| at.clone(), |it| it.at.clone());
        let base = RunnerDraft {
            name: "tests".to_owned(),
            at: cases_at,
            comments: Vec::new(),
            kind: None,
            dataset,
            backends: Vec::new(),
            setup,
            prompts: Vec::new(),
        };
        let chosen = prompts.iter().filter(|it| it.is_among(&wanted));
        let chosen: Vec<Prompt> = chosen.map(|it| it.within(&around)).collect();
        let chosen: Vec<&Prompt> = chosen.iter().collect();
        let asked: Vec<&Provider> = providers.iter().filter(|it| it.is_among(&asked)).collect();
        add_runners(&base, &chosen, &asked, &cases, context);
        let cases = cases.into_iter().map(with_a_value).collect();
        context.draft.datasets.push(DatasetDraft { name, comments: Vec::new(), cases });
    }
    let asked: Vec<&Provider> = providers.iter().collect();
    for (named, at) in tests.functions {
        let base = RunnerDraft {
            name: "tests".to_owned(),
            at,
            comments: Vec::new(),
            kind: None,
            dataset: vec![DatasetRef::Function(named)],
            backends: Vec::new(),
            setup: tests.setup.clone(),
            prompts: Vec::new(),
        };
        let chosen: Vec<&Prompt> = prompts.iter().collect();
        add_runners(&base, &chosen, &asked, &[], context);
    }
    match context.draft.runners.is_empty() {
        true => Err(ImportError::shape("no provider is asked any of the prompts")),
        false => Ok(()),
    }
}

/// A case asks something itself, or has a value for those who ask.
fn with_a_value(mut it: CaseDraft) -> CaseDraft {
    if it.case.prompt_vars.is_empty() {
        it.case.prompt_vars.insert("test".to_owned(), Value::from(it.case.id.as_str()));
    }
    it
}

fn grouped(tests: Vec<Test>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for Test { case, prompts, providers, around, setup } in tests {
        let same = |it: &&mut Group| {
            it.prompts == prompts
                && it.providers == providers
                && it.around == around
                && it.setup == setup
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { around, prompts, providers, setup, cases: vec![case] }),
        }
    }
    groups
}

/// Adds a runner for all providers that are asked the same prompts in the same way.
fn add_runners(
    base: &RunnerDraft,
    prompts: &[&Prompt],
    providers: &[&Provider],
    cases: &[CaseDraft],
    context: &mut Context<'_>,
) {
    let mut runners: Vec<RunnerDraft> = Vec::new();
    for provider in providers {
        let variants: Vec<_> = prompts
            .iter()
            .filter(|it| it.is_among(&provider.prompts))
            .map(|it| it.variant.clone())
            .collect();
        if variants.is_empty() {
            continue;
        }
        let setup = provider.completed(&base.setup);
        match runners.iter_mut().find(|it| it.prompts == variants && it.setup == setup) {
            Some(runner) => runner.backends.push(provider.backend.clone()),
            None => runners.push(RunnerDraft {
                backends: vec![provider.backend.clone()],
                prompts: variants,
                setup,
                ..base.clone()
            }),
        }
    }
    for mut runner in runners {
        let taken = |name: &str, context: &Context<'_>| {
            context.draft.runners.iter().any(|it| it.name == name)
        };
        let mut number = 1;
        while taken(&runner.name, context) {
            number += 1;
            runner.name = format!("tests-{number}");
        }
        runner.setup.repeat = runner.setup.repeat.or(context.repeat);
        add_missing_vars(&mut runner, cases);
        context.draft.runners.push(runner);
    }
}

/// Variables that a prompt names and a case does not have are empty in promptfoo.
fn add_missing_vars(runner: &mut RunnerDraft, cases: &[CaseDraft]) {
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for text in runner.prompts.iter().flat_map(|it| prompts::texts_of(&it.asks)) {
        let names = template::undefined_variables(&text, |_| false).unwrap_or_default();
        named.extend(names.into_iter().map(|it| (it, Value::from(""))));
    }
    let lacks = |name: &str| {
        cases.is_empty() || cases.iter().any(|it| !it.case.prompt_vars.contains_key(name))
    };
    named.retain(|name, _| lacks(name));
    for (name, value) in named {
        runner.setup.prompt_vars.entry(name).or_insert(value);
    }
}

/// A template of ours sees fields of the case, which would hide variables of the same names. Those get
/// other names.
fn rename_vars(prompts: &mut [Prompt], groups: &mut [Group]) {
    for name in prompts::OURS {
        let uses = |it: &Prompt| {
            let uses = |text: &String| {
                // A template of nothing but the prompt asks what the case itself asks.
                if *name == "prompt" {
                    return templates::only_expression(text) == Some(name);
                }
                let names = template::undefined_variables(text, |other| other != *name);
                names.is_ok_and(|it| !it.is_empty())
            };
            prompts::texts_of(&it.variant.asks).iter().any(uses)
        };
        let other = format!("{name}_value");
        let mut is_used = false;
        for prompt in prompts.iter_mut().filter(|it| uses(it)) {
            prompt.variant.asks = prompts::renamed(&prompt.variant.asks, name, &other);
            is_used = true;
        }
        if !is_used {
            continue;
        }
        for group in groups.iter_mut() {
            let shared = group.setup.prompt_vars.get(*name).cloned();
            group.setup.prompt_vars.insert(other.clone(), shared.unwrap_or_else(|| "".into()));
            for case in &mut group.cases {
                let vars = &mut case.case.prompt_vars;
                let own = vars.get(*name).cloned();
                vars.extend(own.map(|value| (other.clone(), value)));
            }
        }
    }
}
