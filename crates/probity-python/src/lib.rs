//! Probity as a module of Python, the native part: `python/probity` is what people import.
//!
//! Functions here release the interpreter while they work. What they take and give are plain values of Python.

#![cfg(feature = "extension")]

mod callables;
mod checks;
mod classify;
mod command_line;
mod datasets;
mod metrics;
mod parallel;
mod rows;
mod rules;
mod running;
mod stored;
mod tables;
mod values;

/// The native part of the package `probity`.
#[pyo3::pymodule]
mod _probity {
    #[pymodule_export]
    use crate::{
        checks::{
            check_command, check_error, check_json, check_policy, check_refusal, compare_commands,
            extract_command,
        },
        classify::{Results, Stream, classify_many, classify_one, classify_stream, reason_of},
        command_line::{main, set_keeper},
        datasets::load_cases,
        metrics::{
            bleu, choice, chrf, corpus_bleu, corpus_chrf, edit_similarity, normalize, numbers,
            rouge_l, rouge_n, token_f1,
        },
        rules::Rules,
        running::{Running, start},
        stored::{StoredRun, list_runs, load_run},
        values::ProbityError,
    };
}
