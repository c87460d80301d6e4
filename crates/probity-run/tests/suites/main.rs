//! Whole suites, from reading them to the records of their cases, against a server that plays the model.

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
