//! What counts of passed and failed cases say, and how sure one can be of it.
//!
//! Plain functions over plain values. Nothing is rounded, and nothing panics: where a question has
//! no answer (no cases, more passed than there were, a level that is no probability) the answer is
//! `None`. Elementary functions come from `libm` and not from the system, so that the same counts
//! give the same bits on every machine. The formulas and where they are from: `docs/statistics.md`.

pub mod agreement;
pub mod attempts;
pub mod decide;
pub mod multiple;
pub mod paired;
pub mod proportion;
pub mod sample_size;
mod special;
pub mod spread;

use serde::{Deserialize, Serialize};

/// A range of values that the data do not speak against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The least of them.
    pub low: f64,
    /// The greatest of them.
    pub high: f64,
}

/// The confidence that is meant where none is named: 95 %.
pub const USUAL_LEVEL: f64 = 0.95;

/// A count as a number; above 2⁵³ the nearest one.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts that large have no use for their last digits"
)]
fn number(count: impl Into<u128>) -> f64 {
    count.into() as f64
}

/// A length as a number.
fn length<T>(values: &[T]) -> f64 {
    number(u64::try_from(values.len()).unwrap_or(u64::MAX))
}

/// Whether a value lies strictly between 0 and 1.
fn is_share(value: f64) -> bool {
    value > 0.0 && value < 1.0
}
