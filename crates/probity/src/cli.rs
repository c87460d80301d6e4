//! The command line. The comments are the help text.

pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod report;
pub(crate) mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  probity init                                 write a suite to start from
  probity run                                  ask every case of the suite probity.toml
  probity dataset validate cases.toml          is the dataset sound?
  probity classify results.jsonl -o out.jsonl  what is each stored reply?
  probity check json --text '{\"a\": 1,}'        one detector on one text
  probity check refusal --jsonl < replies.jsonl

Exit codes: 0 all is well; 2 the command line, a configuration or a dataset is wrong; 3 a run was
given up or is degraded.";

/// Evaluate language models and the tools built on them
///
/// Probity says deterministically what each reply of a model is: a pass, a fail,
/// a refusal, the wrong format, a policy violation, an error, a crash or a timeout,
/// with the rule that decided and its evidence.
#[derive(Debug, Parser)]
#[command(name = "probity", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = ColorArg::Auto,
        value_name = "WHEN",
        hide_possible_values = true,
        display_order = 100
    )]
    pub(crate) color: ColorArg,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a suite to start from, or one of those that come with the program
    ///
    /// The starter runs as it is, without a server and without a key. Files that are there
    /// already are never overwritten without --force.
    #[command(after_help = "\
Examples:
  probity init                                 probity.toml and cases.toml, here
  probity init --list                          the built-in suites
  probity init --suite shell --backend ollama:llama3.2
  probity init --suite json,unicode evals      into evals/json and evals/unicode
  probity init --suite long-context --size 100k --backend openai:default@http://127.0.0.1:8080/v1

Exit codes: 0 everything is written, 2 it is not, and why")]
    Init(init::InitArgs),

    /// Run a suite: ask its backends every case, and record what each answer is
    ///
    /// Every finished case is on the disk before it is counted, so a run that is stopped
    /// or killed goes on with --resume. Progress goes to standard error, the summary to
    /// standard output.
    #[command(
        visible_alias = "eval",
        after_help = "\
Examples:
  probity run                                  the suite probity.toml
  probity run shell.toml --dry-run             what it would ask and cost
  probity run shell.toml --backend local -j 8 --limit 20
  probity run shell.toml --resume              go on where it stopped
  probity run shell.toml --replay answers.jsonl

Exit codes: 0 the run is whole and every gate passed; 1 a gate failed; 2 the command line, the suite
or a dataset is wrong; 3 given up or degraded (fail-fast, budget, signal, too many errors, nothing
run); 130 a second Ctrl-C"
    )]
    Run(Box<run::RunArgs>),

    /// List the runs in the store, or remove some
    #[command(
        visible_aliases = ["list", "ls"],
        after_help = "\
Examples:
  probity runs
  probity runs rm k3f9x2
  probity runs gc --keep 50"
    )]
    Runs(run::RunsArgs),

    /// Show a run, or everything that is known of one of its cases
    #[command(after_help = "\
Examples:
  probity show                 the latest run, and the cases that did not pass
  probity show k3f9x2 case-17  prompt, answer, tries, classification with its evidence")]
    Show(run::ShowArgs),

    /// Write a run as JSON, Markdown, `JUnit`, CSV or HTML
    ///
    /// The ending of a file's name says what is written. Without -o the summary is shown.
    #[command(after_help = "\
Examples:
  probity report
  probity report k3f9x2 -o result.json -o cases.jsonl")]
    Report(report::ReportArgs),

    /// Judge a run by its gates again, or hold it against a baseline
    #[command(after_help = "\
Examples:
  probity gate --baseline main
  probity gate k3f9x2 --suite probity.toml    by the gates that the suite has now

Exit codes: 0 every gate passed, 1 one failed or something got worse, 3 the run is no basis")]
    Gate(report::GateArgs),

    /// Keep how each case of a run came out, as what later runs are held against
    ///
    /// Writes a small file with a line for each case, for version control.
    #[command(after_help = "\
Examples:
  probity bless                 the latest run, as baselines/main.json
  probity bless k3f9x2 --as v2  as baselines/v2.json
  probity run --baseline v2")]
    Bless(report::BlessArgs),

    /// Put runs beside each other: rates, differences, cases that flipped
    #[command(after_help = "\
Examples:
  probity compare k3f9x2 latest
  probity compare latest@small latest@large --format md")]
    Compare(report::CompareArgs),

    /// Show how a suite has done over its runs
    #[command(after_help = "\
Examples:
  probity trend
  probity trend shell.toml --backend local -n 50")]
    Trend(report::TrendArgs),

    /// Write what a run teaches: conversations or pairs for training, or a draft of an issue
    ///
    /// Prompts are those that were sent. What ended in an error is left out.
    #[command(after_help = "\
Examples:
  probity export --as chat -o train.jsonl
  probity export k3f9x2 --as preferences > pairs.jsonl
  probity export --as issue --baseline main")]
    Export(report::ExportArgs),

    /// Say whether the backends of a suite can be asked
    ///
    /// Looks for servers and programs, their versions and what they can do. No model is
    /// asked unless --call is given.
    #[command(after_help = "\
Examples:
  probity doctor
  probity doctor shell.toml --backend claude --call

Exit codes: 0 every backend can be asked, 3 one cannot")]
    Doctor(run::DoctorArgs),

    /// Make one run of the parts that --shard K/N made
    #[command(after_help = "\
Example:
  probity run --shard 1/2 --store a.db    on one machine
  probity run --shard 2/2 --store b.db    on another
  probity merge a.db b.db                 into the usual store")]
    Merge(run::MergeArgs),

    /// Show the settings that hold, and where each comes from
    #[command(subcommand)]
    Config(run::ConfigCommand),

    /// Look at the answers that are kept for later runs, or forget them
    #[command(subcommand)]
    Cache(run::CacheCommand),

    /// Look at models that judge answers
    #[command(subcommand)]
    Judge(judge::JudgeCommand),

    /// Say what each stored run result is
    ///
    /// Reads run results, one JSON object a line, and writes the same lines with
    /// `classification`, `verdict` and `scores`. No model is asked. A result has
    /// `case_id`, `raw_response` or `error`, and the fields of its case that say when
    /// it is right (`expected_response`, `match`, `expected_format`, `schema`,
    /// `assert`, `expected_classification`). A summary goes to standard error.
    #[command(after_help = "\
Examples:
  probity classify results.jsonl -o classified.jsonl
  zcat results.jsonl.gz | probity classify - --suite probity.toml > classified.jsonl")]
    Classify(ClassifyArgs),

    /// Run one detector on a text
    ///
    /// Without --text and --jsonl the text is read from standard input. With --jsonl
    /// it streams: one JSON object in, one out, in the same order, `id` copied.
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity check refusal --text \"I'm sorry, but I can't help with that.\"
  probity check json --level repair < reply.txt
  probity check error --jsonl < errors.jsonl"
    )]
    Check(CheckCommand),

    /// Validate, count, lint, convert and import datasets
    ///
    /// A dataset is a file of cases in TOML, JSONL, JSON, YAML or CSV.
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity dataset validate cases/*.toml
  probity dataset stats cases.jsonl
  probity dataset convert cases.toml cases.jsonl
  probity dataset import --from promptfoo promptfooconfig.yaml cases.toml"
    )]
    Dataset(DatasetCommand),

    /// Print the JSON Schema of a file that Probity reads or writes
    ///
    /// Without a name it lists them. The schemas are those of draft 2020-12.
    #[command(after_help = "\
Examples:
  probity schema
  probity schema suite > suite.schema.json
  probity schema case > case.schema.json")]
    Schema {
        /// Which schema
        #[arg(value_enum)]
        name: Option<SchemaName>,
    },

    /// Print shell completions
    #[command(after_help = "\
Example:
  probity completions bash > ~/.local/share/bash-completion/completions/probity")]
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },

    /// Print the manual page
    #[command(after_help = "\
Example:
  probity man > ~/.local/share/man/man1/probity.1")]
    Man {
        /// Write a page for every command into this folder instead
        #[arg(long, value_name = "FOLDER")]
        all: Option<PathBuf>,
    },
}

/// The schemas, in the order they are listed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaName {
    /// A suite file
    Suite,
    /// A case of a dataset
    Case,
    /// A line of `show --json` and of a report that ends in .jsonl
    RunResult,
    /// A report that ends in .json
    Evaluation,
    /// A report called `suite_summary.json`
    Summary,
    /// A line of `run --events`
    Event,
    /// A file that `bless` writes
    Baseline,
    /// What `compare --format json` prints
    Comparison,
    /// A line that `classify` reads
    ClassifyInput,
    /// A line that `classify` writes
    Classified,
}

#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// Run results, one JSON object a line; `-` for standard input
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) input: PathBuf,

    /// Suite file with policies and other rules of judging
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,

    /// Write the classified results here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the summary as JSON here; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,

    /// Count errors, timeouts and crashes as failed cases in the means
    ///
    /// By default they leave both sides of the fraction and are shown as a rate.
    #[arg(long)]
    pub(crate) errors_as_failures: bool,

    /// Report a result whose case states no criterion as a problem
    #[arg(long)]
    pub(crate) require_criteria: bool,

    /// Threads to use [default: one for each core]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Do not print the summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Does the text decline to answer?
    #[command(after_help = "\
Example:
  probity check refusal --text \"I cannot help with that.\"
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"refusal\",\"phrase\",\"span\"} out")]
    Refusal(CheckArgs),
    /// Can JSON be read out of the text, and what did it take?
    #[command(after_help = "\
Example:
  probity check json --level repair --text \"{'a': True, // yes\"
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"value\",\"steps\",\"error_message\"} out")]
    Json {
        #[command(flatten)]
        args: CheckArgs,
        /// How much is forgiven [default: what the suite file says, else lenient]
        #[arg(long, value_enum)]
        level: Option<LevelArg>,
        /// Which kind of value is looked for
        #[arg(long, value_enum, default_value_t = WantedArg::Any)]
        want: WantedArg,
    },
    /// Does the text break a policy?
    #[command(after_help = "\
Example:
  probity check policy --policy secrets,pii < reply.txt
With --jsonl: {\"id\",\"text\"} in, {\"id\",\"hits\":[{\"policy\",\"rule\",\"span\"}]} out")]
    Policy {
        #[command(flatten)]
        args: CheckArgs,
        /// Built-in policies, or policies of the suite file, separated by commas
        ///
        /// Without it: every policy of the suite file, or all the built-in ones.
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        policy: Vec<String>,
    },
    /// Is a shell command safe, is it portable, and does it do what another one does?
    #[command(after_help = "\
Examples:
  probity check command 'find . -name \"*.log\" -delete'
  probity check command 'tar xzf a.tgz' --against 'tar --extract --gzip --file=a.tgz'
  probity check command --reply < reply.txt
With --jsonl: {\"id\",\"command\",\"against\",\"level\"} in; {\"id\",\"parsed\",\"risk\",\"unsafe\",\"findings\",\"posix\",
\"violations\",\"equivalence\",\"canonical\",\"difference\",...} out; `against` and `level` are optional")]
    Command(CheckCommandArgs),
    /// Do files of evaluation results, as `run -o FILE.json` writes them, add up?
    #[command(after_help = "\
Example:
  probity check evaluation result.json

Exit codes: 0 all of them do, 2 one does not")]
    Evaluation {
        /// The files
        #[arg(required = true, value_name = "FILE.json")]
        files: Vec<PathBuf>,
    },
    /// What does the text of an error mean, and does it help to try again?
    #[command(after_help = "\
Example:
  probity check error --status 429 --text 'Rate limit reached, try again in 20s'
With --jsonl: {\"id\",\"backend\",\"status\",\"exit_code\",\"signal\",\"text\",\"stdout\",\"stderr\",\"headers\"} in,
{\"id\",\"kind\",\"permanent\",\"retry_after\",\"evidence\"} out; all but `id` are optional")]
    Error {
        #[command(flatten)]
        args: CheckArgs,
        /// The backend whose words they are: openai, anthropic, claude, codex, ...
        #[arg(long, value_name = "NAME")]
        backend: Option<String>,
        /// The HTTP status that came with it
        #[arg(long, value_name = "CODE")]
        status: Option<u16>,
        /// The exit code of the program
        #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
        exit_code: Option<i32>,
        /// The signal that ended the program
        #[arg(long, value_name = "NAME")]
        signal: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckCommandArgs {
    /// The command; without it standard input is read
    #[arg(value_name = "CMD", conflicts_with = "jsonl", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,

    /// Another command: do they do the same?
    #[arg(long, value_name = "CMD2", allow_hyphen_values = true)]
    pub(crate) against: Option<String>,

    /// How much risk is accepted [default: what the suite file says, else moderate]
    #[arg(long, value_enum)]
    pub(crate) level: Option<SafetyLevelArg>,

    /// The edition of POSIX it is held against [default: what the suite file says, else 2024]
    #[arg(long, value_name = "YEAR", value_enum)]
    pub(crate) posix_edition: Option<EditionArg>,

    /// The text is a model's reply: find the command in it
    #[arg(long)]
    pub(crate) reply: bool,

    /// Print one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,

    /// Stream: one JSON object a line in, one out
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Suite file with rules of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SafetyLevelArg {
    /// Any risk counts as unsafe, and so does what cannot be judged
    Strict,
    /// Risk high and critical: what loses work or reaches beyond the working directory
    Moderate,
    /// Risk critical only: what ruins a machine or a whole store of data
    Permissive,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EditionArg {
    /// POSIX.1-2017
    #[value(name = "2017")]
    Posix2017,
    /// POSIX.1-2024
    #[value(name = "2024")]
    Posix2024,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The text; without it standard input is read
    #[arg(long, value_name = "TEXT", conflicts_with = "jsonl", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// Stream: one JSON object a line in, one out
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Suite file with rules of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LevelArg {
    /// The whole text is one JSON value
    Strict,
    /// Fences, prose around it, trailing commas and bad escapes are forgiven
    Lenient,
    /// Whatever can be understood is mended
    Repair,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WantedArg {
    /// Any value
    Any,
    /// An object
    Object,
    /// An array
    Array,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// Report every problem of datasets, with file, line and column
    #[command(after_help = "\
Examples:
  probity dataset validate cases.toml
  probity dataset validate --strict cases/*.jsonl")]
    Validate {
        /// Datasets, each on its own
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
        /// Report a case that states no criterion as an error
        #[arg(long)]
        require_criteria: bool,
        /// Print problems and the summary as JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Count cases by category, tag and difficulty, and list those without a criterion
    #[command(after_help = "\
Example:
  probity dataset stats cases.toml")]
    Stats {
        /// Datasets, counted together
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look for near-duplicates, secrets, home folders and double-encoded text
    #[command(after_help = "\
Example:
  probity dataset lint cases.toml")]
    Lint {
        /// Datasets, looked at together
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Treat findings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Write a dataset in another format, given by the suffix
    #[command(after_help = "\
Example:
  probity dataset convert cases.toml cases.jsonl")]
    Convert {
        /// The dataset
        input: PathBuf,
        /// The file to write: .toml, .jsonl, .json, .yaml or .csv
        output: PathBuf,
        /// Overwrite the output
        #[arg(long)]
        force: bool,
    },
    /// Read another tool's cases, and report what could not be carried over
    #[command(after_help = "\
Examples:
  probity dataset import --from promptfoo promptfooconfig.yaml cases.toml
  probity dataset import --from csv prompts.csv cases.jsonl")]
    Import {
        /// The tool the cases come from
        #[arg(long, value_enum)]
        from: ImportArg,
        /// The file to read
        input: PathBuf,
        /// The file to write: .toml, .jsonl, .json, .yaml or .csv
        output: PathBuf,
        /// Prompt template for a file that has only variables, such as promptfoo's CSV
        #[arg(long, value_name = "TEMPLATE")]
        prompt: Option<String>,
        /// Overwrite the output
        #[arg(long)]
        force: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ImportArg {
    /// caro: its YAML, TOML and JSON cases, all four generations
    Caro,
    /// FailProof LLM: JSONL suites
    Failproof,
    /// dotnet-artisan: activation and confusion JSONL, rubric YAML
    Artisan,
    /// promptfoo: test YAML, JSON, JSONL and CSV
    Promptfoo,
    /// A CSV file with the columns `prompt` and `expected`
    Csv,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
