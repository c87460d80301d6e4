//! Says deterministically what a model's reply is.
//!
//! Everything here is total: it takes any text and returns a value, it never
//! fails, panics or does input or output, and its running time is linear in the
//! size of the text.
//!
//! [`classify()`] says which of eight classes a result is, by which rule, and with which evidence. The detectors that it
//! is made of stand on their own:
//!
//! | module | question |
//! | --- | --- |
//! | [`json`] | which JSON value is in a text, and what had to be forgiven? |
//! | [`refusal`] | does a reply decline, and with which words? |
//! | [`errors`] | what does an error mean, and is it worth trying again? |
//! | [`policy`] | does a text hold secrets, personal data or forbidden words? |
//! | [`command`] | the rules by which shell commands are judged; the crate `probity-shell` does the reading |
//!
//! What they return implements `serde::Serialize`. The hidden module `internal` belongs to the program `probity`, and may
//! change with any version.
//!
//! ```
//! use probity_core::{
//!     case::TestCase,
//!     classification::{Class, Verdict},
//!     judging::RuleConfig,
//!     run_result::RunResult,
//! };
//! use probity_grade::{Compiler, Rules, classify};
//!
//! let rules = Rules::compile(&RuleConfig::default()).expect("the built-in rules compile");
//! let mut case = TestCase::default();
//! case.criteria.expected_response = Some("Paris".into());
//! let expected = Compiler::new(&rules).compile(&case).expect("the criteria are sound");
//!
//! let reply = "I'm sorry, but I can't help with that.";
//! let result = RunResult { raw_response: Some(reply), ..RunResult::default() };
//! let classification = classify(&expected, &result);
//! assert_eq!(classification.class(), Class::Refusal);
//! assert_eq!(expected.verdict(&classification), Verdict::Fail);
//! ```

/// A table of `data/`, as `build.rs` wrote it.
macro_rules! table {
    ($name:literal) => {
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json")))
            .expect(concat!("a test reads the table `", $name, "`"))
    };
}

mod accepted;
mod assertion;
mod check;
mod classify;
pub mod command;
mod compile;
mod difference;
pub mod errors;
mod excerpt;
mod execution;
#[doc(hidden)]
pub mod internal;
pub mod json;
pub mod policy;
mod reading;
mod redact;
pub mod refusal;
mod reply;
mod rules;
mod schema;
mod unreachable;

pub use accepted::check_commands;
pub use check::sql_dialects;
pub use classify::classify;
pub use compile::{Compiler, Expectation, default_matcher};
pub use difference::holds_all;
pub use redact::redacted;
pub use rules::Rules;
pub use unreachable::check_thresholds;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
