//! Runs whose calls are made by workers, through a real NATS server.
#![cfg(feature = "workers")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod asking;
mod cluster;
mod deploy;
mod kills;
mod lab;
#[expect(dead_code, reason = "it is made for other tests as well")]
#[path = "../it/project.rs"]
mod project;
mod refusals;
mod security;
