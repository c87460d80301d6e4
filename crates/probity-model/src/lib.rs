//! Models on this machine: what their files say, where these are kept, how they are got, and how they are
//! asked.
//!
//! Nothing here knows cases or runs. Only `engine::llama` touches the engine, and only with the feature
//! `engine`; everything else works without it.

pub mod catalogue;
pub mod chat;
pub mod engine;
pub mod gguf;
pub mod grammar;
pub mod models;
pub mod pull;

mod index;
mod wheel;
