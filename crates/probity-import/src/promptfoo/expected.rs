//! promptfoo's CSV records: columns whose names start with `__` mean something.

use serde_json::Value;

use super::{Context, assertions::known, tests::Written};
use crate::cases::{assertion, text};
use probity_core::{
    criteria::{Assertion, AssertionTest},
    located::Node,
};

/// A record as a test.
pub(super) fn test(node: &Node, context: &mut Context<'_>) -> Written {
    let mut test = Written { description: text(node, "__description"), ..Written::default() };
    for entry in node.entries() {
        let Some(cell) = entry.node.as_str() else { continue };
        if !entry.key.starts_with("__") {
            test.vars.insert(entry.key.clone(), Value::String(cell.to_owned()));
            continue;
        }
        if cell.trim().is_empty() {
            continue;
        }
        match entry.key.as_str() {
            "__threshold" => test.threshold = cell.trim().parse().ok(),
            "__description" | "__metric" => {}
            key if is_expected(key) => test.assertions.extend(parse(&entry.node, cell, context)),
            key => match key.strip_prefix("__metadata:") {
                Some(name) => test.tags.push(format!("{}:{cell}", name.trim_end_matches("[]"))),
                None => {
                    let what = format!("column `{key}` has no counterpart");
                    context.lost(&entry.node, what, "leave it out if it does not matter");
                }
            },
        }
    }
    if let Some(metric) = text(node, "__metric") {
        test.assertions.iter_mut().for_each(|it| it.metric = Some(metric.clone()));
    }
    test
}

fn is_expected(key: &str) -> bool {
    key.strip_prefix("__expected").is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()))
}

/// One cell: `type:value`, `type(threshold):value`, or the expected text itself.
fn parse(node: &Node, cell: &str, context: &mut Context<'_>) -> Option<Assertion> {
    let (head, value) = cell.split_once(':').unwrap_or((cell, ""));
    let (name, threshold) = match head.trim().strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((name, threshold)) => (name, threshold.trim().parse::<f64>().ok()),
        None => (head.trim(), None),
    };
    // Their older names.
    let name = match name {
        "grade" => "llm-rubric",
        "fn" | "eval" => "javascript",
        name => name,
    };
    let Some(kind) = known(name) else {
        if is_foreign(name) && (cell.contains(':') || threshold.is_some()) {
            let what = format!("assertion `{name}` is not supported");
            context.lost(node, what, "docs/datasets.md lists the assertions that there are");
            return None;
        }
        let equals = assertion(AssertionTest::Equals, false);
        return Some(Assertion { value: Some(cell.into()), ..equals });
    };
    let value = (!value.trim().is_empty()).then(|| Value::String(value.trim().to_owned()));
    // A schema is the one value that is not text.
    let is_schema = matches!(kind.test, AssertionTest::IsJson | AssertionTest::ContainsJson);
    let schema = |value: &Value| value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let value = match value {
        Some(value) if is_schema => Some(schema(&value).unwrap_or(value)),
        value => value,
    };
    Some(Assertion { value, threshold, ..assertion(kind.test, kind.negated) })
}

/// Names of promptfoo's assertions that we do not have, or by which we mean something else.
const FOREIGN: &[&str] = &[
    "answer-relevance",
    "classifier",
    "file",
    "gleu",
    "guardrails",
    "is-valid-function-call",
    "meteor",
    "moderation",
    "pi",
    "ruby",
    "select-best",
    "tool-call-f1",
    "webhook",
];

/// Whether a name is one of promptfoo's that we do not have; anything else before a colon is text.
fn is_foreign(name: &str) -> bool {
    let name = name.strip_prefix("not-").unwrap_or(name);
    FOREIGN.contains(&name) || name.starts_with("similar:") || name.starts_with("trajectory:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_foreign_name_is_known() {
        let known: Vec<_> = FOREIGN.iter().filter(|name| known(name).is_some()).collect();
        assert_eq!(known, [&""; 0]);
    }
}
