//! Files of other tools as types: what is read from them, and what is written for them.
//!
//! Fields that nothing is made of are not here. What a tool may leave out is optional, because its
//! versions differ.

pub(crate) mod chat;
pub(crate) mod inspect;
pub(crate) mod openai_evals;
pub(crate) mod promptfoo;

use serde_json::Value;

/// A text, or anything else as JSON.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
