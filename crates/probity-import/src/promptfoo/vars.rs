//! Variables of tests: values, files, lists that stand for several tests.

use std::{collections::BTreeSet, path::Path};

use probity_core::located::Node;
use probity_load::{
    function::{Language, is_code, split_name},
    template,
};
use serde_json::{Value, json};

use super::{Context, list, nunjucks, tests::Vars, transform};

/// Cases that one test may become when its variables are lists.
pub(super) const MOST_COMBINATIONS: usize = 10_000;
/// Files that are sent as they are.
const IMAGES: &[&str] = &["bmp", "gif", "jpeg", "jpg", "png", "svg", "webp"];
/// Files that have no text.
const MEDIA: &[&str] = &[
    "aac", "aiff", "avi", "flac", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "ogg", "opus", "pdf",
    "wav", "webm", "wma", "wmv",
];

/// The key of a value that a function makes, as adapters read it. Nobody else may write it.
pub(super) const FUNCTION: &str = "probity:function";

/// Whether a function makes a value.
pub(super) fn is_made(value: &Value) -> bool {
    value.as_object().is_some_and(|it| it.len() == 1 && it.contains_key(FUNCTION))
}

/// JavaScript that makes the variables of a test.
pub(super) fn transform(node: &Node, context: &mut Context<'_>) -> Option<String> {
    let code = node.as_str().map(str::trim).filter(|it| !it.is_empty())?;
    let Some(named) = code.strip_prefix("file://") else { return Some(code.to_owned()) };
    let is_script = Language::of(split_name(named).0) == Some(Language::JavaScript);
    if !is_script {
        context.lost(node, format!("`transformVars` in `{named}`"), "write it as JavaScript");
        return None;
    }
    match transform::reference(named, context) {
        Ok(reference) => {
            context.see(&reference, named, node);
            Some(format!("file://{reference}"))
        }
        Err(error) => {
            context.unreadable(node, &error);
            None
        }
    }
}

/// A test cannot be asked without one of its variables. Why not is noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unasked;

/// Whether a value that is written has the key of those that functions make.
pub(super) fn claims_function(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(claims_function),
        Value::Object(map) => map.contains_key(FUNCTION) || map.values().any(claims_function),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The functions that make a value, or parts of it.
pub(super) fn functions_in(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().flat_map(functions_in).collect(),
        Value::Object(map) => {
            let own = map.get(FUNCTION).and_then(Value::as_str);
            own.into_iter().chain(map.values().flat_map(functions_in)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The variables of a test, as they are written: a table, or files with tables. `folder` is that of the
/// file with the test.
pub(super) fn read(node: &Node, folder: &str, context: &mut Context<'_>) -> Result<Vars, Unasked> {
    let is_named = node.as_str().is_some() || crate::is_list(node);
    if !is_named {
        return Ok(node.entries().iter().map(|it| (it.key.clone(), it.node.to_json())).collect());
    }
    let mut vars = Vars::new();
    for item in list(node) {
        let name = item.as_str().unwrap_or_default();
        let name = within(folder, name.strip_prefix("file://").unwrap_or(name));
        let files = context.source.glob(&name).map_err(|error| {
            context.unreadable(item, &error);
            Unasked
        })?;
        if files.is_empty() {
            context.lost(
                item,
                format!("there is no file `{name}` with variables"),
                "check the path",
            );
            return Err(Unasked);
        }
        for file in files {
            let root = context.tree(item, &file).ok_or(Unasked)?;
            vars.extend(root.entries().iter().map(|it| (it.key.clone(), it.node.to_json())));
        }
    }
    Ok(vars)
}

/// A name from a folder, as a name from the folder of the configuration.
pub(super) fn within(folder: &str, name: &str) -> String {
    if Path::new(name).is_absolute() {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|it| *it != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a variable stands for several values: a list of texts, or a pattern of files.
pub(super) fn is_several(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("file://") && text.contains(['*', '?', '[', '{']),
        Value::Array(items) => items.first().is_some_and(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The values of variables, one table for each combination of those that stand for several.
pub(super) fn combinations(
    vars: &Vars,
    is_expanded: bool,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Vec<Vars>, Unasked> {
    let mut all = vec![Vars::new()];
    for (name, value) in vars {
        let values = match is_expanded {
            true => several(value, node, context)?,
            false => vec![filled(value, node, context)?],
        };
        if all.len() * values.len() > MOST_COMBINATIONS {
            let what = format!("its variables have more than {MOST_COMBINATIONS} combinations");
            context.lost(node, what, "write fewer values, or several tests");
            return Err(Unasked);
        }
        all = all
            .iter()
            .flat_map(|vars| {
                values.iter().map(|value| {
                    let mut vars = vars.clone();
                    vars.insert(name.clone(), value.clone());
                    vars
                })
            })
            .collect();
    }
    Ok(all)
}

fn several(value: &Value, node: &Node, context: &mut Context<'_>) -> Result<Vec<Value>, Unasked> {
    match value {
        Value::Array(items) if is_several(value) => {
            items.iter().map(|it| filled(it, node, context)).collect()
        }
        Value::String(text) if is_several(value) => {
            let pattern = text.trim_start_matches("file://");
            let names = match context.source.glob(pattern) {
                Ok(names) => names,
                Err(error) => {
                    context.unreadable(node, &error);
                    return Err(Unasked);
                }
            };
            if names.is_empty() {
                context.lost(node, format!("`{pattern}` means no file"), "check the path");
                return Err(Unasked);
            }
            names.iter().map(|name| file(name, node, context)).collect()
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => Ok(vec![filled(value, node, context)?]),
    }
}

/// A value as templates see it: files are read, and what is nothing is empty.
pub(super) fn filled(
    value: &Value,
    node: &Node,
    context: &mut Context<'_>,
) -> Result<Value, Unasked> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix("file://") {
            Some(name) => file(name, node, context)?,
            None if text.starts_with("package:") => {
                context.lost(node, "a package that makes a value", "write the value");
                return Err(Unasked);
            }
            None => Value::String(nunjucks::value(text.strip_suffix('\n').unwrap_or(text))),
        },
        Value::Null => Value::from(""),
        value if claims_function(value) => {
            context.lost(node, format!("a value with the key `{FUNCTION}`"), "rename the key");
            return Err(Unasked);
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            note_files_within(value, node, context);
            whole(value)
        }
    })
}

/// promptfoo reads files that are values of variables, and sends the names of those within a table or a list.
/// Nobody means that.
fn note_files_within(value: &Value, node: &Node, context: &mut Context<'_>) {
    let named: BTreeSet<&str> =
        template::texts_in(value).into_iter().filter(|it| it.starts_with("file://")).collect();
    for name in named {
        let what = format!(
            "`{name}` within a table or a list of a variable, which promptfoo does not read"
        );
        context.lost(node, what, "make the file the value of a variable of its own");
    }
}

/// A value whose numbers are whole where they can be, as JavaScript writes them.
fn whole(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                Value::from(float as i64)
            }
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, it)| (key.clone(), whole(it))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// What stands in a file: its text, a YAML file as JSON, or an image.
fn file(name: &str, node: &Node, context: &mut Context<'_>) -> Result<Value, Unasked> {
    let suffix = Path::new(name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    let suffix = suffix.to_lowercase();
    let lose = |context: &mut Context<'_>, what: &str, advice: &str| {
        context.lost(node, format!("{what} `{name}`"), advice);
        Unasked
    };
    if is_code(name) {
        return match transform::reference(name, context) {
            Ok(named) => {
                context.see(&named, name, node);
                Ok(json!({ FUNCTION: named }))
            }
            Err(error) => {
                context.unreadable(node, &error);
                Err(Unasked)
            }
        };
    }
    if MEDIA.contains(&suffix.as_str()) {
        return Err(lose(context, "the content of", "write it as text"));
    }
    if IMAGES.contains(&suffix.as_str()) {
        return match context.source.reference(name) {
            Ok(named) => Ok(Value::String(format!("file://{named}"))),
            Err(error) => {
                context.unreadable(node, &error);
                Err(Unasked)
            }
        };
    }
    if suffix == "yaml" || suffix == "yml" {
        let root = context.tree(node, name).ok_or(Unasked)?;
        return Ok(Value::String(root.to_json().to_string()));
    }
    match context.source.text(name) {
        Ok(text) => Ok(Value::String(nunjucks::value(text.text.trim()))),
        Err(error) => {
            context.unreadable(node, &error);
            Err(Unasked)
        }
    }
}
