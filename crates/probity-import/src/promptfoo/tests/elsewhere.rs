//! Tests that stand elsewhere: in workbooks, at Hugging Face, in tables that have an address.

use std::path::Path;

use probity_core::located::Node;
use serde_json::{Value, json};

use super::Generator;
use crate::{
    draft::DatasetRef,
    promptfoo::{
        Context,
        providers::{holds_key, shown},
    },
};

/// Whether a file is a workbook. A sheet of it may be named after it.
pub(super) fn is_workbook(name: &str) -> bool {
    has_suffix(name.split('#').next().unwrap_or(name), "xlsx")
}

/// The folder of a file.
pub(super) fn folder_of(name: &str) -> String {
    Path::new(name).parent().map(|it| it.display().to_string()).unwrap_or_default()
}

/// Tests that an adapter fetches when the suite is run: rows of Hugging Face, and tables that have an address.
pub(super) fn fetched(node: &Node, named: &str, context: &mut Context<'_>) -> Option<Generator> {
    const HF_ENV: &[&str] = &["HF_TOKEN", "HF_API_TOKEN", "HUGGING_FACE_HUB_TOKEN"];
    let (name, config, env) = if let Some(path) = named.strip_prefix("huggingface://datasets/") {
        ("huggingface.mjs", rows(path), HF_ENV)
    } else {
        ("sheet.mjs", json!({ "url": table_address(named)? }), &[][..])
    };
    if holds_key(named) {
        let what = format!("tests from `{}`, whose address has a key in it", shown(named));
        context.lost(node, what, "save it as a file, and name that");
        return None;
    }
    let what = format!("`{named}` is fetched when the suite is run");
    context.assumed(
        node,
        what,
        "save it as a file and name that, to have the same cases each time",
    );
    let dataset = DatasetRef::Adapter { name: context.adapter(name), of: None };
    let env = env.iter().map(|it| (*it).to_owned()).collect();
    Some(Generator { dataset, config: Some(config), env, at: context.at(node) })
}

/// What is asked of a dataset of Hugging Face: `OWNER/NAME?split=test&config=default&limit=10`.
fn rows(path: &str) -> Value {
    let (dataset, query) = path.split_once('?').unwrap_or((path, ""));
    let mut config = json!({ "dataset": dataset });
    for (key, value) in query.split('&').filter_map(|it| it.split_once('=')) {
        match (key, value.parse::<u64>()) {
            ("limit", Ok(limit)) => config["limit"] = Value::from(limit),
            ("split" | "config", _) => config[key] = Value::from(value),
            _ => {}
        }
    }
    config
}

/// Where a table can be had as CSV: a sheet of Google's that is shared by its link, or a file.
fn table_address(named: &str) -> Option<String> {
    if let Some(rest) = named.strip_prefix("https://docs.google.com/spreadsheets/d/") {
        let id = rest.split(['/', '?', '#']).next()?;
        let gid = rest.split_once("gid=").map(|it| it.1.split(['&', '#']).next().unwrap_or(it.1));
        let gid = gid.map(|it| format!("&gid={it}")).unwrap_or_default();
        return Some(format!("https://docs.google.com/spreadsheets/d/{id}/export?format=csv{gid}"));
    }
    let is_address = named.starts_with("https://") || named.starts_with("http://");
    // SharePoint wants a certificate.
    let is_table = has_suffix(named.split(['?', '#']).next().unwrap_or(named), "csv");
    (is_address && is_table && !named.contains(".sharepoint.com/")).then(|| named.to_owned())
}

/// Why tests that are somewhere else are not read.
pub(super) fn elsewhere(named: &str) -> Option<&'static str> {
    let name = named.split('#').next().unwrap_or(named);
    let is_sheet = has_suffix(name, "xls");
    if named.starts_with("https://") || named.starts_with("http://") {
        Some("save it as a file, and name that")
    } else if named.starts_with("az://") {
        Some("copy the file to this machine, and name it")
    } else if is_sheet {
        Some("save the sheet as CSV, and name that file")
    } else {
        None
    }
}

/// Whether a name ends as files of a kind do.
fn has_suffix(name: &str, suffix: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it.eq_ignore_ascii_case(suffix))
}
