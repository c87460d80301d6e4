//! Figures that a suite derives from others.

use probity_core::{
    derived::{Derivation, Expression, MOST, Named},
    located::{Node, NodeValue},
};

use crate::case::{Fields, Findings, did_you_mean};

/// The derived figures of a runner, in the order of the file.
pub(super) fn decode(node: Option<&Node>, findings: &mut Findings) -> Vec<Derivation> {
    let Some(node) = node else { return Vec::new() };
    if Fields::open(node, "`derived`", findings).is_none() {
        return Vec::new();
    }
    let mut all: Vec<Derivation> = Vec::new();
    for entry in node.entries() {
        let (name, span) = (&entry.key, &entry.node.span);
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let message =
                "the name of a derived figure must have letters, and no control characters";
            findings.error("bad-name", &entry.key_span, message.to_owned());
            continue;
        }
        let text = match &entry.node.value {
            NodeValue::String(text) | NodeValue::Number(text) => text,
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Array(_) | NodeValue::Object(_) => {
                let message = format!("`{name}` must be an expression, not {}", entry.node.kind());
                let help = "such as \"sum.correct / results\", see docs/derived.md".to_owned();
                findings.error_with_help("wrong-type", span, message, help);
                continue;
            }
        };
        let expression: Expression = match text.parse() {
            Ok(expression) => expression,
            Err(error) => {
                let message = format!("`{name}` is not an expression: {error}");
                let help = "see docs/derived.md for what one can be".to_owned();
                findings.error_with_help("bad-value", span, message, help);
                continue;
            }
        };
        if let Some(unknown) = unknown(&expression, &all) {
            let known: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
            let message = format!("`{name}` needs `derived.{unknown}`, which is not before it");
            let help = did_you_mean(unknown, &known)
                .unwrap_or_else(|| "a derived figure can use those above it".to_owned());
            findings.error_with_help("bad-value", span, message, help);
            continue;
        }
        if all.len() == MOST {
            let message = format!("there are more than {MOST} derived figures");
            findings.error("bad-value", span, message);
            break;
        }
        all.push(Derivation { name: name.clone(), expression });
    }
    all
}

/// A derived figure that an expression names and that is not before it.
fn unknown<'a>(expression: &'a Expression, before: &[Derivation]) -> Option<&'a str> {
    expression.named().into_iter().find_map(|named| match named {
        Named::Derived(name) if !before.iter().any(|it| it.name == **name) => Some(&**name),
        Named::Derived(_) | Named::Score(..) | Named::Metric(_) | Named::Results => None,
    })
}
