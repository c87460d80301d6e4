//! Whole suites, from reading them to the records of their cases, against a server that plays the model.

#![expect(clippy::unwrap_used, reason = "what is not as expected fails the test")]

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
