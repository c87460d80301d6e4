//! Runs cases against backends.
//!
//! One loop owns the state of a run: who is in flight, how fast each backend may be
//! asked, what is left of the budget, which backend keeps failing. Everything that
//! takes time runs in tasks that report to it. What happens comes out as one stream of
//! events, and nothing here prints or stores anything.

mod apart;
pub mod backend;
mod budget;
pub mod calibrate;
pub mod callable;
pub mod carrier;
pub mod clock;
mod consent;
pub mod decide;
pub mod engine;
pub mod events;
mod examples;
pub mod filter;
mod gated;
mod grade;
mod interview;
mod kind;
mod loading;
mod pace;
pub mod plan;
pub mod prices;
pub mod process;
pub mod recording;
pub mod redact;
pub mod rescore;
mod retry;
pub mod sandbox;
pub mod scorer;
pub mod scripts;
#[cfg(all(feature = "simulated", not(test)))]
pub mod simulated;
pub mod source;
mod tracker;
mod worker;
