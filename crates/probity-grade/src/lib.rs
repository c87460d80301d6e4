//! Says deterministically what a model's reply is.
//!
//! Everything here is total: it takes any text and returns a value, it never
//! fails, panics or does input or output, and its running time is linear in the
//! size of the text.

mod accepted;
pub mod again;
pub mod agent;
mod assertion;
mod check;
mod classify;
pub mod command;
mod compile;
pub mod consistency;
pub mod contest;
mod difference;
pub mod errors;
mod excerpt;
mod execution;
pub mod json;
pub mod judge;
pub mod lint;
pub mod people;
pub mod policy;
mod reading;
mod redact;
pub mod refusal;
mod reply;
pub mod routing;
mod rules;
mod schema;
pub mod script;
pub mod similar;
pub mod user;

pub use accepted::check_commands;
pub use check::sql_dialects;
pub use classify::classify;
pub use compile::{Compiler, Expectation, default_matcher};
pub use difference::holds_all;
pub use redact::redacted;
pub use rules::Rules;
