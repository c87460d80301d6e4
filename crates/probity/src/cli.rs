//! The command line. The comments are the help text.

pub(crate) mod check;
mod deferred;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod view;
#[cfg(feature = "workers")]
pub(crate) mod workers;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::deferred::Deferred;
use crate::exit::exit_codes;

const EXAMPLES: &str = concat!(
    "\
Examples:
  probity demo                                 see what it does, without a model
  probity init                                 write a suite to start from
  probity run                                  ask every case of the suite probity.toml
  probity dataset validate cases.toml          report every problem of a dataset
  probity classify results.jsonl -o out.jsonl  classify stored replies
  probity check json --text '{\"a\": 1,}'        one detector on one text
  probity check refusal --jsonl < replies.jsonl

",
    exit_codes!()
);

/// Evaluate language models and the tools built on them
///
/// Probity runs prompts against models and classifies each reply by deterministic rules:
/// pass, fail, refusal, wrong format, policy violation, error, crash or timeout, with the
/// rule that decided and its evidence.
#[derive(Debug, Parser)]
#[command(name = "probity", version = env!("VERSION_OF_BUILD"), after_help = EXAMPLES, max_term_width = 100)]
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
    /// Write a suite to start from, or a built-in suite
    ///
    /// The starter runs without a server and without a key. On a terminal, servers that run here, keys
    /// in the environment and installed programs are offered as backends; elsewhere nothing is asked,
    /// and they are listed. Existing files are never overwritten without --force.
    #[command(after_help = "\
Examples:
  probity init                                 probity.toml and cases.toml, here
  probity init --list                          the built-in suites
  probity init --suite shell --backend ollama:llama3.2
  probity init --suite json,unicode evals      into evals/json and evals/unicode
  probity init --ci github                     with a workflow for pull requests
  probity init --editor                        with a schema, for completion in editors
  probity init --suite long-context --size 100k --backend openai:default@http://127.0.0.1:8080/v1

Exit codes: 0 all files are written, 2 they are not")]
    Init(Deferred<init::InitArgs>),

    /// Take a tour: eight classes of results, a retry, a wrong key, a kill, a regression
    ///
    /// Starts a scripted server on this machine and runs real commands against it, each of which is
    /// shown before it runs. It takes less than ten seconds and needs no model, no key and no network.
    /// The files stay in a new folder, so that every command can be repeated.
    #[command(after_help = "\
Examples:
  probity demo                                 the tour, with its files in probity-demo
  probity demo /tmp/tour                       in another new folder
  probity demo --serve                         its server alone, to repeat commands of the tour

Exit codes: 0 everything went as shown, 2 the demo could not start, 3 something went wrong")]
    Demo(Deferred<demo::DemoArgs>),

    /// Import another tool's configuration as a suite, or its results as a run
    ///
    /// Reads promptfoo's configurations and the case files of other tools, and writes what a person
    /// would have written: a suite, datasets, prompts. What cannot be carried over is listed with its
    /// file, its line and what to do about it. Nothing of the import is run, and no file outside the
    /// folder of the configuration is read.
    ///
    /// Results become a stored run that says where it comes from: promptfoo's output (.json, .jsonl),
    /// Inspect's logs (.eval, .json), lm-eval's samples and results, OpenAI evals' logs. It can be
    /// shown, compared, judged again and blessed. Errors stay errors, and what the tool does not
    /// decide is undecided. The same file is stored once.
    #[command(after_help = "\
Examples:
  probity import promptfooconfig.yaml          probity.toml and its datasets, beside it
  probity import evals/ -o evals/probity       into another folder
  probity import prompts.csv --from plain
  probity import promptfooconfig.yaml --json   for scripts, see `probity schema import`
  probity import out.json                      results of promptfoo as a run
  probity import log.eval --suite probity.toml a log of Inspect, with the names of a suite
  probity run promptfooconfig.yaml             imports and runs, without writing a suite

Exit codes: 0 everything was carried over, 1 something was not, 2 nothing was imported")]
    Import(Deferred<import::ImportArgs>),

    /// Run a suite: ask its backends every case, and judge and record the answers
    ///
    /// Every finished case is on disk before it is counted, so a run that was interrupted
    /// or killed continues with --resume. Progress goes to standard error, the summary to
    /// standard output.
    #[command(
        visible_alias = "eval",
        after_help = concat!(
            "\
Examples:
  probity run                                  the suite probity.toml
  probity run shell.toml --dry-run             what it would ask and cost
  probity run shell.toml --backend local -j 8 --limit 20
  probity run shell.toml --resume              continue where it stopped
  probity run shell.toml --replay answers.jsonl

",
            exit_codes!()
        )
    )]
    Run(Deferred<Box<run::RunArgs>>),

    /// List the runs in the store, or remove some
    #[command(
        visible_aliases = ["list", "ls"],
        after_help = "\
Examples:
  probity runs
  probity runs rm k3f9x2
  probity runs gc --keep 50"
    )]
    Runs(Deferred<run::RunsArgs>),

    /// Show a run, or everything about one of its cases
    #[command(after_help = "\
Examples:
  probity show                 the latest run, and the cases that did not pass
  probity show k3f9x2 case-17  prompt, answer, attempts, classification with its evidence")]
    Show(Deferred<run::ShowArgs>),

    /// Browse stored runs, and runs in progress, in a web browser
    ///
    /// Prints its address as the first line of standard output, and answers until it is stopped. Nothing is
    /// changed, and nothing is loaded from anywhere else. Addresses that others can reach need a token, which
    /// is part of the printed address. Programs read the same from /api/v1.
    #[command(after_help = "\
Examples:
  probity view --open
  probity view --store nightly.db --port 0     any port that is free
  probity view --host 0.0.0.0                  for others, with a token
  probity view --allow-edit                    mark verdicts right or wrong, give points, take notes")]
    View(Deferred<view::ViewArgs>),

    /// Write a report of a run: HTML, Markdown, JUnit, CSV or JSON
    ///
    /// The suffix of a file name selects the format. Without -o the summary is shown.
    #[command(after_help = "\
Examples:
  probity report
  probity report k3f9x2 -o result.json -o cases.jsonl")]
    Report(Deferred<report::ReportArgs>),

    /// Judge the stored replies of a run again, without calling a backend
    ///
    /// The current suite, datasets and rules decide. The result is a new run that names its
    /// origin; cases whose verdict changed are listed with the reason. A judge's answers are read
    /// again; pairs of answers keep their judgement.
    #[command(after_help = "\
Examples:
  probity rescore                             the latest run, by the current probity.toml
  probity rescore k3f9x2 --suite stricter.toml -o result.json")]
    Rescore(Deferred<report::RescoreArgs>),

    /// Evaluate the gates of a stored run again, or compare it with a baseline
    #[command(after_help = "\
Examples:
  probity gate --baseline main
  probity gate k3f9x2 --suite probity.toml    by the current gates of the suite

Exit codes: 0 every gate passed, 1 a gate failed or the run got worse, 3 the run is not usable")]
    Gate(Deferred<report::GateArgs>),

    /// Save the verdicts of a run as a baseline, which later runs are compared with
    ///
    /// Writes a small file with a line for each case, for version control.
    #[command(after_help = "\
Examples:
  probity bless                 the latest run, as baselines/main.json
  probity bless k3f9x2 --as v2  as baselines/v2.json
  probity run --baseline v2")]
    Bless(Deferred<report::BlessArgs>),

    /// Compare runs: rates, differences, cases whose verdict flipped
    #[command(after_help = "\
Examples:
  probity compare k3f9x2 latest
  probity compare latest@small latest@large --format md
  probity compare latest@small latest@large --judge judge --criteria \"It is polite.\"")]
    Compare(Deferred<report::CompareArgs>),

    /// Show the results of a suite over time
    #[command(after_help = "\
Examples:
  probity trend
  probity trend shell.toml --backend local -n 50")]
    Trend(Deferred<report::TrendArgs>),

    /// Export a run or a suite: for training, as a draft of an issue, or for another tool
    ///
    /// Prompts are written as they were sent. For training, cases that ended in an error are left
    /// out. What the other tool has no place for is listed, and the exit code is 1 unless --lossy.
    #[command(after_help = "\
Examples:
  probity export --as chat -o train.jsonl
  probity export k3f9x2 --as preferences > pairs.jsonl
  probity export --as issue --baseline main
  probity export probity.toml --as promptfoo -o promptfooconfig.yaml
  probity export k3f9x2 --as promptfoo -o results.json   then: promptfoo import results.json
  probity export k3f9x2 --as inspect-log -o logs         then: inspect view --log-dir logs
  probity export k3f9x2 --as otlp --to http://localhost:4318
  probity export --all --as parquet -o tables            then: select * from 'tables/cases/*/*.parquet'

Exit codes: 0 everything was written, 1 something was lost, 2 nothing was written")]
    Export(Deferred<export::ExportArgs>),

    /// Check whether the backends of a suite are available
    ///
    /// Looks for servers and programs, their versions and what they support. No model is
    /// called unless --call is given.
    #[command(after_help = "\
Examples:
  probity doctor
  probity doctor shell.toml --backend claude --call

Exit codes: 0 every backend is available, 3 one is not")]
    Doctor(Deferred<run::DoctorArgs>),

    /// Run a shell command in a sandbox, and show what it did
    ///
    /// The command sees a world: files made for it, and the tools of this machine, which it can only read. It
    /// has no network, no rights, and limits on time, memory, processes and disk. It cannot change
    /// anything outside the world. Its output, its exit code and the files that it changed are shown.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  probity sandbox 'find . -name \"*.txt\" -delete'
  probity sandbox 'rm -rf --no-preserve-root /' --world repository
  probity sandbox --json 'sort -u names.txt' --world my-world.toml
  probity sandbox --world texts -- grep -rl error .
  probity sandbox doctor                       what this machine offers

Exit codes: 0 it was executed, 2 wrong command line or world, 3 there is no sandbox on this machine"
    )]
    Sandbox(Deferred<sandbox::SandboxArgs>),

    /// Make calls for runs on other machines, through a NATS server
    ///
    /// Asks the backends whose keys, programs or models are on this machine, executes in its sandbox, and with
    /// --suite runs its scorers. Keys stay here. On SIGTERM or Ctrl-C it finishes the calls that it has begun.
    #[cfg(feature = "workers")]
    #[command(after_help = "\
Examples:
  probity worker --connect nats://queue:4222
  probity worker --connect nats://queue:4222 --serve gpu -j 8
  probity worker --connect tls://queue:4222 --suite evals/probity.toml --nats-creds worker.creds

Exit codes: 0 it was stopped, 2 wrong command line, no way to the server, 3 the server refuses it")]
    Worker(Deferred<workers::WorkerArgs>),

    /// List the workers of a NATS server: calls, rate, and when they were last seen
    #[cfg(feature = "workers")]
    #[command(after_help = "\
Example:
  probity workers --connect nats://queue:4222")]
    Workers(Deferred<workers::WorkersArgs>),

    /// Merge the parts of a run that was split with --shard K/N
    #[command(after_help = "\
Example:
  probity run --shard 1/2 --store a.db    on one machine
  probity run --shard 2/2 --store b.db    on another
  probity merge a.db b.db                 into the default store")]
    Merge(Deferred<run::MergeArgs>),

    /// Show the effective settings, and where each comes from
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity config show shell.toml
  probity config default > probity.toml"
    )]
    Config(Deferred<run::ConfigCommand>),

    /// Show or clear the cache of answers
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity cache stats
  probity cache clear"
    )]
    Cache(Deferred<run::CacheCommand>),

    /// Fetch, list or remove models for backends of kind `embedded`
    ///
    /// They are kept in the folder that `PROBITY_MODELS` names, else in `probity/models` of the user's
    /// cache.
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity model pull smollm2-135m
  probity model list"
    )]
    Model(Deferred<model::ModelCommand>),

    /// Find out whether a model that judges answers can be trusted
    #[command(
        subcommand,
        after_help = "\
Example:
  probity judge agreement labels.jsonl --judge local"
    )]
    Judge(Deferred<judge::JudgeCommand>),

    /// Classify stored replies, without calling a model
    ///
    /// Reads run results, one JSON object per line, and writes the same lines with
    /// `classification`, `verdict` and `scores`. No model is called. A result has
    /// `case_id`, `raw_response` or `error`, and the criteria of its case
    /// (`expected_response`, `match`, `expected_format`, `schema`, `assert`,
    /// `expected_classification`). A summary goes to standard error.
    #[command(after_help = "\
Examples:
  probity classify results.jsonl -o classified.jsonl
  zcat results.jsonl.gz | probity classify - --suite probity.toml > classified.jsonl")]
    Classify(Deferred<ClassifyArgs>),

    /// Check one text: is it a refusal, JSON, a safe command, which kind of error?
    ///
    /// Without --text and --jsonl the text is read from standard input. With --jsonl the
    /// input is one JSON object per line; the output has the same order and the same `id`s.
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity check refusal --text \"I'm sorry, but I can't help with that.\"
  probity check json --level repair < reply.txt
  probity check error --jsonl < errors.jsonl"
    )]
    Check(Deferred<check::CheckCommand>),

    /// Validate, count, lint and convert datasets
    ///
    /// A dataset is a file of cases in TOML, JSONL, JSON, YAML or CSV.
    #[command(
        subcommand,
        after_help = "\
Examples:
  probity dataset validate cases/*.toml
  probity dataset stats cases.jsonl
  probity dataset convert cases.toml cases.jsonl"
    )]
    Dataset(Deferred<DatasetCommand>),

    /// Print the JSON Schema of a file that Probity reads or writes
    ///
    /// Without a name it lists the schemas. They are JSON Schema draft 2020-12.
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
    /// What `import --json` prints
    Import,
    /// What `import --json` prints of results
    ImportedRun,
}

#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// Run results, one JSON object per line; `-` for standard input
    #[arg(value_name = "FILE.jsonl")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) rules: run::RulesArgs,

    /// Write the classified results here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the summary as JSON here; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,

    /// Count errors, timeouts and crashes as failed cases in the means
    ///
    /// By default they are left out of both sides of the fraction and shown as a separate rate.
    #[arg(long)]
    pub(crate) errors_as_failures: bool,

    /// Report a result whose case has no criterion as a problem
    #[arg(long)]
    pub(crate) require_criteria: bool,

    /// Threads to use [default: one per core]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Do not print the summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// Report every problem of datasets, with file, line and column
    #[command(after_help = "\
Examples:
  probity dataset validate cases.toml
  probity dataset validate --strict cases/*.jsonl")]
    Validate {
        /// Datasets, each validated separately
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
        /// Report a case that has no criterion as an error
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
        /// Datasets, checked together
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Treat findings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Convert a dataset to another format, selected by the suffix
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
