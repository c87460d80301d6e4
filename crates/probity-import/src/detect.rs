//! Which tool a file comes from, by what is in it.

use std::path::Path;

use probity_core::located::{Node, NodeValue};
use probity_load::dataset::Format;
use serde::Serialize;

use crate::source::Source;

/// A tool that files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// promptfoo: a configuration, or tests alone.
    Promptfoo,
    /// lm-eval: tasks in YAML.
    LmEval,
    /// OpenAI's evals: definitions in YAML, samples in JSONL.
    OpenaiEvals,
    /// caro, all four generations of its case files.
    Caro,
    /// FailProof LLM.
    Failproof,
    /// The evaluations of dotnet-artisan.
    Artisan,
    /// DeepEval: goldens and test cases.
    #[serde(rename = "deepeval")]
    DeepEval,
    /// Records with a prompt and an expected answer.
    Plain,
}

impl Origin {
    /// All of them, in the order in which they are looked for.
    pub const ALL: [Self; 8] = [
        Self::Promptfoo,
        Self::LmEval,
        Self::OpenaiEvals,
        Self::Caro,
        Self::Failproof,
        Self::Artisan,
        Self::DeepEval,
        Self::Plain,
    ];

    /// The name used on command lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promptfoo => "promptfoo",
            Self::LmEval => "lm-eval",
            Self::OpenaiEvals => "openai-evals",
            Self::Caro => "caro",
            Self::Failproof => "failproof",
            Self::Artisan => "artisan",
            Self::DeepEval => "deepeval",
            Self::Plain => "plain",
        }
    }
}

/// The names of configurations that are looked for in a folder, the first one first.
const CONFIGS: &[&str] = &[
    "promptfooconfig.yaml",
    "promptfooconfig.yml",
    "promptfooconfig.json",
    "promptfooconfig.js",
    "promptfooconfig.cjs",
    "promptfooconfig.mjs",
    "promptfooconfig.ts",
];

/// The configuration of a folder.
pub(crate) fn config_in(folder: &Path) -> Option<&'static str> {
    CONFIGS.iter().copied().find(|name| folder.join(name).is_file())
}

/// Records that are looked at for what they are.
const FIRST: usize = 10;

/// The tool that a tree comes from; none if it could be any.
pub(crate) fn origin(root: &Node, name: &str) -> Option<Origin> {
    if name.contains("promptfoo") {
        return Some(Origin::Promptfoo);
    }
    if let NodeValue::Object(_) = root.value {
        return of_table(root);
    }
    let first = root.items().first()?;
    let has = |key: &str| first.get(key).is_some();
    let has_any = |keys: &[&str]| keys.iter().any(|it| has(it));
    let is_record = first.entries().iter().any(|it| it.key.starts_with("__"));
    if is_record || (has("vars") && !has("prompt")) || (has("assert") && !has("prompt")) {
        return Some(Origin::Promptfoo);
    }
    if has_any(&["user_prompt", "test_prompts"]) {
        return Some(Origin::Artisan);
    }
    if has_any(&["case_id"]) {
        return Some(Origin::Failproof);
    }
    if has_any(&["input_request", "validation_rule", "expected_command", "risk_level"]) {
        return Some(Origin::Caro);
    }
    if crate::deepeval::is_golden(first) {
        return Some(Origin::DeepEval);
    }
    // The first row of a table may be shorter than the others.
    let some = root.items().iter().take(FIRST).any(crate::plain::is_plain);
    some.then_some(Origin::Plain)
}

fn of_table(root: &Node) -> Option<Origin> {
    let has = |key: &str| root.get(key).is_some();
    let is_config = ["prompts", "providers", "targets", "tests", "scenarios", "defaultTest"];
    if crate::lm_eval::is_task(root) {
        Some(Origin::LmEval)
    } else if crate::openai_evals::is_registry(root) {
        Some(Origin::OpenaiEvals)
    } else if crate::deepeval::records(root).is_some() {
        Some(Origin::DeepEval)
    } else if has("test_prompts") {
        Some(Origin::Artisan)
    } else if has("test_cases") || has("cases") {
        Some(Origin::Caro)
    } else if is_config.iter().any(|it| has(it)) && !has("runners") && !has("backends") {
        Some(Origin::Promptfoo)
    } else {
        crate::plain::records(root).map(|_| Origin::Plain)
    }
}

/// The tool that the files of a folder come from.
pub(crate) fn of_folder(source: &mut Source) -> Option<Origin> {
    if crate::openai_evals::is_folder(source) {
        return Some(Origin::OpenaiEvals);
    }
    crate::lm_eval::has_tasks(source).then_some(Origin::LmEval)
}

/// The tool that a file comes from that was named as a suite. A suite has other keys.
pub(crate) fn of_suite(source: &mut Source, name: &str) -> Option<Origin> {
    let format = Format::of_path(Path::new(name))?;
    if !matches!(format, Format::Yaml | Format::Json) {
        return None;
    }
    let (root, _) = source.tree_as(name, format).ok()?;
    of_table(&root).filter(|it| *it == Origin::Promptfoo)
}
