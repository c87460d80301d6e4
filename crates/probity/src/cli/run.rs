//! The commands that run suites and look at what was run.

use std::path::PathBuf;

use clap::{
    Args, Subcommand,
    builder::{OsStringValueParser, TypedValueParser},
};
use probity_load::suite::usual_file;

use super::report::{DecidingArgs, GatingArgs};

/// The suite of those who name none.
pub(super) const UNNAMED: &str = "";

/// Reads the name of a suite file, or finds the usual one.
pub(super) fn suite_file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|name| match name == UNNAMED {
        true => usual_file().to_owned(),
        false => PathBuf::from(name),
    })
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RunArgs {
    /// The suite file, or promptfoo's configuration [default: probity.toml, else probity.yaml]
    #[arg(
        value_name = "SUITE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file()
    )]
    pub(crate) suite: PathBuf,

    /// Only these runners of the suite
    #[arg(value_name = "RUNNER")]
    pub(crate) runners: Vec<String>,

    /// Only these backends of the suite, separated by commas
    #[arg(long = "backend", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) backends: Vec<String>,

    /// Only these prompt variants, separated by commas
    #[arg(long = "variant", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) variants: Vec<String>,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    #[command(flatten)]
    pub(crate) selection: SelectionArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[cfg(feature = "workers")]
    #[command(flatten)]
    pub(crate) hand_over: super::workers::HandOverArgs,

    /// Continue a run that did not finish [default: the latest]
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest", help_heading = "Resuming")]
    pub(crate) resume: Option<String>,

    /// The same, and retry the cases that ended in an error
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "latest",
        conflicts_with = "resume",
        help_heading = "Resuming"
    )]
    pub(crate) retry_errors: Option<String>,

    /// Write every answer to a file for `--replay` and for backends of kind `replay`
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) record: Option<PathBuf>,

    /// Take all answers from a recording, and call no backend
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    pub(crate) replay: Option<PathBuf>,

    /// Reuse answers of earlier runs to identical requests
    #[arg(long, overrides_with = "no_cache", help_heading = "Answers")]
    pub(crate) cache: bool,

    /// Do not use the cache
    #[arg(long, help_heading = "Answers")]
    pub(crate) no_cache: bool,

    /// Ask for new answers to be judged, even if earlier ones are cached
    #[arg(long, help_heading = "Answers")]
    pub(crate) regenerate: bool,

    /// Use this model for the backends, instead of the suite's
    #[arg(long, value_name = "MODEL", help_heading = "Models and judges")]
    pub(crate) model: Option<String>,

    /// Use this model for the judge, instead of the suite's
    #[arg(long, value_name = "MODEL", help_heading = "Models and judges")]
    pub(crate) judge_model: Option<String>,

    /// Judge each pair of answers in both orders, and report how far the two agree
    #[arg(long, help_heading = "Models and judges")]
    pub(crate) swap: bool,

    /// Ignore unknown keys in the suite and its datasets, with a warning
    #[arg(long)]
    pub(crate) allow_unknown: bool,

    /// Run all runners of the suite at the same time
    #[arg(long)]
    pub(crate) parallel: bool,

    /// Show what would be asked and what it would cost, but ask nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Run again whenever a file changes: the runners that it is part of, with answers from the cache
    #[arg(long, conflicts_with_all = ["resume", "retry_errors", "dry_run", "porcelain"])]
    pub(crate) watch: bool,

    /// Write down which files were read
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) inputs: Option<PathBuf>,

    /// Only these runners, among those that are chosen
    #[arg(long = "touched", value_name = "RUNNER", hide = true)]
    pub(crate) touched: Vec<String>,

    /// With --dry-run, write every request that would be sent, one JSON object a line
    #[arg(long, value_name = "FILE", requires = "dry_run", help_heading = "Output")]
    pub(crate) requests: Option<PathBuf>,

    /// Print KEY=VALUE lines for scripts to standard output
    #[arg(long, help_heading = "Output")]
    pub(crate) porcelain: bool,

    /// Write a report; the suffix selects the format. May be given several times
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub(crate) outputs: Vec<PathBuf>,

    /// Write all events to a file, one JSON object per line
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) events: Option<PathBuf>,

    /// Show neither progress nor summary
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) deciding: DecidingArgs,

    /// Compare the run with a baseline written by `probity bless`
    #[arg(long, value_name = "NAME", help_heading = "Gates")]
    pub(crate) baseline: Option<String>,

    /// Compare the cases in common with the baseline, even if the datasets differ
    #[arg(long, requires = "baseline", help_heading = "Gates")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

/// How a configuration of another tool is taken for a suite.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ForeignArgs {
    /// Take what can be carried over of another tool's configuration, and leave out the rest
    #[arg(long, help_heading = "Importing")]
    pub(crate) lossy: bool,

    /// Let another tool's configuration name files outside its folder
    #[arg(long, help_heading = "Importing")]
    pub(crate) allow_outside: bool,
}

/// A suite that only its rules are taken of.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RulesArgs {
    /// Suite file with policies and other rules of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
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

    /// Only cases of these categories, separated by commas (`\,` is a comma in a name)
    #[arg(long, value_name = "NAMES")]
    pub(crate) category: Vec<String>,

    /// Only cases with one of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) tag: Vec<String>,

    /// Only cases with these ids, separated by commas; `*` matches any text
    #[arg(long = "case", value_name = "IDS", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,

    /// Only cases that failed in the run RUN
    #[arg(long, value_name = "RUN")]
    pub(crate) failing: Option<String>,

    /// Only cases that ended in an error in the run RUN
    #[arg(long, value_name = "RUN")]
    pub(crate) errors: Option<String>,

    /// A random sample of N cases
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: Option<u64>,

    /// Seed for samples, for the order of cases (--alpha) and of answers (judges)
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,

    /// Ask each case N times
    #[arg(long, visible_alias = "runs", alias = "epochs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repeat: Option<u32>,

    /// Only cases about these skills, separated by commas, and cases that expect no skill
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) skill: Vec<String>,

    /// Only cases of these groups of similar skills, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) group: Vec<String>,

    /// Only part K of N of the cases, such as 2/5
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<String>,
}

/// How fast, how long, how much.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Maximum number of calls in flight over all backends
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

    /// Timeout of one call, such as 30s
    #[arg(long, value_name = "TIME")]
    pub(crate) attempt_timeout: Option<String>,

    /// Timeout of a case with its retries, such as 5m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Do not give up a backend after consecutive cases with the same error
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

    /// Print one JSON object per line
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
    /// Remove all but the latest runs, and free the disk space
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
    /// The run: its id, a prefix or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// The case to show in full
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
    /// The suite file [default: probity.toml, else probity.yaml]
    #[arg(
        value_name = "SUITE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file()
    )]
    pub(crate) suite: PathBuf,

    /// Only these backends, separated by commas
    #[arg(long = "backend", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) backends: Vec<String>,

    /// Make one real call to each backend
    #[arg(long)]
    pub(crate) call: bool,

    /// Check this NATS server instead, as a run with workers would use it
    #[cfg(feature = "workers")]
    #[arg(long, value_name = "URL", conflicts_with_all = ["backends", "call"], help_heading = "Workers")]
    pub(crate) workers: Option<String>,

    #[cfg(feature = "workers")]
    #[command(flatten)]
    pub(crate) nats: super::workers::NatsArgs,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Stores (their latest run, or STORE#RUN), or runs of the target store
    #[arg(required = true, num_args = 1.., value_name = "STORE|RUN")]
    pub(crate) sources: Vec<String>,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting, its value and where it comes from
    #[command(after_help = "\
Example:
  PROBITY_RETRY_MAX_RETRIES=5 probity config show")]
    Show {
        /// The suite file [default: probity.toml, else probity.yaml]
        #[arg(
            value_name = "SUITE", default_value = UNNAMED, hide_default_value = true,
            value_parser = suite_file()
        )]
        suite: PathBuf,
        #[command(flatten)]
        foreign: ForeignArgs,
        #[command(flatten)]
        limits: Box<LimitArgs>,
        #[command(flatten)]
        place: StoreArgs,
    },
    /// Print all defaults with comments, as a start for a suite file
    #[command(after_help = "\
Example:
  probity config default > probity.toml")]
    Default,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Show how many answers are cached, and their size
    #[command(after_help = "\
Example:
  probity cache stats")]
    Stats {
        #[command(flatten)]
        place: CacheArgs,
    },
    /// Remove cached answers: all of them, or those of one kind
    #[command(after_help = "\
Example:
  probity cache clear --judgements    # the next run judges the same answers again")]
    Clear {
        /// Only answers that were cached to be judged
        #[arg(long)]
        generations: bool,
        /// Only the answers of judges
        #[arg(long)]
        judgements: bool,
        /// Only embeddings of texts
        #[arg(long)]
        embeddings: bool,
        #[command(flatten)]
        place: CacheArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// The suite file that says where the cache is [default: probity.toml, else probity.yaml]
    #[arg(
        value_name = "SUITE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file()
    )]
    pub(crate) suite: PathBuf,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,
}
