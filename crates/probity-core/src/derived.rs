//! Figures that a suite derives from others: a name, and an expression over the sums of named scores and what gates can be on.
//!
//! They are reckoned from the figures of a lane, which are folded from stored results. So a run, a
//! resumed run and one that was judged again have the same.

mod evaluate;
mod expression;
mod parse;

use serde::{Deserialize, Serialize};

pub use expression::{Expression, Function, Named, Part, Term};
pub use parse::{ExpressionError, NameError};

use crate::metrics::Metrics;

/// A lane has no more of them.
pub const MOST: usize = 200;

/// How one of them is derived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Derivation {
    /// What it is called. Gates call it `derived.NAME`.
    pub name: String,
    /// What it is. It may name those before it.
    #[serde(rename = "is")]
    pub expression: Expression,
}

/// One of them, reckoned.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedFigure {
    /// What it is called.
    pub name: String,
    /// What it comes to, or why it has no value.
    pub value: Result<f64, String>,
}

/// Reckons them in their order.
pub(crate) fn reckoned(derivations: &[Derivation], metrics: &Metrics) -> Vec<DerivedFigure> {
    let mut known: Vec<DerivedFigure> = Vec::with_capacity(derivations.len());
    for Derivation { name, expression } in derivations {
        let value = evaluate::value(expression.term(), metrics, &known);
        known.push(DerivedFigure { name: name.clone(), value });
    }
    known
}

/// A number for people: no more than four decimals, unless it is very small.
pub fn shown(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
