//! Reads cases, and every other table of a user's file, from located trees.

mod ask;
mod conversation;
mod decode;
mod fields;
mod reading;

pub(crate) use ask::{image_at, messages_of, settings_of};
pub(crate) use decode::{CASE_FIELDS, criteria_of_rubric, is_case_field, of_result};
pub use decode::{Decoded, decode};
pub use fields::{Fields, Finding, Findings, did_you_mean};
