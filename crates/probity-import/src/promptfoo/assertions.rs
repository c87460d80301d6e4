//! promptfoo's assertions. Ours have the same names where they mean the same.

use serde_json::Value;

use super::Context;
use crate::cases::text;
use probity_core::{
    criteria::{Assertion, AssertionKind, AssertionTest},
    located::Node,
};

/// What to do about an assertion that is left out.
const ADVICE: &str = "docs/datasets.md lists the assertions that there are";
/// Fields that are carried over.
const CARRIED: &[&str] = &["type", "value", "threshold", "weight", "metric", "assert"];

/// The assertion of that name, where both mean the same by it.
pub(super) fn known(name: &str) -> Option<AssertionKind> {
    let ours = |it: &AssertionKind| {
        matches!(
            it.test,
            AssertionTest::Scorer | AssertionTest::Exec | AssertionTest::AnswerRelevance
        )
    };
    AssertionKind::named(name).filter(|it| !ours(it))
}

/// Reads a list of assertions; those we do not have are named and left out.
pub(super) fn read(list: &Node, context: &mut Context<'_>) -> Vec<Assertion> {
    let mut assertions = Vec::new();
    for node in list.items() {
        let Some(name) = text(node, "type") else {
            context.lost(node, "an assertion without a type is left out", ADVICE);
            continue;
        };
        let Some(kind) = known(&name) else {
            context.lost(node, format!("assertion `{name}` is not supported: left out"), ADVICE);
            continue;
        };
        if let Some(why) = incomplete(kind.test, node) {
            context.lost(node, format!("assertion `{name}` is left out: {why}"), ADVICE);
            continue;
        }
        let is_carried = |key: &str| match key {
            "config" => kind.test.runs_code(),
            "transform" => kind.test.takes_transform(),
            other => CARRIED.contains(&other),
        };
        for entry in node.entries() {
            if !is_carried(&entry.key) {
                context.lost(node, format!("`{}` of an assertion is left out", entry.key), ADVICE);
            }
        }
        let number = |key: &str| text(node, key).and_then(|it| it.parse::<f64>().ok());
        let value = node.get("value").map(Node::to_json).filter(|it| !it.is_null());
        let is_script = matches!(kind.test, AssertionTest::Javascript | AssertionTest::Python);
        let names_file = |it: &str| it.starts_with("file://") && !is_script;
        if value.as_ref().and_then(Value::as_str).is_some_and(names_file) {
            context.lost(
                node,
                format!("the file of assertion `{name}` is not read: left out"),
                ADVICE,
            );
            continue;
        }
        let value = markup_value(kind.test, value, node, context);
        let members = match (kind.test, node.get("assert")) {
            (AssertionTest::AssertSet, Some(inner)) => read(inner, context),
            (_, _) => Vec::new(),
        };
        if kind.test == AssertionTest::AssertSet && members.is_empty() {
            context.lost(node, "an empty `assert-set` is left out", ADVICE);
            continue;
        }
        let config = node.get("config").filter(|_| is_carried("config"));
        assertions.push(Assertion {
            value,
            weight: number("weight"),
            threshold: number("threshold"),
            metric: text(node, "metric"),
            config: config.map(Node::to_json).filter(|it| !it.is_null()),
            transform: text(node, "transform").filter(|_| is_carried("transform")),
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
    node: &Node,
    context: &mut Context<'_>,
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
        context.lost(node, format!("what `{test}` allows is not carried over"), ADVICE);
    }
    dialect.map(Value::String)
}
