//! Runs a command in a world of its own and says what it did there.
//!
//! A [`World`] is data: files, users, variables, processes. [`world::Prepared`] is such a world as a tree on
//! the disk, made once and never written to again. Each execution sees a copy of it that is thrown away.

pub mod execution;
pub mod world;

pub use execution::{Command, Execution, Limits};
pub use world::World;
