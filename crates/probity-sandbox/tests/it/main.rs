//! Executions in real sandboxes.

#![cfg(target_os = "linux")]

mod common;
mod effects;
mod hostile;
mod lasting;
mod openings;
mod outside;
mod session;
mod trees;
