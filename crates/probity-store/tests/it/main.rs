//! Stores, from outside.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod calls;
mod common;
mod counts;
mod damage;
mod formats;
mod joined;
mod kept;
mod kept_answers;
mod pages;
mod people;
mod tags;
