//! What holds for every input of those who read foreign bytes.
//!
//! A target takes any bytes and panics if something does not hold: a problem without a place, a span outside of its
//! text, another answer the second time, a file that was written and cannot be read back. `fuzz/` looks for such bytes with a
//! nightly compiler; a test here gives the corpus of `fuzz/corpus` to the same functions, with any compiler.

#![expect(clippy::missing_panics_doc, reason = "that is what they are for")]

mod configured;
mod foreign;
mod input;
mod kept;
mod received;
mod replied;
mod run;

pub use configured::{dataset, expression, rules, settings, skill, suite, world};
pub use foreign::{gguf, import, results};
pub use kept::{baseline, ledger, recording, store, stored, summary};
pub use received::{body, error, gzip, otlp, stream, wire};
pub use replied::{json, judge, refusal, scored, shell, text};
pub use run::{grade, schema, script, template};

/// Reads any bytes, and panics if something does not hold.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called, also by the fuzzer and in `fuzz/corpus`.
    pub name: &'static str,
    /// The function.
    pub read: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident)*) => {
        /// All of them, by name.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), read: $name }),*];
    };
}

targets! {
    baseline
    body
    dataset
    error
    expression
    gguf
    grade
    gzip
    import
    json
    judge
    ledger
    otlp
    recording
    refusal
    results
    rules
    schema
    scored
    script
    settings
    shell
    skill
    store
    stored
    stream
    suite
    summary
    template
    text
    wire
    world
}
