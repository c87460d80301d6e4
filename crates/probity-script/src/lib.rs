//! JavaScript of users, run in process: a pure function of its arguments, with bounds.
//!
//! Scripts have no input or output, no clock, no random numbers, no packages. What one run does
//! cannot be noticed by the next. Whatever a script does costs at most its [`Limits`], and ends in
//! a value or in a [`ScriptError`]. Only what the engine does not interrupt goes on for longer, on a
//! thread that nobody waits for.

mod engine;
mod error;
mod exports;
mod quick;
mod script;
mod worker;

pub use engine::{Limits, run};
pub use error::{ScriptError, ScriptProblem};
pub use script::{Script, is_required_file, required};
