//! Reads cases, and every other table of a user's file, from located trees.

mod decode;
mod fields;

pub(crate) use decode::{CASE_FIELDS, criteria as criteria_of, criteria_of_rubric};
pub use decode::{Decoded, decode};
pub use fields::{Fields, Finding, Findings, did_you_mean};
