//! Whole suites, from reading them to the records of their cases, against a server that plays the model.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method alone would be of one lifetime, and not of any"
)]

mod agents;
mod backends;
mod budgets;
mod conversations;
mod functions;
mod judges;
mod plans;
mod programs;
mod project;
mod prompts;
mod rescoring;
mod skills;
