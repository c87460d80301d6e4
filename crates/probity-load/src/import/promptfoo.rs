//! promptfoo: a configuration with prompts and tests, or a file of tests alone.

mod assertions;
mod expected;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use serde_json::Value;

use super::{ImportError, Imported, read, text};
use crate::template;
use probity_core::{
    case::TestCase,
    criteria::{Assertion, Criteria},
    located::{Node, NodeValue},
};

/// Cases that one test may become when its variables are lists.
const MOST_COMBINATIONS: usize = 1000;

type Vars = BTreeMap<String, Value>;

pub(super) fn import(
    path: &Path,
    prompt: Option<&str>,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let root = read::file(path, imported)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let is_config = matches!(root.value, NodeValue::Object(_));
    let mut prompts = Vec::new();
    let mut tests = Vec::new();
    let mut default = Test::default();
    if is_config {
        note_config(&root, imported);
        prompts = read_prompts(&root, folder, imported);
        collect_tests(root.get("tests"), folder, imported, &mut tests);
        if let Some(node) = root.get("defaultTest") {
            default = Test::of(node, "defaultTest", imported);
        }
    } else {
        tests.clone_from(&root.items().to_vec());
    }
    if tests.is_empty() {
        return Err(ImportError::shape(path, "there is no test in the file"));
    }
    if let Some(prompt) = prompt {
        prompts = vec![prompt.to_owned()];
    }
    for (at, node) in tests.iter().enumerate() {
        let name = format!("test-{}", at + 1);
        let test = Test::of(node, &name, imported).with_default(&default);
        add_cases(&name, &test, &prompts, imported);
    }
    Ok(())
}

/// One test, from YAML or from a CSV record.
#[derive(Clone, Debug, Default)]
struct Test {
    description: Option<String>,
    vars: Vars,
    assertions: Vec<Assertion>,
    threshold: Option<f64>,
    tags: Vec<String>,
    prefix: String,
    suffix: String,
}

impl Test {
    fn of(node: &Node, name: &str, imported: &mut Imported) -> Self {
        const USED: &[&str] = &["description", "vars", "assert", "threshold", "metadata"];
        if node.entries().iter().any(|entry| entry.key.starts_with("__")) || is_record(node) {
            return expected::test(node, name, imported);
        }
        let id = text(node, "description").unwrap_or_else(|| name.to_owned());
        imported.note_unused(&id, node, USED);
        let vars = match node.get("vars") {
            Some(vars) if vars.as_str().is_some() => {
                imported.note(&id, "variables from another file are left out");
                Vars::new()
            }
            Some(vars) => {
                vars.entries().iter().map(|it| (it.key.clone(), it.node.to_json())).collect()
            }
            None => Vars::new(),
        };
        let metadata = node.get("metadata").map(Node::entries).unwrap_or_default();
        let tags =
            metadata.iter().filter_map(|it| Some(format!("{}:{}", it.key, it.node.as_str()?)));
        Self {
            description: text(node, "description"),
            vars,
            assertions: node
                .get("assert")
                .map(|list| assertions::read(list, &id, imported))
                .unwrap_or_default(),
            threshold: text(node, "threshold").and_then(|it| it.parse().ok()),
            tags: tags.collect(),
            ..Self::default()
        }
    }

    fn with_default(mut self, default: &Self) -> Self {
        for (name, value) in &default.vars {
            self.vars.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self.assertions.extend(default.assertions.iter().cloned());
        self.threshold = self.threshold.or(default.threshold);
        self
    }
}

/// Whether all values are texts and none of the names is a test's: a record of plain variables.
fn is_record(node: &Node) -> bool {
    node.get("vars").is_none()
        && node.get("assert").is_none()
        && node.get("description").is_none()
        && !node.entries().is_empty()
        && node.entries().iter().all(|entry| entry.node.as_str().is_some())
}

/// One case for each prompt and each combination of listed variables.
fn add_cases(name: &str, test: &Test, prompts: &[String], imported: &mut Imported) {
    let id = test.description.clone().unwrap_or_else(|| name.to_owned());
    let fallback;
    let prompts = if !prompts.is_empty() {
        prompts
    } else if test.vars.contains_key("prompt") {
        fallback = ["{{ prompt }}".to_owned()];
        &fallback
    } else {
        let what = "there is no prompt in the file: left out (pass --prompt TEMPLATE)";
        return imported.note(&id, what);
    };
    let combinations = combinations(&test.vars);
    if combinations.is_empty() {
        return imported.note(&id, "its lists of variables have too many combinations: left out");
    }
    let several = combinations.len() > 1;
    for (at, prompt) in prompts.iter().enumerate() {
        for (index, vars) in combinations.iter().enumerate() {
            let mut case_id = id.clone();
            if prompts.len() > 1 {
                let _ = write!(case_id, "/prompt-{}", at + 1);
            }
            if several {
                let _ = write!(case_id, "/{}", index + 1);
            }
            let assertions = assertions::render(&test.assertions, vars, &case_id, imported);
            imported.add_template(TestCase {
                id: case_id,
                prompt: format!("{}{prompt}{}", test.prefix, test.suffix),
                prompt_vars: vars.clone(),
                criteria: Criteria { assertions, threshold: test.threshold, ..Criteria::default() },
                tags: test.tags.clone(),
                ..TestCase::default()
            });
        }
    }
}

/// Variables whose value is a list stand for each of its items; none if there are too many.
fn combinations(vars: &Vars) -> Vec<Vars> {
    let mut all = vec![Vars::new()];
    for (name, value) in vars {
        let list = value.as_array().filter(|items| !items.is_empty());
        let values = list.map_or(std::slice::from_ref(value), Vec::as_slice);
        if all.len() * values.len() > MOST_COMBINATIONS {
            return Vec::new();
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
    all
}

fn note_config(root: &Node, imported: &mut Imported) {
    const CARRIED: &[&str] = &["prompts", "tests", "defaultTest", "description", "$schema"];
    for entry in root.entries() {
        if !CARRIED.contains(&entry.key.as_str()) {
            imported.note_file(format!("`{}` of the configuration is left out", entry.key));
        }
    }
}

/// The prompt templates: written out, or in text files beside the configuration.
fn read_prompts(root: &Node, folder: &Path, imported: &mut Imported) -> Vec<String> {
    let Some(node) = root.get("prompts") else { return Vec::new() };
    let items = if node.as_str().is_some() { std::slice::from_ref(node) } else { node.items() };
    let mut prompts = Vec::new();
    for item in items {
        let written = item.as_str().map(ToOwned::to_owned);
        let Some(prompt) = written.or_else(|| text(item, "raw")).or_else(|| text(item, "id"))
        else {
            imported.note_file("a prompt that is not a text is left out");
            continue;
        };
        match prompt.strip_prefix("file://") {
            None => prompts.push(prompt),
            Some(name) if has_suffix(name, &["txt", "md", "j2"]) => {
                let Ok(text) = read::text(&folder.join(name)) else {
                    imported.note_file(format!("prompt file `{name}` cannot be read: left out"));
                    continue;
                };
                // promptfoo separates several prompts of one file by a line of three hyphens.
                let parts = text.split("\n---\n").map(str::trim).filter(|it| !it.is_empty());
                prompts.extend(parts.map(ToOwned::to_owned));
            }
            Some(name) => {
                imported.note_file(format!("prompt file `{name}` is not a text: left out"));
            }
        }
    }
    prompts
}

/// The tests: written out, or in other files.
fn collect_tests(
    node: Option<&Node>,
    folder: &Path,
    imported: &mut Imported,
    tests: &mut Vec<Node>,
) {
    let Some(node) = node else { return };
    let items = if node.as_str().is_some() { std::slice::from_ref(node) } else { node.items() };
    for item in items {
        let Some(name) = item.as_str() else {
            tests.push(item.clone());
            continue;
        };
        let name = name.strip_prefix("file://").unwrap_or(name);
        if has_suffix(name, &["yaml", "yml", "json", "jsonl", "csv"]) && !name.contains('*') {
            match read::file(&folder.join(name), imported) {
                Ok(node) => tests.extend(node.items().iter().cloned()),
                Err(error) => imported.note_file(format!("tests are left out: {error}")),
            }
        } else {
            imported.note_file(format!("tests from `{name}` are left out"));
        }
    }
}

fn has_suffix(name: &str, suffixes: &[&str]) -> bool {
    let suffix = Path::new(name).extension().and_then(|it| it.to_str()).unwrap_or("");
    suffixes.iter().any(|it| suffix.eq_ignore_ascii_case(it))
}

/// A text with its variables filled in, or as it is where they cannot be.
fn rendered(text: &str, vars: &Vars, id: &str, imported: &mut Imported) -> String {
    template::render(text, vars).unwrap_or_else(|_| {
        imported.note(id, "a template in an assertion is taken literally");
        text.to_owned()
    })
}
