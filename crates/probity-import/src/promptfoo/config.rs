//! The configuration as a whole: every key of it is used, or noted as lost.

use std::path::Path;

use probity_core::located::{Entry, Node, NodeValue};
use probity_load::dataset::Format;

use super::{
    Context, Table, assemble, derived,
    env::{Env, names_key},
    prompts, providers, refs, tests, transform,
};
use crate::{
    ImportError,
    cases::text,
    draft::{Cache, Draft},
    note::Notes,
    source::Source,
};

/// Keys that say nothing about what is asked or judged, or that others refer to.
const SILENT: &[&str] = &[
    "$schema",
    "description",
    "sharing",
    "outputPath",
    "outputs",
    "writeLatestResults",
    "metadata",
    "tags",
    "author",
    // Assertions about traces are noted one by one.
    "tracing",
    "definitions",
    "$defs",
    "assertionTemplates",
];
/// Keys that are read elsewhere.
const USED: &[&str] =
    &["prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "derivedMetrics"];

pub(crate) fn import(
    root: Node,
    name: &str,
    source: &mut Source,
    notes: &mut Notes,
) -> Result<Draft, ImportError> {
    let root = match root.value {
        // Tests alone.
        NodeValue::Array(_) => tests_alone(root),
        NodeValue::Object(_) => root,
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            return Err(ImportError::shape("it is no configuration: there is no table in it"));
        }
    };
    source.replace_invalid();
    let mut context = Context::new(source, notes);
    context.env = Env::of(root.get("env"));
    let root = refs::resolved(root, &mut context);
    let root = context.with_paths(root);
    context.are_named_by_id = prompts::has_functions(&root) && !providers::repeats_ids(&root);
    context.draft.comments.push(format!("From {name}, by `probity import`."));
    context.draft.comments.extend(text(&root, "description"));
    read_settings(&root, &mut context);
    let providers = providers::read(&root, &mut context);
    context.asked = context.draft.backends.clone();
    let prompts = prompts::read(&root, &mut context);
    let form = match Format::of_path(Path::new(name)) {
        Some(Format::Csv) => tests::Form::Table,
        Some(_) | None => tests::Form::Configuration,
    };
    let tests = tests::read(&root, form, &mut context);
    derived::read(&root, &mut context);
    note_invalid(&root, &mut context);
    assemble::assemble(&root, prompts, providers, tests, &mut context)?;
    Ok(context.draft)
}

/// Notes files that are not UTF-8, which promptfoo reads all the same.
fn note_invalid(root: &Node, context: &mut Context<'_>) {
    for name in context.source.invalid().map(ToOwned::to_owned).collect::<Vec<_>>() {
        let what =
            format!("`{name}` is not UTF-8: what cannot be read is replaced, as in promptfoo");
        context.assumed(root, what, "save the file as UTF-8");
    }
}

/// A configuration of nothing but tests.
fn tests_alone(tests: Node) -> Node {
    let span = tests.span.clone();
    let entry = Entry { key: "tests".to_owned(), key_span: span.clone(), node: tests };
    Node { span, value: NodeValue::Object(vec![entry]) }
}

/// Everything beside providers, prompts and tests.
fn read_settings(root: &Node, context: &mut Context<'_>) {
    for Entry { key, key_span, node } in root.entries() {
        match key.as_str() {
            "env" => note_env(node, context),
            "nunjucksFilters" => read_filters(node, context),
            "evaluateOptions" | "commandLineOptions" => read_options(node, context),
            key if SILENT.contains(&key) || USED.contains(&key) || key.starts_with("x-") => {}
            _ if matches!(node.value, NodeValue::Null) => {}
            "redteam" => {
                let advice = "have promptfoo write them to a file, and import that";
                context.lost(node, "`redteam` makes its tests with a model", advice);
            }
            "extensions" => {
                let advice = "prepare before the run what they prepare";
                context.lost(node, "`extensions` are code", advice);
            }
            key => {
                let at = context.source.at(key_span);
                context.unused_key(at, key, Table::Configuration);
            }
        }
    }
}

/// Filters of templates that are code: those of prompts are applied by an adapter.
fn read_filters(node: &Node, context: &mut Context<'_>) {
    for entry in node.entries() {
        let named = entry.node.as_str().unwrap_or_default();
        let named = named.strip_prefix("file://").unwrap_or(named).trim_start_matches("./");
        match transform::reference(named, context) {
            Ok(named) => {
                context.filters.insert(entry.key.clone(), format!("file://{named}"));
            }
            Err(error) => context.unreadable(&entry.node, &error),
        }
    }
}

/// Variables are for whoever runs the suite to set.
fn note_env(node: &Node, context: &mut Context<'_>) {
    for entry in node.entries() {
        let at = context.source.at(&entry.key_span);
        let what = format!("the variable `{}` is not set by a suite", entry.key);
        let value = match names_key(&entry.key) {
            true => String::new(),
            false => entry.node.as_str().map(|it| format!("={it}")).unwrap_or_default(),
        };
        context.notes.assumed(at, what, format!("set {}{value} before the run", entry.key));
    }
}

fn read_options(node: &Node, context: &mut Context<'_>) {
    const SILENT: &[&str] = &[
        "showProgressBar",
        "table",
        "verbose",
        "share",
        "output",
        "interactiveProviders",
        "progressBar",
        "write",
        "tableCellMaxLength",
        "generateSuggestions",
        "suggestionsCount",
        "envPath",
        "config",
        "noShare",
        "silent",
        "watch",
        "description",
        "tags",
        "retryErrors",
    ];
    for entry in node.entries() {
        let count = text(node, &entry.key).and_then(|it| it.parse::<u64>().ok());
        match (entry.key.as_str(), count) {
            ("maxConcurrency", Some(count)) if count > 0 => {
                context.draft.settings.max_concurrency = Some(count);
            }
            ("repeat", Some(count)) if count > 0 => {
                context.repeat = u32::try_from(count).ok().filter(|it| *it > 1);
            }
            ("timeoutMs", Some(count)) if count > 0 => {
                let limit = format!("{}s", count.div_ceil(1000));
                context.draft.settings.timeouts.case = Some(limit);
            }
            ("cache", _) => {
                let enabled = text(node, "cache").map(|it| it == "true");
                context.draft.settings.cache = Cache { enabled };
            }
            ("delay", _) => {
                let advice = "limit the calls in flight with `max_concurrency`";
                context.assumed(&entry.node, "`delay` between calls", advice);
            }
            ("maxEvalTimeMs", Some(count)) if count > 0 => {
                let advice =
                    format!("set `timeout = \"{}s\"` of the runners", count.div_ceil(1000));
                context.assumed(&entry.node, "`maxEvalTimeMs` limits the whole evaluation", advice);
            }
            (key, _) if SILENT.contains(&key) || key.starts_with("filter") => {}
            (key, _) => {
                let at = context.source.at(&entry.key_span);
                context.unused_key(at, key, Table::Options);
            }
        }
    }
}
