//! The command line of `probity demo`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A new folder for the files of the demo [default: probity-demo, or the next free name]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Start nothing but the server of an earlier demo, until Ctrl-C [default DIR: probity-demo]
    ///
    /// The server listens where the suites in the folder expect it, so that every command of the demo
    /// can be repeated.
    #[arg(long)]
    pub(crate) serve: bool,
}
