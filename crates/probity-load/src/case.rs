//! Reads cases, and every other table of a user's file, from located trees.

mod ask;
mod conversation;
mod decode;
mod execution;
mod fields;
mod id;
mod judging;
mod made;
mod made_test;
mod reading;

pub(crate) use ask::{decode as ask_of, image_at, messages_of, settings_of};
pub(crate) use conversation::{USER_FIELDS, check_results, user_fields};
pub(crate) use decode::{
    CASE_FIELDS, any_category, criteria, criteria_of_rubric, is_case_field, of_result, prompt_vars,
};
pub use decode::{Decoded, decode};
pub(crate) use execution::{execution, world_of};
pub use fields::{Fields, Finding, Findings, did_you_mean};
pub(crate) use judging::rubric_prompt;
pub use made::{made_messages, made_prompt};
pub use made_test::{made_cases, promptfoo_threshold};
