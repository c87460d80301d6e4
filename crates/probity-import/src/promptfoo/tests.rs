//! Tests: what is asked, and what is expected.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Context, assertions, expected, list, prompts::Prompt, vars};
use crate::{
    cases::text,
    draft::{CaseDraft, Setup},
    note::At,
};
use probity_core::{
    case::TestCase,
    criteria::{Assertion, Criteria},
    located::Node,
};

/// Values of variables.
pub(super) type Vars = BTreeMap<String, Value>;

/// A case, and who is asked it how.
#[derive(Clone, Debug)]
pub(super) struct Test {
    /// The case. Its prompt is empty: prompts are variants of the runner.
    pub(super) case: CaseDraft,
    /// The prompts that it is asked with, by label or id; empty for all.
    pub(super) prompts: Vec<String>,
    /// The providers that are asked, by label or id; empty for all.
    pub(super) providers: Vec<String>,
    /// What its runner has to say, such as the judge.
    pub(super) setup: Setup,
}

/// All tests of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Tests {
    /// Those that can be read.
    pub(super) cases: Vec<Test>,
    /// Functions that make tests, as references, and where they are named.
    pub(super) functions: Vec<(String, At)>,
}

/// The tests of a configuration: `tests`, `scenarios`, `defaultTest`. Without any, each prompt is asked
/// once.
pub(super) fn read(root: &Node, _prompts: &[Prompt], context: &mut Context<'_>) -> Tests {
    let mut tests = Tests::default();
    let default = root.get("defaultTest");
    let default = default.map(|node| Written::of(node, context)).unwrap_or_default();
    let mut nodes = Vec::new();
    if let Some(node) = root.get("tests") {
        collect(node, context, &mut nodes);
    }
    for (at, node) in nodes.iter().enumerate() {
        let test = Written::of(node, context).with_default(&default);
        let name = test.description.clone().unwrap_or_else(|| format!("test-{}", at + 1));
        for vars in vars::combinations(&test.vars) {
            let case = TestCase {
                id: context.ids.unique(&name),
                prompt_vars: vars,
                criteria: Criteria {
                    assertions: test.assertions.clone(),
                    threshold: test.threshold,
                    ..Criteria::default()
                },
                tags: test.tags.clone(),
                ..TestCase::default()
            };
            tests.cases.push(Test {
                case: CaseDraft { case, at: context.at(node) },
                prompts: Vec::new(),
                providers: Vec::new(),
                setup: Setup::default(),
            });
        }
    }
    tests
}

/// The tests that are written out, or stand in other files.
fn collect(node: &Node, context: &mut Context<'_>, tests: &mut Vec<Node>) {
    for item in list(node) {
        let Some(name) = item.as_str() else {
            tests.push(item.clone());
            continue;
        };
        let name = name.strip_prefix("file://").unwrap_or(name);
        if let Some(root) = context.tree(item, name) {
            tests.extend(root.items().iter().cloned());
        }
    }
}

/// One test as it is written, in YAML or as a CSV record.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) description: Option<String>,
    pub(super) vars: Vars,
    pub(super) assertions: Vec<Assertion>,
    pub(super) threshold: Option<f64>,
    pub(super) tags: Vec<String>,
}

impl Written {
    fn of(node: &Node, context: &mut Context<'_>) -> Self {
        const USED: &[&str] = &["description", "vars", "assert", "threshold", "metadata"];
        if node.entries().iter().any(|entry| entry.key.starts_with("__")) || is_record(node) {
            return expected::test(node, context);
        }
        context.lost_keys(node, "a test", USED);
        let metadata = node.get("metadata").map(Node::entries).unwrap_or_default();
        let tags =
            metadata.iter().filter_map(|it| Some(format!("{}:{}", it.key, it.node.as_str()?)));
        Self {
            description: text(node, "description"),
            vars: node.get("vars").map(|it| vars::read(it, context)).unwrap_or_default(),
            assertions: node
                .get("assert")
                .map(|it| assertions::read(it, context))
                .unwrap_or_default(),
            threshold: text(node, "threshold").and_then(|it| it.parse().ok()),
            tags: tags.collect(),
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
