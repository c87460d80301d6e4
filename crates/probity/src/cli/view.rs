//! The command that shows runs in a browser.

use std::net::IpAddr;

use clap::Args;

use super::run::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The port to listen on; 0 is any that is free [default: 7357, or a free one if that is taken]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,

    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,

    /// Let people say what they think of results: verdicts right or wrong, points, notes, tags
    ///
    /// It is kept in the store beside the results, and changes no figure. Without this nothing is
    /// written, except that a store of an earlier version of the program is brought to today's
    /// format, as by every command.
    #[arg(long)]
    pub(crate) allow_edit: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}
