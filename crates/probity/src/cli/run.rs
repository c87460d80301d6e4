//! The commands that run suites and look at what was run.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::report::{DecidingArgs, GatingArgs};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunArgs {
    /// The suite file
    #[arg(value_name = "SUITE", default_value = "probity.toml")]
    pub(crate) suite: PathBuf,

    /// Only these runners of the suite
    #[arg(value_name = "RUNNER")]
    pub(crate) runners: Vec<String>,

    /// Only these backends of the suite, separated by commas
    #[arg(long = "backend", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) backends: Vec<String>,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    /// Go on with a run that did not come to its end [default: the latest]
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", help_heading = "Resuming")]
    pub(crate) resume: Option<String>,

    /// The same, and ask the cases again that ended in an error
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "latest",
        conflicts_with = "resume",
        help_heading = "Resuming"
    )]
    pub(crate) retry_errors: Option<String>,

    /// Write every answer into a file that `--replay` and backends of kind `replay` take
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) record: Option<PathBuf>,

    /// Take all answers from a recording, and ask no backend
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) replay: Option<PathBuf>,

    /// Take answers to the very same requests from earlier runs
    #[arg(long, overrides_with = "no_cache", help_heading = "Answers")]
    pub(crate) cache: bool,

    /// Ask every case, also those with an answer from an earlier run
    #[arg(long, help_heading = "Answers")]
    pub(crate) no_cache: bool,

    /// Ask for answers that are judged anew, also where earlier ones are kept
    #[arg(long, help_heading = "Answers")]
    pub(crate) regenerate: bool,

    /// Ask the backends for this model instead of the suite's
    #[arg(long, value_name = "MODEL", help_heading = "Models and judges")]
    pub(crate) model: Option<String>,

    /// Ask the judge for this model instead of the suite's
    #[arg(long, value_name = "MODEL", help_heading = "Models and judges")]
    pub(crate) judge_model: Option<String>,

    /// Have each pair of answers judged in both orders, and say how far the two agree
    #[arg(long, help_heading = "Models and judges")]
    pub(crate) swap: bool,

    /// Pass over names in the suite and its datasets that nothing reads
    #[arg(long)]
    pub(crate) allow_unknown: bool,

    /// Run all runners of the suite at the same time
    #[arg(long)]
    pub(crate) parallel: bool,

    /// Say what would be asked and what it would cost, and ask nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// With --dry-run, write every request that would be sent, one JSON object a line
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = "Output")]
    pub(crate) requests: Option<PathBuf>,

    /// Print KEY=VALUE lines for scripts to standard output
    #[arg(long, help_heading = "Output")]
    pub(crate) porcelain: bool,

    /// Write a report; the ending of the name says which. May be given several times
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) outputs: Vec<PathBuf>,

    /// Write everything that happens into a file, one JSON object a line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) events: Option<PathBuf>,

    /// Show neither progress nor summary
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) deciding: DecidingArgs,

    /// Hold the run against a baseline that `probity bless` made
    #[arg(long, value_name = "NAME", help_heading = "Gates")]
    pub(crate) baseline: Option<String>,

    /// Compare with the baseline what both have, also of unlike datasets
    #[arg(long, requires = "baseline", help_heading = "Gates")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

/// Which cases are asked.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Choosing cases")]
pub(crate) struct SelectionArgs {
    /// First N cases (a stratified random sample for skill runners)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,

    /// Only cases whose id or prompt matches REGEX
    #[arg(long, value_name = "REGEX")]
    pub(crate) filter: Option<String>,

    /// Those of these categories, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) category: Vec<String>,

    /// Those with one of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) tag: Vec<String>,

    /// Those with one of these ids, separated by commas; `*` stands for anything
    #[arg(long = "case", value_name = "IDS", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,

    /// Those that failed in a run
    #[arg(long, value_name = "RUN")]
    pub(crate) failing: Option<String>,

    /// Those that ended in an error in a run
    #[arg(long, value_name = "RUN")]
    pub(crate) errors: Option<String>,

    /// A random sample of N cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,

    /// Choose other cases for --sample, and show answers to judges in another order
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Ask each case N times
    #[arg(long, visible_alias = "runs", alias = "epochs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: Option<u32>,

    /// Those about these skills, separated by commas; cases that expect no skill stay
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) skill: Vec<String>,

    /// Those of these groups of look-alike skills, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) group: Vec<String>,

    /// One of several parts that together are everything, such as 2/5
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<String>,
}

/// How fast, how long, how much.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Calls in flight over all backends
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_concurrency: Option<u64>,

    /// Stop after this many calls
    #[arg(long, value_name = "N")]
    pub(crate) max_calls: Option<u64>,

    /// Stop after this many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<f64>,

    /// Stop after this many tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// Retries after the first attempt, for transient errors
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u64>,

    /// Limit of one call, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) attempt_timeout: Option<String>,

    /// Limit of a case with its retries, such as 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Do not give up a backend that keeps failing the same way
    #[arg(long)]
    pub(crate) no_fail_fast: bool,
}

/// Where runs are kept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// The store of runs [default: .probity/probity.db]
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,

    /// Read variables from this file instead of .env
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,

    /// Only the latest N
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Remove runs
    #[command(after_help = "\
Example:
  probity runs rm k3f9x2")]
    Rm {
        /// The runs
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        #[command(flatten)]
        place: StoreArgs,
    },
    /// Remove all but the latest runs, and give the space back
    #[command(after_help = "\
Example:
  probity runs gc --keep 50")]
    Gc {
        /// How many runs to keep
        #[arg(long, value_name = "N", default_value_t = 100)]
        keep: usize,
        #[command(flatten)]
        place: StoreArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its id, the beginning or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// The case: everything that is known of it
    #[arg(value_name = "CASE")]
    pub(crate) case: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The suite file
    #[arg(value_name = "SUITE", default_value = "probity.toml")]
    pub(crate) suite: PathBuf,

    /// Only these backends, separated by commas
    #[arg(long = "backend", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) backends: Vec<String>,

    /// Make one real call to each backend
    #[arg(long)]
    pub(crate) call: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Stores whose latest run is taken, STORE#RUN for another one, or runs of the target store
    #[arg(required = true, num_args = 1.., value_name = "STORE|RUN")]
    pub(crate) sources: Vec<String>,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting, its value and where that came from
    #[command(after_help = "\
Example:
  PROBITY_RETRY_MAX_RETRIES=5 probity config show")]
    Show {
        /// The suite file
        #[arg(value_name = "SUITE", default_value = "probity.toml")]
        suite: PathBuf,
        #[command(flatten)]
        limits: Box<LimitArgs>,
        #[command(flatten)]
        place: StoreArgs,
    },
    /// Print the defaults with a comment on each, to begin a suite file with
    #[command(after_help = "\
Example:
  probity config default > probity.toml")]
    Default,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// How many answers are kept, and how large they are
    #[command(after_help = "\
Example:
  probity cache stats")]
    Stats {
        #[command(flatten)]
        place: CacheArgs,
    },
    /// Forget answers: all of them, or those of one kind
    #[command(after_help = "\
Example:
  probity cache clear --judgements    # and have the same answers judged anew")]
    Clear {
        /// Only answers that are kept to be judged
        #[arg(long)]
        generations: bool,
        /// Only what judges said
        #[arg(long)]
        judgements: bool,
        #[command(flatten)]
        place: CacheArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// The suite file that says where the cache is
    #[arg(value_name = "SUITE", default_value = "probity.toml")]
    pub(crate) suite: PathBuf,
}
