//! Transforms and scripts: JavaScript or Python, written out or in files.

use probity_core::located::Node;
use probity_load::function::{Language, split_name};

use super::Context;
use crate::source::Unreadable;

/// What scripts in our sandbox cannot do, wherever they stand.
const OUTSIDE: &[&str] = &["process.", "import(", "fetch("];

/// Whether JavaScript needs more than the language itself.
pub(super) fn needs_more(code: &str) -> bool {
    code.contains("require(") || file_needs_more(code)
}

/// Whether JavaScript in a file needs more than the language itself. It may require files beside it.
pub(super) fn file_needs_more(code: &str) -> bool {
    let requires_package = code.match_indices("require(").any(|(at, mark)| {
        !code[at + mark.len()..].trim_start_matches(['"', '\'']).starts_with('.')
    });
    requires_package
        || code.lines().any(|line| line.trim_start().starts_with("import "))
        || OUTSIDE.iter().any(|it| code.contains(it))
}

/// Whether a file is written in TypeScript.
pub(super) fn is_typescript(path: &str) -> bool {
    [".ts", ".mts", ".cts"].iter().any(|it| path.ends_with(it))
}

/// JavaScript that makes something else out of a reply, as a suite names it.
pub(super) fn read(node: &Node, what: &str, context: &mut Context<'_>) -> Option<String> {
    let Some(code) = node.as_str().map(str::trim).filter(|it| !it.is_empty()) else {
        context.lost(node, format!("{what} that is no text"), "write it as JavaScript");
        return None;
    };
    let Some(named) = code.strip_prefix("file://") else {
        if needs_more(code) {
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

/// Two transforms as one, the first one first. None if one of them stands in a file.
pub(super) fn composed(first: &str, second: &str) -> Option<String> {
    let is_file = |code: &str| code.trim_start().starts_with("file://");
    if is_file(first) || is_file(second) {
        return None;
    }
    let (first, second) = (as_function(first), as_function(second));
    Some(format!(
        "const first = {first};\nconst second = {second};\nreturn second(first(output, context), context);"
    ))
}

/// Whether code is a function, and not what one does.
pub(super) fn is_function(code: &str) -> bool {
    let head = code.split_once("=>").map(|it| it.0.trim());
    let is_arrow = head.is_some_and(|it| {
        it.starts_with('(') && it.ends_with(')') && !it[1..].contains('(')
            || it.chars().all(|c| c.is_alphanumeric() || c == '_')
    });
    is_arrow || code.starts_with("function")
}

/// Code as a function of the output.
pub(super) fn as_function(code: &str) -> String {
    let code = code.trim().trim_end_matches(';');
    if is_function(code) {
        return format!("({code})");
    }
    match code.contains("return ") || code.contains("return(") {
        true => format!("(output, context) => {{\n{code}\n}}"),
        false => format!("(output, context) => (\n{code}\n)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_transforms_are_one() {
        let both = composed("JSON.parse(output)", "(data) => data.x").unwrap();
        assert!(both.contains("(output, context) => (\nJSON.parse(output)\n)"), "{both}");
        assert!(both.contains("const second = ((data) => data.x);"), "{both}");
        assert_eq!(composed("output", "file://a.js"), None);
        assert!(as_function("const x = 1; return x;").starts_with("(output, context) => {"));
    }
}
