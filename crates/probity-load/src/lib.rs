//! Reads what users write: datasets, suites, settings, skills, prompt templates.
//!
//! Every problem of a file is reported with its place, and all of them in one pass. This is the only
//! crate that reads users' files into the vocabulary of `probity-core`; it writes nothing but datasets.

pub mod bounded;
pub mod case;
pub mod dataset;
pub mod dotenv;
pub mod function;
mod gates;
pub mod inputs;
pub mod lines;
pub mod run_result;
pub mod settings;
pub mod skill;
pub mod suite;
pub mod template;
