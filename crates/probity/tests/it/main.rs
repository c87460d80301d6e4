//! What a user sees: exit code, standard output, standard error, files.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod acceptance;
mod around;
mod backends;
mod baseline;
mod builtin;
mod check;
mod check_command;
mod classify;
mod cli;
mod consistency;
mod contributing;
mod dataset;
mod dialects;
mod functions;
mod gates;
mod hardship;
mod hidden;
mod init;
mod judge;
mod loading;
mod metrics;
mod pipes;
mod project;
mod replies;
mod report;
mod requests;
mod rescore;
mod results;
mod resume;
mod run;
mod schema;
mod scorers;
mod scores;
mod seed_types;
mod signals;
mod skill_changes;
mod skills;
mod suites;
mod unkind;
mod watch;
