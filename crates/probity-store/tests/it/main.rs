//! Stores, from outside.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod calls;
mod common;
mod formats;
mod kept;
mod people;
mod tags;
