//! Suites and runs in the forms of other tools.
