//! Providers that are code of the user: functions in Python and JavaScript, and programs.

use std::collections::BTreeSet;

use probity_core::located::{Node, NodeValue};
use probity_load::{
    function::{is_code, split_name},
    suite::BackendKind,
    template,
};
use serde_json::{Value, json};

use super::{
    Described, Told,
    env::seen_by,
    keys::{Place, is_address, without_keys},
};
use crate::{
    draft::BackendDraft,
    promptfoo::{
        Context,
        transform::{self, is_typescript},
        vars::{FUNCTION, claims_function, functions_in},
    },
};

/// Keys of `config` that are about how promptfoo runs the code.
const HOW: &[&str] = &["pythonExecutable", "workers", "timeout"];

/// A function in a file. `named` is `FILE` or `FILE:FUNCTION`.
pub(super) fn function(
    kind: BackendKind,
    named: &str,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<BackendDraft> {
    let (path, function) = split_name(named);
    let reference = match context.source.reference(path) {
        Ok(reference) => reference,
        Err(error) => {
            context.unreadable(described.node, &error);
            return None;
        }
    };
    note_typescript(path, described.node, context);
    backend.kind = kind;
    backend.file = Some(match function {
        Some(function) => format!("{reference}:{function}"),
        None => reference,
    });
    let place = Place { backend: &backend.name, what: "the field" };
    let config = described.config.map(|it| filled(it, described, &place, context));
    if let Some(Value::Object(config)) = config {
        backend.config =
            config.into_iter().filter(|(key, _)| !HOW.contains(&key.as_str())).collect();
    }
    for key in HOW {
        if let Some(node) = described.config.and_then(|it| it.get(key)) {
            let what = format!("`{key}` of the provider");
            context.assumed(
                node,
                what,
                "set `max_concurrency` or `timeout` of the backend if it matters",
            );
        }
    }
    let mut env: BTreeSet<String> = seen_by(path, context).into_iter().collect();
    let called = backend.config.values().flat_map(functions_in);
    env.extend(called.filter_map(|it| context.seen.get(it)).flatten().cloned());
    backend.env = env.into_iter().collect();
    note_seen(path, &backend, described.node, context);
    let is_made = backend.config.values().any(claims_function);
    Some(if is_made { configured(backend, context) } else { backend })
}

/// The same function, asked by an adapter that has the functions of its settings called before.
fn configured(mut backend: BackendDraft, context: &mut Context<'_>) -> BackendDraft {
    let config = std::mem::take(&mut backend.config);
    let told = [
        ("provider", Value::from(backend.file.take().unwrap_or_default())),
        ("config", Value::Object(config)),
    ];
    BackendDraft {
        kind: BackendKind::Node,
        adapter: Some(context.adapter("configured.mjs")),
        config: told.into_iter().map(|(key, it)| (key.to_owned(), it)).collect(),
        ..backend
    }
}

/// Notes that a file needs a Node that runs TypeScript.
pub(in crate::promptfoo) fn note_typescript(path: &str, node: &Node, context: &mut Context<'_>) {
    if is_typescript(path) {
        let what = format!("`{path}` is TypeScript, which Node runs from version 22.18 on");
        let advice = "use such a Node, have `esbuild` in the project, or compile the file";
        context.assumed(node, what, advice);
    }
}

/// A value with the configuration's own variables filled in, and variables in the places of keys.
fn filled(
    node: &Node,
    described: &Described<'_>,
    place: &Place<'_>,
    context: &mut Context<'_>,
) -> Value {
    match &node.value {
        NodeValue::String(text) if text.starts_with("file://") => {
            from_file(node, text, place, context)
        }
        NodeValue::String(text) => match described.env.told(text) {
            Told::Text(text) if is_address(&text) => {
                Value::from(place.url(&text, &node.span, context))
            }
            Told::Text(text) => Value::from(text.into_owned()),
            Told::Variable(name) => Value::from(format!("{{{{ env.{name} }}}}")),
            Told::Unknown(_) if template::names_only_env(text) => Value::from(text.clone()),
            Told::Unknown(name) => {
                let what = format!("the value of `{name}` in the `config` of a function");
                context.lost(node, what, "have the function read the variable itself");
                Value::Null
            }
        },
        NodeValue::Array(items) => {
            items.iter().map(|it| filled(it, described, place, context)).collect()
        }
        NodeValue::Object(entries) => {
            let mut map = serde_json::Map::new();
            for it in entries {
                if it.key == FUNCTION {
                    let what = format!("the key `{FUNCTION}` of a `config`");
                    context.lost(&it.node, what, "rename the key");
                    continue;
                }
                let value = filled(&it.node, described, place, context);
                let value = place.named(&it.key, value, &it.key_span, context);
                map.insert(it.key.clone(), value);
            }
            Value::Object(map)
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => node.to_json(),
    }
}

/// What stands in a file that the settings of a function name.
fn from_file(node: &Node, named: &str, place: &Place<'_>, context: &mut Context<'_>) -> Value {
    let code = named.strip_prefix("file://").filter(|it| is_code(it));
    let Some(code) = code else {
        let value = place.tree(node, context);
        if !claims_function(&value) {
            return value;
        }
        context.lost(node, format!("the key `{FUNCTION}` in `{named}`"), "rename the key");
        return Value::Null;
    };
    match transform::reference(code, context) {
        Ok(named) => {
            context.see(&named, code, node);
            json!({ FUNCTION: named })
        }
        Err(error) => {
            context.unreadable(node, &error);
            Value::Null
        }
    }
}

/// Notes which variables code sees: here it sees those that are named for it, and in promptfoo all.
fn note_seen(named: &str, backend: &BackendDraft, node: &Node, context: &mut Context<'_>) {
    let what = match backend.env.as_slice() {
        [] => format!("`{named}` sees no variables of the environment: none is found in its code"),
        seen => seen_note(named, seen),
    };
    let advice = format!("add others that it needs to `env` of [backends.{}]", backend.name);
    context.assumed(node, what, advice);
}

fn seen_note(named: &str, seen: &[String]) -> String {
    format!("`{named}` sees these variables of the environment: {}", seen.join(", "))
}

/// The variables that a function sees which is no provider, with a note if there are some. `place` says what
/// in the suite names them.
pub(in crate::promptfoo) fn seen_by_function(
    named: &str,
    place: &str,
    node: &Node,
    context: &mut Context<'_>,
) -> Vec<String> {
    let seen = seen_by(split_name(named).0, context);
    if !seen.is_empty() {
        let advice = format!("add others that it needs to `env` of {place}");
        context.assumed(node, seen_note(named, &seen), advice);
    }
    seen
}

/// A program. It is given the prompt, the options and the context as arguments.
pub(super) fn program(
    command: &str,
    described: &Described<'_>,
    mut backend: BackendDraft,
    context: &mut Context<'_>,
) -> Option<BackendDraft> {
    let mut words = words(command);
    if words.is_empty() {
        context.lost(described.node, "`exec:` without a program", "name the program");
        return None;
    }
    let mut env = BTreeSet::new();
    for word in &mut words {
        if context.source.has_file(word) {
            env.extend(seen_by(word, context));
            if let Ok(reference) = context.source.reference(word) {
                *word = format!("{{{{suite_dir}}}}/{reference}");
            }
        }
    }
    let options = described.config.map_or_else(
        || Value::Object(serde_json::Map::new()),
        |config| serde_json::json!({ "config": told(config, described, context) }),
    );
    if let Some(node) = described.config.and_then(|it| it.get("basePath")) {
        words = run_there(words, node, context);
    }
    // Braces are filled in within arguments; what promptfoo tells beside is told as far as it is known.
    words.extend(["{{prompt}}".to_owned(), spaced(&options.to_string()), "{}".to_owned()]);
    backend.kind = BackendKind::Command;
    backend.command = words;
    backend.env = env.into_iter().collect();
    let what = match described.config.and_then(|it| it.get("basePath")) {
        Some(_) => "the program is not told the variables of the test",
        None => "the program is run in an empty folder, and is not told the variables of the test",
    };
    context.assumed(described.node, what, "name files from `{{suite_dir}}`");
    note_seen(command, &backend, described.node, context);
    Some(backend)
}

/// The same command, run in the folder that `basePath` names. It starts from the folder of the configuration.
fn run_there(words: Vec<String>, node: &Node, context: &mut Context<'_>) -> Vec<String> {
    const THERE: [&str; 4] = ["sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh"];
    let folder = node.as_str().unwrap_or_default();
    match context.source.reference_folder(folder) {
        Ok(folder) => {
            let there = format!("{{{{suite_dir}}}}/{folder}");
            THERE.map(ToOwned::to_owned).into_iter().chain([there]).chain(words).collect()
        }
        Err(error) => {
            context.unreadable(node, &error);
            words
        }
    }
}

/// What a program is told of its settings. Nothing fills in variables there.
fn told(config: &Node, described: &Described<'_>, context: &mut Context<'_>) -> Value {
    let value = without_keys(config, &described.id, context);
    if value.to_string().contains("{{") {
        let what = format!("a variable in the `config` of `{}`", described.id);
        context.lost(config, what, "have the program read the variable itself");
    }
    value
}

/// JSON without two braces in a row, which would be a variable.
fn spaced(json: &str) -> String {
    json.replace("{{", "{ {").replace("}}", "} }").replace("{{", "{ {").replace("}}", "} }")
}

/// The words of a command line.
pub(in crate::promptfoo) fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            quote @ ('"' | '\'') => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || c == '"' || c == '\'');
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_has_words() {
        assert_eq!(words("python 'a b.py' --x \"y z\""), ["python", "a b.py", "--x", "y z"]);
        assert_eq!(words("  "), [""; 0]);
    }
}
