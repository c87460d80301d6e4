//! Executions in real sandboxes.

mod common;
mod effects;
mod session;
mod hostile;
mod lasting;
