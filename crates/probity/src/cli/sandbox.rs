//! The command line of `probity sandbox`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SandboxCommand>,

    /// The command, a text for bash
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// A program and its arguments, without a shell
    #[arg(last = true, value_name = "ARGV", conflicts_with = "text")]
    pub(crate) argv: Vec<String>,

    /// The world: a name that `probity sandbox worlds` lists, or a file in TOML
    #[arg(long, value_name = "WORLD", default_value = "home")]
    pub(crate) world: String,

    /// How long it may take, such as 500ms or 1m
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: String,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Check whether this machine can run commands safely, and what is missing
    #[command(after_help = "\
Example:
  probity sandbox doctor

Exit codes: 0 commands can be executed, 3 they cannot")]
    Doctor,
    /// List the worlds that commands can be executed in
    #[command(after_help = "\
Example:
  probity sandbox worlds")]
    Worlds,
}
