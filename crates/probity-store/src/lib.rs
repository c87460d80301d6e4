//! Keeps runs.
