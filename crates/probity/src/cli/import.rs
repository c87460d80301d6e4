//! `probity import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use probity_import::Origin;

use super::run::StoreArgs;

#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ImportArgs {
    /// The file to import, or a folder: with a promptfooconfig, tasks of lm-eval, or a registry of
    /// OpenAI evals; results of a tool become a run
    pub(crate) path: PathBuf,
    /// The folder to write to; default: the folder of the file
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The tool that the configuration comes from; default: found by what is in it, as are results
    #[arg(long, value_enum, value_name = "TOOL")]
    pub(crate) from: Option<OriginArg>,
    /// Succeed even if not everything can be carried over
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Print what was written and what was not carried over as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read files outside the folder of the configuration, too
    #[arg(long)]
    pub(crate) allow_outside: bool,
    /// The documents of an lm-eval task: a file, or a folder with TASK/SPLIT.jsonl; default: the
    /// folder `documents` beside the file
    #[arg(long, value_name = "PATH")]
    pub(crate) documents: Option<PathBuf>,
    /// Overwrite existing files; store results again that are stored already
    #[arg(long)]
    pub(crate) force: bool,

    /// With results: the suite whose cases they are about, found by what was asked
    ///
    /// The run takes over the names of its runners, backends and cases, so that it can be judged
    /// again by the suite and compared with runs of it.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) suite: Option<PathBuf>,
    /// With results: the score that says right or wrong [default: the first that is only ever 0 or 1]
    #[arg(long, value_name = "SCORE", help_heading = "Results")]
    pub(crate) decide_by: Option<String>,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OriginArg {
    /// promptfoo: a configuration, or tests in YAML, JSON, JSONL or CSV
    Promptfoo,
    /// lm-eval: a task or a group in YAML, or a folder of them
    LmEval,
    /// OpenAI evals: a file of definitions in a registry, or the registry
    OpenaiEvals,
    /// caro: its YAML, TOML and JSON cases, all four generations
    Caro,
    /// FailProof LLM: JSONL suites
    Failproof,
    /// dotnet-artisan: activation and confusion JSONL, rubric YAML
    Artisan,
    /// DeepEval: goldens and test cases in JSON, JSONL or CSV
    #[value(name = "deepeval")]
    DeepEval,
    /// CSV, JSONL, JSON or YAML with a prompt and an expected answer in each record, also Inspect's samples
    #[value(alias = "csv")]
    Plain,
}

impl From<OriginArg> for Origin {
    fn from(origin: OriginArg) -> Self {
        match origin {
            OriginArg::Promptfoo => Self::Promptfoo,
            OriginArg::LmEval => Self::LmEval,
            OriginArg::OpenaiEvals => Self::OpenaiEvals,
            OriginArg::Caro => Self::Caro,
            OriginArg::Failproof => Self::Failproof,
            OriginArg::Artisan => Self::Artisan,
            OriginArg::DeepEval => Self::DeepEval,
            OriginArg::Plain => Self::Plain,
        }
    }
}
