//! Where tests stand: written out, in other files, in scenarios.

use std::path::Path;

use probity_core::located::{Node, NodeValue};
use probity_load::{
    dataset::Format,
    function::{Language, is_code, split_name},
};

use super::{
    Generator, USED, Written,
    elsewhere::{elsewhere, fetched, folder_of, is_workbook},
};
use crate::{
    draft::DatasetRef,
    promptfoo::{
        Context, Table, list,
        providers::{note_typescript, seen_by_function, shown, without_keys},
        transform,
        vars::MOST_COMBINATIONS,
    },
};

/// A test as it is found.
#[derive(Debug)]
pub(super) struct FoundTest {
    pub(super) node: Node,
    /// The folder of the file that it stands in.
    pub(super) folder: String,
    /// Whether it is a record of a table.
    pub(super) is_record: bool,
}

impl FoundTest {
    /// One that is written out in the configuration.
    pub(super) fn written(node: &Node) -> Self {
        Self { node: node.clone(), folder: String::new(), is_record: is_record(node) }
    }
}

/// Tests and functions that make some, as they are found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) tests: Vec<FoundTest>,
    pub(super) functions: Vec<Generator>,
    /// Whether no test is named at all.
    pub(super) is_empty: bool,
}

impl Default for Found {
    fn default() -> Self {
        Self { tests: Vec::new(), functions: Vec::new(), is_empty: true }
    }
}

/// The tests that are written out, or stand in other files.
pub(super) fn collect(node: &Node, context: &mut Context<'_>, found: &mut Found) {
    for item in list(node) {
        found.is_empty &= matches!(item.value, NodeValue::Null);
        let path = item.get("path").and_then(Node::as_str);
        match item.as_str().or(path) {
            None if matches!(item.value, NodeValue::Number(_) | NodeValue::Bool(_)) => {
                context.lost(
                    item,
                    format!("a test that is {}", item.kind()),
                    "write it as a table",
                );
            }
            None => found.tests.push(FoundTest::written(item)),
            Some(name) => from_file(item, name, context, found),
        }
    }
}

/// The tests of a file, of all files that a pattern means, or those that a function makes.
fn from_file(node: &Node, named: &str, context: &mut Context<'_>, found: &mut Found) {
    if let Some(generator) = fetched(node, named, context) {
        found.functions.push(generator);
        return;
    }
    if let Some(why) = elsewhere(named) {
        context.lost(node, format!("tests from `{}`", shown(named)), why);
        return;
    }
    let name = named.strip_prefix("file://").unwrap_or(named).trim_start_matches("./");
    if is_workbook(name) {
        match context.source.sheet(name) {
            Ok(root) => found.tests.extend(root.items().iter().map(|it| FoundTest {
                folder: folder_of(name),
                is_record: true,
                ..FoundTest::written(it)
            })),
            Err(error) => context.unreadable(node, &error),
        }
        return;
    }
    if is_code(name) {
        match transform::reference(name, context) {
            Ok(named) => {
                let is_python = Language::of(&named) == Some(Language::Python);
                let named = if is_python { format!("{named}:generate_tests") } else { named };
                let config = node.get("config").filter(|it| !it.entries().is_empty());
                let config = config.map(|it| without_keys(it, &named, context));
                note_typescript(split_name(name).0, node, context);
                let env = seen_by_function(name, "its runner", node, context);
                let (dataset, at) = (DatasetRef::Function(named), context.at(node));
                found.functions.push(Generator { dataset, config, env, at });
            }
            Err(error) => context.unreadable(node, &error),
        }
        return;
    }
    let files = match context.source.has_file(name) {
        true => Ok(vec![name.to_owned()]),
        false => context.source.glob(name),
    };
    let files = match files {
        Ok(files) => files,
        Err(error) => return context.unreadable(node, &error),
    };
    if files.is_empty() {
        context.lost(node, format!("there is no file `{name}` with tests"), "check the path");
    }
    for name in files {
        let Some(root) = context.tree(node, &name) else { continue };
        let folder = folder_of(&name);
        let is_table = Format::of_path(Path::new(&name)) == Some(Format::Csv);
        for item in list(&root) {
            // A list of further files is not read: promptfoo does not do so, either.
            if is_table || !item.entries().is_empty() {
                found.tests.push(FoundTest {
                    node: item.clone(),
                    folder: folder.clone(),
                    is_record: is_table || is_record(item),
                });
            }
        }
    }
}

/// The tests of scenarios: every test of one with all of its configurations.
pub(super) fn scenarios(node: &Node, context: &mut Context<'_>) -> Vec<(Node, Written)> {
    let mut all = Vec::new();
    for item in list(node) {
        let in_file = item.as_str().map(|it| it.strip_prefix("file://").unwrap_or(it));
        let read = in_file.and_then(|name| context.tree(item, name));
        for scenario in list(read.as_ref().unwrap_or(item)) {
            context.unused_keys(scenario, Table::Scenario, &["description", "config", "tests"]);
            all.extend(scenario_tests(scenario, context));
        }
    }
    all
}

fn scenario_tests(scenario: &Node, context: &mut Context<'_>) -> Vec<(Node, Written)> {
    let part = |key: &str, context: &mut Context<'_>| {
        let mut found = Found::default();
        if let Some(node) = scenario.get(key) {
            collect(node, context, &mut found);
        }
        for Generator { at, .. } in found.functions {
            context.notes.lost(at, "tests of a scenario that code makes", "write them out");
        }
        let tests = found.tests.iter().filter_map(|found| {
            Written::of(found, context).ok().map(|it| (found.node.clone(), it))
        });
        tests.collect::<Vec<_>>()
    };
    let configs = part("config", context);
    let mut tests = part("tests", context);
    if scenario.get("tests").is_none() {
        tests.push((scenario.clone(), Written::default()));
    }
    if configs.len().saturating_mul(tests.len()) > MOST_COMBINATIONS {
        let what = format!("a scenario has more than {MOST_COMBINATIONS} tests");
        context.lost(scenario, what, "write fewer configurations, or several scenarios");
        return Vec::new();
    }
    let mut all = Vec::new();
    for (_, config) in &configs {
        for (node, test) in &tests {
            all.push((node.clone(), test.clone().with(config)));
        }
    }
    all
}

/// Whether what is no record of a table looks like one: a name is a column's, or all values are texts and none
/// of the names is a test's.
fn is_record(node: &Node) -> bool {
    let entries = node.entries();
    entries.iter().any(|it| it.key.starts_with("__"))
        || USED.iter().all(|it| node.get(it).is_none())
            && !entries.is_empty()
            && entries.iter().all(|it| it.node.as_str().is_some())
}
