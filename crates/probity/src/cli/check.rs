//! The command line of `probity check`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
