//! JavaScript of users, run in process: a pure function of its arguments, with bounds.
//!
//! Scripts have no input or output, no clock, no random numbers, no packages. What one run does
//! cannot be noticed by the next. Whatever a script does costs at most its [`Limits`], and ends in
//! a value or in a [`ScriptError`].

mod engine;
mod error;
mod exports;
mod script;

pub use engine::{Limits, run};
pub use error::{ScriptError, ScriptProblem};
pub use script::{Script, is_required_file, required};
