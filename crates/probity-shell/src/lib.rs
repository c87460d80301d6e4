//! Reads shell commands for what they mean.
//!
//! A text is parsed once into a [`Script`]; three judgements share its tree: whether two commands do the same
//! (`equivalence`), what a command would destroy (`safety`), and whether it is portable (`posix`). What a judgement
//! knows about a utility stands in data files, not in code.
//!
//! | module | question |
//! | --- | --- |
//! | [`parse`] | does the text parse? |
//! | [`extract`] | which command does a model's reply offer? |
//! | [`equivalence`] | do two commands do the same? |
//! | [`safety`] | what would a command destroy, expose or hand over? |
//! | [`posix`] | does it stay inside the standard? |
//!
//! What they return implements `serde::Serialize`, in the form that `probity check command --json` prints. The hidden module
//! `internal` belongs to the program `probity`, and may change with any version.
//!
//! Everything here is pure: no file is read, no command is run, and the same text gives the same answer everywhere.
//!
//! ```
//! use probity_shell::{
//!     Script, equivalence, extract, posix,
//!     safety::{self, Level, Risk, Rules},
//! };
//!
//! let reply = "Sure! Run:\n```sh\ntar xzf site.tgz -C /\n```";
//! let found = extract::extract(reply).expect("there is a command in it");
//! assert_eq!(found.command, "tar xzf site.tgz -C /");
//!
//! let judged = safety::judge(&found.command, Rules::builtin(), Level::Moderate);
//! assert!(judged.is_unsafe);
//! let assessment = judged.assessment.expect("what parses is assessed");
//! assert_eq!(assessment.risk, Risk::High);
//! assert_eq!(assessment.findings[0].rule, "unpack-over-system");
//!
//! let script = judged.script.expect("it parses");
//! assert!(posix::check(&script, posix::Edition::Posix2024).is_compliant());
//!
//! let other = Script::parse("tar --extract --gzip --file=site.tgz -C /").expect("it parses");
//! assert_eq!(equivalence::compare(&script, &other).verdict, equivalence::Verdict::Equal);
//! ```

/// A table of `data/`, as `build.rs` wrote it.
macro_rules! table {
    ($name:literal) => {
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json")))
            .expect(concat!("a test reads the table `", $name, "`"))
    };
}

mod argv;
mod awk;
mod canonical;
pub mod equivalence;
pub mod extract;
mod field;
#[doc(hidden)]
pub mod internal;
pub mod parse;
pub mod posix;
pub mod safety;
mod sed;
mod tree;
mod utility;

pub use parse::{ParseError, Script};
pub use tree::Span;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
