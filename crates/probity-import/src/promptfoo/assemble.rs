//! Puts prompts, providers and tests together: which runner asks whom what.

mod everybody;
mod talks;

use std::collections::BTreeSet;

use probity_core::{case::TestCase, criteria::Assertion, located::Node, request::ResponseFormat};
use probity_load::{
    suite::{BackendKind, Way},
    template,
};
use serde_json::Value;

use super::{
    Context, conversation, lists, missing,
    options::Around,
    prompts::{self, Prompt},
    providers::{Provider, Takes},
    templates,
    tests::{Generator, Test, Tests, VarsCode},
    transform, values, vars,
};
use crate::{
    ImportError, NOBODY,
    draft::{
        Asks, BackendDraft, CaseDraft, DatasetDraft, DatasetRef, RunnerDraft, Setup, VariantDraft,
    },
    nobody,
    note::At,
};
use everybody::Everybody;
use talks::add_talks;

/// Tests that are asked in the same way: they share a dataset.
struct Group {
    around: Around,
    prompts: Vec<String>,
    providers: Vec<String>,
    /// The provider that is asked in the place of all others.
    provider: Option<Provider>,
    /// What is said of these tests alone.
    own: Setup,
    inherits: bool,
    /// The code that makes their variables.
    code: Option<VarsCode>,
    /// Whether they bring their replies.
    is_given: bool,
    /// What is said of them in all.
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
        context.add_backend(backend);
    }
    if providers.is_empty() {
        return Err(ImportError::shape("none of the providers can be carried over"));
    }
    if prompts.is_empty() {
        return Err(ImportError::shape("none of the prompts can be carried over"));
    }
    let mut groups = grouped(tests.cases, &tests.setup);
    rename_vars(&mut prompts, &mut groups);
    for group in &mut groups {
        if !sees_variables(group, &prompts, context) {
            remove_prompts(group);
        }
        values::settle(&mut group.cases, &mut group.setup.prompt_vars, context);
        lists::write_in_cases(&mut group.cases, &mut group.setup.prompt_vars);
    }
    groups.retain(|it| !it.cases.is_empty());
    if groups.is_empty() && tests.functions.is_empty() {
        return Err(ImportError::shape("there is no test that can be carried over"));
    }
    let of_tests = groups.iter().filter_map(|it| it.provider.as_ref()).chain(&tests.provider);
    let mut everybody = Everybody::of(providers, of_tests);
    let talks: Vec<Prompt> =
        prompts.extract_if(.., |it| conversation::remembers(&it.variant.asks)).collect();
    add_talks(&talks, &groups, &everybody, &tests.functions, context);
    if prompts.is_empty() {
        groups.clear();
    }
    let has_functions = !tests.functions.is_empty();
    for provider in &mut everybody.all {
        let asked = asked_of(provider, &prompts, &groups, has_functions);
        provider.for_chats = backend_for_chats(provider, &asked, context);
    }
    for (number, group) in groups.into_iter().enumerate() {
        let name = if number == 0 { "cases".to_owned() } else { format!("cases-{}", number + 1) };
        let Group { around, prompts: wanted, providers: filter, mut setup, mut cases, .. } = group;
        let (code, is_given, provider) = (group.code, group.is_given, group.provider);
        let is_for_code = code.is_some();
        let dataset = vec![match code {
            None => DatasetRef::Draft(name.clone()),
            Some(code) => {
                setup.env = seen_by_code(&code, &cases, &setup, context);
                made_by_code(&name, &code, &prompts, &mut setup, context)
            }
        }];
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
        let chosen: Vec<&Prompt> = prompts.iter().filter(|it| it.is_among(&wanted)).collect();
        if around != Around::default() {
            note_around(&chosen, &base.at, context);
        }
        let chosen: Vec<Prompt> = chosen.iter().map(|it| it.within(&around)).collect();
        let chosen: Vec<&Prompt> = chosen.iter().collect();
        let asked = match is_given {
            true => vec![given(&base.at, context)],
            false => {
                everybody.note_once(provider.as_ref(), &base.at, context);
                everybody.asked(provider.as_ref(), &filter)
            }
        };
        let sent = asked.iter().flat_map(|it| context.templates_of(&it.backend));
        let named = chosen.iter().flat_map(|it| prompts::texts_of(&it.variant.asks)).chain(sent);
        missing::complete(&mut cases, named);
        let is_nowhere = chosen.is_empty() && !talks.iter().any(|it| it.is_among(&wanted));
        note_nobody(&wanted, is_nowhere, "prompt", &base.at, context);
        note_nobody(&filter, asked.is_empty(), "provider", &base.at, context);
        add_runners(&base, &chosen, &asked, &cases, context);
        context.draft.datasets.push(DatasetDraft {
            name,
            is_for_code,
            cases,
            ..DatasetDraft::default()
        });
    }
    let asked = everybody.asked(tests.provider.as_ref(), &[]);
    add_made(tests.functions, &tests.setup, &prompts, &asked, context);
    match context.draft.runners.is_empty() {
        true => Err(ImportError::shape("no provider is asked any of the prompts")),
        false => Ok(()),
    }
}

/// Adds runners for the tests that functions make.
fn add_made(
    functions: Vec<Generator>,
    setup: &Setup,
    prompts: &[Prompt],
    asked: &[Provider],
    context: &mut Context<'_>,
) {
    let chosen: Vec<&Prompt> = prompts.iter().collect();
    for Generator { dataset, config, env, at } in functions {
        let base = RunnerDraft {
            name: "tests".to_owned(),
            at,
            comments: Vec::new(),
            kind: None,
            dataset: vec![dataset],
            backends: Vec::new(),
            setup: Setup { dataset_config: config, env, ..setup.clone() },
            prompts: Vec::new(),
        };
        add_runners(&base, &chosen, asked, &[], context);
    }
}

/// Whoever says what tests bring as replies.
fn given(at: &At, context: &mut Context<'_>) -> Provider {
    const NAME: &str = "given";
    let known = context.draft.backends.iter().find(|it| it.adapter.as_deref() == Some("given.mjs"));
    let name = match known {
        Some(known) => known.name.clone(),
        None => {
            let name = context.names.free(NAME);
            let adapter = Some(context.adapter("given.mjs"));
            let backend = BackendDraft::new(name.clone(), BackendKind::Node, at.clone());
            context.add_backend(BackendDraft { adapter, ..backend });
            name
        }
    };
    Provider { for_chats: Some(name.clone()), ..Provider::of_backend(&name) }
}

/// The dataset that an adapter makes of one of the draft's, whose variables need code. What all cases have is
/// told to the code, too.
fn made_by_code(
    dataset: &str,
    code: &VarsCode,
    prompts: &[Prompt],
    setup: &mut Setup,
    context: &mut Context<'_>,
) -> DatasetRef {
    let asked = prompts.iter().flat_map(|it| prompts::texts_of(&it.variant.asks)).next();
    let mut config = serde_json::json!({ "prompt": asked.unwrap_or_default() });
    if let Some(transform) = &code.transform {
        config["transform"] = Value::from(transform.as_str());
    }
    let shared = std::mem::take(&mut setup.prompt_vars);
    config["shared"] = Value::Object(shared.clone().into_iter().collect());
    setup.prompt_vars = shared.into_iter().filter(|(_, value)| !vars::is_made(value)).collect();
    setup.dataset_config = Some(config);
    DatasetRef::Adapter { name: context.adapter("cases.mjs"), of: Some(dataset.to_owned()) }
}

/// The variables that code sees which makes the variables of cases.
fn seen_by_code(
    code: &VarsCode,
    cases: &[CaseDraft],
    setup: &Setup,
    context: &Context<'_>,
) -> Vec<String> {
    let transform = code.transform.as_deref().and_then(|it| it.strip_prefix("file://"));
    let values = cases.iter().flat_map(|it| it.case.prompt_vars.values());
    let called = values.chain(setup.prompt_vars.values()).flat_map(vars::functions_in);
    let seen = called.chain(transform).filter_map(|it| context.seen.get(it)).flatten();
    seen.cloned().collect::<BTreeSet<String>>().into_iter().collect()
}

/// Notes that tests name prompts or providers, and that there is none of these names.
fn note_nobody(filter: &[String], is_nobody: bool, what: &str, at: &At, context: &mut Context<'_>) {
    if is_nobody && !filter.is_empty() {
        let names = filter.join("`, `");
        let what = format!("these tests are for the {what} `{names}`, which there is not");
        context.notes.lost(at.clone(), what, "check the names");
    }
}

/// What stands around a prompt has no place in a conversation.
fn note_around(prompts: &[&Prompt], at: &At, context: &mut Context<'_>) {
    for prompt in prompts.iter().filter(|it| is_chat(&it.variant.asks)) {
        let what =
            format!("`prefix` and `suffix` around the messages of `{}`", prompt.variant.name);
        context.notes.lost(at.clone(), what, "write them into the messages");
    }
}

fn grouped(tests: Vec<Test>, shared: &Setup) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let backend = |it: &Option<Provider>| it.as_ref().map(|it| it.backend.clone());
    for test in tests {
        let Test { case, prompts, providers, provider, around, .. } = test;
        let Test { setup: own, inherits, code, is_given, .. } = test;
        let same = |it: &&mut Group| {
            it.prompts == prompts
                && it.providers == providers
                && backend(&it.provider) == backend(&provider)
                && it.around == around
                && it.own == own
                && it.inherits == inherits
                && it.code == code
                && it.is_given == is_given
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.cases.push(case),
            None => {
                let setup = Setup {
                    prompt_vars: shared.prompt_vars.clone(),
                    assertions: if inherits { shared.assertions.clone() } else { Vec::new() },
                    threshold: shared.threshold,
                    transform: shared.transform.clone(),
                    ..own.clone()
                };
                let cases = vec![case];
                groups.push(Group {
                    around,
                    prompts,
                    providers,
                    provider,
                    own,
                    inherits,
                    code,
                    is_given,
                    setup,
                    cases,
                });
            }
        }
    }
    groups
}

/// What a provider is asked by any of its runners.
fn asked_of<'p>(
    provider: &Provider,
    prompts: &'p [Prompt],
    groups: &[Group],
    has_functions: bool,
) -> Vec<&'p Asks> {
    let is_asked = |prompt: &&Prompt| {
        let by_group = |it: &Group| {
            let is_asked = match &it.provider {
                Some(own) => own.backend == provider.backend,
                None => provider.is_among(&it.providers),
            };
            is_asked && prompt.is_among(&it.prompts)
        };
        prompt.is_among(&provider.prompts) && (has_functions || groups.iter().any(by_group))
    };
    prompts.iter().filter(is_asked).map(|it| &it.variant.asks).collect()
}

/// The backend that asks a provider what is a conversation, if there can be one. One that takes a text alone
/// has no place for a conversation, unless its body is made for one.
fn backend_for_chats(
    provider: &Provider,
    asked: &[&Asks],
    context: &mut Context<'_>,
) -> Option<String> {
    let has_chats = asked.iter().any(|it| is_chat(it));
    match provider.takes {
        Takes::Conversations => return Some(provider.backend.clone()),
        Takes::Text | Takes::TextOrMessages if !has_chats => return Some(provider.backend.clone()),
        Takes::Text => return None,
        Takes::TextOrMessages => {}
    }
    let of_provider = |it: &&mut BackendDraft| it.name == provider.backend;
    let backend = context.draft.backends.iter_mut().find(of_provider)?;
    let mut body = backend.body.clone()?;
    let is_replaced = match &mut body {
        Value::String(text) => replace_prompt_in_json(text) || replace_prompt(&mut body),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            replace_prompt(&mut body)
        }
    };
    if !is_replaced {
        return None;
    }
    if asked.iter().all(|it| is_chat(it)) {
        backend.body = Some(body);
        return Some(provider.backend.clone());
    }
    // What is a text is sent as before.
    let mut second = BackendDraft { body: Some(body), ..backend.clone() };
    second.name = context.names.free(&format!("{}-chat", provider.backend));
    let name = second.name.clone();
    context.add_backend(second);
    Some(name)
}

const fn is_chat(asks: &Asks) -> bool {
    matches!(asks, Asks::Messages(_) | Asks::MessagesTemplate(_))
}

/// Adds a runner for all providers that are asked the same prompts in the same way.
fn add_runners(
    base: &RunnerDraft,
    prompts: &[&Prompt],
    providers: &[Provider],
    cases: &[CaseDraft],
    context: &mut Context<'_>,
) {
    let mut runners: Vec<RunnerDraft> = Vec::new();
    for provider in providers {
        let chosen: Vec<&&Prompt> =
            prompts.iter().filter(|it| it.is_among(&provider.prompts)).collect();
        if !chosen.is_empty() {
            note_transforms(provider, base, cases, context);
        }
        // Prompts that want another form of answers are asked by another runner.
        let mut formats: Vec<&Option<ResponseFormat>> = Vec::new();
        for prompt in &chosen {
            if !formats.contains(&&prompt.response_format) {
                formats.push(&prompt.response_format);
            }
        }
        for format in formats {
            let alike = chosen.iter().filter(|it| it.response_format == *format);
            let variants: Vec<_> = alike.map(|it| it.variant.clone()).collect();
            for (backend, variants) in takeable(provider, variants, context) {
                let mut setup = provider.completed(&base.setup);
                setup.env.extend(seen_by_prompts(&variants, &setup.env, context));
                if takes_formats(provider, context) {
                    setup.response_format = setup.response_format.or_else(|| format.clone());
                }
                match runners.iter_mut().find(|it| it.prompts == variants && it.setup == setup) {
                    Some(runner) => runner.backends.push(backend),
                    None => runners.push(RunnerDraft {
                        backends: vec![backend],
                        prompts: variants,
                        setup,
                        ..base.clone()
                    }),
                }
            }
        }
    }
    for mut runner in runners {
        runner.name = context.runners.unique(&runner.name);
        runner.setup.repeat = runner.setup.repeat.or(context.repeat);
        note_odd_lists(&runner, cases, context);
        lists::write_in_runner(&mut runner, cases);
        missing::fill(&mut runner, cases, &context.draft.backends);
        context.draft.runners.push(runner);
    }
}

/// Notes lists that are written otherwise than by JavaScript, which leaves out brackets within them.
fn note_odd_lists(runner: &RunnerDraft, cases: &[CaseDraft], context: &mut Context<'_>) {
    for variant in &runner.prompts {
        if let Some(path) = lists::has_odd_items(&variant.asks, cases, &runner.setup.prompt_vars) {
            let what = format!(
                "`{{{{ {path} }}}}` of the prompt `{}` writes a list of lists or tables, which is \
                 written with its brackets here",
                variant.name
            );
            context.notes.assumed(variant.at.clone(), what, "write `{{ … | dump }}` for JSON");
        }
    }
}

/// The variables that functions and adapters see that make prompts, beside those that are known.
fn seen_by_prompts(
    variants: &[VariantDraft],
    known: &[String],
    context: &Context<'_>,
) -> BTreeSet<String> {
    let of = |it: &VariantDraft| match &it.asks {
        Asks::Adapter { env, .. } => env.clone(),
        Asks::Function(named) => context.seen.get(named).cloned().unwrap_or_default(),
        Asks::Template(_) | Asks::Messages(_) | Asks::MessagesTemplate(_) => Vec::new(),
    };
    variants.iter().flat_map(of).filter(|it| !known.contains(it)).collect()
}

/// Whether a provider is sent the form of answers. promptfoo tells the others nothing of it either.
fn takes_formats(provider: &Provider, context: &Context<'_>) -> bool {
    let backend = context.draft.backends.iter().find(|it| it.name == provider.backend);
    backend.is_some_and(|it| {
        let is_anthropic = matches!(it.kind, BackendKind::Anthropic | BackendKind::VertexAnthropic);
        it.kind.way() == Way::Server && !is_anthropic
    })
}

/// The variants that a provider can be asked, by the backend that asks them.
fn takeable(
    provider: &Provider,
    variants: Vec<VariantDraft>,
    context: &mut Context<'_>,
) -> Vec<(String, Vec<VariantDraft>)> {
    if provider.for_chats.as_ref() == Some(&provider.backend) {
        return vec![(provider.backend.clone(), variants)];
    }
    let (chats, texts): (Vec<_>, Vec<_>) = variants.into_iter().partition(|it| is_chat(&it.asks));
    let mut all = vec![(provider.backend.clone(), texts)];
    match &provider.for_chats {
        Some(backend) => all.push((backend.clone(), chats)),
        None => {
            for chat in chats {
                let what = format!("prompt `{}` for the provider `{}`", chat.name, provider.id);
                let advice =
                    "a conversation is sent with `{{ messages }}` in the `body` of the backend";
                context.notes.lost(chat.at.clone(), what, advice);
            }
        }
    }
    all.retain(|(_, variants)| !variants.is_empty());
    all
}

/// Puts all messages where the prompt alone stands in a body that is written as a text.
fn replace_prompt_in_json(text: &mut String) -> bool {
    let Ok(mut body) = serde_json::from_str::<Value>(text) else { return false };
    let is_replaced = replace_prompt(&mut body);
    if is_replaced {
        *text = body.to_string();
    }
    is_replaced
}

/// Puts all messages where the prompt alone stands.
fn replace_prompt(body: &mut Value) -> bool {
    match body {
        Value::String(text) => {
            let is_prompt = templates::only_expression(text) == Some("prompt");
            if is_prompt {
                "{{ messages }}".clone_into(text);
            }
            is_prompt
        }
        Value::Array(items) => items.iter_mut().map(replace_prompt).filter(|it| *it).count() > 0,
        Value::Object(map) => map.values_mut().map(replace_prompt).filter(|it| *it).count() > 0,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Notes where a transform of a test takes the place of that of the provider.
fn note_transforms(
    provider: &Provider,
    base: &RunnerDraft,
    cases: &[CaseDraft],
    context: &mut Context<'_>,
) {
    let Some(own) = &provider.transform else { return };
    let shared = base.setup.transform.as_ref();
    let clashes = shared.is_some_and(|it| transform::composed(own, it).is_none());
    let case = cases.iter().find(|it| it.case.criteria.transform.is_some());
    if let Some(at) = case.map(|it| &it.at).or(clashes.then_some(&base.at)) {
        let what = format!("the transform of the provider `{}` before that of a test", provider.id);
        context.notes.lost(at.clone(), what, "write both as one `transform`");
    }
}

/// Whether code may look at the variables of a group's cases: whoever is asked, whatever makes prompts or values,
/// and what judges.
fn sees_variables(group: &Group, prompts: &[Prompt], context: &Context<'_>) -> bool {
    let is_code = |it: &BackendDraft| {
        matches!(it.kind, BackendKind::Node | BackendKind::Python | BackendKind::Command)
    };
    let is_made = |it: &Prompt| match &it.variant.asks {
        Asks::Function(_) | Asks::Adapter { .. } => true,
        Asks::Template(_) | Asks::Messages(_) | Asks::MessagesTemplate(_) => false,
    };
    let in_case = |it: &CaseDraft| {
        let criteria = &it.case.criteria;
        sees_prompt(&criteria.assertions, criteria.transform.as_deref())
    };
    group.code.is_some()
        || !context.draft.scorers.is_empty()
        || context.draft.backends.iter().any(is_code)
        || prompts.iter().any(is_made)
        || sees_prompt(&group.setup.assertions, group.setup.transform.as_deref())
        || group.cases.iter().any(in_case)
}

/// Whether what judges a reply may look at the variable `prompt`: it names it, or stands in a file.
fn sees_prompt(assertions: &[Assertion], transform: Option<&str>) -> bool {
    let names = |text: &str| text.contains("prompt") || text.contains("file://");
    let in_assertion = |it: &Assertion| serde_json::to_string(it).is_ok_and(|it| names(&it));
    assertions.iter().any(in_assertion) || transform.is_some_and(names)
}

/// What a case asks need not be a variable of it as well.
fn remove_prompts(group: &mut Group) {
    for case in group.cases.iter_mut().filter(|it| !it.case.prompt.is_empty()) {
        case.case.prompt_vars.remove("prompt");
    }
}

/// A template of ours sees fields of the case, which would hide variables of the same names. Those get
/// other names.
fn rename_vars(prompts: &mut [Prompt], groups: &mut [Group]) {
    let mut cases = groups.iter().flat_map(|it| &it.cases);
    // What the variable `prompt` says is what a case of ours asks, if each has one.
    let all_ask = cases.all(|it| !it.case.prompt.is_empty());
    for name in prompts::OURS.iter().filter(|it| !all_ask || **it != "prompt") {
        let uses = |it: &Prompt| {
            let uses = |text: &String| {
                let names = template::undefined_variables(text, |other| other != *name);
                names.is_ok_and(|it| !it.is_empty())
            };
            prompts::texts_of(&it.variant.asks).iter().any(uses)
        };
        let other = format!("{name}_value");
        let mut is_used = false;
        for prompt in prompts.iter_mut().filter(|it| uses(it)) {
            prompt.variant.asks = prompts::renamed(&prompt.variant.asks, name, &other);
            prompt.variant.file = None;
            is_used = true;
        }
        if !is_used {
            continue;
        }
        for group in groups.iter_mut() {
            let shared = group.setup.prompt_vars.get(*name).cloned();
            group.setup.prompt_vars.extend(shared.map(|value| (other.clone(), value)));
            for case in &mut group.cases {
                let TestCase { prompt_vars: vars, prompt, .. } = &mut case.case;
                let asked = (*name == "prompt" && !prompt.is_empty())
                    .then(|| Value::from(&*std::mem::take(prompt)));
                let own = vars.get(*name).cloned().or(asked);
                vars.extend(own.map(|value| (other.clone(), value)));
            }
        }
    }
}
