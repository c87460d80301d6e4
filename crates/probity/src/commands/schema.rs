//! `probity schema`: JSON Schemas of the files that are read and written.
//!
//! They are written by hand, because what a file may hold is a promise and not a by-product
//! of our types. Tests hold them against what the program really reads and writes.
//!
//! Each definition stands in one file below `schemas/defs`, and each document refers to those
//! it needs. What is printed is put together here, so that names come from the code.

mod names;

use std::{collections::BTreeMap, fmt::Write as _, io::Write as _};

use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use crate::{cli::SchemaName, exit::Exit, failure::Failure, printer::Printer};

pub(super) fn run(name: Option<SchemaName>, printer: &Printer) -> Result<Exit, Failure> {
    match name {
        Some(name) => {
            Printer::data().write_all(published(name).as_bytes()).map_err(Failure::output)?;
        }
        None => printer.show(&list())?,
    }
    Ok(Exit::Success)
}

/// The document of a schema, without the definitions that it refers to.
const fn document(name: SchemaName) -> &'static str {
    match name {
        SchemaName::Suite => include_str!("../../schemas/suite.json"),
        SchemaName::Case => include_str!("../../schemas/case.json"),
        SchemaName::RunResult => include_str!("../../schemas/run-result.json"),
        SchemaName::Evaluation => include_str!("../../schemas/evaluation.json"),
        SchemaName::Summary => include_str!("../../schemas/summary.json"),
        SchemaName::Event => include_str!("../../schemas/event.json"),
        SchemaName::Baseline => include_str!("../../schemas/baseline.json"),
        SchemaName::Comparison => include_str!("../../schemas/comparison.json"),
        SchemaName::ClassifyInput => include_str!("../../schemas/classify-input.json"),
        SchemaName::Classified => include_str!("../../schemas/classified.json"),
        SchemaName::Import => include_str!("../../schemas/import.json"),
        SchemaName::ImportedRun => include_str!("../../schemas/imported-run.json"),
    }
}

/// Files of definitions: the name of each file and its text.
const DEFINITIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

/// Where a definition stands in a published schema.
const LOCAL: &str = "#/$defs/";

/// A schema that stands on its own: the document and all that it refers to, by name.
pub(super) fn published(name: SchemaName) -> String {
    let mut schema = parse(document(name));
    let all = definitions();
    let mut reached = BTreeMap::new();
    let mut waiting = references(&Value::Object(schema.clone()));
    while let Some(name) = waiting.pop() {
        let definition = all.get(&name).expect("a test looks up every reference");
        if reached.insert(name, definition.clone()).is_none() {
            waiting.extend(references(definition));
        }
    }
    schema.insert("$defs".to_owned(), Value::Object(reached.into_iter().collect()));
    let mut schema = Value::Object(schema);
    names::fill_in(&mut schema);
    match name {
        SchemaName::Suite | SchemaName::Case | SchemaName::ClassifyInput => allow_own(&mut schema),
        SchemaName::RunResult
        | SchemaName::Evaluation
        | SchemaName::Summary
        | SchemaName::Event
        | SchemaName::Baseline
        | SchemaName::Comparison
        | SchemaName::Classified
        | SchemaName::Import
        | SchemaName::ImportedRun => {}
    }
    format!("{schema:#}\n")
}

/// Lets every object that people write have names of their own, which begin with `x-`.
fn allow_own(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            parts.values_mut().for_each(allow_own);
            if parts.get("additionalProperties") == Some(&Value::Bool(false)) {
                let own = parts.entry("patternProperties").or_insert_with(|| json!({}));
                own["^x-"] = json!(true);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(allow_own),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every definition by its name.
fn definitions() -> BTreeMap<String, Value> {
    DEFINITIONS.iter().flat_map(|(_, text)| parse(text)).collect()
}

fn parse(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("a test reads every file")
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(parts) => {
            let own = parts.get("$ref").and_then(Value::as_str);
            // It may be to a part of a definition.
            let own = own.and_then(|it| it.strip_prefix(LOCAL)?.split('/').next());
            let own = own.map(ToOwned::to_owned);
            own.into_iter().chain(parts.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// A line for each.
fn list() -> String {
    let mut list = String::new();
    for value in SchemaName::value_variants().iter().filter_map(SchemaName::to_possible_value) {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(list, "{:<15} {help}", value.get_name());
    }
    list
}

#[cfg(test)]
mod tests;
