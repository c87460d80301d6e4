//! Transforms and scripts: JavaScript or Python, written out or in files.

use probity_core::located::Node;
use probity_load::function::{Language, split_name};

use super::Context;
use crate::source::Unreadable;

/// What scripts in our sandbox cannot do.
const OUTSIDE: &[&str] = &["process.", "require(", "import(", "fetch("];

/// JavaScript that makes something else out of a reply, as a suite names it.
pub(super) fn read(node: &Node, what: &str, context: &mut Context<'_>) -> Option<String> {
    let Some(code) = node.as_str().map(str::trim).filter(|it| !it.is_empty()) else {
        context.lost(node, format!("{what} that is no text"), "write it as JavaScript");
        return None;
    };
    let Some(named) = code.strip_prefix("file://") else {
        if OUTSIDE.iter().any(|it| code.contains(it)) {
            let advice = "transforms read no files and use no network: make it a scorer";
            context.lost(node, format!("{what} that needs more than JavaScript itself"), advice);
            return None;
        }
        return Some(code.to_owned());
    };
    match Language::of(split_name(named).0) {
        Some(Language::JavaScript) => match reference(named, context) {
            Ok(named) => Some(format!("file://{named}")),
            Err(error) => {
                context.unreadable(node, &error);
                None
            }
        },
        Some(Language::Python) | None => {
            context.lost(node, format!("{what} in `{named}`"), "write it as JavaScript");
            None
        }
    }
}

/// A file with code, and the function in it, as the suite names them.
pub(super) fn reference(named: &str, context: &Context<'_>) -> Result<String, Unreadable> {
    let (path, function) = split_name(named);
    let path = context.source.reference(path)?;
    Ok(match function {
        Some(function) => format!("{path}:{function}"),
        None => path,
    })
}
