//! `derivedMetrics`: figures that promptfoo reckons from the sums of named scores.
//!
//! Its expressions are those of mathjs. What they can say beyond ours is not carried over; nothing of them is run.

use std::collections::BTreeSet;

use probity_core::{
    derived::{Expression, MOST, Named, Part, Term},
    located::{Node, NodeValue},
};

use super::Context;
use crate::cases::text;

/// How many results there are of a prompt on a provider.
const COUNT: &str = "__count";

/// Which named scores have weights.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// Names of scores that are only reported.
    reported: BTreeSet<String>,
    /// Whether any counts more or less than once.
    are_several: bool,
}

impl Weights {
    /// Takes in what an assertion says.
    pub(super) fn see(&mut self, node: &Node, weight: Option<f64>) {
        let (Some(metric), Some(weight)) = (text(node, "metric"), weight) else { return };
        if weight <= 0.0 {
            self.reported.insert(metric);
        } else if (weight - 1.0).abs() > f64::EPSILON {
            self.are_several = true;
        }
    }
}

/// Reads them, when all assertions are known.
pub(super) fn read(root: &Node, context: &mut Context<'_>) {
    let Some(node) = root.get("derivedMetrics") else { return };
    let NodeValue::Array(items) = &node.value else {
        if !matches!(node.value, NodeValue::Null) {
            context.lost(node, "`derivedMetrics` is no list", "make a list of `name` and `value`");
        }
        return;
    };
    let mut reported = BTreeSet::new();
    for item in items {
        let (Some(name), Some(value)) = (text(item, "name"), text(item, "value")) else {
            context.lost(item, "a derived metric without `name` or `value`", "give it both");
            continue;
        };
        if context.draft.settings.derived.len() == MOST {
            let what = format!("derived metrics beyond the first {MOST}");
            context.lost(item, what, "leave out those that nobody reads");
            return;
        }
        if name.chars().any(char::is_control) {
            let what = "a derived metric whose name has control characters";
            context.lost(item, what, "give it another name");
            continue;
        }
        if is_function(&value) {
            let what = format!(
                "the derived metric `{name}` is a function, which promptfoo does not run from a file like this: it is 0 there"
            );
            let advice = "write it as an expression under [derived], see docs/derived.md";
            context.assumed(item, what, advice);
            continue;
        }
        match translated(&value, context) {
            Ok(expression) => {
                for named in expression.named() {
                    if let Named::Score(_, score) = named
                        && context.weights.reported.contains(&**score)
                    {
                        reported.insert(score.to_string());
                    }
                }
                let derived = &mut context.draft.settings.derived;
                // The last of a name counts.
                derived.retain(|(earlier, _)| *earlier != name);
                derived.push((name, expression.to_string()));
            }
            Err(why) => {
                let what = format!("the derived metric `{name}`: {why}");
                let advice = "write it as an expression under [derived], see docs/derived.md";
                context.lost(item, what, advice);
            }
        }
    }
    if !reported.is_empty() {
        let names: Vec<String> = reported.into_iter().map(|it| format!("`{it}`")).collect();
        let what = format!(
            "the scores of {} have the weight 0: promptfoo's documentation sums them for derived metrics, as is done here, and its program takes each for 0",
            names.join(", ")
        );
        context.assumed(node, what, "");
    }
}

/// Whether a text is code rather than an expression.
fn is_function(value: &str) -> bool {
    let value = value.trim_start();
    let is_code = |word: &str| {
        value.strip_prefix(word).is_some_and(|it| !it.starts_with(char::is_alphanumeric))
    };
    ["function", "async", "lambda", "def", "return"].into_iter().any(is_code)
        || value.contains("=>")
        || value.starts_with("file://")
}

/// An expression of ours that means the same.
fn translated(value: &str, context: &Context<'_>) -> Result<Expression, String> {
    let sums = if context.weights.are_several { Part::Weighted } else { Part::Sum };
    let earlier = &context.draft.settings.derived;
    let names = |name: &str| {
        let term = match name {
            COUNT => Term::Named(Named::Results),
            "true" => Term::Number(1.0),
            "false" => Term::Number(0.0),
            "pi" => Term::Number(std::f64::consts::PI),
            "e" => Term::Number(std::f64::consts::E),
            _ if earlier.iter().any(|(known, _)| known == name) => {
                Term::Named(Named::Derived(name.into()))
            }
            _ => Term::Named(Named::Score(sums, name.into())),
        };
        Ok(term)
    };
    Expression::parse_with(value, &names).map_err(|error| error.to_string())
}
