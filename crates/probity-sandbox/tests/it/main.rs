//! Executions in real sandboxes.

mod common;
mod effects;
mod hostile;
mod lasting;
