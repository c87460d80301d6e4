//! The commands that judge runs and show them in other forms.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::TypedValueParser as _};

use super::run::{ForeignArgs, StoreArgs, UNNAMED, suite_file};
use crate::exit::Exit;

/// What a gate that fails does.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GatingArgs {
    /// Count errors as failed
    #[arg(long)]
    pub(crate) errors_as_failures: bool,

    /// The exit code when a gate fails [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) fail_exit_code: Option<u8>,

    /// Exit with 0 even when a gate fails
    #[arg(long, conflicts_with = "fail_exit_code")]
    pub(crate) informational: bool,
}

impl GatingArgs {
    /// How to end when a gate failed.
    pub(crate) fn failed(&self) -> Exit {
        match (self.informational, self.fail_exit_code) {
            (true, _) => Exit::Success,
            (false, code) => Exit::Failed(code.unwrap_or(1)),
        }
    }
}

/// When a run may end early.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub(crate) struct DecidingArgs {
    /// Stop as soon as the remaining cases cannot change what the gates say
    #[arg(long)]
    pub(crate) stop_when_decided: bool,

    /// Stop once the gates are decided with error probability at most A, such as 0.05
    ///
    /// Cases are asked in a random order, so that the finished ones are a random sample. The
    /// probability holds whenever the run stops.
    #[arg(long, value_name = "A")]
    pub(crate) alpha: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run: its id, a prefix or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Write a report; the suffix selects the format. May be given several times
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RescoreArgs {
    /// The run: its id, a prefix or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// The suite file, with its datasets, to judge by [default: probity.toml, else probity.yaml]
    #[arg(
        long, value_name = "FILE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file()
    )]
    pub(crate) suite: PathBuf,

    /// Judge each result by the criteria that the run has of its case, without a suite
    ///
    /// Results of other tools have criteria where all that the tool checked can be checked here.
    /// Those that have none keep their verdict.
    #[arg(long, conflicts_with = "suite")]
    pub(crate) stored: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    /// Write a report; the suffix selects the format. May be given several times
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BlessArgs {
    /// The run: its id, a prefix or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Name of the baseline; a path if it has a `/` or ends in .json
    #[arg(long = "as", value_name = "NAME", default_value = "main")]
    pub(crate) name: String,

    /// Also bless an incomplete run, or a run of only some cases
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// The run: its id, a prefix or the short form of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,

    /// Use the current gates of this suite file, not those of the run
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    /// Compare the run with a baseline
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Compare the cases in common, even of different datasets or incomplete runs
    #[arg(long, requires = "baseline")]
    pub(crate) force: bool,

    /// Write a report; the suffix selects the format. May be given several times
    #[arg(short, long = "output", value_name = "FILE")]
    pub(crate) outputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) gating: GatingArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Runs; each is compared with the first. RUN@BACKEND, RUN@VARIANT or RUN@VARIANT@BACKEND for a
    /// part of one
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub(crate) format: CompareFormat,

    /// Write the comparison to a file; the suffix selects the format (.txt, .md, .json, .html)
    #[arg(short, long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) output: Option<PathBuf>,

    /// Difference of rates to detect, for the estimate of how many cases that takes
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub(crate) difference: f64,

    /// Compare the cases in common, even of different datasets or incomplete runs
    #[arg(long)]
    pub(crate) force: bool,

    /// Ask this backend which of two answers is better, for each case that both runs answered; each
    /// pair is judged in both orders
    #[arg(long, value_name = "NAME", help_heading = "Judging answers")]
    pub(crate) judge: Option<String>,

    /// Use this model for the judge, instead of the suite's
    #[arg(long, value_name = "MODEL", requires = "judge", help_heading = "Judging answers")]
    pub(crate) judge_model: Option<String>,

    /// What makes an answer better
    #[arg(
        long,
        value_name = "TEXT",
        requires = "judge",
        help_heading = "Judging answers",
        default_value = "It does what the task asks for: it is right, complete and to the point."
    )]
    pub(crate) criteria: String,

    /// The suite that describes the judge [default: probity.toml, else probity.yaml]
    #[arg(
        long, value_name = "FILE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file(), requires = "judge", help_heading = "Judging answers"
    )]
    pub(crate) suite: PathBuf,

    /// Neither use judgements of earlier comparisons nor keep new ones
    #[arg(long, requires = "judge", help_heading = "Judging answers")]
    pub(crate) no_cache: bool,

    #[command(flatten)]
    pub(crate) foreign: ForeignArgs,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CompareFormat {
    /// For a terminal
    Text,
    /// Markdown, for a pull request
    Md,
    /// For programs
    Json,
    /// One page for a browser
    Html,
}

#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// The suite, by its name or its file [default: probity.toml, else probity.yaml]
    #[arg(
        value_name = "SUITE", default_value = UNNAMED, hide_default_value = true,
        value_parser = suite_file().map(|it| it.display().to_string())
    )]
    pub(crate) suite: String,

    /// Only this runner
    #[arg(long, value_name = "NAME")]
    pub(crate) runner: Option<String>,

    /// Only this backend
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,

    /// Only this prompt variant
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// Only the latest N runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: StoreArgs,
}
