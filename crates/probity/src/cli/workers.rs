//! What has to do with workers on other machines.

use std::path::PathBuf;

use clap::Args;

/// How to get to a NATS server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NatsArgs {
    /// What subjects and streams on the server begin with [default: probity]
    #[arg(long = "nats-prefix", value_name = "PREFIX", help_heading = "Workers")]
    pub(crate) prefix: Option<String>,

    /// A credentials file of NATS [default: the file that `NATS_CREDS` names]
    #[arg(long = "nats-creds", value_name = "FILE", help_heading = "Workers")]
    pub(crate) creds: Option<PathBuf>,

    /// A file with the seed of an nkey [default: the seed in `NATS_NKEY`]
    #[arg(long = "nats-nkey", value_name = "FILE", help_heading = "Workers")]
    pub(crate) nkey: Option<PathBuf>,

    /// Trust servers with certificates of these authorities
    #[arg(long = "nats-ca", value_name = "FILE", help_heading = "Workers")]
    pub(crate) ca: Option<PathBuf>,

    /// A certificate that says who we are
    #[arg(long = "nats-cert", value_name = "FILE", requires = "key", help_heading = "Workers")]
    pub(crate) cert: Option<PathBuf>,

    /// The key of that certificate
    #[arg(long = "nats-key", value_name = "FILE", requires = "cert", help_heading = "Workers")]
    pub(crate) key: Option<PathBuf>,
}

/// How a run has its calls made by workers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HandOverArgs {
    /// Let workers make the calls, through this NATS server
    #[arg(long, value_name = "URL", conflicts_with = "replay", help_heading = "Workers")]
    pub(crate) workers: Option<String>,

    /// Give a call to another worker when the first was silent for so long [default: 30s]
    #[arg(long, value_name = "DURATION", requires = "workers", help_heading = "Workers")]
    pub(crate) ack_wait: Option<String>,

    /// Give a call up when it was given to workers so often [default: 4]
    #[arg(
        long, value_name = "N", requires = "workers", help_heading = "Workers",
        value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    pub(crate) max_deliver: Option<u32>,

    /// Keep calls and results on so many servers of a cluster [default: 1]
    #[arg(
        long, value_name = "N", requires = "workers", help_heading = "Workers",
        value_parser = clap::value_parser!(u8).range(1..=5)
    )]
    pub(crate) nats_replicas: Option<u8>,

    #[command(flatten)]
    pub(crate) nats: NatsArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The NATS server
    #[arg(long, value_name = "URL")]
    pub(crate) connect: String,

    /// Only these backends, separated by commas [default: all that can be asked from here]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) serve: Vec<String>,

    /// Work for runs of this suite alone: its file, or the name of its file if that is not here
    #[arg(long, value_name = "SUITE")]
    pub(crate) suite: Option<PathBuf>,

    /// Calls that are made at the same time
    #[arg(
        short = 'j', long = "max-concurrency", value_name = "N", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) slots: u32,

    /// What the worker is called in records [default: the host's name and a number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Read variables from this file instead of .env
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) nats: NatsArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkersArgs {
    /// The NATS server
    #[arg(long, value_name = "URL")]
    pub(crate) connect: String,

    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,

    /// Read variables from this file instead of .env
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) nats: NatsArgs,
}
