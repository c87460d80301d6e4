//! Reads shell commands for what they mean.
//!
//! A text is parsed once into a [`Script`]; three judgements share its tree: whether two commands do the same
//! (`equivalence`), what a command would destroy (`safety`), and whether it is portable (`posix`). What a judgement
//! knows about a utility stands in data files, not in code.
//!
//! Everything here is pure: no file is read, no command is run, and the same text gives the same answer everywhere.

pub mod argv;
mod awk;
pub mod canonical;
pub mod equivalence;
pub mod extract;
pub mod field;
pub mod parse;
pub mod posix;
pub mod safety;
mod sed;
pub mod tree;
pub mod utility;

pub use parse::{ParseError, Script};
pub use tree::Span;
