//! Calls of a run, carried out by workers on other machines, through NATS `JetStream`.
//!
//! The run stays the only one that decides. [`Coordinator`] hands calls over and brings results back; [`Worker`] takes
//! calls, makes them, and hands results back. Both are in streams until they are done with: a call until its result is in the
//! stream of results, a result until its case is on the disk. Whoever dies, the rest goes on from there.

mod coordinator;
mod doctor;
mod jetstream;
mod link;
mod names;
mod objects;
mod setup;
mod wire;
mod worker;

pub use coordinator::{Coordinator, Opening};
pub use doctor::{Check, Finding, check, workers};
pub use link::{Access, Link, LinkError};
pub use names::{BadPrefix, Names};
pub use setup::Setup;
pub use wire::{
    Definition, OfferKind, OfferNote, Refusal, RunNote, SeatUse, VERSION, WorkerNote, offer_digest,
    read,
};
pub use worker::{Opened, Tool, Worker, WorkerConfig, Workshop};
