//! The command line of `probity init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::commands::{BackendChoice, Size};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct InitArgs {
    /// Where to write [default: here; with --suite a folder of the suite's name]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Write these built-in suites instead of a starter, separated by commas
    ///
    /// Each of several suites gets its own folder.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) suite: Vec<String>,

    /// List the built-in suites: what each measures, and how large it is
    #[arg(
        long,
        conflicts_with_all = ["folder", "suite", "backend", "size", "seed", "force", "ci", "editor"]
    )]
    pub(crate) list: bool,

    /// Print the list as JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,

    /// The backend to ask: ollama:llama3.2, openai:MODEL@http://127.0.0.1:8080/v1, claude:haiku
    ///
    /// Replaces `[backends.local]` of the suite. docs/backends.md describes the kinds; an unknown
    /// kind is an error that lists all of them. Keys are read from the environment and never
    /// written. Without it, what is found on this machine is offered on a terminal, and listed
    /// elsewhere.
    #[arg(long, value_name = "KIND:MODEL[@URL]")]
    pub(crate) backend: Option<BackendChoice>,

    /// Do not look for local servers, keys and programs
    #[arg(long, conflicts_with = "list")]
    pub(crate) no_detect: bool,

    /// Also write a workflow that runs the suite for each change, at the top of the repository
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub(crate) ci: Option<CiArg>,

    /// Also write the schema of suite files, so that editors check and complete the suite
    #[arg(long)]
    pub(crate) editor: bool,

    /// Characters of each prompt of `long-context`, from 2k to 4m [default: 32k]
    #[arg(long, value_name = "N")]
    pub(crate) size: Option<Size>,

    /// Seed for the order of the text in `long-context` [default: 42]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CiArg {
    /// .github/workflows/probity.yml
    Github,
    /// .gitlab-ci.yml
    Gitlab,
}
