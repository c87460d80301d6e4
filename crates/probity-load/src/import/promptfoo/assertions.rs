//! promptfoo's assertions. Ours have the same names where they mean the same.

use serde_json::Value;

use super::{Vars, rendered};
use crate::import::{Imported, text};
use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Node,
};

/// Fields that are carried over.
const CARRIED: &[&str] =
    &["type", "value", "threshold", "weight", "metric", "config", "transform", "assert"];

/// The assertion of that name, where both mean the same by it.
pub(super) fn known(name: &str) -> Option<AssertionKind> {
    let ours = |it: &AssertionKind| matches!(it.test, AssertionTest::Scorer | AssertionTest::Exec);
    AssertionKind::named(name).filter(|it| !ours(it))
}

/// Reads a list of assertions; those we do not have are named and left out.
pub(super) fn read(list: &Node, id: &str, imported: &mut Imported) -> Vec<Assertion> {
    let mut assertions = Vec::new();
    for node in list.items() {
        let Some(name) = text(node, "type") else {
            imported.note(id, "an assertion without a type is left out");
            continue;
        };
        let Some(kind) = known(&name) else {
            imported.note(id, format!("assertion `{name}` is not supported: left out"));
            continue;
        };
        if let Some(why) = incomplete(kind.test, node) {
            imported.note(id, format!("assertion `{name}` is left out: {why}"));
            continue;
        }
        for entry in node.entries() {
            if !CARRIED.contains(&entry.key.as_str()) {
                imported.note(id, format!("`{}` of an assertion is left out", entry.key));
            }
        }
        let number = |key: &str| text(node, key).and_then(|it| it.parse::<f64>().ok());
        let value = node.get("value").map(Node::to_json).filter(|it| !it.is_null());
        let is_script = matches!(kind.test, AssertionTest::Javascript | AssertionTest::Python);
        let names_file = |it: &str| it.starts_with("file://") && !is_script;
        if value.as_ref().and_then(Value::as_str).is_some_and(names_file) {
            imported.note(id, format!("the file of assertion `{name}` is not read: left out"));
            continue;
        }
        let value = markup_value(kind.test, value, id, imported);
        let members = match (kind.test, node.get("assert")) {
            (AssertionTest::AssertSet, Some(inner)) => read(inner, id, imported),
            (_, _) => Vec::new(),
        };
        if kind.test == AssertionTest::AssertSet && members.is_empty() {
            imported.note(id, "an empty `assert-set` is left out");
            continue;
        }
        assertions.push(Assertion {
            value,
            weight: number("weight"),
            threshold: number("threshold"),
            metric: text(node, "metric"),
            config: node.get("config").map(Node::to_json).filter(|it| !it.is_null()),
            transform: text(node, "transform"),
            members,
            ..Assertion::new(kind)
        });
    }
    assertions
}

/// What an assertion lacks that stands elsewhere in promptfoo, or that it can do without there.
fn incomplete(test: AssertionTest, node: &Node) -> Option<&'static str> {
    let is_perplexity = matches!(test, AssertionTest::Perplexity | AssertionTest::PerplexityScore);
    if test == AssertionTest::ValidToolCalls {
        Some("the tools of the provider are not read")
    } else if is_perplexity && node.get("threshold").is_none() {
        Some("without a threshold it says nothing")
    } else {
        None
    }
}

/// The value of an assertion about XML, HTML or SQL: of all that promptfoo takes, only the dialect of SQL.
fn markup_value(
    test: AssertionTest,
    value: Option<Value>,
    id: &str,
    imported: &mut Imported,
) -> Option<Value> {
    let is_sql = matches!(test, AssertionTest::IsSql | AssertionTest::ContainsSql);
    let is_markup = matches!(
        test,
        AssertionTest::IsXml
            | AssertionTest::ContainsXml
            | AssertionTest::IsHtml
            | AssertionTest::ContainsHtml
    );
    let value = match value {
        Some(value) if is_sql || is_markup => value,
        value => return value,
    };
    let named = value.get("databaseType").unwrap_or(&value).as_str().unwrap_or("");
    let dialect = match named.to_lowercase().as_str() {
        "mariadb" => Some("mysql".to_owned()),
        "transactsql" => Some("mssql".to_owned()),
        name @ ("bigquery" | "mysql" | "postgresql" | "snowflake" | "sqlite") => {
            Some(name.to_owned())
        }
        _ => None,
    };
    let dialect = dialect.filter(|_| is_sql);
    let has_more = value.as_object().is_some_and(|it| it.len() > 1);
    if dialect.is_none() || has_more {
        imported.note(id, format!("what `{test}` allows is not carried over"));
    }
    dialect.map(Value::String)
}

/// Fills a case's variables into the values of its assertions.
pub(super) fn render(
    assertions: &[Assertion],
    vars: &Vars,
    id: &str,
    imported: &mut Imported,
) -> Vec<Assertion> {
    let mut filled = assertions.to_vec();
    for assertion in &mut filled {
        if let Some(value) = &mut assertion.value {
            fill(value, vars, id, imported);
        }
        assertion.members = render(&assertion.members, vars, id, imported);
    }
    filled
}

fn fill(value: &mut Value, vars: &Vars, id: &str, imported: &mut Imported) {
    match value {
        Value::String(text) => *text = rendered(text, vars, id, imported),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, vars, id, imported)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}
